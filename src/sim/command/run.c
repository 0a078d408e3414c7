/*
 * Implements tandem-sim run: one trace on one cluster under several policies. The results are a
 * table, CSV, JSON and one HTML page.
 *
 * Facts that a trace lacks are drawn from the seed and are the same for every policy: the kind of a
 * job whose model is not among the profiles, and the guaranteed tenants where the trace has no
 * classes.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "sim/base/sim.h"
#include "sim/command/run.h"

static int refuse_policy(const char *name, struct td_err *err)
{
	char names[128] = "";

	for (int i = 0; td_scheds[i]; i++) {
		size_t used = strlen(names);

		snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
			td_scheds[i]->name);
	}
	return td_err_set(err, -EINVAL,
		"\"%.32s\" is not a policy of the cluster: expected one of %s", name, names);
}

static int add_policy(struct td_run *run, const char *name, size_t len, struct td_err *err)
{
	char copy[32];
	const struct td_sched *sched;

	snprintf(copy, sizeof(copy), "%.*s", (int)len, name);
	sched = td_sched_find(copy);
	if (!sched)
		return refuse_policy(copy, err);
	for (uint32_t i = 0; i < run->result_count; i++)
		if (run->results[i].sched == sched)
			return 0;
	if (run->result_count == TD_RUN_POLICIES_MAX)
		return td_err_set(err, -E2BIG,
			"--policies has more than %u policies, which is the most allowed",
			TD_RUN_POLICIES_MAX);
	run->results[run->result_count++].sched = sched;
	return 0;
}

static int add_policies(struct td_run *run, struct td_err *err)
{
	int r = add_policy(run, run->policy, strlen(run->policy), err);

	for (const char *p = run->compare; !r && *p;) {
		size_t n = strcspn(p, ",");

		r = add_policy(run, p, n, err);
		p += n + (p[n] == ',');
	}
	return r;
}

static int parse_contention(const char *text, bool *ret_proportional, struct td_err *err)
{
	if (strcmp(text, "fitted") && strcmp(text, "proportional"))
		return td_err_set(err, -EINVAL,
			"\"%.32s\" is not a contention model: expected fitted or proportional",
			text);
	*ret_proportional = !strcmp(text, "proportional");
	return 0;
}

static void name_option(const struct option *options, int c, struct td_err *err)
{
	struct td_err inner = *err;

	for (; options->name; options++)
		if (options->val == c)
			td_err_set(err, inner.code, "--%s: %s", options->name, inner.msg);
}

static int parse(int argc, char **argv, struct td_run *run, struct td_err *err)
{
	static const struct option options[] = {{"trace", required_argument, NULL, 't'},
		{"cluster", required_argument, NULL, 'c'}, {"policy", required_argument, NULL, 'p'},
		{"compare", required_argument, NULL, 'm'}, {"seed", required_argument, NULL, 's'},
		{"out", required_argument, NULL, 'o'}, {"profiles", required_argument, NULL, 'f'},
		{"gpu", required_argument, NULL, 'g'}, {"contention", required_argument, NULL, 'n'},
		{"guaranteed", required_argument, NULL, 'u'},
		{"restart", required_argument, NULL, 'r'},
		{"checkpoint", required_argument, NULL, 'k'}, {"skip-bad", no_argument, NULL, 'b'},
		{NULL, 0, NULL, 0}};
	int c, r = 0;

	opterr = 0;
	while (!r && (c = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		r = td_check_optarg(argv, err);
		if (r)
			return r;
		switch (c) {
		case 't': run->trace_path = optarg; break;
		case 'c': run->cluster_path = optarg; break;
		case 'p': run->policy = optarg; break;
		case 'm': run->compare = optarg; break;
		case 's': r = td_parse_u64(optarg, 0, UINT64_MAX, &run->seed, err); break;
		case 'o': run->out = optarg; break;
		case 'f': run->profiles_path = optarg; break;
		case 'g': run->gpu = optarg; break;
		case 'n': r = parse_contention(optarg, &run->proportional, err); break;
		case 'u': r = td_parse_ratio(optarg, &run->guaranteed_ppm, err); break;
		case 'r': r = td_parse_duration(optarg, &run->restart_ns, err); break;
		case 'k': r = td_parse_duration(optarg, &run->checkpoint_ns, err); break;
		case 'b': run->skip_bad = true; break;
		default: return td_refuse_option(c, argv, options, "tandem-sim --help", err);
		}
		if (r) /* err names the option before the error in its value */
			name_option(options, c, err);
	}
	if (!r && optind < argc)
		return td_err_set(err, -EINVAL, "\"%.64s\" is not expected: see tandem-sim --help",
			argv[optind]);
	if (!r && (!run->trace_path || !run->cluster_path))
		return td_err_set(err, -EINVAL, "--trace FILE and --cluster FILE are needed");
	if (!r && run->gpu && !run->profiles_path)
		return td_err_set(err, -EINVAL, "--gpu: \"%.64s\" has no effect without --profiles",
			run->gpu);
	if (!run->gpu)
		run->gpu = "p100";
	return r ? r : add_policies(run, err);
}

