/*
 * Writes the summary of a run; see run.h. Two policies are compared over the jobs that both have
 * done, whatever a third one did. A policy that was stopped is not compared: it had done only short
 * and early jobs.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "sim/command/run.h"

static void say(struct td_run_said *to, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(struct td_run_said *to, const char *format, ...)
{
	va_list args;

	if (to->count == TD_RUN_SAID_MAX)
		return;
	va_start(args, format);
	vsnprintf(to->text[to->count++], sizeof(to->text[0]), format, args);
	va_end(args);
}

uint32_t td_run_undone(const struct td_run_result *result)
{
	return (uint32_t)(result->metrics[TD_METRIC_FAILED] +
			  result->metrics[TD_METRIC_UNFINISHED]);
}

bool td_run_is_whole(const struct td_run *run, uint32_t result)
{
	for (uint32_t p = 0; p < run->result_count; p++)
		if (td_run_undone(&run->results[p]) < td_run_undone(&run->results[result]))
			return false;
	return true;
}

const struct td_run_result *td_run_baseline(const struct td_run *run)
{
	for (uint32_t p = 1; p < run->result_count; p++)
		if (run->results[p].sched == &td_sched_fifo)
			return &run->results[p];
	return run->result_count > 1 ? &run->results[1] : NULL;
}

/*
 * Returns how many times as fast jobs complete under `one` as under `other`, on average over the
 * jobs that both have done; not finite if there are none.
 */
static double gain_of(const struct td_run *run, const struct td_run_result *one,
	const struct td_run_result *other)
{
	double took = 0, other_took = 0;

	for (uint32_t i = 0; i < run->job_count; i++) {
		const struct td_sim_job *a = &one->jobs[i], *b = &other->jobs[i];

		if (a->status != TD_SIM_DONE || b->status != TD_SIM_DONE)
			continue;
		took += (double)(a->end_ns - a->submit_ns);
		other_took += (double)(b->end_ns - b->submit_ns);
	}
	return other_took / took;
}

/*
 * Returns the result of the policy under which jobs complete fastest. Only policies count that were
 * not stopped and lose no more jobs than the first one. NULL: the first policy is the fastest.
 */
static const struct td_run_result *best_other(const struct td_run *run, double *ret_gain)
{
	const struct td_run_result *first = &run->results[0], *best = NULL;

	*ret_gain = 1.005; /* a gain that is shown as 1.00 is not mentioned */
	for (uint32_t p = 1; p < run->result_count; p++) {
		const struct td_run_result *other = &run->results[p];
		double gain = gain_of(run, other, first);

		if (other->stopped || td_run_undone(other) > td_run_undone(first) ||
			!isfinite(gain) || gain <= *ret_gain)
			continue;
		best = other;
		*ret_gain = gain;
	}
	return best;
}

/* Writes how much faster the first policy is. A policy that loses jobs is never called faster. */
static void say_gain(const struct td_run *run, struct td_run_said *to)
{
	const struct td_run_result *first = &run->results[0], *base = td_run_baseline(run), *best;
	double gain, best_gain;
	char end[96] = "";

	if (!base)
		return;
	if (first->stopped || base->stopped) {
		say(to, "%s is not compared with %s: %s was stopped.", first->sched->name,
			base->sched->name, first->stopped ? first->sched->name : base->sched->name);
		return;
	}
	gain = gain_of(run, first, base);
	best = best_other(run, &best_gain);
	if (best && best != base)
		snprintf(end, sizeof(end), "; %s is best: %.2f times as fast as %s",
			best->sched->name, best_gain, first->sched->name);
	if (td_run_undone(first) > td_run_undone(base))
		say(to, "%s is not better than %s: it leaves more jobs undone.", first->sched->name,
			base->sched->name);
	else if (isfinite(gain))
		say(to,
			"Compared with %s: under %s a job is complete %s%.2f times as fast on "
			"average%s.",
			base->sched->name, first->sched->name, gain < 1 ? "only " : "", gain, end);
}

static void say_undone(const struct td_run *run, struct td_run_said *to)
{
	if (run->counted == run->job_count)
		return;
	for (uint32_t p = 0; p < run->result_count; p++) {
		const double *metrics = run->results[p].metrics;

		if (td_run_undone(&run->results[p]))
			say(to, "%s left jobs undone: %.0f FAILED, %.0f not finished.",
				run->results[p].sched->name, metrics[TD_METRIC_FAILED],
				metrics[TD_METRIC_UNFINISHED]);
	}
	say(to,
		"Completion times, waits and makespans are of the %u of %u jobs that every policy "
		"has done.",
		run->counted, run->job_count);
}

static void say_stopped(const struct td_run *run, struct td_run_said *to)
{
	char names[128] = "";
	size_t length = 0;

	for (uint32_t p = 0; p < run->result_count; p++)
		if (run->results[p].stopped)
			say(to,
				"STOPPED: %s was stopped at %.0f s of simulated time, before its "
				"last job ended.",
				run->results[p].sched->name,
				run->results[p].metrics[TD_METRIC_SIMULATED_S]);
	for (uint32_t p = 0; p < run->left_count; p++)
		length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
			p ? ", " : "", run->left[p]->name);
	if (run->left_count)
		say(to, "STOPPED: not run at all: %s.", names);
}

void td_run_say(const struct td_run *run, struct td_run_said *ret)
{
	ret->count = 0;
	say_stopped(run, ret);
	say_undone(run, ret);
	say_gain(run, ret);
}
