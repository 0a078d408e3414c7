/*
 * tandem-sim requests: the load that each service of a file of requests puts on a GPU of its own,
 * and how much slower jobs beside it may make it. Prints a table and writes requests.csv, and the
 * load over time in load.csv.
 *
 * Tokens are shown, but every request takes the same time, since the file does not tell what a
 * token costs.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "sim/base/csv.h"
#include "sim/base/sim.h"
#include "sim/data/request_load.h"
#include "sim/data/trace.h"

#define SERVICES_MAX 4096u /* each service is a line of the table */

struct requests {
	const char *path, *out;
	struct td_server server;
	uint64_t one_ns, objective_ns, window_ns, batch;
	bool skip_bad;
	struct td_requests all;
	/* Number of named services, plus one for requests without a service. */
	uint32_t service_count;
	uint32_t *starts; /* index of each service's first arrival, and the end */
	double *arrivals, *scratch;
	double (*tokens)[2]; /* mean of input and of output tokens */
	struct td_request_load *loads;
};

static int parse(int argc, char **argv, struct requests *r, struct td_err *err)
{
	static const struct option options[] = {{"requests", required_argument, NULL, 'r'},
		{"request-time", required_argument, NULL, 't'},
		{"batch", required_argument, NULL, 'b'},
		{"objective", required_argument, NULL, 'j'},
		{"window", required_argument, NULL, 'w'}, {"out", required_argument, NULL, 'o'},
		{"skip-bad", no_argument, NULL, 's'}, {NULL, 0, NULL, 0}};
	int c, index = 0, status = 0;

	opterr = 0;
	while (!status && (c = getopt_long(argc, argv, ":", options, &index)) != -1) {
		struct td_err inner = {0};

		status = td_check_optarg(argv, err);
		if (status)
			return status;
		switch (c) {
		case 'r': r->path = optarg; break;
		case 't': status = td_parse_duration(optarg, &r->one_ns, &inner); break;
		case 'b': status = td_parse_u64(optarg, 1, 65536, &r->batch, &inner); break;
		case 'j': status = td_parse_duration(optarg, &r->objective_ns, &inner); break;
		case 'w': status = td_parse_duration(optarg, &r->window_ns, &inner); break;
		case 'o': r->out = optarg; break;
		case 's': r->skip_bad = true; break;
		default: return td_refuse_option(c, argv, options, "tandem-sim --help", err);
		}
		if (status)
			td_err_set(err, inner.code, "--%s: %s", options[index].name, inner.msg);
	}
	if (status)
		return status;
	if (optind < argc)
		return td_err_set(err, -EINVAL, "\"%.64s\" is not expected: see tandem-sim --help",
			argv[optind]);
	if (!r->path)
		return td_err_set(err, -EINVAL, "--requests FILE is needed");
	if (!r->one_ns || !r->objective_ns || r->window_ns < TD_NS_PER_S)
		return td_err_set(err, -EINVAL,
			"--request-time and --objective have to be above 0, --window 1s or more");
	return 0;
}

