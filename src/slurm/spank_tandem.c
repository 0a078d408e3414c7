/*
 * The SPANK plugin: implements --tandem of srun, sbatch and salloc, and sets the environment of a
 * job's programs.
 *
 * A line of plugstack.conf loads it, with the paths of this node:
 *
 *   optional LIBDIR/tandem/spank_tandem.so lib=LIBDIR/libtandem.so socket=PATH tandem=PATH
 *
 * srun, sbatch and salloc check the value and refuse a bad one with a sentence. They hand it to
 * slurmctld in the job's control environment, where job_submit_tandem.so counts it. On the node
 * slurmstepd sets the variables of libtandem.so before each task, so limits hold from the first
 * call. To tandemd all steps of a Slurm job on a node are one job, so its limits apply to them
 * together.
 *
 * A job uses as many of its node's GPUs as it has asked for. tandemd chooses those with most room
 * when the first one is used. Their UUIDs come from `tandem gpu`, if tandem=PATH names that
 * program. Otherwise the job uses the first GPU, which is right on nodes that have only one.
 *
 * Where tandem-sched places jobs, the record of the job names its GPUs (comment.h), and it uses
 * those and no others: a job without a placement, whose record cannot be read, or whose GPUs are
 * not listed, is refused, and Slurm queues a batch job again. So whoever releases a held job by
 * hand does not start it. With sched=yes in plugstack.conf a job that has no such record at all is
 * refused, too. What its record asks for also holds for steps that ask for something else.
 *
 * A batch job whose programs tandemd has evicted is queued again when a task of it ends.
 *
 * Without the option nothing changes. A program that drops LD_PRELOAD runs without tandem.
 */
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <slurm/slurm_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "base/time.h"
#include "slurm/comment.h"
#include "slurm/spec.h"

#define PATH_LEN 1024

#pragma GCC visibility push(default)
extern const char plugin_name[], plugin_type[];
extern const unsigned int plugin_version, spank_plugin_version;
SPANK_PLUGIN(tandem, 1)
int slurm_spank_init(spank_t spank, int argc, char **argv);
int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv);
int slurm_spank_task_init_privileged(spank_t spank, int argc, char **argv);
int slurm_spank_task_init(spank_t spank, int argc, char **argv);
int slurm_spank_task_exit(spank_t spank, int argc, char **argv);
#pragma GCC visibility pop

static struct td_slurm_spec spec;
static char text[TD_SLURM_SPEC_MAX]; /* "": the option was not given */
static uint64_t begun_ns;            /* when this step began */

static int take(int value, const char *argument, int remote)
{
	struct td_err err = {0};

	(void)value;
	if (td_slurm_spec_parse(argument, &spec, &err)) {
		if (remote)
			slurm_error("--tandem: %s", err.msg);
		else
			slurm_spank_log("--tandem: %s", err.msg);
		return ESPANK_BAD_ARG;
	}
	snprintf(text, sizeof(text), "%s", argument);
	return ESPANK_SUCCESS;
}

static struct spank_option option = {
	.name = (char *)"tandem",
	.arginfo = (char *)"SHARE[,mem=8Gi,class=guaranteed,...]",
	.usage = (char *)"a part of a GPU, such as 0.5, shared by tandem",
	.has_arg = 1,
	.cb = take,
};

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	begun_ns = td_time_now_ns();
	switch (spank_context()) {
	case S_CTX_LOCAL:
	case S_CTX_ALLOCATOR:
	case S_CTX_REMOTE: return spank_option_register(spank, &option);
	case S_CTX_ERROR:
	case S_CTX_SLURMD:
	case S_CTX_JOB_SCRIPT: break;
	}
	return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!*text || spank_context() == S_CTX_REMOTE)
		return ESPANK_SUCCESS;
	return spank_job_control_setenv(spank, "TANDEM", text, 1);
}

