/*
 * The job_submit plugin: makes slurmctld count the shares that jobs ask for with --tandem.
 *
 * spank_tandem.so has put the option's value into the job's control environment. The value is
 * checked again here, since a user can submit a job in another way and write anything there. It
 * becomes a request of the count-only resource "tandem", of which a node has a hundred for each
 * GPU. So Slurm's own scheduler places the job and accounts for it. A job that asks for that
 * resource, or for whole GPUs, beside --tandem is refused, since it would be counted twice.
 *
 * Built with TD_SLURM_BRAIN it is job_submit_tandem_brain.so, for a cluster with tandem-sched: jobs
 * are held, too, and the request is in the administrator's comment, where tandem-sched reads it.
 * slurmctld would look at a job that was placed once a second only, so it is told to look at once.
 *
 * slurmctld owns the strings that it is given, so they are made by its own allocator.
 */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "slurm/comment.h"
#include "slurm/spec.h"

#ifdef TD_SLURM_BRAIN
#define NAME "tandem_brain"
#else
#define NAME "tandem"
#endif
#define RESOURCE "tandem"

struct job_record;

/* Functions of slurmctld that its headers do not declare. */
char *slurm_xstrdup(const char *text);
void slurm_xfree_ptr(void *pointer);
/* Wakes the thread that starts jobs. That waits until the request at hand is done. */
void schedule(bool full_queue) __attribute__((weak));

#pragma GCC visibility push(default)
extern const char plugin_name[], plugin_type[];
extern const uint32_t plugin_version;
const char plugin_name[] = "tandem: shares of GPUs";
const char plugin_type[] = "job_submit/" NAME;
const uint32_t plugin_version = SLURM_VERSION_NUMBER;
int init(void);
int fini(void);
int job_submit(job_desc_msg_t *job, uint32_t uid, char **ret_message);
int job_modify(job_desc_msg_t *job, struct job_record *record, uint32_t uid, char **ret_message);
#pragma GCC visibility pop

int init(void)
{
	return SLURM_SUCCESS;
}

int fini(void)
{
	return SLURM_SUCCESS;
}

/* Returns the value of --tandem, or NULL if the option was not given. */
static const char *option_of(const job_desc_msg_t *job)
{
	for (uint32_t k = 0; k < job->spank_job_env_size; k++) {
		const char *variable = job->spank_job_env[k];

		if (variable && !strncmp(variable, "SPANK_", 6))
			variable += 6;
		if (variable && !strncmp(variable, "TANDEM=", 7))
			return variable + 7;
	}
	return NULL;
}

static int refuse(char **ret_message, const char *text)
{
	char message[TD_ERR_MSG_MAX + 16];

	snprintf(message, sizeof(message), "--tandem: %s", text);
	*ret_message = slurm_xstrdup(message);
	return ESLURM_INVALID_GRES;
}

static bool asks_for(const job_desc_msg_t *job, const char *resource)
{
	const char *const wishes[] = {
		job->tres_per_job, job->tres_per_node, job->tres_per_socket, job->tres_per_task};

	for (size_t k = 0; k < sizeof(wishes) / sizeof(wishes[0]); k++)
		if (wishes[k] && strstr(wishes[k], resource))
			return true;
	return false;
}

/* Whether an administrator's comment is one of comment.h. */
static bool is_ours(const char *comment)
{
	return comment && !strncmp(comment, "tandem=", 7);
}

#ifdef TD_SLURM_BRAIN
/* Holds the job until tandem-sched places it. */
static int leave_to_brain(job_desc_msg_t *job, const char *text, char **ret_message)
{
	struct td_slurm_comment comment = {.why = "it has just come"};
	char written[TD_SLURM_COMMENT_MAX];

	if (job->array_inx)
		return refuse(ret_message, "tandem-sched does not place arrays of jobs yet: "
					   "submit the jobs one by one");
	if (job->min_nodes != NO_VAL && job->min_nodes > 1)
		return refuse(ret_message, "tandem-sched does not place jobs on several nodes "
					   "yet: ask for GPUs of one node");
	if (job->req_nodes && *job->req_nodes)
		return refuse(ret_message, "tandem-sched chooses the node: leave out --nodelist");
	if (job->features && strpbrk(job->features, "[]*()"))
		return refuse(ret_message, "tandem-sched knows features joined by & or by | only: "
					   "leave out counts and brackets of --constraint");
	if (job->features && strchr(job->features, '&') && strchr(job->features, '|'))
		return refuse(ret_message, "tandem-sched knows features joined by & or by |, not "
					   "by both: see --constraint");
	if (job->reservation && *job->reservation)
		return refuse(ret_message,
			"tandem-sched does not know reservations: leave out --reservation");
	snprintf(comment.spec, sizeof(comment.spec), "%s", text);
	slurm_xfree_ptr(job->admin_comment);
	job->admin_comment = slurm_xstrdup(td_slurm_comment_write(&comment, written));
	job->priority = 0;
	return SLURM_SUCCESS;
}

/* tandem-sched has placed a job. Before Slurm 22.05 the function would wait for this request. */
static void look_at_once(const job_desc_msg_t *job, uint32_t uid)
{
	const char *comment = job->admin_comment;
	bool is_placed = (!uid || uid == getuid()) && is_ours(comment) && strstr(comment, " on=");

	if (is_placed && schedule && SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(22, 5, 0))
		schedule(false);
}
#else
static int leave_to_brain(job_desc_msg_t *job, const char *text, char **ret_message)
{
	(void)job;
	(void)text;
	(void)ret_message;
	return SLURM_SUCCESS;
}

static void look_at_once(const job_desc_msg_t *job, uint32_t uid)
{
	(void)job;
	(void)uid;
}
#endif

int job_submit(job_desc_msg_t *job, uint32_t uid, char **ret_message)
{
	const char *text = option_of(job);
	struct td_slurm_spec spec;
	struct td_err err = {0};
	char *before = job->tres_per_node;
	char wish[1024];

	(void)uid;
	if (!text && is_ours(job->admin_comment))
		return refuse(ret_message, "the comment tandem=... is tandem-sched's own");
	if (!text)
		return SLURM_SUCCESS;
	if (td_slurm_spec_parse(text, &spec, &err))
		return refuse(ret_message, err.msg);
	if (asks_for(job, RESOURCE))
		return refuse(ret_message,
			"\"" RESOURCE
			"\" is counted by the option --tandem itself: leave it out of --gres");
	if (asks_for(job, "gpu") || asks_for(job, "shard"))
		return refuse(ret_message,
			"whole GPUs and shards are counted apart from shares: ask for one kind");
	if (snprintf(wish, sizeof(wish), "%s%sgres:" RESOURCE ":%u", before ? before : "",
		    before ? "," : "", spec.hundredths) >= (int)sizeof(wish))
		return refuse(ret_message, "--gres is too long");
	job->tres_per_node = slurm_xstrdup(wish);
	slurm_xfree_ptr(before);
	return leave_to_brain(job, text, ret_message);
}

int job_modify(job_desc_msg_t *job, struct job_record *record, uint32_t uid, char **ret_message)
{
	(void)record;
	if (asks_for(job, RESOURCE))
		return refuse(ret_message, "a job's share does not change: submit it again");
	look_at_once(job, uid);
	return SLURM_SUCCESS;
}
