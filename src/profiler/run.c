/* tandem profile -- COMMAND, and --list. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "cli/json.h"
#include "learn/store.h"
#include "profiler/measure.h"
#include "profiler/plan.h"
#include "profiler/profiler.h"
#include "profiler/program.h"
#include "profiler/store.h"
#include "view/options.h"

#define START_NS (120 * TD_NS_PER_S)
#define WARM_NS  (2 * TD_NS_PER_S)
#define SPAN_NS  (30 * TD_NS_PER_S)
#define SPAN_MIN TD_NS_PER_S
#define SPAN_MAX (600 * TD_NS_PER_S) /* MuxFlow: a dry run takes less than ten minutes */
#define LEAST_NS TD_NS_PER_S
#define EXPECTED "a time from 1s to 10m"

struct request {
	const char *name, *class, *store;
	uint64_t span_ns;
	bool list, json;
};

static void help(void)
{
	puts("usage: tandem profile [OPTION]... -- COMMAND [ARG]...\n"
	     "       tandem profile --list [--json] [--store FILE]");
	for (const struct td_profiler_verb *verb = td_profiler_verbs; verb->name; verb++)
		printf("       tandem profile %s [OPTION]...\n", verb->name);
	puts("\nRuns a program alone on its GPU for a while, and keeps what it used: one row for "
	     "each\nprogram and kind of GPU, with the means over all runs.\n\n"
	     "  --seconds TIME   how long is measured, 1s to 10m, after 2 s to warm up (30s); then "
	     "the program is\n"
	     "                   ended, if it has not by itself\n"
	     "  --name NAME      of the program in the table (the command's)\n"
	     "  --class CLASS    with which it runs: online or besteffort (besteffort)\n"
	     "  --store FILE     the database (~/.local/share/tandem/profiles.db)\n"
	     "  --list           show the table\n"
	     "  --json           what was measured, or the table, as JSON; the program's output "
	     "goes to stderr\n");
	for (const struct td_profiler_verb *verb = td_profiler_verbs; verb->name; verb++)
		printf("  %-15s  %s\n", verb->name, verb->help);
}

static void json_row(struct td_json *j, const struct td_program *p)
{
	td_json_row(j);
	td_json_str(j, "gpu", p->gpu);
	td_json_str(j, "program", p->name);
	td_json_str(j, "command", p->command);
	td_json_u64(j, "runs", p->runs);
	td_json_u64(j, "time_s", (uint64_t)p->time_s);
	td_json_double(j, "seconds", p->seconds);
	td_json_double(j, "utilisation", p->utilisation);
	td_json_double(j, "sm_activity", p->sm_activity);
	td_json_double(j, "core_demand", p->core_demand);
	td_json_double(j, "duty", p->duty);
	td_json_double(j, "launches_per_s", p->launches_per_s);
	if (p->steps_per_s > 0) {
		td_json_double(j, "steps_per_s", p->steps_per_s);
		td_json_double(j, "step_s", p->step_s);
		td_json_double(j, "step_sure", p->step_sure);
	}
	if (p->p99_s > 0) {
		td_json_double(j, "p99_s", p->p99_s);
		td_json_double(j, "requests_per_s", p->requests_per_s);
	}
	td_json_u64(j, "peak_bytes", p->peak_bytes);
	td_json_u64(j, "resident_bytes", p->resident_bytes);
	td_json_end_row(j);
}

static void table_row(const struct td_program *p)
{
	char step[32] = "-", memory[32];

	if (p->step_s > 0)
		td_format_duration(step, sizeof(step), (uint64_t)(p->step_s * 1e9));
	printf("%-16s %-20s %4llu %7.0fs %5.1f%% %5.1f%% %5.1f%% %8s %10.1f %10s\n", p->name,
		p->gpu, (unsigned long long)p->runs, p->seconds, 100 * p->utilisation,
		100 * p->sm_activity, 100 * p->core_demand, step, p->launches_per_s,
		td_format_size(memory, sizeof(memory), p->peak_bytes));
}

static void print_programs(const struct td_program *programs, uint32_t count, bool json)
{
	struct td_json out = {0};

	if (json) {
		td_json_begin(&out, stdout);
		for (uint32_t i = 0; i < count; i++)
			json_row(&out, &programs[i]);
		td_json_end(&out);
		return;
	}
	printf("%-16s %-20s %4s %8s %6s %6s %6s %8s %10s %10s\n", "PROGRAM", "GPU", "RUNS", "TIME",
		"BUSY", "SMS", "CORES", "STEP", "LAUNCH/S", "MEMORY");
	for (uint32_t i = 0; i < count; i++)
		table_row(&programs[i]);
}

static int list(const struct request *request, struct td_store *store)
{
	struct td_program *programs = NULL;
	struct td_err err = {0};
	uint32_t count = 0;
	int r = td_store_get_programs(store, NULL, &programs, &count);

	if (r && r != -ENOENT) {
		(void)td_profiler_store_error(r, &err);
		return td_profiler_fail("%s", err.msg);
	}
	print_programs(programs, count, request->json);
	free(programs);
	return 0;
}

