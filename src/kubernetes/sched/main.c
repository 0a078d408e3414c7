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
#include "kubernetes/sched/engine/engine.h"
#include "kubernetes/sched/lease.h"

#define PROGRAM    "tandem-kube-sched"
#define EXIT_USAGE 125

struct options {
	struct td_sched_settings sched;
	struct td_kube_account account; /* NULL: that of the pod */
	const char *scheduler_name, *resource, *lease_namespace;
};

static const struct td_command_option rows[] = {
#define OPTION(name, letter, argument, help) {name, argument, help, letter},
#include "cluster/sched/sched_options.def"
#include "kubernetes/sched/sched_options.def"
#undef OPTION
};

static int take_option(void *arg, int letter, const char *text, struct td_err *err)
{
	struct options *o = arg;
	int r = td_sched_settings_take(&o->sched, letter, text, err);

	if (r <= 0)
		return r;
	if (!*text)
		return td_err_expected(err, -EINVAL, text, "a value");
	switch (letter) {
	case 'S': o->account.server = text; return 0;
	case 'T': o->account.token_file = text; return 0;
	case 'A': o->account.ca_file = text; return 0;
	case 'N': o->scheduler_name = text; return 0;
	case 'R': o->resource = text; return 0;
	case 'L': o->lease_namespace = text; return 0;
	default: return -EINVAL;
	}
}

static const struct td_command command = {
	.name = PROGRAM,
	.usage = "usage: " PROGRAM " [OPTION]...\n"
		 "\n"
		 "Places the pods of a Kubernetes cluster that have schedulerName: tandem and ask "
		 "for\n"
		 "tandem.dev/gpu: see " PROGRAM "(8).\n",
	.options = rows,
	.count = sizeof(rows) / sizeof(*rows),
	.take = take_option,
};

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
	scheduler.brain.shape.is_hard = true;
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
	int signals = td_end_signals(), r = td_kube_account_find(&o->account, &found, err);

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
	struct options options = {.scheduler_name = "tandem", .resource = "tandem.dev/gpu"};
	int answered = td_command_answer(&command, argc, argv);
	struct td_err err = {0};

	if (answered >= 0)
		return answered;
	td_sched_settings_init(&options.sched, false);
	if (td_command_parse(&command, argc, argv, &options, &err) ||
		td_sched_settings_check(&options.sched, "a pod has no profile", &err))
		return td_command_fail(&command, err.msg, EXIT_USAGE);
	return run(&options, &err) ? td_command_fail(&command, err.msg, 1) : 0;
}