static int read_all(struct td_run *run, struct td_err *err)
{
	int r = td_trace_read(run->trace_path, run->skip_bad, &run->trace, err);

	r = r ? r : td_nodes_read(run->cluster_path, run->skip_bad, &run->nodes, err);
	r = r ? r : td_run_take_nodes(run, err);
	run->profiles = calloc(1, sizeof(*run->profiles));
	if (!r && !run->profiles)
		r = td_err_set(err, -ENOMEM, "out of memory");
	if (!r && run->profiles_path)
		r = td_profiles_read(run->profiles_path, run->gpu, run->profiles, err);
	else if (!r)
		td_profiles_generic(run->profiles);
	r = r ? r : td_run_make_jobs(run, err);
	if (!r && run->skip_bad && run->trace.skipped + run->misfits + run->nodes.skipped)
		fprintf(stderr, "tandem-sim: left out %u line%s of %s and %u of %s\n",
			run->trace.skipped + run->misfits,
			run->trace.skipped + run->misfits == 1 ? "" : "s", run->trace_path,
			run->nodes.skipped, run->cluster_path);
	if (!r)
		td_run_take_notes(run);
	return r;
}

static int simulate(struct td_run *run, struct td_run_result *result, struct td_err *err)
{
	static struct td_cluster cluster;
	struct td_progress progress;
	struct td_cluster_options options = td_run_options(run);
	int r;

	options.stop = &td_sim_stop;
	options.progress = td_progress_put;
	options.progress_arg = &progress;
	r = td_cluster_init(&cluster, &options, run->profiles, run->node_gpus, run->nodes.count,
		run->memory_bytes, run->jobs, run->job_count, result->sched);
	if (r)
		return td_err_set(
			err, r, "policy %s cannot run this: %s", result->sched->name, strerror(-r));
	td_progress_begin(&progress, result->sched->name);
	td_cluster_run(&cluster);
	td_progress_end(&progress);
	result->jct_s = calloc(run->job_count, sizeof(double));
	result->jobs = calloc(run->job_count, sizeof(*result->jobs));
	result->first_ns = cluster.first_ns;
	result->end_ns = cluster.now_ns;
	if (!result->jct_s || !result->jobs ||
		td_metrics_of(&cluster, result->metrics, result->jct_s))
		r = td_err_set(err, -ENOMEM, "out of memory");
	else
		memcpy(result->jobs, run->jobs, run->job_count * sizeof(*result->jobs));
	memcpy(result->samples, cluster.samples, sizeof(result->samples));
	result->sample_count = cluster.sample_count;
	result->stopped = cluster.counts.stopped;
	td_cluster_deinit(&cluster);
	return r;
}

/*
 * Compares times over the jobs that are done under every policy, so that no mean gets better by a
 * job that a policy lost.
 */
static int compare_results(struct td_run *run, struct td_err *err)
{
	td_auto_free bool *counted = calloc(run->job_count, sizeof(bool));
	int r = counted ? 0 : -ENOMEM;

	for (uint32_t i = 0; !r && i < run->job_count; i++) {
		counted[i] = true;
		for (uint32_t p = 0; p < run->result_count; p++)
			counted[i] &= run->results[p].jobs[i].status == TD_SIM_DONE;
		run->counted += counted[i];
	}
	for (uint32_t p = 0; !r && p < run->result_count; p++) {
		struct td_run_result *result = &run->results[p];

		r = td_metrics_of_jobs(result->jobs, run->job_count, counted, result->first_ns,
			result->end_ns, result->metrics, result->jct_s);
	}
	return r ? td_err_set(err, r, "out of memory") : 0;
}

static int execute(struct td_run *run, struct td_err *err)
{
	int r = read_all(run, err);
	uint32_t wanted = run->result_count;

	if (!r && run->out)
		r = td_sim_try_dir(run->out, err);
	run->result_count = 0;
	while (!r && run->result_count < wanted && !td_sim_stop) {
		struct td_run_result *result = &run->results[run->result_count];

		r = simulate(run, result, err);
		if (!r)
			run->result_count++;
		if (!r && run->out)
			r = td_run_write_jobs(run, result, err);
	}
	if (r || !run->result_count)
		return r;
	for (uint32_t p = run->result_count; p < wanted; p++)
		run->left[run->left_count++] = run->results[p].sched;
	r = compare_results(run, err);
	if (r)
		return r;
	if (run->out)
		r = td_run_write_all(run, err);
	td_run_put_table(run, stdout);
	return r;
}

int td_sim_run(int argc, char **argv)
{
	struct td_run *run = calloc(1, sizeof(*run));
	struct td_err err = {0};
	int r, status = 0;

	if (!run)
		return td_sim_fail("out of memory");
	run->policy = "tandem";
	run->compare = "fifo,antman";
	run->seed = 1;
	run->restart_ns = 60 * TD_NS_PER_S;
	run->checkpoint_ns = 1800 * TD_NS_PER_S;
	td_sim_catch();
	r = parse(argc, argv, run, &err);
	r = r ? r : execute(run, &err);
	if (r)
		status = td_sim_fail("%s", err.msg);
	else if (td_sim_stop)
		status = TD_SIM_EXIT_STOPPED;
	if (td_sim_stop)
		fputs("tandem-sim: stopped by a signal: the results cover the time until then\n",
			stderr);
	for (uint32_t p = 0; p < TD_RUN_POLICIES_MAX; p++) {
		free(run->results[p].jct_s);
		free(run->results[p].jobs);
	}
	td_trace_deinit(&run->trace);
	td_nodes_deinit(&run->nodes);
	free(run->profiles);
	free(run->jobs);
	free(run->node_gpus);
	free(run);
	return status;
}