/* Returns the value of NAME=value among the words of plugstack.conf, or NULL. */
static const char *argument_of(int argc, char **argv, const char *name)
{
	size_t len = strlen(name);

	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], name, len) && argv[i][len] == '=')
			return argv[i] + len + 1;
	return NULL;
}

static int set(spank_t spank, const char *name, const char *value)
{
	int r = spank_setenv(spank, name, value, 1);

	if (r)
		slurm_error("tandem: %s cannot be set: %s", name, spank_strerror(r));
	return r;
}

static int preload(spank_t spank, const char *library)
{
	char others[PATH_LEN] = "", all[2 * PATH_LEN];
	int r = spank_getenv(spank, "LD_PRELOAD", others, sizeof(others));

	if (r && r != ESPANK_ENV_NOEXIST) {
		slurm_error("tandem: LD_PRELOAD is too long");
		return r;
	}
	if (strstr(others, library)) /* an outer step of the job has set it already */
		return ESPANK_SUCCESS;
	snprintf(all, sizeof(all), "%s%s%s", library, *others ? ":" : "", others);
	return set(spank, "LD_PRELOAD", all);
}

/* Sets the job's name and id, which tandem ps, the limits and the epilog use. */
static int name_job(spank_t spank)
{
	char name[64] = "slurm", id[32];
	uint32_t job = 0;
	int r;

	r = spank_get_item(spank, S_JOB_ID, &job);
	if (r) {
		slurm_error("tandem: the number of the job is not known: %s", spank_strerror(r));
		return r;
	}
	snprintf(id, sizeof(id), "slurm.%u", job);
	(void)spank_getenv(spank, "SLURM_JOB_NAME", name, sizeof(name));
	r = set(spank, "TANDEM_JOB", id);
	return r ? r : set(spank, "TANDEM_NAME", name);
}

/* Starts `tandem ARGUMENTS` and returns its output; NULL: it cannot be started. */
static FILE *ask_tandem(const char *tandem, const char *socket, const char *arguments)
{
	char command[2 * PATH_LEN];

	if (!tandem || strchr(tandem, '\'') || (socket && strchr(socket, '\'')) ||
		snprintf(command, sizeof(command), "TANDEM_SOCKET='%s' '%s' %s 2>/dev/null",
			socket ? socket : "", tandem, arguments) >= (int)sizeof(command))
		return NULL;
	return popen(command, "re");
}

/*
 * Writes the UUIDs of the node's GPUs, separated by commas; "" if tandemd does not list them. Runs
 * in the task's own process, before that becomes the program.
 */
static void list_gpus(const char *tandem, const char *socket, char *ret, size_t len)
{
	FILE *in = ask_tandem(tandem, socket, "gpu --json");
	size_t used = 0;
	char line[8192];

	*ret = 0;
	while (in && fgets(line, sizeof(line), in))
		for (const char *at = line; (at = strstr(at, "\"uuid\": \"")); at++) {
			size_t n = strcspn(at + 9, "\"");

			if (used + n + 2 > len)
				continue;
			used += (size_t)snprintf(
				ret + used, len - used, "%s%.*s", used ? "," : "", (int)n, at + 9);
		}
	if (in)
		(void)pclose(in);
}

/* --- the placement --- */

/* Slurm may be restarted or taken over. A batch job would be lost, so it waits longer. */
#define PATIENCE_S       60
#define PATIENCE_BATCH_S 600

/* The placement of this job, read before its tasks begin; no GPUs: it has and needs none. */
static struct td_slurm_comment placement;

/*
 * Ends this task, which is a process of its own that has not begun to be the job's program. Slurm
 * would run the program all the same if the plugin is "optional" in plugstack.conf.
 */
static void leave(void) __attribute__((noreturn));

static void leave(void)
{
	_exit(1);
}

