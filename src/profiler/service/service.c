/*
 * tandem profile service: a campaign. It measures the latency of a service's batches with several
 * shares of the SMs, alone and beside neighbours, and learns the profile by which Mudi tunes
 * (Mudi 4.1).
 *
 * A process of MPS keeps its share, so for each share the service is started anew. Beside it each
 * neighbour gets the rest of the SMs, as Mudi gives it. Batches are set through the daemon. Every
 * point is in the database once it was measured, so a campaign that was ended goes on where it
 * stopped. Neighbours that are added later are measured alone.
 *
 * While it runs, the daemon's policy is timeshare, which holds nobody. The policy before is put
 * back at the end.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "learn/store.h"
#include "profiler/profiler.h"
#include "profiler/service/bursts.h"
#include "profiler/service/grid.h"
#include "profiler/service/learn.h"
#include "profiler/service/node.h"
#include "profiler/service/plot.h"
#include "profiler/service/points.h"

#define START_NS (60 * TD_NS_PER_S)
#define POLL_NS  (50 * TD_NS_PER_MS)
#define SHARES   "10,25,40,55,70,85"
#define BATCHES  "1,4,16,64"
#define POLICY   "timeshare"

struct campaign {
	struct td_grid grid;
	const char *name, *url, *beside, *plot;
	char profiles[4096], gpu[64], policy_before[64];
	uint64_t bursts;
	double quantile;
	char *const *command;
	struct td_store *store;
	struct td_points points;
	struct td_bursts client;
	struct td_started service, neighbour;
	uint32_t total;
	bool has_client;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	stop = number;
}

/* -- options -- */

enum {
	OPTION_NAME = 256,
	OPTION_URL,
	OPTION_SHARES,
	OPTION_BATCHES,
	OPTION_BESIDE,
	OPTION_BURSTS,
	OPTION_QUANTILE,
	OPTION_PROFILES,
	OPTION_PLOT,
	OPTION_HELP
};

static const struct option options[] = {
	{"name", required_argument, NULL, OPTION_NAME},
	{"url", required_argument, NULL, OPTION_URL},
	{"shares", required_argument, NULL, OPTION_SHARES},
	{"batches", required_argument, NULL, OPTION_BATCHES},
	{"beside", required_argument, NULL, OPTION_BESIDE},
	{"bursts", required_argument, NULL, OPTION_BURSTS},
	{"quantile", required_argument, NULL, OPTION_QUANTILE},
	{"profiles", required_argument, NULL, OPTION_PROFILES},
	{"plot", required_argument, NULL, OPTION_PLOT},
	{"help", no_argument, NULL, OPTION_HELP},
	{0},
};

static const char usage[] =
	"usage: tandem profile service --name NAME --url URL [OPTION]... -- COMMAND [ARG]...\n"
	"Measures a service that uses tandem/tandem.h and answers GET requests at a fixed URL, "
	"and\n"
	"writes NAME.profile, by which the policy mudi tunes. MPS is needed (tandem set mps=on).\n"
	"  --name NAME       that the service tells tandem\n"
	"  --url URL         http://HOST:PORT/PATH; the service waits until a batch is full\n"
	"  --beside FILE     neighbours, one a line: NAME LAYERS COMMAND (LAYERS: 11 counts, as\n"
	"                    tandem layers prints them); it is measured alone, too\n"
	"  --shares LIST     of the SMs, in percent (" SHARES "); the neighbour has the rest\n"
	"  --batches LIST    (" BATCHES ")\n"
	"  --bursts N        for a point (20); --quantile P: of their latencies (0.99)\n"
	"  --profiles DIR    for the profile and what was measured (the daemon's option profiles)\n"
	"  --plot FILE       draw the points and the curves at the end, as tandem model --plot\n"
	"Ended and started again, it goes on where it was.\n";

