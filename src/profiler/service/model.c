/*
 * tandem model: what campaigns have learnt of services, and how sure it is.
 *
 * Without a name it lists the profiles of the directory. With one it shows the errors of the models
 * on neighbours that they have not seen, beside those of a predictor that takes the mean of all.
 * With a load it tells the batch and the share that hold the objective, by the rule by which the
 * policy mudi scales (slo_share.h).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "cli/json.h"
#include "learn/store.h"
#include "policy/algo/fit/slo_share.h"
#include "profiler/profiler.h"
#include "profiler/service/node.h"
#include "profiler/service/plot.h"
#include "profiler/service/points.h"
#include "proto/layers.h"

#define RATE_MAX 1000000000u
/* Campaigns usually measure no smaller shares, so below this the curves tell nothing. */
#define SHARE_MIN 0.1

struct model {
	const char *name, *plot;
	char profiles[4096];
	double layers[TD_MUDI_LAYERS];
	uint64_t objective_ns, rate_per_s;
	bool json, unseen;
};

static const char *const words[TD_PROFILE_MODELS] = {"slope left of the knee",
	"slope right of the knee", "share of the knee", "latency of the knee"};
static const char *const keys[TD_PROFILE_MODELS] = {
	"left_slope", "right_slope", "knee_share", "knee_latency"};

enum {
	OPTION_JSON = 256,
	OPTION_PROFILES,
	OPTION_UNSEEN,
	OPTION_PLOT,
	OPTION_LAYERS,
	OPTION_OBJECTIVE,
	OPTION_RATE,
	OPTION_HELP
};

static const struct option options[] = {
	{"json", no_argument, NULL, OPTION_JSON},
	{"profiles", required_argument, NULL, OPTION_PROFILES},
	{"unseen", no_argument, NULL, OPTION_UNSEEN},
	{"plot", required_argument, NULL, OPTION_PLOT},
	{"layers", required_argument, NULL, OPTION_LAYERS},
	{"objective", required_argument, NULL, OPTION_OBJECTIVE},
	{"rate", required_argument, NULL, OPTION_RATE},
	{"help", no_argument, NULL, OPTION_HELP},
	{0},
};

static const char usage[] =
	"usage: tandem model [--json] [--profiles DIR]\n"
	"       tandem model [--json] [--profiles DIR] [--unseen] [--plot FILE]\n"
	"                    [--objective TIME --rate N [--layers COUNTS]] NAME\n"
	"Shows what tandem profile service has learnt of services.\n"
	"  --profiles DIR     (the daemon's option profiles)\n"
	"  --unseen           leave each neighbour out once, and predict it\n"
	"  --plot FILE        draw the measured points and the curves (.svg or .png; needs "
	"gnuplot)\n"
	"  --objective, --rate  the batch and the smallest share of the SMs that hold the "
	"objective\n"
	"                     at N requests a second, beside a neighbour with these --layers "
	"(alone)\n";

static int take_layers(struct model *m, const char *text, struct td_err *err)
{
	uint32_t counts[TD_LAYER_KINDS];
	int r = td_layers_parse(text, counts, err);

	for (uint32_t k = 0; k < TD_LAYER_KINDS && !r; k++)
		m->layers[k] = counts[k];
	return r;
}

static int take_option(struct model *m, int option, struct td_err *err)
{
	switch (option) {
	case OPTION_JSON: m->json = true; return 0;
	case OPTION_PROFILES: snprintf(m->profiles, sizeof(m->profiles), "%s", optarg); return 0;
	case OPTION_UNSEEN: m->unseen = true; return 0;
	case OPTION_PLOT: m->plot = optarg; return td_plot_check(optarg, err);
	case OPTION_LAYERS: return take_layers(m, optarg, err);
	case OPTION_OBJECTIVE: return td_parse_duration(optarg, &m->objective_ns, err);
	case OPTION_RATE: return td_parse_u64(optarg, 1, RATE_MAX, &m->rate_per_s, err);
	default: return -EINVAL;
	}
}

