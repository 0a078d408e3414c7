/*
 * How much of a GPU a client uses, from the counters of its meter page (proto/gate_page.h).
 *
 * The library charges work when it is submitted, and a program may submit much at once. So what was
 * charged is worked off here as a GPU does it: at most all of the time. Core demand is what is
 * asked for, and is not worked off: it may be more than one GPU (DCUDA III-C1).
 *
 * The counters are the program's, and not trusted: one that falls begins anew, and no rate is above
 * its bound. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Rates are means over at least this long (DCUDA III-C). */
#define TD_ACTIVITY_WINDOW_NS 100000000ull
/* The SMs that it needs while it runs are a mean over about this long of its own time. */
#define TD_ACTIVITY_NEED_NS 200000000ull
/* No program is taken to demand more than so many GPUs. */
#define TD_ACTIVITY_CORES_MAX_PPM 16000000u

struct td_activity_counters {
	uint64_t used_ns, active_ns, core_ns;
};

/* Zeroed: nothing read yet. */
struct td_activity {
	uint64_t read_ns; /* when the counters were read last */
	struct td_activity_counters read;
	uint64_t used_left_ns, active_left_ns; /* charged, and not worked off yet */
	bool known;                            /* there was a whole window: the rates are known */
	uint32_t used_ppm, active_ppm, core_ppm;
	uint32_t need_ppm; /* SMs that are active while it runs, lately; 0: it has not run */
	/* Counters that never fall, whatever the program does. */
	uint64_t used_ns, active_ns, core_ns;
};

/* Does nothing until a window is over. Returns true when the rates are new. */
bool td_activity_read(
	struct td_activity *activity, const struct td_activity_counters *counters, uint64_t now_ns);

/*
 * The program goes on as another client, on another GPU: its rates and totals go on until it has
 * been measured there.
 */
void td_activity_follow(struct td_activity *activity, const struct td_activity *before);

/* Nothing is measured any more: what is read next begins anew. */
void td_activity_stop(struct td_activity *activity);
