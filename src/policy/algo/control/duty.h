/*
 * The share of a GPU that besteffort work gets beside a guaranteed job, by the guaranteed job's
 * step time.
 *
 * Purpose. AntMan's local coordinator (3.3) protects the guaranteed job by watching its mini-batch
 * time, since "AntMan relies on the application level metric to indicate the job performance":
 * - when a guaranteed job arrives, besteffort work is first limited in memory and in compute, so
 *   that the newcomer can set up;
 * - once it executes stably, the rest of the memory is given to besteffort work, then compute, "in
 *   a step-like fashion under the condition that the resource-guarantee job is not affected";
 * - "if it observes an unstable performance in the resource-guarantee job, it adopts a pessimistic
 *   strategy": the duty is cut to the floor at once;
 * - when the guaranteed job outgrows its memory (tensors on the host), besteffort work gives memory
 *   back.
 *
 * The output is the duty of GpuOpManager (3.1.2) in ppm of the GPU's time, and the share of the
 * spare memory, both for all besteffort work of one GPU together.
 *
 *           no guaranteed job                  baseline found         all memory given
 *   FREE <--------------------- (any)   FLOOR ----------------> MEMORY ---------------> COMPUTE
 *     |                                 ^  ^                      |                       |
 *     +--- a guaranteed job arrives ----+  +---- a step too long, or tensors on the host -+
 *
 * The paper leaves open how the unaffected step time is known, how the duty steps, and what follows
 * a cut. Here:
 * - Baseline: the median of `steps` steps at the floor whose spread is within the slack, or the
 *   profiled step time alone where that is given and smaller. A smaller median later lowers it.
 * - Longer steps for good (a larger batch) show at the floor too: after `rebase_rounds` stable,
 *   long rounds they are the baseline. Otherwise besteffort work would stay at the floor for ever.
 * - After a cut the duty doubles from the floor to one step below the duty that failed, and stays
 *   there. The wait doubles each time in a row that the next step up has failed. So a disturbance
 *   costs little, and a duty that the job cannot bear is tried ever more rarely; once it can, the
 *   duty goes on rising.
 * - The cost of a rise is predicted from the mean cost of the duty so far beyond the floor, with
 *   its uncertainty. A rise that would make a round too long is not tried. Nor is one that has
 *   failed, as long as the present duty costs in proportion.
 * - Growth of the job's own steps that is not seen to be too long looks like the cost of the duty.
 *   So after some rounds in which a rise was predicted to fail, one round is spent at the floor,
 *   ever more rarely. Where the mean of the rounds at the floor is too long for any duty to rise,
 *   it becomes the baseline.
 * - Besteffort work costs time at the floor too, such as the kernel in flight at the end of a
 *   pause. That is no part of the baseline, which rises only by its own uncertainty when it was
 *   measured.
 * - An unfinished step that already takes too long counts at once, before it ends.
 * - A step more than twice as long as the whole duty could make it (by 1 / (1 - duty)) is not
 *   besteffort's doing: it is a validation or a checkpoint. Its cut is undone when it is over. As
 *   many in a row as make `rebase_rounds` rounds are the job's new work, which is protected like a
 *   newcomer's.
 * - Noise: steps that vary by themselves are judged in longer rounds, up to TD_DUTY_STEPS_MAX,
 *   until the median of a round is twice as certain as the slack is wide. A single step is too long
 *   beyond the slack or four times the noise, whichever is more. 99 of 100 steps are to be within
 *   the slack, so the mean of all rounds at a duty may take the slack less the steps' spread, and
 *   less a fifth for the floor's own cost: at least a third of it, at most three quarters. A single
 *   round is too long beyond three quarters and its own uncertainty. Noise beyond that is "unstable
 *   performance": the duty stays at the floor, and memory rises in steps as the longest rounds go
 *   by.
 * - Work of another kind (input.unit, such as a validation with steps of its own) has its own
 *   baseline, noise and duty. So have steps of another length once such steps were seen
 *   (duty_units.h): a job whose steps alternate between lengths keeps the findings of each.
 * - The duty does not rise without besteffort work, because nothing shows its cost; nor by a round
 *   in which all besteffort jobs are known to have been idle. It falls to the floor when another
 *   besteffort job arrives, and doubles from there to what was reached before.
 * - While the guaranteed job has nothing for the GPU (evaluation on the CPU, Fig. 12's decoding),
 *   besteffort work has all of it, and the former duty is in force again with the job's next
 *   launch. The pauses of the steps that make the baseline are left empty, or the baseline would
 *   hold the cost of besteffort work at their ends. This lasts for two rounds at most, and is not
 *   repeated for each of many units.
 *
 * Invariants
 * - besteffort work never starves: floor <= duty <= 1, whatever the input;
 * - no guaranteed job, no limit;
 * - in the step of an arrival, of either class, and of a step that is too long, the duty is the
 *   floor;
 * - the duty rises by at most one step, or doubles below what failed, for `steps` good steps.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_DUTY_STEPS_MAX 32

enum td_duty_phase {
	TD_DUTY_FREE,
	TD_DUTY_FLOOR,
	TD_DUTY_MEMORY,
	TD_DUTY_COMPUTE,
	TD_DUTY_PHASE_N,
};

struct td_duty_params {
	uint32_t floor_ppm; /* of the duty; more than 0 */
	uint32_t step_ppm;  /* of the duty */
	uint32_t slack_ppm; /* by which a step may exceed the baseline */
	uint32_t
		/* at most slack_ppm: a round longer by more than this stops the duty's rise */
		raise_ppm;
	uint32_t memory_step_ppm; /* of the spare memory */
	uint32_t steps;           /* that are judged together, 1 to TD_DUTY_STEPS_MAX */
	uint32_t rebase_rounds;
};

