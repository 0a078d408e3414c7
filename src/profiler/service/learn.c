/*
 * tandem profile learn: keeps what the daemon has measured of running services, and learns from it
 * (learn/met.h). The daemon starts it with lines of profile/lesson.h on standard input.
 *
 * The newest MET_MAX measurements of a service on one kind of GPU are kept. It works at the lowest
 * priority. A bad line is an error, and those before it count.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/err.h"
#include "base/program.h"
#include "learn/met.h"
#include "learn/store.h"
#include "profile/lesson.h"
#include "profiler/profiler.h"
#include "profiler/service/learn.h"

#define MET_MAX     512u
#define LESSONS_MAX 64u

struct lessons {
	struct td_lesson all[LESSONS_MAX];
	uint32_t count;
};

static const char usage[] =
	"usage: tandem profile learn --profiles DIR <LESSONS\n"
	"Keeps what the daemon has measured of running services, and learns from it. The daemon\n"
	"starts it by itself (the option profiles.learn). One lesson a line, tabs in between:\n"
	"NAME LAYERS BATCH SHARE LATENCY GPU (share in ppm, latency in ns).\n";

static int read_lessons(struct lessons *lessons, struct td_err *err)
{
	char line[TD_LESSON_TEXT];

	while (fgets(line, sizeof(line), stdin)) {
		size_t length = strcspn(line, "\n");
		struct td_err why = {0};

		if (lessons->count == LESSONS_MAX)
			return td_err_set(
				err, -E2BIG, "there are more than %u lessons", LESSONS_MAX);
		if (!line[length] && !feof(stdin))
			return td_err_set(err, -EINVAL, "line %u is too long, or has a zero byte",
				lessons->count + 1);
		line[length] = 0;
		if (td_lesson_parse(line, &lessons->all[lessons->count], &why))
			return td_err_set(
				err, -EINVAL, "line %u: %.300s", lessons->count + 1, why.msg);
		lessons->count++;
	}
	return 0;
}

static int read_all(struct td_store *store, const char *service, const char *gpu,
	struct td_points *campaign, struct td_points *met, struct td_err *err)
{
	int r = td_points_read(store, TD_POINTS_CAMPAIGN, service, gpu, campaign, err);

	return r ? r : td_points_read(store, TD_POINTS_MET, service, gpu, met, err);
}

int td_profiler_relearn(struct td_store *store, const char *directory, const char *service,
	const char *gpu, uint32_t new_count, struct td_service_profile *ret, struct td_err *err)
{
	struct td_points campaign = {0}, met = {0};
	struct td_service_profile before;
	bool has_before = false;
	int r = read_all(store, service, gpu, &campaign, &met, err);

	if (!r)
		has_before =
			!td_points_load(directory, service, &before) && !strcmp(before.gpu, gpu);
	if (!r) {
		const struct td_met_points points = {campaign.at, campaign.count, met.at, met.count,
			new_count < met.count ? new_count : met.count, (uint64_t)time(NULL)};

		r = td_met_learn(
			&points, has_before ? &before : NULL, gpu, &td_learn_default, ret, err);
	}
	if (has_before)
		td_service_profile_deinit(&before);
	free(campaign.at);
	free(met.at);
	return r;
}

static bool is_together(const struct td_lesson *a, const struct td_lesson *b)
{
	return !strcmp(a->service, b->service) && !strcmp(a->gpu, b->gpu);
}

static int add(struct td_store *store, const struct td_lesson *lesson, struct td_err *err)
{
	struct td_campaign_point point = {.batch = lesson->batch,
		.share = lesson->share_ppm / 1e6,
		.latency_s = (double)lesson->latency_ns / 1e9};

	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		point.layers[k] = lesson->layers[k];
	return td_points_add(store, TD_POINTS_MET, lesson->service, lesson->gpu, NULL, &point, err);
}

/* All lessons of the service of lesson `first`. */
static int learn_service(struct td_store *store, const char *directory,
	const struct lessons *lessons, uint32_t first, struct td_err *err)
{
	const struct td_lesson *of = &lessons->all[first];
	struct td_service_profile profile;
	uint32_t n = 0;
	int r = 0;

	for (uint32_t i = first; i < lessons->count && !r; i++)
		if (is_together(of, &lessons->all[i])) {
			r = add(store, &lessons->all[i], err);
			n++;
		}
	r = r ? r : td_points_trim(store, TD_POINTS_MET, of->service, of->gpu, MET_MAX, err);
	r = r ? r : td_profiler_relearn(store, directory, of->service, of->gpu, n, &profile, err);
	if (r)
		return r;
	r = td_points_write(&profile, directory, of->service, err);
	td_service_profile_deinit(&profile);
	return r;
}

static int learn_all(const char *directory, struct td_err *err)
{
	struct lessons *lessons = calloc(1, sizeof(*lessons));
	struct td_store *store = NULL;
	int bad = lessons ? read_lessons(lessons, err) : -ENOMEM, r = 0;

	if (lessons && lessons->count)
		r = td_points_open(directory, false, &store, err);
	for (uint32_t i = 0; !r && lessons && i < lessons->count; i++) {
		uint32_t k = 0;

		while (k < i && !is_together(&lessons->all[k], &lessons->all[i]))
			k++;
		if (k == i)
			r = learn_service(store, directory, lessons, i, err);
	}
	td_store_close(store);
	free(lessons);
	return r ? r : bad;
}

/* Others' work goes first. What is refused here changes nothing but the speed. */
static void step_back(void)
{
	const struct sched_param none = {0};

	(void)sched_setscheduler(0, SCHED_BATCH, &none);
	(void)setpriority(PRIO_PROCESS, 0, 19);
}

int td_profiler_learn(int argc, char **argv)
{
	static const struct option options[] = {
		{"profiles", required_argument, NULL, 'p'}, {"help", no_argument, NULL, 'h'}, {0}};
	const char *directory = NULL;
	struct td_err err = {0};
	int option;

	optind = 1;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (option != 'p') {
			(void)td_refuse_option(
				option, argv, options, "tandem profile learn --help", &err);
			return td_profiler_fail("%s", err.msg);
		}
		directory = optarg;
	}
	if (!directory || optind < argc)
		return td_profiler_fail("expected --profiles DIR and nothing else");
	step_back();
	return learn_all(directory, &err) ? td_profiler_fail("%s", err.msg) : 0;
}
