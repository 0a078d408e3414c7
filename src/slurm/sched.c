/*
 * tandem-sched: places the jobs of a Slurm cluster that ask for --tandem.
 *
 *   slurmctld --jobs, nodes--> tandem-sched --node, priority, comment--> slurmctld
 *                                   | leader, assignments
 *                                 etcd, or its own memory
 *
 * One thread and one loop. It decides whenever Slurm is asked, every --period. It may be stopped at
 * any time: what runs runs on, and the next one learns from Slurm what was placed.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "cluster/sched/scheduler.h"
#include "cluster/state/memory.h"
#include "slurm/engine.h"
#ifdef TD_HAVE_ETCD
#include "cluster/state/etcd/etcd_options.h"
#endif

#define PROGRAM    "tandem-sched"
#define EXIT_USAGE 125

struct options {
	struct td_scheduler_options scheduler;
	uint64_t gpu_bytes;
#ifdef TD_HAVE_ETCD
	struct td_etcd_settings etcd;
#endif
	char name[128];
};

static void help(void)
{
	puts("usage: " PROGRAM " [OPTION]...\n"
	     "\n"
	     "Places the jobs of a Slurm cluster that ask for --tandem. Run it as root or "
	     "SlurmUser\n"
	     "beside slurmctld, with JobSubmitPlugins=tandem_brain.\n"
	     "\n"
	     "  --policy P           tandem (the default) or antman\n"
	     "  --quota ACCOUNT=N    GPUs that the account's guaranteed jobs may hold; again for\n"
	     "                       others. Accounts without one may hold all together what\n"
	     "                       --quota N says (the default: all GPUs)\n"
	     "  --gpu-memory SIZE    of each GPU: jobs share one only where their memory fits\n"
	     "  --restart TIME       cost of stopping a job and starting it again (default: 60s)\n"
	     "  --period TIME        how often Slurm is asked (default: 250ms)\n"
	     "  --start TIME         a placed job that does not run by then waits again\n"
	     "                       (default: 2m)\n"
	     "  --quiet              no line for each decision\n"
	     "  -h, --help, -V, --version\n"
	     "\n"
	     "Several may run if they share a state, and one of them leads:\n"
	     "  --name NAME          of this one among them (default: HOST.PID)\n"
	     "  --lease TIME         a leader that is silent is followed after it (default: 10s)");
#ifdef TD_HAVE_ETCD
#define OPTION(name, letter, argument, help) printf("  --%-18s %s\n", name " " argument, help);
#include "cluster/state/etcd/etcd_options.def"
#undef OPTION
#else
	puts("  (this build has no etcd: it needs libcurl and jansson)");
#endif
}

/* --- options --- */

static int parse_quota(const char *text, struct td_brain_params *params, struct td_err *err)
{
	const char *equals = strrchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;
	struct td_brain_tenant *tenant;
	uint64_t quota;
	int r = td_parse_u64(equals ? equals + 1 : text, 0, 1000000, &quota, err);

	if (r)
		return r;
	if (!equals) {
		params->tenants[0].quota = (uint32_t)quota;
		return 0;
	}
	if (!len || len >= TD_NAME_MAX)
		return td_err_expected(err, -EINVAL, text, "ACCOUNT=GPUS");
	if (params->tenant_count == TD_TENANTS_MAX)
		return td_err_set(err, -E2BIG, "\"%s\": at most %u accounts can have a quota", text,
			TD_TENANTS_MAX - 1);
	tenant = &params->tenants[params->tenant_count++];
	memcpy(tenant->name, text, len);
	tenant->name[len] = 0;
	tenant->quota = (uint32_t)quota;
	return 0;
}

enum {
	OPT_POLICY = 256,
	OPT_QUOTA,
	OPT_MEMORY,
	OPT_RESTART,
	OPT_PERIOD,
	OPT_START,
	OPT_NAME,
	OPT_LEASE,
	OPT_QUIET,
};

static const struct option table[] = {
	{"policy", required_argument, NULL, OPT_POLICY},
	{"quota", required_argument, NULL, OPT_QUOTA},
	{"gpu-memory", required_argument, NULL, OPT_MEMORY},
	{"restart", required_argument, NULL, OPT_RESTART},
	{"period", required_argument, NULL, OPT_PERIOD},
	{"start", required_argument, NULL, OPT_START},
	{"name", required_argument, NULL, OPT_NAME},
	{"lease", required_argument, NULL, OPT_LEASE},
	{"quiet", no_argument, NULL, OPT_QUIET},
#ifdef TD_HAVE_ETCD
#define OPTION(name, letter, argument, help) {name, required_argument, NULL, letter},
#include "cluster/state/etcd/etcd_options.def"
#undef OPTION
#endif
	{0},
};

/* Parses a time between two bounds. */
static int parse_time(const char *text, uint64_t min_ns, uint64_t max_ns, const char *expected,
	uint64_t *ret, struct td_err *err)
{
	uint64_t ns;
	int r = td_parse_duration(text, &ns, err);

	if (r)
		return r;
	if (ns < min_ns || ns > max_ns)
		return td_err_expected(err, -ERANGE, text, expected);
	*ret = ns;
	return 0;
}