static int check(struct model *m, int argc, char **argv, struct td_err *err)
{
	if (argc > optind + 1)
		return td_err_set(err, -EINVAL, "\"%.64s\" is one name too many", argv[optind + 1]);
	m->name = optind < argc ? argv[optind] : NULL;
	if (!m->name && (m->unseen || m->plot || m->objective_ns || m->rate_per_s))
		return td_err_set(err, -EINVAL,
			"expected the NAME of a service: tandem model lists "
			"them");
	if (!m->objective_ns != !m->rate_per_s)
		return td_err_set(err, -EINVAL, "--objective and --rate go together");
	if (m->name && td_profile_check_name(m->name, err))
		return -EINVAL;
	if (*m->profiles)
		return 0;
	if (td_node_get("profiles", m->profiles, sizeof(m->profiles), err))
		return -EINVAL;
	if (!strcmp(m->profiles, "none"))
		return td_err_set(err, -EINVAL,
			"--profiles is missing, and the daemon's option profiles is none");
	return 0;
}

/* 1: help was printed. */
static int parse(struct model *m, int argc, char **argv, struct td_err *err)
{
	int option;

	optind = 1;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		struct td_err why = {0};

		if (option == OPTION_HELP || option == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (option == ':' || option == '?')
			return td_refuse_option(option, argv, options, "tandem model --help", err);
		if (optarg && td_check_optarg(argv, err))
			return -EINVAL;
		if (take_option(m, option, &why))
			return td_err_set(err, -EINVAL, "%.40s: %.400s", argv[optind - 2], why.msg);
	}
	return check(m, argc, argv, err);
}

/* -- what was met -- */

/* The measurements of the running service: their number, and the time of the last one (s). */
struct met {
	uint64_t points, last_s;
};

static struct met sum_met(const struct td_service_profile *p)
{
	struct met met = {0};

	for (uint32_t i = 0; i < p->met_count; i++) {
		met.points += p->met[i].points;
		met.last_s = p->met[i].time_s > met.last_s ? p->met[i].time_s : met.last_s;
	}
	return met;
}

static const char *time_text(uint64_t time_s, char buf[32])
{
	time_t t = (time_t)time_s;
	struct tm tm;

	if (!time_s || !localtime_r(&t, &tm) || !strftime(buf, 32, "%Y-%m-%d %H:%M:%S", &tm))
		return "-";
	return buf;
}

static void print_met(const struct td_service_profile *p)
{
	char when[32];

	if (!p->met_count)
		return;
	printf("%-32s %6s %8s  %s\n", "MET WHILE IT RAN, LAYERS", "POINTS", "SLOWER", "LAST");
	for (uint32_t i = 0; i < p->met_count; i++) {
		uint32_t counts[TD_LAYER_KINDS];
		char layers[TD_LAYERS_TEXT];

		for (uint32_t k = 0; k < TD_LAYER_KINDS; k++)
			counts[k] = p->met[i].layers[k] < UINT32_MAX ? (uint32_t)p->met[i].layers[k]
								     : UINT32_MAX;
		td_layers_format(counts, layers);
		printf("%-32s %6" PRIu64 " %7.2fx  %s\n", layers, p->met[i].points,
			p->met[i].factor, time_text(p->met[i].time_s, when));
	}
}

/* -- the list -- */

static void list_one(
	struct model *m, struct td_json *out, const char *name, const struct td_service_profile *p)
{
	const struct met met = sum_met(p);
	char when[32];