/* Reads the job's record, and waits for slurmctld. Returns NULL if it does not answer in time. */
static job_info_msg_t *load_record(uint32_t job, time_t until)
{
	job_info_msg_t *record = NULL;

	while (slurm_load_job(&record, job, SHOW_DETAIL)) {
		if (slurm_get_errno() == ESLURM_INVALID_JOB_ID || time(NULL) >= until)
			return NULL;
		sleep(1);
	}
	return record;
}

/*
 * Queues a batch job again, held, so that tandem-sched places it. Without tandem-sched nothing
 * starts, also not by a user's hand.
 */
static void send_back(const slurm_job_info_t *job)
{
	if (job->batch_flag && !slurm_requeue(job->job_id, JOB_REQUEUE_HOLD | JOB_RUNNING))
		slurm_error("tandem: the job is queued again");
}

/* Whether the job may run here: it has a placement on this node, or needs none. */
static bool is_placed(spank_t spank, const slurm_job_info_t *job, bool needs_record)
{
	char node[TD_SLURM_NODE_MAX] = "";

	if (td_slurm_comment_parse(job->admin_comment, &placement)) {
		if (needs_record)
			slurm_error("tandem: the job has not come through "
				    "job_submit_tandem_brain.so, so it is refused");
		return !needs_record;
	}
	(void)spank_getenv(spank, "SLURMD_NODENAME", node, sizeof(node));
	if (placement.gpus && placement.run != TD_SLURM_ANY_RUN &&
		placement.run != job->restart_cnt) {
		slurm_error("tandem: the job was queued again since tandem-sched has placed it, "
			    "so it is refused");
		return false;
	}
	if (placement.gpus && (!*node || !strcmp(node, placement.node)))
		return true;
	slurm_error("tandem: tandem-sched has not placed this job%s%s, so it is refused",
		placement.gpus ? " on this node but on " : "",
		placement.gpus ? placement.node : "");
	return false;
}

/*
 * Runs in the task's process as root. tandem-sched may place the job on other GPUs after a requeue,
 * so each task reads the present placement.
 */
int slurm_spank_task_init_privileged(spank_t spank, int argc, char **argv)
{
	const char *sched = argument_of(argc, argv, "sched");
	job_info_msg_t *record;
	uint32_t job = 0, step = 0;
	bool batch, placed;

	if (!*text)
		return ESPANK_SUCCESS;
	batch = !spank_get_item(spank, S_JOB_STEPID, &step) && step == SLURM_BATCH_SCRIPT;
	if (spank_get_item(spank, S_JOB_ID, &job))
		leave();
	record = load_record(job, time(NULL) + (batch ? PATIENCE_BATCH_S : PATIENCE_S));
	if (!record || record->record_count != 1) {
		slurm_error("tandem: slurmctld does not say where job %u was placed, so it is "
			    "refused",
			job);
		leave();
	}
	placed = is_placed(spank, record->job_array, sched && !strcmp(sched, "yes"));
	if (!placed && *placement.spec) /* else tandem-sched does not know it */
		send_back(record->job_array);
	slurm_free_job_info_msg(record);
	if (!placed || (*placement.spec && td_slurm_spec_parse(placement.spec, &spec, NULL)))
		leave();
	return ESPANK_SUCCESS;
}

/* Keeps the placement's UUIDs of a list with commas. Returns false if the list is too short. */
static bool keep_placed(char *list)
{
	char kept[4096];
	size_t used = 0;

	for (uint32_t k = 0; k < placement.gpus; k++) {
		const char *at = list;
		size_t n;

		for (uint32_t skip = placement.gpu[k]; at && skip; skip--) {
			at = strchr(at, ',');
			at = at ? at + 1 : NULL;
		}
		if (!at)
			return false;
		n = strcspn(at, ",");
		if (used + n + 2 > sizeof(kept))
			return false;
		used += (size_t)snprintf(
			kept + used, sizeof(kept) - used, "%s%.*s", used ? "," : "", (int)n, at);
	}
	strcpy(list, kept);
	return true;
}

