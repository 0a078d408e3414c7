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
	uint32_t floor_ppm; /* the lowest duty; more than 0 */
	uint32_t step_ppm;  /* size of a step by which the duty rises */
	uint32_t slack_ppm; /* how much longer than the baseline a step may be */
	uint32_t
		/*
		 * At most slack_ppm. A round longer than the baseline by more than this stops the
		 * rise.
		 */
		raise_ppm;
	uint32_t memory_step_ppm; /* the part of the spare memory that is given at a time */
	uint32_t steps;           /* steps in a round, 1 to TD_DUTY_STEPS_MAX */
	uint32_t rebase_rounds;
};

/*
 * The floor is 2 %, a step 5 %, the slack 5 %, a quarter of the memory at a time, 5 steps, 8
 * rounds.
 */
#define TD_DUTY_DEFAULT                                                                            \
	{                                                                                          \
		.floor_ppm = 20000, .step_ppm = 50000, .slack_ppm = 50000, .raise_ppm = 50000,     \
		.memory_step_ppm = 250000, .steps = 5, .rebase_rounds = 8                          \
	}
extern const struct td_duty_params td_duty_default;

/*
 * Returns the parameters for a job that states its slack in ppm; 0: the job states none. The floor
 * is at most a fifth of the slack. Half of the slack stays unused, because a besteffort kernel that
 * has just begun costs time at any duty.
 */
struct td_duty_params td_duty_params_of(uint32_t slack_ppm);

struct td_duty_input {
	bool guaranteed;        /* a guaranteed job is on the GPU */
	bool busy;              /* the guaranteed job has work for the GPU */
	uint32_t job;           /* the guaranteed job's id; a new id means a new job */
	uint64_t steps;         /* number of steps that the job has finished */
	uint64_t step_ns;       /* how long the last finished step took */
	uint64_t step_began_ns; /* when the present step began; 0: unknown */
	uint64_t alone_step_ns; /* step time profiled without other jobs; 0: unknown */
	uint64_t host_bytes;    /* bytes of the job that did not fit on the device */
	uint32_t unit;          /* kind of work; only steps of the same unit are compared */
	uint32_t company;       /* number of besteffort jobs on the GPU, active or not */
	/* GPU time used by besteffort jobs under a duty so far; 0: unknown. */
	uint64_t company_ns;
};

#define TD_DUTY_UNITS 8

/* The findings about steps of one kind, which is a unit and a length (duty_units.h). */
struct td_duty_unit {
	uint32_t unit;
	uint32_t duty_ppm, caution_ppm, hold_rounds, failed_ppm;
	uint32_t met; /* how often the job has returned to steps of this kind */
	uint32_t held_rounds, foretold_rounds, foretold_hold;
	uint64_t left_steps;            /* value of steps when the job left this kind */
	uint64_t baseline_ns, noise_ns; /* baseline 0: the entry is free */
	uint64_t baseline_most_ns, floor_ns, failed_ns;
};

/* The mean over the rounds since the duty was set. */
struct td_duty_average {
	uint32_t duty_ppm, rounds;
	uint64_t sum_ns; /* sum of the rounds' medians */
};

/* The state for one GPU. A zeroed struct is in FREE. */
struct td_duty {
	enum td_duty_phase phase;
	uint32_t job;
	/* Reached so far; in force while the guaranteed job is busy. */
	uint32_t duty_ppm, memory_ppm;
	/* One step below the duty that failed; doubling stops here. */
	uint32_t caution_ppm;
	/* The last duty that was too high, and the step time under it; 0: none. */
	uint32_t failed_ppm;
	uint64_t failed_ns;
	uint32_t hold_rounds, held_rounds; /* rounds to stay at the duty; rounds stayed so far */
	uint64_t baseline_ns;              /* 0: not known yet */
	/* Upper bound of the baseline by the uncertainty of its first measurement. */
	uint64_t baseline_most_ns;
	/*
	 * The step time at the floor: a running mean of the medians of its good rounds, in which
	 * the newest counts a quarter. 0: there was no such round yet.
	 */
	uint64_t floor_ns;
	uint64_t steps_seen;
	uint64_t times_ns[TD_DUTY_STEPS_MAX];
	uint32_t times;
	uint32_t length; /* steps in a round; 0: as the parameters say */
	/* The number of steps that have ended since the job arrived or its work changed. */
	uint32_t first_steps;
	uint32_t empty_steps; /* steps made without a baseline since the job arrived */
	uint64_t noise_ns;    /* standard deviation of one step's time, estimated */
	uint32_t met;         /* td_duty_unit.met of the present kind */
	struct td_duty_average average;
	uint64_t began_ns;    /* when the step under way began, by the last report */
	uint32_t long_rounds; /* stable rounds at the floor that were too long, in a row */
	uint32_t company;
	uint64_t company_ns; /* td_duty_input.company_ns when the round began */
	uint32_t unit;
	uint64_t unit_since_ns;
	/* Findings about other kinds; the oldest is replaced. */
	struct td_duty_unit units[TD_DUTY_UNITS];
	uint32_t next_unit;
	struct td_duty_unit
		undo; /* the state before a step cut the duty while under way; baseline 0: none */
	struct td_duty_unit
		/*
		 * The baseline before a step that was too long. It is kept until a step at the
		 * floor is not too long, because steps of another kind may have caused the cut.
		 * Baseline 0: none is kept.
		 */
		before_cut;
	uint32_t look_ppm; /* the duty to return to after a round at the floor; 0: none */
	/*
	 * The duty was cut for a step that was too short. A step at the floor of usual length ends
	 * this.
	 */
	bool strayed;
	/* Rounds in which no rise was tried, because it was predicted to fail. */
	uint32_t foretold_rounds;
	/* After so many of those rounds the step time at the floor is measured again. */
	uint32_t foretold_hold;
	/* Rounds at the floor whose mean was too long for a rise, in a row. */
	uint32_t above_rounds;
	/* Number of steps in a row that took longer than besteffort work can explain. */
	uint32_t other_steps;
	bool skip; /* the step under way began before a cut, so its time is not judged */
};

struct td_duty_output {
	uint32_t duty_ppm;   /* the share of the GPU's time for all besteffort jobs together */
	uint32_t memory_ppm; /* their share of the memory that the guaranteed job leaves */
};

/*
 * Returns the time of the next td_duty_step() if nothing is reported before: a step under way
 * becomes too long then. UINT64_MAX: no step is needed before the next report.
 */
uint64_t td_duty_wakeup_ns(const struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns);

struct td_duty_output td_duty_step(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns);