	if (m->json) {
		td_json_row(out);
		td_json_str(out, "service", name);
		td_json_str(out, "gpu", p->gpu);
		td_json_u64(out, "batch_min", p->batch_min);
		td_json_u64(out, "batch_max", p->batch_max);
		td_json_u64(out, "curves", p->curve_count);
		td_json_u64(out, "met", p->met_count);
		td_json_u64(out, "met_points", met.points);
		td_json_u64(out, "met_last_s", met.last_s);
		td_json_end_row(out);
		return;
	}
	printf("%-20s %-20s %3u to %-5u %6" PRIu64 " %6.0f ms %6.0f points %4u %6" PRIu64 " %s\n",
		name, p->gpu, p->batch_min, p->batch_max, p->curve_count,
		1000 * p->error[TD_PROFILE_KNEE_LATENCY], 100 * p->error[TD_PROFILE_KNEE_SHARE],
		p->met_count, met.points, time_text(met.last_s, when));
}

static int list_all(struct model *m, struct td_err *err)
{
	DIR *folder = opendir(m->profiles);
	const struct dirent *entry;
	struct td_json out = {0};

	if (!folder)
		return td_err_set(err, -errno, "%.200s: %s", m->profiles, strerror(errno));
	if (m->json)
		td_json_begin(&out, stdout);
	else
		printf("%-20s %-20s %-12s %6s %-23s %4s %6s %s\n", "SERVICE", "GPU", "BATCHES",
			"CURVES", "OFF BY, AT THE KNEE", "MET", "POINTS", "LAST");
	while ((entry = readdir(folder))) {
		size_t length = strlen(entry->d_name), suffix = strlen(TD_PROFILE_SUFFIX);
		struct td_service_profile profile;
		char name[64];

		if (length <= suffix || length - suffix >= sizeof(name) ||
			strcmp(entry->d_name + length - suffix, TD_PROFILE_SUFFIX))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(length - suffix), entry->d_name);
		if (td_service_profile_load(dirfd(folder), entry->d_name, &profile, NULL))
			continue;
		(void)td_printable(profile.gpu);
		list_one(m, &out, td_printable(name), &profile);
		td_service_profile_deinit(&profile);
	}
	closedir(folder);
	if (m->json)
		td_json_end(&out);
	return 0;
}

/* -- one service -- */

struct choice {
	uint32_t batch; /* 0: none holds it */
	double share;
};

/* The smallest share of all batches; of equal ones the larger batch, which is cheaper. */
static struct choice choose(const struct model *m, const struct td_service_profile *profile)
{
	const struct td_mudi_service curves = td_service_profile_curves(profile);
	struct choice best = {0, 2};

	for (uint32_t b = profile->batch_min; b <= profile->batch_max; b++) {
		const struct td_curve curve = td_mudi_curve(&curves, m->layers, b);
		const struct td_slo slo = {.objective_s = (double)m->objective_ns / 1e9,
			.rate_per_s = (double)m->rate_per_s,
			.batch = b,
			.load_max = 0.8,
			.headroom = 0.1,
			.share_min = SHARE_MIN};
		double share;

		if (!td_slo_smallest_share(&slo, &curve, &share) && share <= best.share)
			best = (struct choice){b, share};
	}
	return best;
}

/* Reads the measured points of the service; the caller frees ret->at. */
static int read_points(
	const struct model *m, const char *gpu, struct td_points *ret, struct td_err *err)
{
	struct td_store *store;
	int r = td_points_open(m->profiles, true, &store, err);

	*ret = (struct td_points){0};
	if (r)
		return r;
	r = td_points_read(store, TD_POINTS_CAMPAIGN, m->name, gpu, ret, err);
	td_store_close(store);
	return r;
}

static int use_points(const struct model *m, const struct td_service_profile *profile,
	struct td_campaign_judged *ret, struct td_err *err)
{
	struct td_points points;
	int r = read_points(m, profile->gpu, &points, err);

	if (!r && m->unseen)
		r = td_campaign_judge(points.at, points.count, &td_learn_default, ret, err);
	if (!r && m->plot)
		r = td_plot_draw(m->plot, m->name, profile, &points, err);
	free(points.at);
	return r;
}

static void json_number(FILE *out, const char *key, double value)
{
	fprintf(out, ", \"%s\": %.6g", key, value);
}

