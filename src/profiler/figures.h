/*
 * The figures of one job over a span of time, from the daemon's rounds of WATCH (view/snapshot.h).
 *
 * A job is found by its id: those of `tandem run` begin with a pid and a dot. All of its processes
 * count together. Counters may fall when a process ends; such a round counts as one in which
 * nothing was done. Pure: rounds in, figures out.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_snapshot;

#define TD_FIGURES_NAME 256

enum td_figures_state {
	TD_FIGURES_ABSENT,    /* the daemon has no process of the job that uses a GPU */
	TD_FIGURES_IDLE,      /* the job uses a GPU, and nothing was launched yet */
	TD_FIGURES_UNMETERED, /* the job launches, and the daemon does not measure it */
	TD_FIGURES_MEASURED,
	/* The job uses several GPUs, so figures of one GPU would not be the job's. */
	TD_FIGURES_SEVERAL,
};

struct td_figures {
	uint32_t gpu;                   /* the number of the job's GPU; valid from IDLE on */
	char gpu_name[TD_FIGURES_NAME]; /* the driver's name of the GPU; "": not known yet */
	char job[TD_FIGURES_NAME];      /* its id */
	uint64_t span_ns;               /* the time that the figures are of */
	uint32_t rounds;
	uint64_t used_ns;   /* time in which kernels ran */
	uint64_t active_ns; /* the same, times the share of the SMs that they had */
	uint64_t launches, steps, held_ns;
	/*
	 * The core demand and the duty, each integrated over the time: their mean times the time. A
	 * duty of 1 is the whole time.
	 */
	double core_ns, duty_ns;
	uint64_t peak_bytes, resident_bytes; /* the most of any round */
	uint64_t step_ns;                    /* median, of the last round; 0: no steps are known */
	uint32_t step_sure_ppm;
	/* The figures of a service in the last round in which it had answers. */
	uint64_t p99_ns, rate_milli;
	uint32_t sm_share_ppm; /* 0: it may use all SMs */
	/* the counters of the last round */
	uint64_t seen_ns, seen_used_ns, seen_active_ns, seen_launches, seen_steps, seen_held_ns;
};

/* Forgets what was summed, and begins a span with the last round that was taken. */
void td_figures_begin(struct td_figures *figures);

/* Takes a complete round. */
enum td_figures_state td_figures_take(
	struct td_figures *figures, const struct td_snapshot *now, const char *prefix);

/*
 * Returns the name of another job on that GPU that may run: one whose name has none of the `count`
 * prefixes. Returns "processes of other users" if only those are there, NULL if nobody is. The name
 * points into the snapshot.
 */
const char *td_figures_other(
	const struct td_snapshot *now, uint32_t gpu, const char *const *prefixes, unsigned count);
