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

#include "base/err.h"
#include "base/program.h"
#include "cluster/sched/sched_options.h"

#define PROGRAM         "tandem-kube-sched"
#define EXIT_USAGE      125
#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

struct options {
	struct td_sched_settings sched;
	const char *server, *token_file, *ca_file, *scheduler_name, *resource, *lease_namespace;
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
	case 'S': o->server = text; return 0;
	case 'T': o->token_file = text; return 0;
	case 'A': o->ca_file = text; return 0;
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

static int run(const struct options *o, struct td_err *err)
{
	(void)o;
	return td_err_set(err, -ENOSYS, "this build has the options only: it places nothing yet");
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
