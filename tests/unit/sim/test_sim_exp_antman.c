/* Verdicts of antman-trace, by outcomes that are made up. */
#include "test.h"

#include "sim/research/exp_antman.h"

static struct td_experiment_run run;
static struct td_antman_outcome outcomes[4 * TD_ANTMAN_LOADS];
static char *report;
static size_t report_size;

/* AntMan by `loss` slower than everybody else in everything; nobody can take less than `least`. */
static void begin(double loss, double least)
{
	for (uint32_t k = 0; k < 4 * TD_ANTMAN_LOADS; k++) {
		struct td_antman_outcome *o = &outcomes[k];

		*o = (struct td_antman_outcome){.least_slow = 1, .guard = 1, .least_span_s = 1};
		for (int m = 0; m < TD_METRIC_N; m++) {
			for (int s = 0; s < TD_ANTMAN_SCHEDS; s++)
				o->metrics[s][m] = s == TD_ANTMAN_ITSELF ? 100 * loss : 100;
			for (int v = 0; v < TD_ANTMAN_OTHERS; v++)
				o->other[v][m] = 100 * loss;
			o->misled[m] = o->untold[m] = 100;
		}
		o->metrics[TD_ANTMAN_ITSELF][TD_METRIC_EVICTIONS] = 0;
		o->most = (struct td_antman_bound){least, least, least};
	}
}

static void put(void)
{
	run = (struct td_experiment_run){.seeds = 1, .name = "antman-trace"};
	run.report = open_memstream(&report, &report_size);
	CHECK(run.report);
	td_antman_put(&run, outcomes, 4 * TD_ANTMAN_LOADS, 1.2, 0.03);
	fclose(run.report);
}

static void end(void)
{
	free(run.rows);
	free(report);
}

static const struct td_row *row_of(const char *metric)
{
	for (uint32_t i = 0; i < run.row_count; i++)
		if (!strcmp(run.rows[i].metric, metric))
			return &run.rows[i];
	CHECK(false); /* the row is there */
	return run.rows;
}

/*
 * AntMan loses in all worlds, and another policy could gain. The world without contention is no
 * bound: AntMan places by what it sees.
 */
TEST(a_kinder_world_in_which_antman_loses_forbids_nothing)
{
	const struct td_row *row;

	begin(1.25, 50);
	put();
	row = row_of("mean JCT, FIFO / AntMan, load 1.2, no memory limits");
	CHECK_STR(row->ours, "0.80x");
	CHECK_EQ(row->verdict, TD_NOT_REPRODUCED);
	CHECK(strstr(row->note, "a bound forbids 0 of the 1 seeds that lose"));
	CHECK(strstr(row->note, "by none of these 1"));
	row = row_of("makespan, Gandiva / AntMan, load 5, 6-31 GB");
	CHECK_EQ(row->verdict, TD_NOT_REPRODUCED);
	/* 16 settings of at least 0.9 with two rows each, 12 of at least 1.2. */
	CHECK(strstr(
		report, "in the 56 rows of the order 56 seeds are lost, and a bound forbids 0"));
	end();
}

/*
 * No policy can be faster than FIFO is, which forbids a gain over it. Two jobs on every GPU would
 * take longer still, which is a mean and forbids nothing.
 */
TEST(what_nobody_can_gain_is_bounded)
{
	begin(1.25, 100);
	put();
	CHECK_EQ(
		row_of("mean JCT, FIFO / AntMan, load 1.2, no memory limits")->verdict, TD_BOUNDED);
	CHECK_EQ(row_of("makespan, FIFO / AntMan, load 2, 6-31 GB, proportional")->verdict,
		TD_BOUNDED);
	CHECK_EQ(row_of("mean JCT, FIFO / AntMan, load 0.6, no memory limits")->verdict, TD_SHOWN);
	end();
	begin(1.25, 50);
	for (uint32_t k = 0; k < 4 * TD_ANTMAN_LOADS; k++)
		outcomes[k].least_span_s = 200;
	put();
	CHECK_EQ(row_of("makespan, FIFO / AntMan, load 2, no memory limits")->verdict,
		TD_NOT_REPRODUCED);
	end();
}

/* 9 % longer, and 6 % if no guest had more than the least duty: a reason, no bound. */
TEST(the_least_duty_is_no_bound_of_the_guarantee)
{
	begin(1.09, 50);
	for (uint32_t k = 0; k < 4 * TD_ANTMAN_LOADS; k++)
		outcomes[k].least_slow = 1.06;
	put();
	CHECK_EQ(row_of("guaranteed JCT, AntMan / preemption, load 2, no memory limits")->verdict,
		TD_NOT_REPRODUCED);
	end();
	begin(1.04, 50);
	put();
	CHECK_EQ(row_of("guaranteed JCT, AntMan / preemption, load 2, no memory limits")->verdict,
		TD_REPRODUCED);
	end();
}

/* With guests that move AntMan gains: said of the row, and of all. */
TEST(what_a_variation_would_turn_is_counted)
{
	begin(1.25, 50);
	for (uint32_t k = 0; k < 4 * TD_ANTMAN_LOADS; k++)
		outcomes[k].other[TD_ANTMAN_MOVING][TD_METRIC_JCT_MEAN_S] = 80;
	put();
	CHECK(strstr(row_of("mean JCT, FIFO / AntMan, load 1.2, no memory limits")->note,
		"if guests moved 1"));
	CHECK(strstr(report, "if guests moved 32"));
	CHECK(strstr(report, "AntMan would be 1.56 to 1.56 times as fast"));
	end();
}

TEST(one_job_that_is_preempted_refutes_that_nobody_is)
{
	static const char metric[] = "jobs that AntMan preempts, load 2, no memory limits";

	begin(1.25, 50);
	put();
	CHECK_EQ(row_of(metric)->verdict, TD_BY_CONSTRUCTION);
	end();
	begin(1.25, 50);
	for (uint32_t k = 0; k < 4 * TD_ANTMAN_LOADS; k++)
		outcomes[k].metrics[TD_ANTMAN_ITSELF][TD_METRIC_EVICTIONS] = 1;
	put();
	CHECK_EQ(row_of(metric)->verdict, TD_NOT_REPRODUCED);
	CHECK_STR(row_of(metric)->ours, "1");
	end();
}
