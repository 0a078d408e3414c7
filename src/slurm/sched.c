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
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/text.h"
#include "base/time.h"
#include "cluster/sched/sched_options.h"
#include "cluster/sched/status.h"
#include "cluster/state/memory.h"
#include "slurm/engine.h"
#ifdef TD_HAVE_ETCD
#include "cluster/sched/profiles.h"
#include "cluster/sched/records.h"
#include "cluster/state/etcd/etcd_options.h"
#endif

#define PROGRAM        "tandem-sched"
#define EXIT_USAGE     125
#define DEFAULT_FOLDER "/run/tandem"
#define DEFAULT_STATUS DEFAULT_FOLDER "/sched"
#define STALE_S        10 /* a leader writes its status every two seconds */

struct options {
	struct td_sched_settings sched;
	uint64_t gpu_bytes;
	const char *status;
	bool json;
#ifdef TD_HAVE_ETCD
	struct td_etcd_settings etcd;
#endif
};

static const struct td_command_option rows[] = {
#define OPTION(name, letter, argument, help) {name, argument, help, letter},
#include "cluster/sched/sched_options.def"
#include "slurm/sched_options.def"
#ifdef TD_HAVE_ETCD
#include "cluster/state/etcd/etcd_options.def"
#endif
#undef OPTION
};

/* --- options --- */

static int take_option(void *arg, int letter, const char *text, struct td_err *err)
{
	struct options *o = arg;
	int r = td_sched_settings_take(&o->sched, letter, text, err);

	if (r <= 0)
		return r;
	if (letter == 't')
		o->status = text;
	if (letter == 'j')
		o->json = true;
	if (letter == 't' || letter == 'j')
		return 0;
	if (letter == 'm')
		return td_parse_size(text, 0, &o->gpu_bytes, err);
#ifdef TD_HAVE_ETCD
	return td_etcd_settings_take(&o->etcd, letter, text, err);
#else
	return -EINVAL;
#endif
}

static const struct td_command command = {
	.name = PROGRAM,
	.usage = "usage: " PROGRAM " [OPTION]...\n"
		 "       " PROGRAM " status [--json] [--status FILE | --etcd URLS]\n"
		 "\n"
		 "Places the jobs of a Slurm cluster that ask for --tandem. Run it as root or "
		 "SlurmUser\n"
		 "beside slurmctld, with JobSubmitPlugins=tandem_brain: see " PROGRAM "(8).\n",
#ifndef TD_HAVE_ETCD
	.notes = "\nThis build has no etcd (it needs libcurl and jansson): only one may run.",
#endif
	.options = rows,
	.count = sizeof(rows) / sizeof(*rows),
	.take = take_option,
};

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

/* --- the records and profiles of the nodes' agents --- */

#ifdef TD_HAVE_ETCD
static struct td_records records;
static struct td_shared_profiles profiles;

static void look(void *arg, struct td_brain *brain, uint64_t now_ns)
{
	(void)arg;
	td_records_look(&records, brain, now_ns);
	td_shared_profiles_look(&profiles, brain, now_ns);
}

static const bool may_have_profiles = true;

static const char *why_no_profiles(const struct options *o)
{
	return o->etcd.options.endpoints ? "" : "they come by --etcd from tandem-agent --profiles";
}

static int follow_records(const struct options *o, struct td_state *state,
	struct td_scheduler_options *options, struct td_err *err)
{
	if (!o->etcd.options.endpoints)
		return 0;
	if (td_records_init(&records, state) || td_shared_profiles_init(&profiles, state))
		return td_err_set(err, -ENOMEM, "no memory");
	options->look = look;
	return 0;
}

static uint64_t turn_records(uint64_t now_ns)
{
	if (!records.record)
		return UINT64_MAX;
	return td_min_u64(
		td_records_turn(&records, now_ns), td_shared_profiles_turn(&profiles, now_ns));
}

static void end_records(void)
{
	td_records_deinit(&records);
	td_shared_profiles_deinit(&profiles);
}
#else
static const bool may_have_profiles = false;

static const char *why_no_profiles(const struct options *o)
{
	(void)o;
	return "they come from etcd, which this build has not (it needs libcurl and jansson)";
}

static int follow_records(const struct options *o, struct td_state *state,
	struct td_scheduler_options *options, struct td_err *err)
{
	(void)o;
	(void)state;
	(void)options;
	(void)err;
	return 0;
}

static uint64_t turn_records(uint64_t now_ns)
{
	(void)now_ns;
	return UINT64_MAX;
}

static void end_records(void)
{
}
#endif

/* --- the loop --- */