static int choose_gpus(spank_t spank, const char *tandem, const char *socket)
{
	char list[4096], count[12];
	int r;

	list_gpus(tandem, socket, list, sizeof(list));
	if (placement.gpus && !keep_placed(list)) {
		slurm_error("tandem: the job was placed on GPU %u of this node, which tandemd "
			    "does not list",
			placement.gpu[placement.gpus - 1]);
		return ESPANK_ERROR;
	}
	if (!*list)
		return ESPANK_SUCCESS;
	snprintf(count, sizeof(count), "%u", spec.gpus);
	r = set(spank, "TANDEM_GPUS", list);
	return r ? r : set(spank, "TANDEM_GPU_COUNT", count);
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	const char *library = argument_of(argc, argv, "lib"), *name;
	const char *socket = argument_of(argc, argv, "socket");
	const char *tandem = argument_of(argc, argv, "tandem");
	char value[TD_JOB_VALUE_MAX];
	int r;

	if (!*text)
		return ESPANK_SUCCESS;
	if (!library || *library != '/' || access(library, R_OK)) {
		slurm_error("tandem: lib=%s in plugstack.conf is not a library that can be read",
			library ? library : "");
		leave();
	}
	r = preload(spank, library);
	r = r ? r : name_job(spank);
	for (uint32_t k = 0; !r && (name = td_slurm_spec_variable(&spec, k, value)); k++)
		r = set(spank, name, value);
	if (!r && socket)
		r = set(spank, "TANDEM_SOCKET", socket);
	if (!r && placement.guest && strcmp(spec.value[TD_JOB_KEY_class], "online") != 0)
		r = set(spank, "TANDEM_CLASS", "besteffort");
	if (!r && tandem)
		r = choose_gpus(spank, tandem, socket);
	if (!r && !tandem && placement.gpus && (placement.gpus > 1 || placement.gpu[0])) {
		slurm_error("tandem: the job was placed on GPU %u of this node, and tandem= is "
			    "missing in plugstack.conf",
			placement.gpu[placement.gpus - 1]);
		r = ESPANK_ERROR;
	}
	if (r)
		leave();
	return ESPANK_SUCCESS;
}

/* --- evictions --- */

#define PATIENCE_NS (10 * TD_NS_PER_S)
#define EVENTS_MAX  (8u << 20) /* bytes */

/* Whether the line is of an event that evicts the job, since this step has begun. */
static bool is_eviction(const char *line, const char *job)
{
	const char *at = strstr(line, "\"time_ns\": ");
	char wanted[64];

	snprintf(wanted, sizeof(wanted), "\"job\": \"%s\"", job);
	return at && strtoull(at + 11, NULL, 10) >= begun_ns && strstr(line, wanted) &&
	       (strstr(line, "\"detail\": \"evict: ") || strstr(line, ": it is evicted\""));
}

/* The files that slurmstepd has open are not for the user. */
static void close_all(void)
{
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, 3u, ~0u, 0u))
		return;
#endif
	for (int fd = 3; fd < 65536; fd++) /* Linux before 5.9 */
		close(fd);
}

/* Becomes `tandem events --json` of the job's user, which writes to `out`. */
static void become_events(const char *tandem, char *socket, int out, uid_t uid, gid_t gid)
{
	char name[] = "tandem", verb[] = "events", json[] = "--json";
	char *const argv[] = {name, verb, json, NULL}, *const environment[] = {socket, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0 ||
		(!geteuid() && (setgroups(0, NULL) || setresgid(gid, gid, gid) ||
				       setresuid(uid, uid, uid))))
		_exit(1);
	close_all();
	(void)execve(tandem, argv, environment);
	_exit(1);
}

/*
 * Reads the events of the job's user, and not those of others, who may give their jobs any name.
 * The user might stop the program that shows them, or write in its place, so both have a limit.
 */
