/* tandem predict ONLINE BESTEFFORT: how fast one program would run beside another. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "cli/json.h"
#include "learn/speeds.h"
#include "learn/store.h"
#include "policy/algo/fit/slo_share.h"
#include "policy/cluster/muxflow_cluster.h"
#include "profiler/profiler.h"
#include "profiler/program.h"
#include "profiler/store.h"
#include "view/options.h"

#define PPM 1e6

struct question {
	const char *online, *offline, *gpu, *store_path;
	uint32_t share_ppm; /* 0: the one that MuxFlow's rule leaves */
	bool json;
};

struct answer {
	struct td_program online, offline;
	struct td_quality quality;
	double share, speed;
};

/*
 * Finds the kind of GPU: the one that was asked for, or the only one on which both programs were
 * measured.
 */
static int find_gpu(struct td_store *store, struct question *q, struct td_program **ret_programs,
	struct td_err *err)
{
	uint32_t count = 0, found = 0;
	int r = td_store_get_programs(store, NULL, ret_programs, &count);

	if (r)
		return r == -ENOENT ? td_err_set(err, r,
					      "no program was profiled yet: see tandem profile")
				    : td_profiler_store_error(r, err);
	for (uint32_t i = 0; i < count && !q->gpu; i++)
		if (!strcmp((*ret_programs)[i].name, q->offline)) {
			found++;
			if (found == 1)
				q->gpu = (*ret_programs)[i].gpu;
		}
	for (uint32_t i = 0; i < count && found; i++)
		if (found && !strcmp((*ret_programs)[i].name, q->offline) &&
			strcmp((*ret_programs)[i].gpu, q->gpu))
			return td_err_set(err, -EINVAL,
				"\"%.64s\" was profiled on a %s and on a %s: expected --gpu NAME",
				q->offline, q->gpu, (*ret_programs)[i].gpu);
	return q->gpu ? 0
		      : td_err_set(err, -ENOENT,
				"\"%.64s\" was not profiled: see tandem profile --list",
				q->offline);
}

static int read_program(struct td_store *store, const char *gpu, const char *name,
	struct td_program *ret, struct td_err *err)
{
	int r = td_store_get_program(store, gpu, name, ret);

	if (r == -ENOENT)
		return td_err_set(err, r,
			"\"%.64s\" was not profiled on a %.64s: see tandem profile --list", name,
			gpu);
	return r ? td_profiler_store_error(r, err) : 0;
}

static int predict(
	struct td_store *store, const struct question *q, struct answer *ret, struct td_err *err)
{
	struct td_model model;
	int r = read_program(store, q->gpu, q->online, &ret->online, err);

	r = r ? r : read_program(store, q->gpu, q->offline, &ret->offline, err);
	if (r)
		return r;
	r = td_store_get_quality(store, TD_SPEEDS_TARGET, q->gpu, &ret->quality);
	r = r ? r : td_store_get_model(store, TD_SPEEDS_TARGET, q->gpu, &model);
	if (r == -ENOENT)
		return td_err_set(err, r,
			"no predictor was trained for a %.64s: see tandem profile campaign",
			q->gpu);
	if (r)
		return td_profiler_store_error(r, err);
	ret->share = (q->share_ppm ? q->share_ppm
				   : td_dynamic_sm_ppm(&td_dynamic_sm_default,
					     (uint32_t)(fmin(ret->online.sm_activity, 1) * PPM))) /
		     PPM;
	if (model.predictor.inputs == TD_MUXFLOW_INPUTS)
		ret->speed = td_speeds_predict(
			&model.predictor, &ret->online, &ret->offline, ret->share);
	else
		r = td_err_set(err, -EINVAL,
			"the predictor of a %.64s takes other inputs: see "
			"tandem profile campaign",
			q->gpu);
	td_model_deinit(&model);
	return r;
}

static void show(const struct question *q, const struct answer *a)
{
	struct td_json j;

	if (!q->json) {
		printf("\"%s\" beside \"%s\" on %.0f%% of the SMs of a %s: %.2f of its speed "
		       "alone, give or take %.2f\n"
		       "(the error for programs left out of %u pairs of %u programs; the mean of "
		       "all errs by %.2f)\n",
			q->offline, q->online, 100 * a->share, q->gpu, a->speed, a->quality.error,
			a->quality.rows, a->quality.programs, a->quality.mean_error);
		return;
	}
	td_json_begin(&j, stdout);
	td_json_row(&j);
	td_json_str(&j, "online", q->online);
	td_json_str(&j, "besteffort", q->offline);
	td_json_str(&j, "gpu", q->gpu);
	td_json_double(&j, "sm_share", a->share);
	td_json_double(&j, "speed", a->speed);
	td_json_double(&j, "error", a->quality.error);
	td_json_double(&j, "error_of_mean", a->quality.mean_error);
	td_json_u64(&j, "pairs", a->quality.rows);
	td_json_u64(&j, "programs", a->quality.programs);
	td_json_end_row(&j);
	td_json_end(&j);
}

static void help(void)
{
	puts("usage: tandem predict [OPTION]... ONLINE BESTEFFORT\n\n"
	     "How fast a best-effort program is beside an online one, of its speed alone. Both "
	     "were measured\nalone by tandem profile, and tandem profile campaign has trained the "
	     "predictor.\n\n"
	     "  --share SHARE  of the SMs, for the best-effort one (what the online one leaves)\n"
	     "  --gpu NAME     the kind of GPU (the only one that is known)\n"
	     "  --store FILE   the database (~/.local/share/tandem/profiles.db)\n"
	     "  --json         as JSON");
}

/* 0, or an exit status after complaining; below 0: help was shown. */
static int read_options(struct question *q, int argc, char **argv)
{
	static const struct option options[] = {
#define OPTION_predict TD_OPTION
#include "view/options_of.h"
	};
	struct td_err err = {0};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (optarg && td_check_optarg(argv, &err))
			return td_profiler_fail("%s, see tandem predict --help", err.msg);
		switch (c) {
		case 's':
			if (td_parse_ratio(optarg, &q->share_ppm, &err))
				return td_profiler_fail("--share: %s", err.msg);
			if (!q->share_ppm)
				return td_profiler_fail("--share: \"%.64s\" is not valid: expected "
							"more than 0%%, such as 30%%",
					optarg);
			break;
		case 'g': q->gpu = optarg; break;
		case 'S': q->store_path = optarg; break;
		case 'J': q->json = true; break;
		case 'h': help(); return -1;
		default:
			(void)td_refuse_option(c, argv, options, "tandem predict --help", &err);
			return td_profiler_fail("%s", err.msg);
		}
	}
	if (argc - optind != 2)
		return td_profiler_fail("predict: expected the names of an online and of a "
					"best-effort program: see tandem profile --list");
	q->online = argv[optind];
	q->offline = argv[optind + 1];
	return 0;
}

int td_profiler_predict(int argc, char **argv)
{
	td_auto_free struct td_program *programs = NULL;
	struct td_store *store = NULL;
	struct question q = {0};
	struct answer a = {0};
	struct td_err err = {0};
	int r = read_options(&q, argc, argv);

	if (r)
		return r < 0 ? 0 : r;
	if (td_profiler_open_to_read(q.store_path, &store, &err))
		return td_profiler_fail("%s", err.msg);
	r = find_gpu(store, &q, &programs, &err);
	r = r ? r : predict(store, &q, &a, &err);
	td_store_close(store);
	if (r)
		return td_profiler_fail("predict: %s", err.msg);
	show(&q, &a);
	return 0;
}
