/*
 * Computes how much of a GPU a client uses, from the counters of its meter page
 * (proto/gate_page.h).
 *
 * The library charges work when it is submitted, and a program may submit much at once. So charged
 * work is counted as a GPU does it: at most as much as time has passed. Core demand is what the
 * program asks for. It is not spread over time and may exceed one GPU (DCUDA III-C1).
 *
 * A library measures SM activity and core demand relative to the SMs that its program's context
 * has. That share may change while the program runs, so what was charged since the last reading is
 * converted, and never a counter.
 *
 * The program writes the counters, so they are not trusted: a counter that falls starts anew, and
 * each rate has an upper bound. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Rates are means over at least this long (DCUDA III-C). */
#define TD_ACTIVITY_WINDOW_NS 100000000ull
/* need_ppm is a mean over about this much of the program's own GPU time. */
#define TD_ACTIVITY_NEED_NS 200000000ull
/* A program's core demand is cut to this many millionths of a GPU (16 GPUs). */
#define TD_ACTIVITY_CORES_MAX_PPM 16000000u

struct td_activity_counters {
	uint64_t used_ns, active_ns, core_ns;
};

/* A zeroed struct is valid: nothing was read yet. */
struct td_activity {
	uint64_t read_ns; /* when the counters were read last */
	struct td_activity_counters read;
	/* work that was charged and that the GPU cannot have done yet */
	uint64_t used_left_ns, active_left_ns;
	/* a whole window was measured, so the rates below are valid */
	bool known;
	uint32_t used_ppm, active_ppm, core_ppm;
	/* The share of the SMs that are active while the program runs; 0: it has not run yet. */
	uint32_t need_ppm;
	/* Totals that never fall, whatever the program writes. */
	uint64_t used_ns, active_ns, core_ns;
};

/* Returns whether the next td_activity_read() uses its counters. */
bool td_activity_is_due(const struct td_activity *activity, uint64_t now_ns);
/* Returns when that is so; UINT64_MAX: the client is not measured. */
uint64_t td_activity_due_ns(const struct td_activity *activity);

/*
 * Reads the counters. Does nothing until a window is over. Returns whether the rates are new.
 * share_ppm: the share of the GPU's SMs that active_ns and core_ns are relative to.
 */
bool td_activity_read(struct td_activity *activity, const struct td_activity_counters *counters,
	uint32_t share_ppm, uint64_t now_ns);

/*
 * The program continues as another client on another GPU. Takes over the rates and totals of the
 * old client until the new one has been measured.
 */
void td_activity_follow(struct td_activity *activity, const struct td_activity *before);

/* The client is not measured any more. A later reading starts anew. */
void td_activity_stop(struct td_activity *activity);
