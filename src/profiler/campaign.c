/*
 * tandem profile campaign: each best-effort program of a plan beside each online one under several
 * shares of the SMs, and the predictor that learns from it (learn/speeds.h).
 *
 * A pair that the store has is not measured again: a campaign that was interrupted goes on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "learn/speeds.h"
#include "learn/store.h"
#include "profiler/measure.h"
#include "profiler/plan.h"
#include "profiler/profiler.h"
#include "profiler/program.h"
#include "profiler/store.h"
#include "proto/proto.h"
#include "proto/socket.h"
#include "view/options.h"

#define START_NS    (60 * TD_NS_PER_S)
#define WARM_NS     TD_NS_PER_S
#define SPAN_NS     (10 * TD_NS_PER_S)
#define SPAN_MIN    TD_NS_PER_S
#define SPAN_MAX    (600 * TD_NS_PER_S)
#define PATIENCE_NS (15 * TD_NS_PER_S)
#define PERCENT     100.

struct campaign {
	const char *store_path, *profiles;
	struct td_store *store;
	struct td_plan plan;
	unsigned percents[TD_PLAN_SHARES];
	uint32_t share_count;
	struct td_measure measure;
	char policy[TD_PROGRAM_NAME];
	struct td_program alone[TD_PLAN_MAX];
	struct td_pair *known;
	uint32_t known_count, kept, skipped;
	bool has_plan;
};

static struct td_measured_job job_of(const struct td_plan_program *program, char **words)
{
	static char shell[] = "/bin/sh", option[] = "-c";

	words[0] = shell;
	words[1] = option;
	words[2] = (char *)(uintptr_t)program->command;
	words[3] = NULL;
	return (struct td_measured_job){.name = program->name,
		.class = program->online ? "online" : "besteffort",
		.argv = words,
		.is_silent = true};
}

static int measure_alone(struct campaign *c, uint32_t index, struct td_err *err)
{
	const struct td_plan_program *program = &c->plan.programs[index];
	struct td_program *row = &c->alone[index];
	char *words[4];
	struct td_measured_job job = job_of(program, words);
	int r = td_measure(&c->measure, &job, 1, err);

	if (r)
		return r;
	td_program_of(&job.figures, program->name, program->command, time(NULL), row);
	r = td_store_add_program(c->store, row);
	r = r ? r : td_store_get_program(c->store, row->gpu, program->name, row);
	if (r)
		return td_profiler_store_error(r, err);
	printf("%-16s alone: busy %.0f%%, SMs %.0f%%, %.1f launches/s\n", program->name,
		PERCENT * row->utilisation, PERCENT * row->sm_activity, row->launches_per_s);
	td_output_flush();
	return 0;
}

static bool is_known(
	const struct campaign *c, const char *online, const char *offline, double share)
{
	for (uint32_t i = 0; i < c->known_count; i++) {
		const struct td_pair *p = &c->known[i];

		if (!strcmp(p->online, online) && !strcmp(p->offline, offline) &&
			!strcmp(p->policy, c->policy) && p->sm_share > share - 1e-6 &&
			p->sm_share < share + 1e-6)
			return true;
	}
	return false;
}

static double speed_of(const struct td_program *alone, const struct td_measured_job *job)
{
	struct td_program shared;

	td_program_of(&job->figures, alone->name, "", 0, &shared);
	return td_program_speed(alone, &shared);
}

/* A pair in which a program ends, as one that is evicted does, is left out and told. */
static int measure_pair(
	struct campaign *c, uint32_t online, uint32_t offline, unsigned percent, struct td_err *err)
{
	const struct td_program *on = &c->alone[online], *off = &c->alone[offline];
	struct td_pair pair = {.sm_share = percent / PERCENT, .time_s = time(NULL)};
	char *words[TD_MEASURE_JOBS][4];
	struct td_measured_job jobs[] = {job_of(&c->plan.programs[online], words[0]),
		job_of(&c->plan.programs[offline], words[1])};
	int r;

	if (is_known(c, on->name, off->name, pair.sm_share))
		return 0;
	jobs[1].sm_percent = percent;
	r = td_measure(&c->measure, jobs, TD_MEASURE_JOBS, err);
	if (r == -ECHILD || (!r && (jobs[0].has_ended || jobs[1].has_ended))) {
		printf("%-16s beside %-16s on %u%%: left out, as one has ended\n", off->name,
			on->name, percent);
		c->skipped++;
		return 0;
	}
	if (r)
		return r;
	snprintf(pair.gpu, sizeof(pair.gpu), "%s", off->gpu);
	snprintf(pair.online, sizeof(pair.online), "%s", on->name);
	snprintf(pair.offline, sizeof(pair.offline), "%s", off->name);
	snprintf(pair.policy, sizeof(pair.policy), "%s", c->policy);
	pair.seconds = (double)jobs[1].figures.span_ns / 1e9;
	pair.speed = speed_of(off, &jobs[1]);
	pair.online_speed = speed_of(on, &jobs[0]);
	r = td_store_add_pair(c->store, &pair);
	if (r)
		return td_profiler_store_error(r, err);
	printf("%-16s beside %-16s on %u%%: %.2f of its speed; the other one %.2f\n", off->name,
		on->name, percent, pair.speed, pair.online_speed);
	td_output_flush();
	c->kept++;
	return 0;
}