static uint32_t service_of(const struct requests *r, const struct td_request *request)
{
	return request->service == TD_TRACE_NONE ? r->service_count - 1 : request->service;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the arrivals by service. Those of a service stay in the order of time. */
static int sort(struct requests *r, struct td_err *err)
{
	uint32_t n = r->all.count;

	r->service_count = r->all.names.count + 1;
	if (!n)
		return td_err_set(err, -EINVAL, "%.120s: the file has no requests", r->path);
	if (r->service_count > SERVICES_MAX)
		return td_err_set(err, -EINVAL,
			"%.120s: the file has more than %u services, which is the most allowed",
			r->path, SERVICES_MAX - 1);
	r->starts = calloc(r->service_count + 2, sizeof(*r->starts));
	r->arrivals = calloc(n, sizeof(*r->arrivals));
	r->scratch = calloc(n, sizeof(*r->scratch));
	r->tokens = calloc(r->service_count, sizeof(*r->tokens));
	r->loads = calloc(r->service_count, sizeof(*r->loads));
	if (!r->starts || !r->arrivals || !r->scratch || !r->tokens || !r->loads)
		return td_err_set(err, -ENOMEM, "out of memory");
	/*
	 * Each count is stored two entries further on. Filling the table then moves each start to
	 * its right place.
	 */
	for (uint32_t i = 0; i < n; i++)
		r->starts[service_of(r, &r->all.requests[i]) + 2]++;
	for (uint32_t s = 0; s < r->service_count; s++)
		r->starts[s + 2] += r->starts[s + 1];
	for (uint32_t i = 0; i < n; i++) {
		const struct td_request *request = &r->all.requests[i];
		uint32_t s = service_of(r, request);

		r->arrivals[r->starts[s + 1]++] = request->arrival_s;
		r->tokens[s][0] += request->input_tokens;
		r->tokens[s][1] += request->output_tokens;
	}
	for (uint32_t s = 0; s < r->service_count; s++)
		qsort(r->arrivals + r->starts[s], r->starts[s + 1] - r->starts[s], sizeof(double),
			compare);
	return 0;
}

static void judge(struct requests *r)
{
	for (uint32_t s = 0; s < r->service_count && !td_sim_stop; s++) {
		uint32_t n = r->starts[s + 1] - r->starts[s];

		if (!n)
			continue;
		r->tokens[s][0] /= n;
		r->tokens[s][1] /= n;
		r->loads[s] = td_request_load_of(r->arrivals + r->starts[s], n, &r->server,
			(double)r->objective_ns * 1e-9, (double)r->window_ns * 1e-9, r->scratch);
	}
}

static const char *name_of(const struct requests *r, uint32_t service)
{
	return service + 1 == r->service_count ? "(unnamed)"
					       : td_names_text(&r->all.names, service);
}

static void put_table(const struct requests *r, FILE *out)
{
	fprintf(out, "%-20s %9s %9s %9s %9s %6s %8s %8s %6s %9s %9s  %s\n", "service", "requests",
		"hours", "mean/s", "peak/s", "gaps", "tokens", "to", "busy", "P50 s", "P99 s",
		"may be slower by");
	for (uint32_t s = 0; s < r->service_count; s++) {
		const struct td_request_load *load = &r->loads[s];

		if (!load->requests)
			continue;
		fprintf(out,
			"%-20.20s %9u %9.4g %9.4g %9.4g %6.3g %8.5g %8.5g %5.1f%% %9.4g %9.4g  ",
			name_of(r, s), load->requests, load->span_s / 3600, load->mean_per_s,
			load->peak_per_s, load->variation, r->tokens[s][0], r->tokens[s][1],
			100 * load->busy, load->p50_s, load->p99_s);
		if (!(load->room > 0))
			fputs("objective missed alone\n", out);
		else
			fprintf(out, "%s%.2fx\n", load->room < TD_ROOM_MOST ? "" : "at least ",
				load->room);
	}
}

static int write_summary(const struct requests *r, struct td_err *err)
{
	FILE *out = td_sim_create(r->out, "requests.csv", err);

	if (!out)
		return err->code;
	fputs("service,requests,span_s,mean_per_s,peak_per_s,gap_variation,input_tokens,"
	      "output_tokens,busy_percent,p50_s,p99_s,slowdown_room\n",
		out);
	for (uint32_t s = 0; s < r->service_count; s++) {
		const struct td_request_load *load = &r->loads[s];

		if (!load->requests)
			continue;
		td_csv_put_quoted(out, name_of(r, s));
		fprintf(out, ",%u,%.10g,%.10g,%.10g,%.10g,%.10g,%.10g,%.10g,%.10g,%.10g,%.10g\n",
			load->requests, load->span_s, load->mean_per_s, load->peak_per_s,
			load->variation, r->tokens[s][0], r->tokens[s][1], 100 * load->busy,
			load->p50_s, load->p99_s, load->room);
	}
	return td_sim_close(out, r->out, "requests.csv", err);
}

/* Writes load.csv. Windows without a request are left out. */
static int write_load(const struct requests *r, struct td_err *err)
{
	FILE *out = td_sim_create(r->out, "load.csv", err);
	double window_s = (double)r->window_ns * 1e-9;

	if (!out)
		return err->code;
	fputs("service,from_s,requests,per_s\n", out);
	for (uint32_t s = 0; s < r->service_count; s++) {
		for (uint32_t i = r->starts[s]; i < r->starts[s + 1];) {
			double turn = floor(r->arrivals[i] / window_s);
			uint32_t first = i;

			while (i < r->starts[s + 1] && floor(r->arrivals[i] / window_s) <= turn)
				i++;
			td_csv_put_quoted(out, name_of(r, s));
			fprintf(out, ",%.10g,%u,%.10g\n", turn * window_s, i - first,
				(i - first) / window_s);
		}
	}
	return td_sim_close(out, r->out, "load.csv", err);
}

static int execute(struct requests *r, struct td_err *err)
{
	int status = r->out ? td_sim_try_dir(r->out, err) : 0;

	status = status ? status : td_requests_read(r->path, r->skip_bad, &r->all, err);
	status = status ? status : sort(r, err);
	if (status)
		return status;
	if (r->all.skipped)
		fprintf(stderr, "tandem-sim: left out %u line%s of %s\n", r->all.skipped,
			r->all.skipped == 1 ? "" : "s", r->path);
	r->server = (struct td_server){(double)r->one_ns * 1e-9, (uint32_t)r->batch, 1};
	judge(r);
	put_table(r, stdout);
	if (r->out)
		status = write_summary(r, err);
	if (r->out && !status)
		status = write_load(r, err);
	return status;
}

int td_sim_requests(int argc, char **argv)
{
	struct requests r = {.one_ns = 20 * TD_NS_PER_MS,
		.objective_ns = 300 * TD_NS_PER_MS,
		.window_ns = 60 * TD_NS_PER_S,
		.batch = 16};
	struct td_err err = {0};
	int status;

	td_sim_catch();
	status = parse(argc, argv, &r, &err);
	status = status ? status : execute(&r, &err);
	td_requests_deinit(&r.all);
	free(r.starts);
	free(r.arrivals);
	free(r.scratch);
	free(r.tokens);
	free(r.loads);
	if (status)
		return td_sim_fail("%s", err.msg);
	return td_sim_stop ? TD_SIM_EXIT_STOPPED : 0;
}
