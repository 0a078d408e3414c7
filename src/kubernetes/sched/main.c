/*
 * tandem-kube-sched: places the pods of a Kubernetes cluster that ask for parts of GPUs.
 *
 *   API server --pods, nodes--> tandem-kube-sched --Binding, Eviction, Event--> API server
 *                                       | Lease
 *                                   API server
 *
 * One thread and one loop. It may be stopped at any time: what runs runs on, and the next one
 * learns from the annotations of the pods what was placed.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/program.h"
#include "base/time.h"
#include "cluster/sched/sched_options.h"
#include "kubernetes/sched/account.h"
#include "kubernetes/sched/engine.h"
#include "kubernetes/sched/lease.h"

#define PROGRAM    "tandem-kube-sched"
#define EXIT_USAGE 125

struct options {
	struct td_sched_settings sched;
	struct td_kube_account account; /* NULL: that of the pod */
	const char *scheduler_name, *resource, *lease_namespace;
};

struct row {
	const char *name, *argument, *help;
	int letter;
};

static const struct row rows[] = {
#define OPTION(name, letter, argument, help) {name, argument, help, letter},
#include "cluster/sched/sched_options.def"
#include "kubernetes/sched/sched_options.def"
#undef OPTION
};

enum { ROWS = sizeof(rows) / sizeof(*rows) };

static void help(void)
{
	puts("usage: " PROGRAM " [OPTION]...\n"
	     "\n"
	     "Places the pods of a Kubernetes cluster that have schedulerName: tandem and ask for\n"
	     "tandem.dev/gpu: see " PROGRAM "(8).\n");
	for (const struct row *row = rows; row < rows + ROWS; row++) {
		char name[64];

		snprintf(name, sizeof(name), "--%s %s", row->name, row->argument);
		printf("  %-22s  %s\n", name, row->help);
	}
	puts("  -h, --help, -V, --version");
}

static int parse_one(int c, const char *text, struct options *o, struct td_err *err)
{
	int r = td_sched_settings_take(&o->sched, c, text, err);

	if (r <= 0)
		return r;
	if (!*text)
		return td_err_expected(err, -EINVAL, text, "a value");
	switch (c) {
	case 'S': o->account.server = text; return 0;
	case 'T': o->account.token_file = text; return 0;
	case 'A': o->account.ca_file = text; return 0;
	case 'N': o->scheduler_name = text; return 0;
	case 'R': o->resource = text; return 0;
	case 'L': o->lease_namespace = text; return 0;
	default: return -EINVAL;
	}
}

static int parse(int argc, char **argv, struct options *o, struct td_err *err)
{
	struct option table[ROWS + 1] = {{0}};
	int c, r;

	for (size_t k = 0; k < ROWS; k++)
		table[k] = (struct option){rows[k].name,
			*rows[k].argument ? required_argument : no_argument, NULL, rows[k].letter};
	*o = (struct options){.scheduler_name = "tandem", .resource = "tandem.dev/gpu"};
	td_sched_settings_init(&o->sched);
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", table, NULL)) != -1) {
		if (c == '?' || c == ':')
			return td_refuse_option(c, argv, table, PROGRAM " --help", err);
		r = optarg ? td_check_optarg(argv, err) : 0;
		r = r ? r : parse_one(c, optarg, o, err);
		if (r)
			return r;
	}
	if (optind < argc)
		return td_err_expected(err, -EINVAL, argv[optind], "an option");
	return 0;
}

/* --- the loop --- */

struct parts {
	struct td_kube_api *api;
	struct td_engine *engine;
	struct td_state *state;
	struct td_scheduler *scheduler;
};

/* Schedules until a signal comes. */
static void serve(const struct parts *parts, int signals)
{
	bool is_signal = false;

	while (!is_signal) {
		uint64_t now_ns = td_time_now_ns();
		uint64_t next_ns = td_kube_engine_turn(parts->engine, now_ns), left_ns;

		next_ns = td_min_u64(next_ns, td_scheduler_turn(parts->scheduler, now_ns));
		left_ns = td_sub_sat(next_ns, td_time_now_ns());
		td_kube_api_wait(parts->api, signals,
			(int)td_min_u64(left_ns / TD_NS_PER_MS + 1, 60000), &is_signal);
	}
	td_scheduler_resign(parts->scheduler, td_time_now_ns());
}

static int make_parts(const struct options *o, const struct td_kube_found *found,
	struct parts *parts, struct td_err *err)
{
	const struct td_kube_engine_options options = {
		.names = {.resource = o->resource, .scheduler = o->scheduler_name},
		.instance = o->sched.name};
	struct td_kube_lease_options lease = {.space = o->lease_namespace ? o->lease_namespace
						       : *found->space    ? found->space
									  : "kube-system",
		.name = PROGRAM,
		.key = TD_SCHED_PREFIX "leader",
		.leads = td_kube_engine_renew};
	struct td_scheduler_options scheduler = o->sched.scheduler;
	int r = td_kube_api_open(&found->account, &parts->api, err);

	if (r)
		return r;
	/* Each GPU has so much "memory": what is given of it is what the kubelet counts. */
	scheduler.brain.shape.gpu_bytes = TD_KUBE_PER_GPU;
	scheduler.name = o->sched.name;
	parts->engine = td_kube_engine_new(parts->api, &options);
	lease.arg = parts->engine;
	if (parts->engine)
		parts->state = td_kube_lease_open(parts->api, &lease);
	if (parts->state)
		parts->scheduler = td_scheduler_new(&scheduler, parts->engine, parts->state);
	return parts->scheduler ? 0 : td_err_set(err, -ENOMEM, "no memory");
}

static int run(const struct options *o, struct td_err *err)
{
	struct td_kube_found found = {0};
	struct parts parts = {0};
	int r = td_kube_account_find(&o->account, &found, err), signals = td_end_signals();

	if (!r)
		r = make_parts(o, &found, &parts, err);
	if (!r)
		serve(&parts, signals);
	td_scheduler_free(parts.scheduler);
	td_state_free(parts.state);
	if (parts.engine)
		parts.engine->kind->free(parts.engine);
	td_kube_api_free(parts.api);
	if (signals >= 0)
		close(signals);
	return r;
}

int main(int argc, char **argv)
{
	static struct options options;
	struct td_err err = {0};

	for (int k = 1; k < argc; k++) {
		if (td_asks_help(argv[k])) {
			help();
			return td_output_end(PROGRAM, 0, 1);
		}
		if (td_asks_version(argv[k])) {
			puts(PROGRAM " " TANDEM_VERSION);
			return td_output_end(PROGRAM, 0, 1);
		}
	}
	if (parse(argc, argv, &options, &err)) {
		fprintf(stderr, PROGRAM ": %s\n", err.msg);
		return EXIT_USAGE;
	}
	if (run(&options, &err)) {
		fprintf(stderr, PROGRAM ": %s\n", err.msg);
		return 1;
	}
	return 0;
}