/* How fast two programs run together depends on the policy, so its name is kept with the pair. */
static int ask_policy(struct campaign *c, struct td_err *err)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_get};
	char path[256];
	int fd, r;

	if (td_socket_path_typed(path, sizeof(path), err))
		return -EINVAL;
	fd = td_socket_connect(path, PATIENCE_NS);
	if (fd < 0)
		return td_err_set(err, fd, "no daemon at %s (%s): `tandem run` starts one", path,
			strerror(-fd));
	snprintf(msg.get.key, sizeof(msg.get.key), "policy");
	r = td_socket_send(fd, &msg, NULL, 0);
	while (!r) {
		r = td_socket_recv(fd, &msg, NULL, 0);
		if (r || msg.type == TD_MSG_TYPE_end)
			break;
		if (msg.type == TD_MSG_TYPE_option)
			snprintf(c->policy, sizeof(c->policy), "%.*s", TD_PROGRAM_NAME - 1,
				td_printable(msg.option.value));
	}
	close(fd);
	return r ? td_err_set(err, r, "the daemon at %s does not answer: %s", path, strerror(-r))
		 : 0;
}

static int measure_all(struct campaign *c, struct td_err *err)
{
	int r = ask_policy(c, err);

	for (uint32_t i = 0; !r && i < c->plan.count; i++)
		r = measure_alone(c, i, err);
	for (uint32_t i = 1; !r && i < c->plan.count; i++)
		if (strcmp(c->alone[i].gpu, c->alone[0].gpu))
			r = td_err_set(err, -EXDEV,
				"\"%s\" ran on a %s, and \"%s\" on a %s: CUDA_VISIBLE_DEVICES can "
				"choose one",
				c->alone[0].name, c->alone[0].gpu, c->alone[i].name,
				c->alone[i].gpu);
	if (r)
		return r;
	r = td_store_get_pairs(c->store, c->alone[0].gpu, &c->known, &c->known_count);
	r = r == -ENOENT ? 0 : r;
	if (r)
		return td_profiler_store_error(r, err);
	for (uint32_t on = 0; on < c->plan.online_count; on++)
		for (uint32_t off = c->plan.online_count; off < c->plan.count; off++)
			for (uint32_t s = 0; !r && s < c->share_count; s++)
				r = measure_pair(c, on, off, c->percents[s], err);
	if (!r)
		printf("%u pairs were measured, %u left out\n", c->kept, c->skipped);
	return r;
}

/* -- learning -- */

static void show(const char *gpu, const struct td_speeds_report *report)
{
	const struct {
		const char *name;
		const struct td_speeds_error *error;
	} rows[] = {{"perceptron (MuxFlow)", &report->mlp}, {"ridge regression", &report->linear},
		{"mean of all", &report->mean}};

	printf("\n%s: learnt from %u pairs of %u programs%s. Errors of the speed of pairs with a "
	       "program left out:\n%-22s %8s %8s\n",
		gpu, report->rows, report->programs,
		report->unknown ? " (other pairs are left out: a program was not measured alone)"
				: "",
		"", "RMS", "MEAN");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		printf("%-22s %8.3f %8.3f\n", rows[i].name, rows[i].error->square,
			rows[i].error->absolute);
}

static int learn_gpu(struct td_store *store, const char *gpu, const struct td_program *programs,
	uint32_t program_count, const struct td_pair *pairs, uint32_t pair_count,
	struct td_err *err)
{
	struct td_speeds_report report;
	struct td_quality quality;
	struct td_model model;
	int r = td_speeds_learn(programs, program_count, pairs, pair_count, &td_learn_default,
		&model, &report, err);

	if (r)
		return r;
	quality = (struct td_quality){.rows = report.rows,
		.programs = report.programs,
		.error = report.mlp.square,
		.mean_error = report.mean.square};
	r = td_store_put_model(store, TD_SPEEDS_TARGET, gpu, &model, time(NULL));
	r = r ? r : td_store_put_quality(store, TD_SPEEDS_TARGET, gpu, &quality);
	td_model_deinit(&model);
	if (r)
		return td_profiler_store_error(r, err);
	show(gpu, &report);
	return 0;
}

