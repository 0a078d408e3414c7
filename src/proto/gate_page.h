/*
 * The two pages that a client process shares with the daemon, so that granting and metering need no
 * message.
 *
 * gate page   memfd made and written by tandemd, sealed against writing by others, mapped read-only
 * by the client. meter page  memfd written by the client; tandemd distrusts every value in it.
 *
 * One gate per process: a process on several GPUs is opened on all of them or on none. A zeroed
 * page means "open, nothing asked", so the client's own private page before registration, and after
 * the daemon is gone, is a page of zeros.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define TD_PAGE_BYTES 4096

/* The version of the pages, which HELLO carries. A newer version only adds fields. */
#define TD_PAGES_ABI 1u

/*
 * The gate word. A launching thread loads it once per call and goes on at once only if it is 0.
 * Threads that wait for the gate to open wait on it as a futex. Its upper bits count every change,
 * so that a waiter never misses one.
 */
#define TD_WORD_CLOSED 1u /* wait */
#define TD_WORD_ARMED  2u /* go on, but send BUSY first */
#define TD_WORD_WINDOW 4u /* go on, but keep at most window_ns of work in flight */
/*
 * A window_ns that limits nothing: it only asks the program to meter its work
 * (preload/gate/meter.h).
 */
#define TD_WINDOW_METER UINT64_MAX
#define TD_WORD_DUTY    8u  /* go on, but take at most duty_ppm of the GPU's time */
#define TD_WORD_STEPS   16u /* go on; the daemon wants to know where steps end */
#define TD_WORD_FLAGS   31u
#define TD_WORD_STEP                                                                               \
	32u /* added at every change that leaves a flag set; an open gate is exactly 0 */

#define TD_RIVALS       1u
#define TD_RIVALS_YIELD 2u /* and now and then all of them are held while this program runs alone */
/* Bits of `steps`. A library that does not know them looks for steps if any is set. */
#define TD_WANTED_STEPS  1u /* steps, the end of each of which is reported at once */
#define TD_WANTED_BURSTS 2u /* bursts of launches, for the meter page */

struct td_gate_page {
	_Atomic uint32_t word;
	_Atomic uint32_t duty_ppm;
	_Atomic uint64_t window_ns;
	/*
	 * Bytes that the job's other processes hold on each GPU; written only where the job has a
	 * limit. Indexed by GPU slot (TD_SLOT_MAX of them).
	 */
	_Atomic uint64_t others_bytes[16];
	/* 0, or TD_RIVALS_*: other programs may use one of this program's GPUs now, and want to. */
	_Atomic uint32_t rivals;
	_Atomic uint32_t steps; /* TD_WANTED_*: what is looked for in the launches */
	/*
	 * Exclusive moments (policy/node/alone.h) are numbered from 1. `hold`: another program has
	 * this moment, so submit nothing. `alone`: this program has it, until one piece of work is
	 * measured. 0: no moment.
	 */
	_Atomic uint32_t hold; /* number of another program's moment: submit nothing */
	/* number of this program's moment, until a piece of work is measured */
	_Atomic uint32_t alone;
	/*
	 * The expected end of a protected job's pause (policy/node/beside/pauses.h), 0 outside of
	 * one. A time in the past means that the pause may end at any moment. The duty does not
	 * charge work that ends before then, nor work that fits window_ns.
	 */
	_Atomic uint64_t pause_until_ns;
	/* number of programs that share the pause; 0: the pause is this program's */
	_Atomic uint32_t sharers;
	/*
	 * Under a duty, at most one piece of work longer than long_ns starts in long_every_ns. 0:
	 * the duty alone decides.
	 */
	_Atomic uint64_t long_ns, long_every_ns;
	/*
	 * Not 0: submit only work that was done before, because another program's new work is being
	 * tried (policy/node/beside/trials.h).
	 */
	_Atomic uint32_t hold_new;
	/*
	 * Ceilings by GPU slot: 0, or 1 + the most that the process may hold on the device, and in
	 * all, whatever limit it was told before. The ceiling takes back memory that was promised
	 * and is not used. It acts at once, even on a process that is stopped and may go on at any
	 * moment.
	 *
	 *     process: writes its claim (meter page), fences, reads the ceiling;
	 *              above the ceiling it withdraws the claim and asks the daemon
	 *     daemon:  writes the ceiling, fences, reads the claim
	 *
	 * Either the process sees the ceiling, or the daemon sees the claim.
	 */
	_Atomic uint64_t ceiling_device_bytes[16], ceiling_all_bytes[16];
	_Atomic uint32_t batch; /* batch size that a service shall use; 0: its own choice */
};

_Static_assert(sizeof(struct td_gate_page) <= TD_PAGE_BYTES, "both sides map one page");

/*
 * Bits of `fresh` about work that this process has never done before. WAITS: some waits at the
 * gate. IN_FLIGHT: some was submitted and its end has not been seen.
 */
#define TD_FRESH_BIT_WAITS     2u
#define TD_FRESH_BIT_IN_FLIGHT 4u
/* The higher bits count the pieces submitted so far, modulo their range. */
#define TD_FRESH_TRIES_SHIFT 8

struct td_meter_page {
	_Atomic uint64_t launches;   /* submissions of all threads, refreshed by the agent */
	_Atomic uint64_t gate_waits; /* times a thread found the gate closed */
	_Atomic uint64_t copies_bytes;
	/* GPU time used on all GPUs together, as far as it is measured: while the gate word says
	 * TD_WORD_WINDOW or TD_WORD_DUTY. */
	_Atomic uint64_t gpu_ns;
	_Atomic uint32_t guesses; /* pieces of work whose GPU time had to be guessed */
	/* number of the last `hold` during which no work of this process was in flight */
	_Atomic uint32_t dry;
	_Atomic uint32_t measured; /* the last `alone` in which a piece of work was measured */
	_Atomic uint32_t fresh;    /* TD_FRESH_BIT_*, while there is a duty */
	/*
	 * Claims by GPU slot: the most that the process holds on the device, and in all, with what
	 * it is about to allocate or to bring back.
	 */
	_Atomic uint64_t claimed_device_bytes[16], claimed_all_bytes[16];
	/*
	 * Figures by GPU slot, measured like gpu_ns: GPU time used; the part of it in which SMs had
	 * work, so that a kernel on half of the SMs counts half; and the part of the GPU's room for
	 * blocks that was asked for. Work that overlaps counts for each stream.
	 */
	_Atomic uint64_t used_ns[16], active_ns[16], core_ns[16];
	/*
	 * The bursts of its launches, where they are wanted: when the last one began, and the means
	 * of the time between two beginnings and of their length. 0: there were none.
	 */
	_Atomic uint64_t burst_began_ns, burst_every_ns, burst_ns;
};

_Static_assert(sizeof(struct td_meter_page) <= TD_PAGE_BYTES, "both sides map one page");
