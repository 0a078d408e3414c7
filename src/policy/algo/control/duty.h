/*
 * The share of a GPU that besteffort work gets beside a guaranteed job, by the guaranteed job's step time.
 *
 * Purpose. AntMan's local coordinator (3.3) protects the guaranteed job by watching its mini-batch time, since "AntMan relies on
 * the application level metric to indicate the job performance":
 *  - when a guaranteed job arrives, besteffort work is first limited in memory and in compute, so that the newcomer can set up;
 *  - once it executes stably, the rest of the memory is given to besteffort work, then compute, "in a step-like fashion under
 *    the condition that the resource-guarantee job is not affected";
 *  - "if it observes an unstable performance in the resource-guarantee job, it adopts a pessimistic strategy": the cut is at
 *    once, to the floor;
 *  - when the guaranteed job outgrows its memory (tensors on the host), besteffort work gives memory back.
 * The output is the duty of GpuOpManager (3.1.2) in ppm of the GPU's time, and the share of the spare memory, both for all of
 * the besteffort work of one GPU together.
 *
 *           no guaranteed job                  baseline found         all memory given
 *   FREE <--------------------- (any)   FLOOR ----------------> MEMORY ---------------> COMPUTE
 *     |                                 ^  ^                      |                       |
 *     +--- a guaranteed job arrives ----+  +---- a step too long, or tensors on the host -+
 *
 * The paper leaves open how the unaffected step time is known, how it steps, and what follows a cut. Here:
 *  - baseline: the median of `steps` steps at the floor whose spread is within the slack; or the profiled step time alone, when
 *    it is given and smaller. A later smaller median lowers it;
 *  - a job whose steps have become longer for good (a larger batch) shows stable, long steps at the floor too: after
 *    `rebase_rounds` such rounds they are the baseline. Else besteffort work would stay at the floor for ever;
 *  - after a cut the duty doubles from the floor to one step below what failed, and stays there: twice as many rounds for each
 *    time in a row that the next step up has failed. So a disturbance costs little, and a duty that the job cannot bear is
 *    tried ever more rarely; once it can, the duty goes on rising;
 *  - what a rise would cost is foretold from what the duty so far has cost beyond the floor in the mean of its rounds, or may have cost as far as that is
 *    certain; one that would make a round too long is not tried, nor one that has failed, as long as the present duty costs in proportion to what that did;
 *  - the job's own steps may grow where that is not seen to be too long: what looks like the duty's cost is the job's then. So where a rise was foretold to fail for
 *    some rounds, one is spent at the floor, ever more rarely; and where the mean of those at the floor is so long that no duty would rise, it is the baseline;
 *  - what besteffort work costs at the floor, such as the kernel in flight at a pause's end, is no part of the baseline: it rises by no more than was
 *    uncertain when it was measured;
 *  - an unfinished step that already takes longer than it may is a step too long: nobody waits for its end;
 *  - what is twice as long as a step could become by all of the duty given (it took the GPU for 1 / (1 - duty) of its time) was not
 *    besteffort's doing: a validation, a checkpoint. The cut that it brought is undone when it is over. As many of them in a row as make
 *    `rebase_rounds` rounds are the job's work from now on: it is protected like a newcomer;
 *  - noise: steps that vary by themselves are judged in longer rounds, up to TD_DUTY_STEPS_MAX, until the median of a round is twice as
 *    certain as the slack is wide. A single step is too long beyond the slack or four times the noise, whichever is more. 99 of 100 steps are to be within
 *    the slack, so the mean of all rounds at a duty may take what their spread and a fifth for the floor's own cost leave of it, at most three quarters and at least a third;
 *    it is ever more certain. A single round is too long beyond three quarters and its own uncertainty. Noise beyond that is "unstable
 *    performance": the floor, and memory in steps, as the longest rounds go by;
 *  - work of another kind (input.unit: a validation with steps of its own) has a baseline, a noise and a duty of its own; so have steps of another length, once such were
 *    there (duty_units.h), so that a job whose steps are longer now and shorter then loses at neither what was found out at it;
 *  - while there is no besteffort work the duty does not rise: nothing shows what it would cost; nor by a round in which none of the jobs that are there has done any, where that
 *    is known. With each besteffort job that arrives it goes to the floor, and from there doubles to what was reached with the others;
 *  - while the guaranteed job has nothing for the GPU (evaluation on the CPU, Fig. 12's decoding) besteffort work has all of it,
 *    and what was reached before is in force again with its next launch. But the pauses of the steps that make the baseline are left
 *    empty, for two rounds at most (and not for each of many units), or it would hold what besteffort work costs at their ends.
 *
 * Invariants
 *  - duty never starves: floor <= duty <= 1, whatever the input;
 *  - no guaranteed job, no limit;
 *  - in the step of an arrival, of either class, and of a step too long, the duty is the floor;
 *  - the duty rises by at most one step, or doubles below what failed, for `steps` good steps.
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
		raise_ppm; /* by which a round may exceed it for the duty to rise further; at most the slack */
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
 * The same for a job that says what it can bear: a floor of a fifth of that where that is less, and half of it is left unused, so that what no
 * duty takes away (a kernel of besteffort work that has just begun) has room. 0: it says nothing.
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

/* What is known of steps of one kind: of a unit and a length (duty_units.h). */
struct td_duty_unit {
	uint32_t unit;
	uint32_t duty_ppm, caution_ppm, hold_rounds, failed_ppm;
	uint32_t met; /* so often steps have become like these again */
	uint32_t held_rounds, foretold_rounds, foretold_hold;
	uint64_t left_steps;            /* the job had made so many when they ended */
	uint64_t baseline_ns, noise_ns; /* baseline 0: this is none */
	uint64_t baseline_most_ns, floor_ns, failed_ns;
};

/* Of the rounds since the duty was set. */
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
	uint32_t
		failed_ppm; /* the last duty that was too much, and what a step took then; 0: not known */
	uint64_t failed_ns;
	uint32_t hold_rounds, held_rounds; /* to stay there; stayed there */
	uint64_t baseline_ns;              /* 0: not known yet */
	uint64_t baseline_most_ns;         /* as uncertain as it was when it was measured */
	uint64_t floor_ns; /* the median of the last good round at the floor; 0: none */
	uint64_t steps_seen;
	uint64_t times_ns[TD_DUTY_STEPS_MAX];
	uint32_t times;
	uint32_t length;      /* of a round; 0: as the parameters say */
	uint32_t first_steps; /* since it arrived, or its work changed */
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
		before_cut; /* by a step that was too long, until one at the floor is not: those of another kind may have caused it. Baseline 0: none was */
	uint32_t look_ppm;  /* the duty to go back to after a round at the floor; 0: none */
	bool strayed; /* that is for a step that was too short: one at the floor that is not is enough */
	uint32_t foretold_rounds,
		foretold_hold; /* in which a rise was foretold to fail; so many until the floor is looked at */
	uint32_t above_rounds; /* at the floor, too long there already */
	uint32_t other_steps;  /* one after the other, longer than besteffort work can make them */
	bool skip; /* the step under way began before a cut: it tells nothing of what is in force */
};

struct td_duty_output {
	uint32_t duty_ppm;   /* of the GPU's time, for besteffort work together */
	uint32_t memory_ppm; /* of what the guaranteed job leaves */
};

/* When to step again although nothing was reported: a step under way becomes too long. TD_NEVER's value: on change only. */
uint64_t td_duty_wakeup_ns(const struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns);

struct td_duty_output td_duty_step(struct td_duty *duty, const struct td_duty_params *params,
	const struct td_duty_input *input, uint64_t now_ns);
