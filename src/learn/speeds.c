/* See speeds.h. */
#include "learn/speeds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/cluster/muxflow_cluster.h"

#define PPM         1e6
#define TESTS_LEAST 2u

/* The pairs as the learner takes them, with the index of each one's programs. */
struct rows {
	uint32_t count;
	double *x, *y;
	uint32_t *online, *offline;
	/* those of one training */
	double *learnt_x, *learnt_y;
};

struct td_muxflow_profile td_speeds_profile(const struct td_program *p)
{
	double rate = p->steps_per_s > 0 ? p->steps_per_s : p->launches_per_s;

	return (struct td_muxflow_profile){
		.utilisation = p->utilisation,
		.sm_activity = p->sm_activity,
		.sm_occupancy = p->core_demand,
		.alone_s = rate > 0 ? 1 / rate : 0,
	};
}

static void write_inputs(const struct td_program *online, const struct td_program *offline,
	double sm_share, double inputs[TD_MUXFLOW_INPUTS])
{
	const struct td_muxflow_profile on = td_speeds_profile(online),
					off = td_speeds_profile(offline);

	td_muxflow_inputs(&on, &off, (uint32_t)(fmin(fmax(sm_share, 0), 1) * PPM), inputs);
}

static double clamp(double speed)
{
	return fmin(fmax(speed, 0), 1);
}

double td_speeds_predict(const struct td_predictor *predictor, const struct td_program *online,
	const struct td_program *offline, double sm_share)
{
	double inputs[TD_MUXFLOW_INPUTS];

	write_inputs(online, offline, sm_share, inputs);
	return clamp(td_predict(predictor, inputs));
}

static uint32_t find(const struct td_program *programs, uint32_t count, const char *name)
{
	uint32_t i = 0;

	while (i < count && strcmp(programs[i].name, name))
		i++;
	return i;
}

static int allocate(struct rows *rows, uint32_t count)
{
	size_t bytes = (size_t)count * TD_MUXFLOW_INPUTS * sizeof(double);

	rows->x = malloc(bytes);
	rows->y = malloc(count * sizeof(double));
	rows->learnt_x = malloc(bytes);
	rows->learnt_y = malloc(count * sizeof(double));
	rows->online = malloc(count * sizeof(uint32_t));
	rows->offline = malloc(count * sizeof(uint32_t));
	return rows->x && rows->y && rows->learnt_x && rows->learnt_y && rows->online &&
			       rows->offline
		       ? 0
		       : -ENOMEM;
}

static void release(struct rows *rows)
{
	free(rows->x);
	free(rows->y);
	free(rows->learnt_x);
	free(rows->learnt_y);
	free(rows->online);
	free(rows->offline);
}

static void fill(struct rows *rows, const struct td_program *programs, uint32_t program_count,
	const struct td_pair *pairs, uint32_t pair_count, struct td_speeds_report *report)
{
	for (uint32_t i = 0; i < pair_count; i++) {
		uint32_t on = find(programs, program_count, pairs[i].online),
			 off = find(programs, program_count, pairs[i].offline);

		if (on == program_count || off == program_count) {
			report->unknown++;
			continue;
		}
		write_inputs(&programs[on], &programs[off], pairs[i].sm_share,
			rows->x + (size_t)rows->count * TD_MUXFLOW_INPUTS);
		rows->online[rows->count] = on;
		rows->offline[rows->count] = off;
		rows->y[rows->count++] = clamp(pairs[i].speed);
	}
	report->rows = rows->count;
}

static bool has(const struct rows *rows, uint32_t row, uint32_t program)
{
	return rows->online[row] == program || rows->offline[row] == program;
}

/* The rows without that program, in learnt_x and learnt_y. Returns their mean. */
static double leave_out(const struct rows *rows, uint32_t program, uint32_t *ret_count)
{
	uint32_t n = 0;
	double sum = 0;

	for (uint32_t i = 0; i < rows->count; i++) {
		if (has(rows, i, program))
			continue;
		memcpy(rows->learnt_x + (size_t)n * TD_MUXFLOW_INPUTS,
			rows->x + (size_t)i * TD_MUXFLOW_INPUTS,
			TD_MUXFLOW_INPUTS * sizeof(double));
		sum += rows->y[i];
		rows->learnt_y[n++] = rows->y[i];
	}
	*ret_count = n;
	return n ? sum / n : 0;
}

static void add_error(struct td_speeds_error *error, double wrong)
{
	error->square += wrong * wrong;
	error->absolute += fabs(wrong);
}

static int judge(const struct rows *rows, uint32_t program, const struct td_learn_options *options,
	struct td_speeds_report *report)
{
	struct td_dataset data = {rows->learnt_x, rows->learnt_y, 0, TD_MUXFLOW_INPUTS};
	double mean = leave_out(rows, program, &data.count);
	struct td_model mlp = {.memory = NULL}, linear = {.memory = NULL};
	int r;

	if (data.count == rows->count)
		return 0; /* the program is in no pair */
	report->programs++;
	if (data.count < TESTS_LEAST)
		return -EINVAL;
	r = td_learn_mlp(&data, options, &mlp);
	r = r ? r : td_learn_linear(&data, options, &linear);
	for (uint32_t i = 0; !r && i < rows->count; i++) {
		const double *x = rows->x + (size_t)i * TD_MUXFLOW_INPUTS;

		if (!has(rows, i, program))
			continue;
		add_error(&report->mlp, clamp(td_predict(&mlp.predictor, x)) - rows->y[i]);
		add_error(&report->linear, clamp(td_predict(&linear.predictor, x)) - rows->y[i]);
		add_error(&report->mean, mean - rows->y[i]);
		report->tests++;
	}
	td_model_deinit(&mlp);
	td_model_deinit(&linear);
	return r;
}

static void finish(struct td_speeds_error *error, uint32_t tests)
{
	error->square = sqrt(error->square / tests);
	error->absolute /= tests;
}

static int learn(const struct rows *rows, uint32_t program_count,
	const struct td_learn_options *options, struct td_model *ret_model,
	struct td_speeds_report *report)
{
	const struct td_dataset data = {rows->x, rows->y, rows->count, TD_MUXFLOW_INPUTS};
	int r = rows->count < TESTS_LEAST ? -EINVAL : 0;

	for (uint32_t p = 0; !r && p < program_count; p++)
		r = judge(rows, p, options, report);
	if (r)
		return r;
	finish(&report->mlp, report->tests);
	finish(&report->linear, report->tests);
	finish(&report->mean, report->tests);
	return td_learn_mlp(&data, options, ret_model);
}

int td_speeds_learn(const struct td_program *programs, uint32_t program_count,
	const struct td_pair *pairs, uint32_t pair_count, const struct td_learn_options *options,
	struct td_model *ret_model, struct td_speeds_report *ret_report, struct td_err *err)
{
	struct td_speeds_report report = {0};
	struct rows rows = {0};
	int r = pair_count ? allocate(&rows, pair_count) : -EINVAL;

	if (!r) {
		fill(&rows, programs, program_count, pairs, pair_count, &report);
		r = learn(&rows, program_count, options, ret_model, &report);
	}
	release(&rows);
	if (r == -EINVAL)
		return td_err_set(err, r,
			"%u pairs of programs that were profiled are too few: the predictor is "
			"judged by programs left out, so two online and two offline ones are "
			"needed",
			report.rows);
	if (r == -ERANGE)
		return td_err_set(err, r, "the training diverged");
	if (r)
		return td_err_set(err, r, "%s", strerror(-r));
	*ret_report = report;
	return 0;
}