static void read_events(spank_t spank, const char *tandem, const char *socket, struct td_text *ret)
{
	uint64_t until_ns = td_time_now_ns() + PATIENCE_NS, now_ns;
	char variable[PATH_LEN], part[4096];
	int fds[2];
	ssize_t n = 1;
	uid_t uid;
	gid_t gid;
	pid_t pid;

	snprintf(variable, sizeof(variable), "TANDEM_SOCKET=%s", socket ? socket : "");
	if (!tandem || spank_get_item(spank, S_JOB_UID, &uid) ||
		spank_get_item(spank, S_JOB_GID, &gid) || pipe2(fds, O_CLOEXEC))
		return;
	pid = fork();
	if (!pid)
		become_events(tandem, variable, fds[1], uid, gid);
	close(fds[1]);
	while (pid > 0 && n > 0 && ret->length < EVENTS_MAX &&
		(now_ns = td_time_now_ns()) < until_ns) {
		struct pollfd fd = {fds[0], POLLIN, 0};

		if (poll(&fd, 1, (int)((until_ns - now_ns) / TD_NS_PER_MS) + 1) <= 0)
			continue;
		n = read(fds[0], part, sizeof(part));
		if (n > 0)
			td_text_put(ret, part, (size_t)n);
	}
	close(fds[0]);
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
}

/* Whether the events say that tandemd has evicted the job since this step began, and why. */
static bool was_evicted(const char *events, const char *job, char *ret_reason, size_t len)
{
	bool evicted = false;
	char line[4096];

	snprintf(ret_reason, len, "it was evicted");
	for (; *events; events += strcspn(events, "\n"), events += *events != 0) {
		const char *at;

		snprintf(line, sizeof(line), "%.*s", (int)strcspn(events, "\n"), events);
		at = strstr(line, "\"detail\": \"");
		if (!at || !is_eviction(line, job))
			continue;
		evicted = true;
		at += strlen("\"detail\": \"");
		if (strncmp(at, "evict: ", 7) != 0)
			snprintf(ret_reason, len, "%.*s", (int)strcspn(at, "\""), at);
	}
	return evicted;
}

/* Writes into the job's record that it has no placement any more, and why. */
static void write_reason(const slurm_job_info_t *job, const char *reason)
{
	char written[TD_SLURM_COMMENT_MAX];
	struct td_slurm_comment comment;
	job_desc_msg_t change;

	if (td_slurm_comment_parse(job->admin_comment, &comment))
		return;
	comment.gpus = 0;
	comment.guest = false;
	snprintf(comment.why, sizeof(comment.why), TD_SLURM_ENDED ": %.150s", reason);
	slurm_init_job_desc_msg(&change);
	change.job_id = job->job_id;
	change.admin_comment = td_slurm_comment_write(&comment, written);
	(void)slurm_update_job(&change);
}

/* Runs in slurmstepd as root while the job still counts as running. */
int slurm_spank_task_exit(spank_t spank, int argc, char **argv)
{
	char name[32], reason[256];
	job_info_msg_t *record = NULL;
	struct td_text events = {0};
	uint32_t job = 0;
	bool evicted;

	if (!*text || spank_get_item(spank, S_JOB_ID, &job))
		return ESPANK_SUCCESS;
	snprintf(name, sizeof(name), "slurm.%u", job);
	read_events(spank, argument_of(argc, argv, "tandem"), argument_of(argc, argv, "socket"),
		&events);
	evicted = was_evicted(events.text ? events.text : "", name, reason, sizeof(reason));
	td_text_deinit(&events);
	if (!evicted || slurm_load_job(&record, job, SHOW_DETAIL))
		return ESPANK_SUCCESS;
	if (record->record_count == 1 && record->job_array->batch_flag) {
		write_reason(record->job_array, reason);
		if (td_slurm_comment_parse(record->job_array->admin_comment, &placement))
			(void)slurm_requeue(job, JOB_RUNNING);
		else
			send_back(record->job_array);
	}
	slurm_free_job_info_msg(record);
	return ESPANK_SUCCESS;
}