/* A model for each kind of GPU (MuxFlow 6). The programs are in the order of their GPUs. */
static int learn_all(struct td_store *store, struct td_err *err)
{
	td_auto_free struct td_program *programs = NULL;
	uint32_t count = 0, n;
	int r = td_store_get_programs(store, NULL, &programs, &count);

	if (r == -ENOENT)
		return td_err_set(err, r, "nothing was measured yet: expected --plan FILE");
	if (r)
		return td_profiler_store_error(r, err);
	for (uint32_t i = 0; !r && i < count; i += n) {
		td_auto_free struct td_pair *pairs = NULL;
		uint32_t pair_count = 0;

		for (n = 1; i + n < count && !strcmp(programs[i].gpu, programs[i + n].gpu);)
			n++;
		r = td_store_get_pairs(store, programs[i].gpu, &pairs, &pair_count);
		if (r == -ENOENT) {
			r = 0;
			continue;
		}
		r = r ? td_profiler_store_error(r, err)
		      : learn_gpu(store, programs[i].gpu, &programs[i], n, pairs, pair_count, err);
	}
	return r;
}

/* -- options -- */

static void help(void)
{
	puts("usage: tandem profile campaign [--plan FILE] [--shares LIST] [--seconds TIME] "
	     "[--profiles DIRECTORY] [--store FILE]\n\n"
	     "Measures each program of a plan alone, then each best-effort one beside each online "
	     "one, and\nlearns to predict such speeds: tandem predict. Pairs that are known are "
	     "not measured again.\n\n"
	     "  --plan FILE      a line for each program: online|besteffort NAME COMMAND; without "
	     "it, what the\n"
	     "                   database has is learnt again\n"
	     "  --shares LIST    of the SMs, in percent, for best-effort programs (20,40,60); "
	     "they need MPS\n"
	     "  --seconds TIME   how long each is measured, 1s to 10m (10s)\n"
	     "  --profiles DIRECTORY  write what was learnt there, for the option profiles of the "
	     "daemon:\n"
	     "                   the policy muxflow exchanges jobs between GPUs by it\n"
	     "  --store FILE     the database (~/.local/share/tandem/profiles.db)");
}

static int take_option(struct campaign *c, int option, struct td_err *err)
{
	switch (option) {
	case 'p': c->has_plan = true; return td_plan_load(optarg, &c->plan, err);
	case 'H': return td_plan_shares(optarg, c->percents, &c->share_count, err);
	case 's':
		if (!td_parse_duration(optarg, &c->measure.span_ns, NULL) &&
			c->measure.span_ns >= SPAN_MIN && c->measure.span_ns <= SPAN_MAX)
			return 0;
		return td_err_set(err, -ERANGE,
			"--seconds: \"%.64s\" is not valid: expected a time from 1s to 10m",
			optarg);
	case 'o': c->profiles = optarg; return 0;
	default: c->store_path = optarg; return 0;
	}
}

/* 0, or an exit status after complaining; below 0: help was shown. */
static int read_options(struct campaign *c, int argc, char **argv)
{
	static const struct option options[] = {{"plan", required_argument, NULL, 'p'},
		{"shares", required_argument, NULL, 'H'}, {"seconds", required_argument, NULL, 's'},
		{"profiles", required_argument, NULL, 'o'}, {"store", required_argument, NULL, 'S'},
		{"help", no_argument, NULL, 'h'}, {0}};
	struct td_err err = {0};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		if (option == 'h') {
			help();
			return -1;
		}
		if (option == ':' || option == '?') {
			(void)td_refuse_option(
				option, argv, options, "tandem profile campaign --help", &err);
			return td_profiler_fail("%s", err.msg);
		}
		if (td_check_optarg(argv, &err) || take_option(c, option, &err))
			return td_profiler_fail("campaign: %s", err.msg);
	}
	if (optind < argc)
		return td_profiler_fail("\"%.64s\" is not expected: see tandem profile campaign "
					"--help",
			argv[optind]);
	return 0;
}

int td_profiler_campaign(int argc, char **argv)
{
	static struct campaign c = {.percents = {20, 40, 60},
		.share_count = 3,
		.measure = {START_NS, WARM_NS, SPAN_NS, SPAN_MIN}};
	struct td_err err = {0};
	int r = read_options(&c, argc, argv);

	if (r)
		return r < 0 ? 0 : r;
	if (td_profiler_open(c.store_path, &c.store, &err))
		return td_profiler_fail("%s", err.msg);
	if (c.has_plan)
		r = measure_all(&c, &err);
	r = r ? r : learn_all(c.store, &err);
	if (!r && c.profiles)
		r = td_profiler_export_speeds(c.store, c.profiles, &err);
	free(c.known);
	td_store_close(c.store);
	return r ? td_profiler_fail("campaign: %s", err.msg) : 0;
}
