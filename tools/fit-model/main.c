/*
 * fit-model: fits the contention model to measured tables, writes the coefficients, and reports how
 * far they can be trusted.
 *
 * usage: fit-model --data DIR [--out FILE] [--report FILE] [--seed N]
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "fit_model.h"
#include "sim/data/pairs.h"

uint64_t report_seed = 1;

static const char *const gpus[] = {"p100", "k80", "v100"};

void errors_add(struct errors *errors, double predicted, double measured)
{
	if (errors->count == errors->room) {
		errors->room = errors->room ? 2 * errors->room : 256;
		errors->values = realloc(errors->values, errors->room * sizeof(double));
		if (!errors->values) {
			fputs("fit-model: out of memory\n", stderr);
			exit(1);
		}
	}
	errors->values[errors->count++] = fabs(predicted / measured - 1) * 100;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double errors_quantile(struct errors *errors, double quantile)
{
	if (!errors->count)
		return NAN;
	qsort(errors->values, errors->count, sizeof(double), compare);
	return errors->values[(uint32_t)(quantile * (errors->count - 1) + 0.5)];
}

double errors_mean(const struct errors *errors)
{
	double sum = 0;

	for (uint32_t i = 0; i < errors->count; i++)
		sum += errors->values[i];
	return errors->count ? sum / errors->count : NAN;
}

void errors_free(struct errors *errors)
{
	free(errors->values);
	*errors = (struct errors){0};
}

void put_goal(
	FILE *out, const char *what, double median, double p90, double median_goal, double p90_goal)
{
	bool met = median <= median_goal && (p90_goal <= 0 || p90 <= p90_goal);

	if (p90_goal > 0)
		fprintf(out, "| %s | %.2f / %.2f | %g / %g | %s |\n", what, median, p90,
			median_goal, p90_goal, met ? "met" : "**missed**");
	else
		fprintf(out, "| %s | %.2f | %g | %s |\n", what, median, median_goal,
			met ? "met" : "**missed**");
}

static int fail(const char *what)
{
	fprintf(stderr, "fit-model: %s\n", what);
	return 2;
}

static int put_coefficients(FILE *out, const struct td_pairs *pairs)
{
	struct td_numbers numbers[TD_PAIR_JOBS_MAX];
	int r = td_pairs_fit(pairs, NULL, numbers);

	for (uint32_t j = 0; !r && out && j < pairs->job_count; j++)
		fprintf(out, "%s,\"%s\",%.6g,%.6g,%.6g\n", pairs->gpu, pairs->jobs[j], numbers[j].g,
			numbers[j].p, numbers[j].h);
	return r;
}

static int run(const char *data, FILE *coefficients, FILE *report, struct td_err *err)
{
	char path[PATH_MAX];
	int r = 0;

	if (coefficients)
		fputs("gpu,job,sensitivity,pressure,host\n", coefficients);
	fprintf(report,
		"# How well the contention model fits\n\n"
		"Fitted to half of the measured pairs and judged on the other half, ten random "
		"halves (seed %llu); errors of the predicted speed in percent of the "
		"measured one. Of probe pairs drawn at random 100 draws for each job. Made by "
		"`fit-model --data DIR`.\n",
		(unsigned long long)report_seed);
	snprintf(path, sizeof(path), "%s/colocation_gavel.csv", data);
	for (size_t i = 0; !r && i < sizeof(gpus) / sizeof(gpus[0]); i++) {
		struct td_pairs *pairs = NULL;

		r = td_pairs_read(path, gpus[i], &pairs, err);
		if (!r && (put_coefficients(coefficients, pairs) || report_pairs(report, pairs)))
			r = td_err_set(err, -ENOMEM, "the fit failed: out of memory");
		free(pairs);
	}
	if (!r)
		r = report_shares(report, data, err);
	return r;
}

static FILE *open_out(const char *path)
{
	FILE *out = path ? fopen(path, "w") : NULL;

	if (path && !out)
		fprintf(stderr, "fit-model: %s: %s\n", path, strerror(errno));
	return out;
}

static int fit(int argc, char **argv)
{
	static const struct option options[] = {{"data", required_argument, NULL, 'd'},
		{"out", required_argument, NULL, 'o'}, {"report", required_argument, NULL, 'r'},
		{"seed", required_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	const char *usage = "usage: fit-model --data DIR [--out FILE] [--report FILE] [--seed N]";
	const char *data = NULL, *out = NULL, *report = NULL;
	FILE *out_file, *report_file;
	struct td_err err = {0};
	int c, r;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'd': data = optarg; break;
		case 'o': out = optarg; break;
		case 'r': report = optarg; break;
		case 's':
			if (td_parse_u64(optarg, 0, UINT64_MAX, &report_seed, &err))
				return fail(err.msg);
			break;
		case 'h': return puts(usage), 0;
		default: return fail(usage);
		}
	}
	if (!data || optind < argc)
		return fail(usage);
	out_file = open_out(out);
	report_file = open_out(report);
	if ((out && !out_file) || (report && !report_file))
		return 2;
	r = run(data, out_file, report_file ? report_file : stdout, &err);
	if (out_file && fclose(out_file))
		r = td_err_set(&err, -EIO, "%.160s cannot be written", out);
	if (report_file && fclose(report_file))
		r = td_err_set(&err, -EIO, "%.160s cannot be written", report);
	return r ? fail(err.msg) : 0;
}

/* The report goes to stdout without --report. */
int main(int argc, char **argv)
{
	return td_output_end("fit-model", fit(argc, argv), 2);
}