static int take_option(struct campaign *c, int option, struct td_err *err)
{
	uint32_t ppm;

	switch (option) {
	case OPTION_NAME: c->name = optarg; return td_profile_check_name(optarg, err);
	case OPTION_URL: c->url = optarg; return 0;
	case OPTION_BESIDE: c->beside = optarg; return 0;
	case OPTION_SHARES:
		return td_grid_parse_list(optarg, 1, 100, c->grid.shares, TD_GRID_SHARES_MAX,
			&c->grid.share_count, err);
	case OPTION_BATCHES:
		return td_grid_parse_list(optarg, 1, TD_GRID_BATCH_MAX, c->grid.batches,
			TD_GRID_BATCHES_MAX, &c->grid.batch_count, err);
	case OPTION_BURSTS: return td_parse_u64(optarg, 1, 100000, &c->bursts, err);
	case OPTION_QUANTILE:
		if (td_parse_ratio(optarg, &ppm, err))
			return -EINVAL;
		c->quantile = ppm / 1e6;
		return 0;
	case OPTION_PLOT: c->plot = optarg; return td_plot_check(optarg, err);
	case OPTION_PROFILES: snprintf(c->profiles, sizeof(c->profiles), "%s", optarg); return 0;
	default: return -EINVAL;
	}
}

static int check(struct campaign *c, int argc, char **argv, struct td_err *err)
{
	if (!c->name)
		return td_err_set(err, -EINVAL,
			"--name is missing: expected the name that the service tells tandem");
	if (!c->url)
		return td_err_set(err, -EINVAL, "--url is missing: expected http://HOST:PORT/PATH");
	if (optind >= argc)
		return td_err_set(err, -EINVAL, "the service's command is missing behind --");
	if (c->grid.share_count < 3)
		return td_err_set(err, -EINVAL,
			"--shares: %u are too few for a curve: expected three or more",
			c->grid.share_count);
	if (argc - optind > TD_NODE_ARGUMENTS_MAX)
		return td_err_set(err, -E2BIG,
			"the service's command has %d words: expected at most %d", argc - optind,
			TD_NODE_ARGUMENTS_MAX);
	c->command = argv + optind;
	return 0;
}

static int read_beside(struct campaign *c, struct td_err *err)
{
	struct td_err why = {0};
	FILE *file;
	int r;

	c->grid.neighbour_count = 1;
	if (!c->beside)
		return 0;
	file = fopen(c->beside, "re");
	if (!file)
		return td_err_set(err, -errno, "--beside %.200s: %s", c->beside, strerror(errno));
	r = td_grid_read_neighbours(&c->grid, file, &why);
	fclose(file);
	return r ? td_err_set(err, r, "--beside %.100s: %.380s", c->beside, why.msg) : 0;
}