static int parse_one(int c, const char *text, struct options *o, struct td_err *err)
{
	struct td_brain_params *brain = &o->scheduler.brain;
	uint64_t lease_ns = 0;
	int r;

	switch (c) {
	case OPT_POLICY:
		brain->policy = td_brain_policy_find(text);
		return brain->policy ? 0 : td_err_expected(err, -EINVAL, text, "tandem or antman");
	case OPT_QUOTA: return parse_quota(text, brain, err);
	case OPT_MEMORY: return td_parse_size(text, 0, &o->gpu_bytes, err);
	case OPT_RESTART:
		return parse_time(text, TD_NS_PER_S, 3600 * TD_NS_PER_S, "1s to 1h",
			&brain->shape.restart_ns, err);
	case OPT_PERIOD:
		return parse_time(text, 10 * TD_NS_PER_MS, 60 * TD_NS_PER_S, "10ms to 60s",
			&o->scheduler.period_ns, err);
	case OPT_START:
		return parse_time(text, 5 * TD_NS_PER_S, 86400 * TD_NS_PER_S, "5s to 24h",
			&brain->start_ns, err);
	case OPT_NAME:
		if (!*text || strlen(text) >= sizeof(o->name))
			return td_err_expected(err, -EINVAL, text, "up to 127 characters");
		strcpy(o->name, text);
		return 0;
	case OPT_LEASE:
		r = parse_time(
			text, 2 * TD_NS_PER_S, 600 * TD_NS_PER_S, "2s to 10m", &lease_ns, err);
		if (!r)
			o->scheduler.lease_s = (uint32_t)(lease_ns / TD_NS_PER_S);
		return r;
	case OPT_QUIET: o->scheduler.log = NULL; return 0;
	default:
#ifdef TD_HAVE_ETCD
		return td_etcd_settings_take(&o->etcd, c, text, err);
#else
		return -EINVAL;
#endif
	}
}

static void log_line(const char *line)
{
	td_log(TD_LOG_INFO, "%s", line);
}

static int parse(int argc, char **argv, struct options *o, struct td_err *err)
{
	char host[64] = "";
	int c, r;

	*o = (struct options){.scheduler = {.brain = td_brain_default,
				      .lease_s = 10,
				      .period_ns = 250 * TD_NS_PER_MS,
				      .log = log_line}};
	o->scheduler.brain.repeat_ns = TD_NS_PER_S;
	(void)gethostname(host, sizeof(host) - 1);
	snprintf(o->name, sizeof(o->name), "%s.%d", host, (int)getpid());
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
	o->scheduler.name = o->name;
	return 0;
}

/* --- the state --- */

static int open_state(const struct options *o, struct td_memory_store **ret_store,
	struct td_state **ret, struct td_err *err)
{
#ifdef TD_HAVE_ETCD
	if (o->etcd.options.endpoints)
		return td_etcd_open(&o->etcd.options, ret, err);
#else
	(void)o;
#endif
	*ret_store = td_memory_store_new();
	*ret = *ret_store ? td_memory_open(*ret_store) : NULL;
	return *ret ? 0 : td_err_set(err, -ENOMEM, "no memory");
}

/* --- the loop --- */

static int open_signals(void)
{
	sigset_t ends;

	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &ends, NULL);
	return signalfd(-1, &ends, SFD_CLOEXEC);
}

/* Schedules until a signal comes. */
static void serve(struct td_scheduler *scheduler, struct td_state *state, int signals)
{
	struct pollfd fds[] = {{signals, POLLIN, 0}, {td_state_fd(state), POLLIN, 0}};

	do {
		uint64_t next_ns = td_scheduler_turn(scheduler, td_time_now_ns());
		uint64_t left_ns = td_sub_sat(next_ns, td_time_now_ns());
		uint64_t ms = td_min_u64(left_ns / TD_NS_PER_MS + 1, 60000);

		if (poll(fds, 2, (int)ms) < 0 && errno != EINTR)
			return;
	} while (!fds[0].revents);
	td_scheduler_resign(scheduler, td_time_now_ns());
}

static int run(const struct options *o, struct td_err *err)
{
	struct td_engine *engine = td_slurm_engine_new(o->gpu_bytes);
	struct td_memory_store *store = NULL;
	struct td_scheduler *scheduler = NULL;
	struct td_state *state = NULL;
	struct td_scheduler_options options = o->scheduler;
	int signals = open_signals(), r = engine ? 0 : td_err_set(err, -ENOMEM, "no memory");

	options.brain.shape.gpu_bytes = o->gpu_bytes;
	if (!r)
		r = open_state(o, &store, &state, err);
	if (!r) {
		scheduler = td_scheduler_new(&options, engine, state);
		if (!scheduler)
			r = td_err_set(err, -errno, "cannot begin: %s", strerror(errno));
	}
	if (!r)
		serve(scheduler, state, signals);
	td_scheduler_free(scheduler);
	td_state_free(state);
	td_memory_store_free(store);
	if (engine)
		engine->kind->free(engine);
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