/* floor 2 %, step 5 %, slack 5 %, a quarter of the memory at a time, 5 steps, 8 rounds. */
#define TD_DUTY_DEFAULT                                                                            \
	{                                                                                          \
		.floor_ppm = 20000, .step_ppm = 50000, .slack_ppm = 50000, .raise_ppm = 50000,     \
		.memory_step_ppm = 250000, .steps = 5, .rebase_rounds = 8                          \
	}
extern const struct td_duty_params td_duty_default;

/*
 * Returns the parameters for a job that states its slack. The floor is a fifth of the slack where
 * that is less, and half of the slack stays unused: a besteffort kernel that has just begun costs
 * time at any duty. 0: the job states none.
 */
struct td_duty_params td_duty_params_of(uint32_t slack_ppm);

struct td_duty_input {
	bool guaranteed;        /* a guaranteed job is on the GPU */
	bool busy;              /* it has work for the GPU */
	uint32_t job;           /* its id; another id is another arrival */
	uint64_t steps;         /* that it has finished, in all */
	uint64_t step_ns;       /* the time of the last one */
	uint64_t step_began_ns; /* of the present one; 0 unknown */
	uint64_t alone_step_ns; /* profiled without company; 0 unknown */
	uint64_t host_bytes;    /* of its memory that did not fit on the device */
	uint32_t unit;          /* times of steps of one unit are compared */
	uint32_t company;       /* besteffort jobs on the GPU, at work or not */
	uint64_t company_ns;    /* GPU time that they have used under a duty, in all; 0 unknown */
};

#define TD_DUTY_UNITS 8

/* The findings about steps of one kind, which is a unit and a length (duty_units.h). */
struct td_duty_unit {
	uint32_t unit;
	uint32_t duty_ppm, caution_ppm, hold_rounds, failed_ppm;
	uint32_t met; /* so often steps have become like these again */
	uint32_t held_rounds, foretold_rounds, foretold_hold;
	uint64_t left_steps;            /* the job had made so many when they ended */
	uint64_t baseline_ns, noise_ns; /* baseline 0: this is none */
	uint64_t baseline_most_ns, floor_ns, failed_ns;
};

/* The mean of the rounds since the duty was set. */
struct td_duty_average {
	uint32_t duty_ppm, rounds;
	uint64_t sum_ns; /* of their medians */
};

/* Zeroed: FREE. */
struct td_duty {
	enum td_duty_phase phase;
	uint32_t job;
	uint32_t duty_ppm, memory_ppm; /* reached; in force while the guaranteed job is busy */
	uint32_t caution_ppm;          /* one step below what failed; doubling ends here */
	uint32_t failed_ppm; /* the last duty that was too much, and its step time; 0: not known */
	uint64_t failed_ns;
	uint32_t hold_rounds, held_rounds; /* to stay there; stayed there */
	uint64_t baseline_ns;              /* 0: not known yet */
	uint64_t baseline_most_ns;         /* as uncertain as it was when it was measured */
	/*
	 * The step time at the floor: a running mean of the medians of its good rounds, in which
	 * the newest counts a quarter. 0: there was no such round yet.
	 */
	uint64_t floor_ns;
	uint64_t steps_seen;
	uint64_t times_ns[TD_DUTY_STEPS_MAX];
	uint32_t times;
	uint32_t length; /* of a round; 0: as the parameters say */
	/* The number of steps that have ended since the job arrived or its work changed. */
	uint32_t first_steps;
	uint32_t empty_steps; /* without a baseline since it arrived */
	uint64_t noise_ns;    /* of a step, in the manner of a standard deviation */
	uint32_t met;         /* as the present kind's */
	struct td_duty_average average;
	uint64_t began_ns;    /* of the step under way, as it was said last */
	uint32_t long_rounds; /* stable but too long, at the floor */
	uint32_t company;
	uint64_t company_ns; /* when the round began */
	uint32_t unit;
	uint64_t unit_since_ns;
	struct td_duty_unit units[TD_DUTY_UNITS]; /* others, seen before; the oldest is replaced */
	uint32_t next_unit;
	struct td_duty_unit
		undo; /* before the step under way was cut short; baseline 0: it was not */
	struct td_duty_unit
		/*
		 * The baseline before a step that was too long, kept until a step at the floor is
		 * not: steps of another kind may have caused the cut. Baseline 0: none is kept.
		 */
		before_cut;
	uint32_t look_ppm; /* the duty to go back to after a round at the floor; 0: none */
	/* the cut was for a step that was too short; one at the floor that is not ends it */
	bool strayed;
	uint32_t foretold_rounds,
		/*
		 * rounds in which a rise was predicted to fail; how many until the floor is
		 * measured
		 */
		foretold_hold;
	uint32_t above_rounds; /* at the floor, too long there already */
	uint32_t other_steps;  /* one after the other, longer than besteffort work can make them */
	bool skip; /* the step under way began before a cut: it tells nothing of what is in force */
};

struct td_duty_output {
	uint32_t duty_ppm;   /* of the GPU's time, for besteffort work together */
	uint32_t memory_ppm; /* of what the guaranteed job leaves */
};

/*
 * Returns when to step again although nothing was reported, because a step under way becomes too
 * long. UINT64_MAX: only on a change.
 */
uint64_t td_duty_wakeup_ns(const struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns);

struct td_duty_output td_duty_step(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns);