/* Adds the run and shows the program's row, which has the means over all runs. */
static int keep(const struct request *request, struct td_store *store,
	const struct td_measured_job *job, struct td_err *err)
{
	char command[TD_PROGRAM_COMMAND];
	struct td_program program, row;
	int r;

	td_program_of(&job->figures, job->name,
		td_printable(td_program_command(command, sizeof(command), job->argv)), time(NULL),
		&program);
	if (!*program.gpu)
		return td_err_set(
			err, -ENODEV, "the daemon did not tell which GPU the program used");
	r = td_store_add_program(store, &program);
	r = r ? r : td_store_get_program(store, program.gpu, program.name, &row);
	if (r)
		return td_profiler_store_error(r, err);
	if (job->has_ended && WIFEXITED(job->status) && WEXITSTATUS(job->status))
		fprintf(stderr, "tandem: \"%s\" ended with status %d while it was measured\n",
			job->name, WEXITSTATUS(job->status));
	print_programs(&row, 1, request->json);
	return 0;
}

static int profile(const struct request *request, struct td_store *store, char *const *argv)
{
	const struct td_measure measure = {.start_ns = START_NS,
		.warm_ns = WARM_NS,
		.span_ns = request->span_ns,
		.least_ns = LEAST_NS};
	struct td_measured_job job = {.name = request->name, .class = request->class, .argv = argv};
	struct td_err err = {0};
	int r = td_measure(&measure, &job, 1, &err);

	r = r ? r : keep(request, store, &job, &err);
	return r ? td_profiler_fail("%s", err.msg) : 0;
}

static int take_option(int c, struct request *request, struct td_err *err)
{
	switch (c) {
	case 's':
		if (!td_parse_duration(optarg, &request->span_ns, NULL) &&
			request->span_ns >= SPAN_MIN && request->span_ns <= SPAN_MAX)
			return 0;
		return td_err_set(err, -ERANGE,
			"--seconds: \"%.64s\" is not valid: expected " EXPECTED, optarg);
	case 'n': request->name = optarg; return td_profiler_check_name(optarg, err);
	case 'c':
		request->class = optarg;
		return strcmp(optarg, "online") && strcmp(optarg, "besteffort")
			       ? td_err_expected(err, -EINVAL, optarg, "online or besteffort")
			       : 0;
	case 'S': request->store = optarg; return 0;
	case 'l': request->list = true; return 0;
	default: request->json = true; return 0;
	}
}

/* 0, or an exit status after complaining; below 0: help was shown. */
static int read_options(struct request *request, int argc, char **argv)
{
	static const struct option options[] = {
#define OPTION_profile TD_OPTION
#include "view/options_of.h"
	};
	struct td_err err = {0};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		if (c == 'h') {
			help();
			return -1;
		}
		if (c == ':' || c == '?') {
			(void)td_refuse_option(c, argv, options, "tandem profile --help", &err);
			return td_profiler_fail("%s", err.msg);
		}
		if (optarg && td_check_optarg(argv, &err))
			return td_profiler_fail("%s, see tandem profile --help", err.msg);
		if (take_option(c, request, &err))
			return td_profiler_fail("profile: %s", err.msg);
	}
	if (request->list && optind < argc)
		return td_profiler_fail(
			"\"%.64s\" is not expected: see tandem profile --help", argv[optind]);
	if (!request->list && optind == argc)
		return td_profiler_fail("profile: which command? See tandem profile --help");
	if (!request->list && strcmp(argv[optind - 1], "--"))
		return td_profiler_fail("\"%.64s\" is not known to tandem profile: expected -- "
					"before a program's command; see tandem profile --help",
			argv[optind]);
	return 0;
}

/* The last part of the path; what is no letter of a name becomes "_". */
static const char *name_of(const char *command, char *buf, size_t len)
{
	const char *base = strrchr(command, '/');
	struct td_err err;

	snprintf(buf, len, "%.*s", (int)len - 1, base ? base + 1 : command);
	for (char *at = buf; *at; at++) {
		char letter[2] = {*at, 0};

		if (td_profiler_check_name(letter, &err))
			*at = '_';
	}
	return buf;
}

int td_profiler_run(int argc, char **argv)
{
	struct request request = {.class = "besteffort", .span_ns = SPAN_NS};
	struct td_store *store = NULL;
	char name[TD_PROGRAM_NAME];
	struct td_err err = {0};
	int r = read_options(&request, argc, argv);

	if (r)
		return r < 0 ? 0 : r;
	if (!request.list && !request.name)
		request.name = name_of(argv[optind], name, sizeof(name));
	/* The database is opened first. If that fails, no run is in vain. */
	if ((request.list ? td_profiler_open_to_read : td_profiler_open)(
		    request.store, &store, &err))
		return td_profiler_fail("%s", err.msg);
	r = request.list ? list(&request, store) : profile(&request, store, argv + optind);
	td_store_close(store);
	return r;
}
