/*
 * Moments in which one of several programs with duties has a GPU to itself, so that its work is
 * measured and not guessed.
 *
 * Purpose. A duty is charged by the time that work takes (preload/gate/budget.h). Events around the
 * work measure that only while no other program is served in between, so programs with duties that
 * always overlap would never know: two with 30 and 60 % and kernels of 20 ms were charged a third
 * too much. So, when a program has had to guess, the others submit nothing until they have run dry
 * and it has done one piece of work. Nothing is assumed about how a GPU divides its time.
 *
 *          someone guesses           the others are dry          measured
 *   QUIET ----------------> HOLDING ---------------------> ALONE -----------> QUIET, a pause
 *     ^                        |  took too long              |  took too long
 *     +------------------------+-----------------------------+
 *
 * Invariants
 * - a moment holds programs up for at most TD_ALONE_MOST_NS, and all moments together take at most
 *   a fifth of the time;
 * - the pauses double while moments go on, up to TD_ALONE_PAUSE_MAX_NS, and begin short again when
 *   a program comes;
 * - a program that four times in a row did not run dry, or was not measured, in time is waited for
 *   again only after twice the longest pause, then twice that, up to TD_ALONE_IN_VAIN_MAX_NS, until
 *   it does its part. A program that is stopped, or whose work takes longer than a moment, thus
 *   costs the others a four-hundredth of the time in the end;
 * - programs that ask in turn are served in turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_ALONE_TENANTS_MAX    16
#define TD_ALONE_MOST_NS        150000000ull
#define TD_ALONE_PAUSE_MIN_NS   20000000ull
#define TD_ALONE_PAUSE_MAX_NS   2000000000ull
#define TD_ALONE_IN_VAIN_MAX_NS 64000000000ull

enum td_alone_phase { TD_ALONE_QUIET, TD_ALONE_HOLDING, TD_ALONE_ALONE, TD_ALONE_PHASE_N };

/* A program with a duty that uses the GPU now. The program itself reports these numbers. */
struct td_alone_tenant {
	uint32_t id;       /* not 0 */
	uint32_t guesses;  /* how often it had to guess so far */
	uint32_t dry;      /* number of the last hold under which it has run dry */
	uint32_t measured; /* number of the last moment in which a piece of its work was measured */
	/*
	 * Output, to be sent to the program. Moments (short times) are numbered: ret_alone is the
	 * one in which only this program works, ret_hold one in which it submits nothing. 0: none.
	 */
	uint32_t ret_alone, ret_hold;
	/* Output: no program has failed so often that measuring this one would be in vain. */
	bool ret_measurable;
};

/* A program's failures in one of its two parts: to run dry, or to be measured. */
struct td_alone_trials {
	uint32_t failed; /* number of failures in a row; it stops at TRIALS */
	uint64_t pause_ns, again_ns;
};

struct td_alone_known {
	uint32_t id;
	uint32_t guesses; /* td_alone_tenant.guesses when the program was last measured */
	struct td_alone_trials dry, measure;
};

/* The state of one GPU. A zeroed struct is in QUIET. */
struct td_alone {
	enum td_alone_phase phase;
	uint32_t number;  /* number of this moment, or of the last one */
	uint32_t who;     /* id of the program that has or had the moment; 0: none yet */
	uint32_t tenants; /* sum over the programs' ids, which shows that one came or went */
	uint64_t since_ns, pause_ns;
	uint64_t next_ns, rest_ns; /* no moment before next_ns; after an arrival, before rest_ns */
	struct td_alone_known known[TD_ALONE_TENANTS_MAX];
};

/*
 * Makes one step for a GPU with `count` programs, at most TD_ALONE_TENANTS_MAX. With fewer than two
 * no moment begins. *last_number is the number of the last moment on all GPUs that these programs
 * may come to; a new moment takes the next one, so that an answer to an old moment is recognised.
 * Returns the time of the next step; UINT64_MAX: on the next change. Since programs do not report a
 * guess at once, with two or more programs there is a step every 20 ms.
 */
uint64_t td_alone_step(struct td_alone *alone, struct td_alone_tenant *tenants, uint32_t count,
	uint32_t *last_number, uint64_t now_ns);