/* Schedules until a signal comes. */
static void serve(struct td_scheduler *scheduler, struct td_state *state, int signals)
{
	struct pollfd fds[] = {{signals, POLLIN, 0}, {td_state_fd(state), POLLIN, 0}};

	do {
		uint64_t next_ns = td_scheduler_turn(scheduler, td_time_now_ns()), ms;

		if (!td_scheduler_brain(scheduler))
			next_ns = td_min_u64(next_ns, turn_records(td_time_now_ns()));
		ms = td_min_u64(td_sub_sat(next_ns, td_time_now_ns()) / TD_NS_PER_MS + 1, 60000);
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
	struct td_scheduler_options options = o->sched.scheduler;
	int signals = td_end_signals(), r = 0;

	if (!engine)
		r = td_err_set(err, -ENOMEM, "no memory");
	options.brain.shape.gpu_bytes = o->gpu_bytes;
	options.status = o->status;
	if (!strcmp(o->status, DEFAULT_STATUS))
		(void)mkdir(DEFAULT_FOLDER, 0755); /* tandemd may have made it */
	if (!r)
		r = open_state(o, &store, &state, err);
	if (!r)
		r = follow_records(o, state, &options, err);
	if (!r) {
		scheduler = td_scheduler_new(&options, engine, state);
		if (!scheduler)
			r = td_err_set(err, -errno, "cannot begin: %s", strerror(errno));
	}
	if (!r)
		serve(scheduler, state, signals);
	td_scheduler_free(scheduler);
	end_records();
	td_state_free(state);
	td_memory_store_free(store);
	if (engine)
		engine->kind->free(engine);
	if (signals >= 0)
		close(signals);
	return r;
}

/* --- the verb status --- */

/* Reads the rows of the leader's status into the text. */
static int read_file(const char *path, struct td_text *ret, struct td_err *err)
{
	FILE *in = fopen(path, "re");
	struct stat about;
	char part[4096];
	size_t n;

	if (!in)
		return td_err_set(err, -errno, "\"%.200s\": %s: no tandem-sched has led here", path,
			strerror(errno));
	while ((n = fread(part, 1, sizeof(part), in)) > 0)
		td_text_put(ret, part, n);
	if (!fstat(fileno(in), &about) && time(NULL) - about.st_mtime > STALE_S)
		fprintf(stderr, PROGRAM ": nobody leads: this was so %llu s ago\n",
			(unsigned long long)(time(NULL) - about.st_mtime));
	(void)fclose(in);
	return 0;
}

#ifdef TD_HAVE_ETCD
static int read_etcd(const struct options *o, struct td_text *ret, struct td_err *err)
{
	struct td_state_item item;
	struct td_state *state;
	int r = td_etcd_open(&o->etcd.options, &state, err);

	if (r)
		return r;
	r = td_state_get(state, TD_SCHED_STATUS, &item);
	if (r) {
		td_err_set(err, -EIO, "etcd: %s %s", td_state_text(r), td_state_why(state));
	} else {
		td_text_put(ret, item.value, item.length);
		td_state_item_deinit(&item);
		if (td_state_get(state, TD_SCHED_PREFIX "leader", &item))
			fputs(PROGRAM ": nobody leads now: this is the last leader's word\n",
				stderr);
		else
			td_state_item_deinit(&item);
	}
	td_state_free(state);
	return r;
}
#endif

static int show_status(const struct options *o, struct td_err *err)
{
	struct td_text said = {0}, shown = {0};
	int r;

#ifdef TD_HAVE_ETCD
	r = o->etcd.options.endpoints ? read_etcd(o, &said, err) : read_file(o->status, &said, err);
#else
	r = read_file(o->status, &said, err);
#endif
	if (!r) {
		td_status_show(said.text ? said.text : "", o->json, &shown);
		fputs(shown.text ? shown.text : "", stdout);
	}
	td_text_deinit(&said);
	td_text_deinit(&shown);
	return r;
}

int main(int argc, char **argv)
{
	static struct options options = {.status = DEFAULT_STATUS};
	int shows = argc > 1 && !strcmp(argv[1], "status");
	int answered = td_command_answer(&command, argc, argv);
	struct td_err err = {0};

	if (answered >= 0)
		return answered;
	if (shows)
		argv[1] = argv[0];
	td_sched_settings_init(&options.sched, may_have_profiles);
	if (td_command_parse(&command, argc - shows, argv + shows, &options, &err) ||
		(!shows &&
			td_sched_settings_check(&options.sched, why_no_profiles(&options), &err)))
		return td_command_fail(&command, err.msg, EXIT_USAGE);
	if (shows ? show_status(&options, &err) : run(&options, &err))
		return td_command_fail(&command, err.msg, 1);
	return shows ? td_output_end(PROGRAM, 0, 1) : 0;
}
