/*
 * The headline of tandem-sim run: two policies are compared by the jobs that both have done,
 * whatever was stopped; and a policy that beats the first is named.
 */
#include "test.h"

#include <string.h>

#include "sim/command/run.h"

#define JOBS 4u

static struct td_run run;
static struct td_sim_job jobs[3][JOBS];
static struct td_run_said said;

/* Completion times in seconds; 0: not finished. */
static void add(const struct td_sched *sched, bool stopped, const double *took_s)
{
	struct td_run_result *result = &run.results[run.result_count];
	uint32_t undone = 0;

	for (uint32_t i = 0; i < JOBS; i++) {
		jobs[run.result_count][i] = (struct td_sim_job){.submit_ns = 5,
			.end_ns = 5 + (uint64_t)(took_s[i] * 1e9),
			.status = took_s[i] > 0 ? TD_SIM_DONE : TD_SIM_RUNNING};
		undone += took_s[i] <= 0;
	}
	*result = (struct td_run_result){
		.sched = sched, .stopped = stopped, .jobs = jobs[run.result_count]};
	result->metrics[TD_METRIC_UNFINISHED] = undone;
	run.result_count++;
}

static bool is_said(const char *text)
{
	for (uint32_t s = 0; s < said.count; s++)
		if (strstr(said.text[s], text))
			return true;
	return false;
}

static void begin(void)
{
	run = (struct td_run){.job_count = JOBS, .counted = JOBS};
}

TEST(a_third_policy_that_was_stopped_does_not_turn_the_headline_round)
{
	begin();
	add(&td_sched_tandem, false, (double[]){40, 10, 10, 10});
	add(&td_sched_fifo, false, (double[]){10, 50, 50, 30});
	add(&td_sched_antman, true, (double[]){40, 0, 0, 0});
	td_run_say(&run, &said);
	CHECK(is_said("Compared with fifo: under tandem a job is complete 2.00 times as fast on "
		      "average."));
}

TEST(nothing_that_was_stopped_is_compared)
{
	begin();
	add(&td_sched_tandem, false, (double[]){40, 10, 10, 10});
	add(&td_sched_fifo, true, (double[]){10, 0, 0, 0});
	td_run_say(&run, &said);
	CHECK(is_said("tandem is not compared with fifo: fifo was stopped."));
	CHECK(!is_said("times as fast"));
	begin();
	add(&td_sched_tandem, true, (double[]){10, 10, 0, 0});
	add(&td_sched_fifo, true, (double[]){10, 0, 0, 0});
	td_run_say(&run, &said);
	CHECK(is_said("tandem is not compared with fifo: tandem was stopped."));
}

TEST(who_is_better_than_the_first_policy_is_named)
{
	begin();
	add(&td_sched_tandem, false, (double[]){20, 20, 20, 20});
	add(&td_sched_fifo, false, (double[]){30, 30, 20, 20});
	add(&td_sched_gandiva, false, (double[]){16, 16, 16, 16});
	td_run_say(&run, &said);
	CHECK_EQ(said.count, 1);
	CHECK(is_said("1.25 times as fast on average; gandiva is best: 1.25 times as fast as "
		      "tandem."));
	/* A policy does not win by losing jobs, nor is the baseline named again. */
	begin();
	add(&td_sched_tandem, false, (double[]){20, 20, 20, 20});
	add(&td_sched_fifo, false, (double[]){10, 10, 10, 10});
	add(&td_sched_gandiva, false, (double[]){1, 1, 1, 0});
	td_run_say(&run, &said);
	CHECK(is_said("a job is complete only 0.50 times as fast on average."));
}