static void print_json(const struct model *m, const struct td_service_profile *p,
	const struct td_campaign_judged *judged, const struct choice *choice)
{
	const struct met met = sum_met(p);

	printf("{\"service\": \"%s\", \"batch_min\": %u, \"batch_max\": %u, \"curves\": %" PRIu64
	       ", \"met\": %u, \"met_points\": %" PRIu64 ", \"met_last_s\": %" PRIu64,
		m->name, p->batch_min, p->batch_max, p->curve_count, p->met_count, met.points,
		met.last_s);
	for (unsigned k = 0; k < TD_PROFILE_MODELS; k++) {
		char key[64];

		snprintf(key, sizeof(key), "rms_%s", keys[k]);
		json_number(stdout, key, p->error[k]);
		if (!judged)
			continue;
		snprintf(key, sizeof(key), "unseen_%s", keys[k]);
		json_number(stdout, key, judged->error[k]);
		snprintf(key, sizeof(key), "mean_of_all_%s", keys[k]);
		json_number(stdout, key, judged->of_mean[k]);
	}
	if (choice) {
		printf(", \"batch\": %u", choice->batch);
		json_number(stdout, "share", choice->batch ? choice->share : 1);
	}
	puts("}");
}

static void print_text(const struct model *m, const struct td_service_profile *p,
	const struct td_campaign_judged *judged, const struct choice *choice)
{
	printf("%s on %s: %" PRIu64 " curves, batches %u to %u\n", m->name, p->gpu, p->curve_count,
		p->batch_min, p->batch_max);
	printf("%-24s %12s%s\n", "", "RMS", judged ? "   UNSEEN  MEAN OF ALL" : "");
	for (unsigned k = 0; k < TD_PROFILE_MODELS; k++) {
		printf("%-24s %12.4g", words[k], p->error[k]);
		if (judged)
			printf(" %7.0f %% %9.0f %%", 100 * judged->error[k],
				100 * judged->of_mean[k]);
		putchar('\n');
	}
	print_met(p);
	if (judged)
		printf("UNSEEN: off by, on %u neighbours left out one at a time (%u curves)\n",
			judged->neighbours, judged->curves);
	if (choice && choice->batch)
		printf("batch %u with %.0f %% of the SMs holds the objective\n", choice->batch,
			ceil(100 * choice->share));
	else if (choice)
		puts("no batch and share hold the objective");
}

static int show_one(struct model *m, struct td_err *err)
{
	td_auto_close int folder = open(m->profiles, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct td_service_profile profile;
	struct td_campaign_judged judged;
	struct choice choice = {0};
	char file[128];
	int r;

	if (folder < 0)
		return td_err_set(err, -errno, "%.200s: %s", m->profiles, strerror(errno));
	snprintf(file, sizeof(file), "%s" TD_PROFILE_SUFFIX, m->name);
	r = td_service_profile_load(folder, file, &profile, err);
	if (r == -ENOENT)
		return td_err_set(err, r,
			"\"%.64s\" has no profile in %.200s: tandem model lists those that are "
			"there",
			m->name, m->profiles);
	if (r)
		return r;
	(void)td_printable(profile.gpu); /* anybody may have written the file */
	if (m->unseen || m->plot)
		r = use_points(m, &profile, &judged, err);
	if (m->objective_ns)
		choice = choose(m, &profile);
	if (!r)
		(m->json ? print_json : print_text)(
			m, &profile, m->unseen ? &judged : NULL, m->objective_ns ? &choice : NULL);
	td_service_profile_deinit(&profile);
	return r;
}

int td_profiler_model(int argc, char **argv)
{
	struct model m = {0};
	struct td_err err = {0};
	int r = parse(&m, argc, argv, &err);

	if (r == 1)
		return 0;
	r = r ? r : m.name ? show_one(&m, &err) : list_all(&m, &err);
	return r ? td_profiler_fail("%s", err.msg) : 0;
}