/* 1: help was printed. */
static int parse(struct campaign *c, int argc, char **argv, struct td_err *err)
{
	int option;

	optind = 1;
	opterr = 0;
	(void)td_grid_parse_list(
		SHARES, 1, 100, c->grid.shares, TD_GRID_SHARES_MAX, &c->grid.share_count, NULL);
	(void)td_grid_parse_list(BATCHES, 1, TD_GRID_BATCH_MAX, c->grid.batches,
		TD_GRID_BATCHES_MAX, &c->grid.batch_count, NULL);
	while ((option = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		struct td_err why = {0};

		if (option == OPTION_HELP || option == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (option == ':' || option == '?')
			return td_refuse_option(
				option, argv, options, "tandem profile service --help", err);
		if (td_check_optarg(argv, err))
			return -EINVAL;
		if (take_option(c, option, &why))
			return td_err_set(err, -EINVAL, "%.40s: %.400s", argv[optind - 2], why.msg);
	}
	return check(c, argc, argv, err) || read_beside(c, err) ? -EINVAL : 0;
}

/* -- the node -- */

static int prepare_node(struct campaign *c, struct td_err *err)
{
	uint32_t jobs;
	struct td_msg_gpu gpu;
	int r = td_node_count_jobs(&jobs, err);

	r = r ? r : td_node_gpu(0, &gpu, err);
	if (r)
		return r;
	if (jobs)
		return td_err_set(err, -EBUSY,
			"%u processes use the GPUs here: a campaign measures without others, see "
			"tandem ps",
			jobs);
	if (strcmp(gpu.mps, "ready"))
		return td_err_set(err, -EINVAL,
			"MPS is not ready on GPU 0, and shares of the SMs need it: tandem set "
			"mps=on, see tandem gpu");
	snprintf(c->gpu, sizeof(c->gpu), "%.63s", gpu.name);
	if (!*c->profiles) {
		r = td_node_get("profiles", c->profiles, sizeof(c->profiles), err);
		if (!r && !strcmp(c->profiles, "none"))
			r = td_err_set(err, -EINVAL,
				"--profiles is missing, and the daemon's option profiles is none");
	}
	r = r ? r : td_node_get("policy", c->policy_before, sizeof(c->policy_before), err);
	return r ? r : td_node_set("", "policy", POLICY, err);
}

/* -- the measurement -- */

/* Waits for what `is_so` tells, while both programs live. */
static int await(struct campaign *c, struct td_started *started, const char *what,
	bool (*is_so)(struct campaign *c, struct td_msg_job *row), struct td_err *err)
{
	uint64_t end_ns = td_time_now_ns() + START_NS;
	struct td_msg_job row;

	for (;;) {
		int r = td_node_job(started->name, &row, err);

		if (r && r != -ENOENT)
			return r;
		if (!r && is_so(c, &row))
			return 0;
		if (stop)
			return td_err_set(err, -EINTR, "it was stopped");
		if (td_node_has_ended(started))
			return td_err_set(err, -ECHILD, "%s has ended", what);
		if (td_time_now_ns() > end_ns)
			return td_err_set(err, -ETIMEDOUT, "%s does not come up within %d s", what,
				(int)(START_NS / TD_NS_PER_S));
		td_time_sleep_until_ns(td_time_now_ns() + POLL_NS);
	}
}

static bool is_serving(struct campaign *c, struct td_msg_job *row)
{
	return *row->service && td_bursts_is_up(&c->client);
}

static bool is_working(struct campaign *c, struct td_msg_job *row)
{
	(void)c;
	return row->launches > 1;
}

static int start_service(struct campaign *c, uint32_t share, struct td_err *err)
{
	struct td_msg_job row;
	int r;

	if (c->service.pid)
		return 0;
	r = td_bursts_init(&c->client, c->url, TD_GRID_BATCH_MAX, &stop, err);
	c->has_client = !r;
	r = r ? r : td_node_start(&c->service, c->name, share, NULL, c->command, err);
	r = r ? r : await(c, &c->service, "the service", is_serving, err);
	r = r ? r : td_node_job(c->service.name, &row, err);
	if (r)
		return r;
	if (strcmp(row.service, c->name))
		return td_err_set(err, -EINVAL,
			"the service tells the name \"%.64s\": expected that of --name, \"%.64s\"",
			row.service, c->name);
	if (row.sm_share_ppm != share * 10000)
		return td_err_set(err, -EINVAL,
			"the service has %u %% of the SMs instead of %u %%: does it set "
			"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE itself?",
			row.sm_share_ppm / 10000, share);
	return 0;
}

static int start_neighbour(struct campaign *c, const struct td_neighbour *neighbour, uint32_t share,
	struct td_err *err)
{
	char shell[] = "/bin/sh", minus_c[] = "-c", command[sizeof(neighbour->command) + 8];
	char *const argv[] = {shell, minus_c, command, NULL};
	int r;

	if (!*neighbour->name || c->neighbour.pid)
		return 0;
	snprintf(command, sizeof(command), "exec %s", neighbour->command);
	r = td_node_start(&c->neighbour, neighbour->name, share < 100 ? 100 - share : 1,
		neighbour->layers, argv, err);
	return r ? r : await(c, &c->neighbour, neighbour->name, is_working, err);
}

static void stop_service(struct campaign *c)
{
	td_node_stop(&c->service);
	if (c->has_client)
		td_bursts_deinit(&c->client);
	c->has_client = false;
}

static int measure(struct campaign *c, const struct td_neighbour *neighbour,
	struct td_campaign_point *point, struct td_err *err)
{
	char batch[16];
	int r;

	snprintf(batch, sizeof(batch), "%u", point->batch);
	r = td_node_set(c->service.name, "batch", batch, err);
	r = r ? r
	      : td_bursts_measure(&c->client, point->batch, (uint32_t)c->bursts, c->quantile,
			&point->latency_s, err);
	if (!r && c->neighbour.pid && td_node_has_ended(&c->neighbour))
		r = td_err_set(err, -ECHILD, "%s has ended", neighbour->name);
	r = r ? r
	      : td_points_add(
			c->store, TD_POINTS_CAMPAIGN, c->name, c->gpu, &c->points, point, err);
	if (!r)
		fprintf(stderr, "share %2.0f %%, batch %4u, %s%s: %.2f ms (%u of %u)\n",
			100 * point->share, point->batch, *neighbour->name ? "beside " : "alone",
			neighbour->name, 1000 * point->latency_s,
			c->total - td_grid_left(&c->grid, c->points.at, c->points.count), c->total);
	return r;
}

/* All that is left of a share. */
static int measure_share(struct campaign *c, uint32_t share, struct td_err *err)
{
	int r = 0;

	for (uint32_t n = 0; n < c->grid.neighbour_count && !r; n++) {
		const struct td_neighbour *neighbour = &c->grid.neighbours[n];

		for (uint32_t b = 0; b < c->grid.batch_count && !r; b++) {
			struct td_campaign_point point =
				td_grid_point(neighbour, c->grid.batches[b], share);

			if (td_grid_has(c->points.at, c->points.count, &point))
				continue;
			r = start_service(c, share, err);
			r = r ? r : start_neighbour(c, neighbour, share, err);
			r = r ? r : measure(c, neighbour, &point, err);
		}
		td_node_stop(&c->neighbour);
	}
	stop_service(c);
	return r;
}

static int measure_all(struct campaign *c, struct td_err *err)
{
	int r = td_points_open(c->profiles, false, &c->store, err);

	r = r ? r : td_points_read(c->store, TD_POINTS_CAMPAIGN, c->name, c->gpu, &c->points, err);
	c->total = c->grid.share_count * c->grid.batch_count * c->grid.neighbour_count;
	for (uint32_t s = 0; s < c->grid.share_count && !r; s++)
		r = measure_share(c, c->grid.shares[s], err);
	return r;
}

/*
 * Makes the daemon look into its directory of profiles, which it does when the option is set. It is
 * set to none and back, so that policies find the new profile.
 */
static void show_daemon(const struct campaign *c)
{
	char directory[4096];
	struct td_err ignored = {0};

	if (td_node_get("profiles", directory, sizeof(directory), &ignored) ||
		strcmp(directory, c->profiles))
		return;
	(void)td_node_set("", "profiles", "none", &ignored);
	(void)td_node_set("", "profiles", directory, &ignored);
}

static int finish(struct campaign *c, struct td_err *err)
{
	static const char *const names[TD_PROFILE_MODELS] = {"slope left of the knee",
		"slope right of the knee", "share of the knee", "latency of the knee"};
	struct td_service_profile profile;
	int r = td_profiler_relearn(c->store, c->profiles, c->name, c->gpu, 0, &profile, err);

	if (r)
		return r;
	r = td_points_write(&profile, c->profiles, c->name, err);
	if (r) {
		td_service_profile_deinit(&profile);
		return r;
	}
	show_daemon(c);
	printf("%s/%s" TD_PROFILE_SUFFIX ": %" PRIu64 " curves of %u points, batches %u to %u\n",
		c->profiles, c->name, profile.curve_count, c->points.count, profile.batch_min,
		profile.batch_max);
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++)
		printf("%-24s off by %.4g on a neighbour that was left out\n", names[m],
			profile.error[m]);
	r = c->plot ? td_plot_draw(c->plot, c->name, &profile, &c->points, err) : 0;
	td_service_profile_deinit(&profile);
	return r;
}

static int run(struct campaign *c, struct td_err *err)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct td_err ignored = {0};
	int r;

	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGHUP, &action, NULL); /* the terminal has closed */
	r = prepare_node(c, err);
	r = r ? r : measure_all(c, err);
	td_node_stop(&c->neighbour);
	stop_service(c);
	if (*c->policy_before && strcmp(c->policy_before, POLICY))
		(void)td_node_set("", "policy", c->policy_before, &ignored);
	return r ? r : finish(c, err);
}

int td_profiler_service(int argc, char **argv)
{
	struct campaign c = {.bursts = 20, .quantile = 0.99};
	struct td_err err = {0};
	int r = parse(&c, argc, argv, &err);

	if (r == 1)
		return 0;
	r = r ? r : run(&c, &err);
	td_store_close(c.store);
	free(c.points.at);
	return r ? td_profiler_fail("%s", err.msg) : 0;
}
