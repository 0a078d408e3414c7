/*
 * The engine of Slurm; see engine.h.
 *
 * job_submit_tandem_brain.so has held the job (priority 0) and written its request into the
 * administrator's comment (comment.h). A placement is one update: node, priority, comment. So
 * Slurm's own record says what was placed under which epoch, also to a scheduler that starts anew.
 *
 *   held, epoch e  --place e+1-->  released, on=NODE  --slurmctld-->  running
 *        ^                                                              |
 *        +------------- requeue e+1 (requeued and held) ----------------+
 *
 * A job that is pending although the brain believes that it runs was sent back by Slurm: its node
 * died, or somebody requeued it.
 */
#include "slurm/engine.h"

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "slurm/comment.h"
#include "slurm/pools.h"
#include "slurm/spec.h"

struct slurm {
	struct td_engine engine;
	uint64_t gpu_bytes;
	job_info_msg_t *jobs;
	node_info_msg_t *nodes;
	struct td_slurm_pools pools;
	char why[256];
};

static struct slurm *slurm_of(struct td_engine *engine)
{
	return (struct slurm *)engine;
}

/* Notes Slurm's error and returns it as -errno. */
static int failed(struct slurm *s, const char *what, const char *id)
{
	int code = slurm_get_errno();

	snprintf(s->why, sizeof(s->why), "%s %s: %s", what, id, slurm_strerror(code));
	switch (code) {
	case ESLURM_INVALID_JOB_ID:
	case ESLURM_ALREADY_DONE: return 0; /* it is over; the next list says so */
	case ESLURM_NOT_SUPPORTED:
	case ESLURM_DISABLED: return -EOPNOTSUPP;
	default: return -EAGAIN;
	}
}

/* --- what is so --- */

static uint32_t base_of(const slurm_job_info_t *job)
{
	return job->job_state & JOB_STATE_BASE;
}

static bool is_pending(const slurm_job_info_t *job)
{
	return base_of(job) == JOB_PENDING;
}

static bool is_running(const slurm_job_info_t *job)
{
	return (base_of(job) == JOB_RUNNING || base_of(job) == JOB_SUSPENDED) &&
	       !(job->job_state & JOB_COMPLETING);
}

static bool is_over(const slurm_job_info_t *job)
{
	return base_of(job) > JOB_SUSPENDED;
}

static slurm_job_info_t *find_job(const struct slurm *s, const char *id)
{
	uint32_t number = (uint32_t)strtoul(id, NULL, 10);

	for (uint32_t k = 0; s->jobs && k < s->jobs->record_count; k++)
		if (s->jobs->job_array[k].job_id == number)
			return &s->jobs->job_array[k];
	return NULL;
}

static int load(struct slurm *s)
{
	job_info_msg_t *jobs = NULL;
	node_info_msg_t *nodes = NULL;

	if (slurm_load_node(s->nodes ? s->nodes->last_update : 0, &nodes, SHOW_ALL)) {
		if (slurm_get_errno() != SLURM_NO_CHANGE_IN_DATA)
			return failed(s, "nodes", "");
		nodes = NULL;
	}
	if (nodes) {
		slurm_free_node_info_msg(s->nodes);
		s->nodes = nodes;
	}
	if (slurm_load_jobs(s->jobs ? s->jobs->last_update : 0, &jobs, SHOW_ALL)) {
		if (slurm_get_errno() != SLURM_NO_CHANGE_IN_DATA)
			return failed(s, "jobs", "");
		jobs = NULL;
	}
	if (jobs) {
		slurm_free_job_info_msg(s->jobs);
		s->jobs = jobs;
	}
	return td_slurm_pools_load(&s->pools) ? failed(s, "partitions", "") : 0;
}

/* Finds out where the jobs may run, before the nodes are told. */
static void find_pools(struct slurm *s)
{
	struct td_slurm_comment comment;

	td_slurm_pools_begin(&s->pools);
	for (uint32_t k = 0; s->jobs && k < s->jobs->record_count; k++) {
		const slurm_job_info_t *job = &s->jobs->job_array[k];

		if (!is_over(job) && !td_slurm_comment_parse(job->admin_comment, &comment))
			td_slurm_pools_note(&s->pools, job);
	}
	td_slurm_pools_end(&s->pools, s->nodes);
}

/* Returns the GPUs of a node by its count of the resource: "gpu:1,tandem:1000". */
static uint32_t gpus_of(const char *gres)
{
	const char *at = gres ? strstr(gres, "tandem:") : NULL;
	unsigned long count = at ? strtoul(at + 7, NULL, 10) : 0;

	return (uint32_t)(count / TD_SLURM_PER_GPU);
}

/*
 * A node that the brain does not know yet is open at first, so that the jobs which run there can be
 * adopted; submitted() closes it then. After a restart slurmctld does not know its nodes for a
 * while: jobs run on there, and nothing starts.
 */
static void tell_node(
	const struct slurm *s, uint32_t index, struct td_brain *brain, uint64_t now_ns)
{
	const node_info_t *info = &s->nodes->node_array[index];
	struct td_brain_node node = {.gpus = gpus_of(info->gres)};
	uint32_t base = info->node_state & NODE_STATE_BASE;

	if (!info->name || !node.gpus)
		return;
	snprintf(node.name, sizeof(node.name), "%s", info->name);
	node.not_in = td_slurm_pools_without(&s->pools, s->nodes, index);
	node.closed = td_brain_knows_node(brain, node.name) &&
		      (base == NODE_STATE_UNKNOWN ||
			      info->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL |
							 NODE_STATE_MAINT | NODE_STATE_NO_RESPOND));
	if (base == NODE_STATE_DOWN || base == NODE_STATE_FUTURE)
		td_brain_node_left(brain, node.name, now_ns);
	else
		(void)td_brain_node_seen(brain, &node, now_ns);
}

static void tell_nodes(const struct slurm *s, struct td_brain *brain, uint64_t now_ns)
{
	for (uint32_t k = 0; s->nodes && k < s->nodes->record_count; k++)
		tell_node(s, k, brain, now_ns);
}

/* Fills in the request of a job. Returns false if it is not one of ours. */
static bool read_request(const struct slurm *s, const slurm_job_info_t *job,
	struct td_slurm_comment *comment, struct td_brain_request *ret)
{
	struct td_slurm_spec spec;
	const char *class;
	char limit[TD_JOB_VALUE_MAX];

	if (td_slurm_comment_parse(job->admin_comment, comment) ||
		td_slurm_spec_parse(comment->spec, &spec, NULL))
		return false;
	*ret = (struct td_brain_request){.uid = job->user_id,
		.gpus = spec.gpus,
		.share_ppm = spec.hundredths < 100 ? spec.hundredths * 10000 : 1000000,
		.same_node = true,
		.stays = !job->batch_flag, /* srun and salloc */
		.pool = td_slurm_pool_of(&s->pools, job),
		.epoch = comment->epoch};
	class = spec.value[TD_JOB_KEY_class];
	ret->guaranteed = !strcmp(class, "guaranteed") || !strcmp(class, "online");
	ret->automatic = !strcmp(class, "guaranteed");
	snprintf(ret->id, sizeof(ret->id), "%u", job->job_id);
	snprintf(ret->kind, sizeof(ret->kind), "share%u", ret->share_ppm / 10000);
	if (job->name)
		snprintf(ret->program, sizeof(ret->program), "%s", job->name);
	if (job->account)
		snprintf(ret->tenant, sizeof(ret->tenant), "%s", job->account);
	strcpy(limit, spec.value[TD_JOB_KEY_mem]);
	if (!*limit && spec.hundredths < 100)
		snprintf(limit, sizeof(limit), "%u%%", spec.hundredths);
	if (s->gpu_bytes && *limit)
		(void)td_parse_size(limit, s->gpu_bytes, &ret->bytes, NULL);
	else
		ret->bytes = s->gpu_bytes;
	return true;
}

/* Tells of a job that the brain does not know. Returns false: it does not know the GPUs either. */
static bool adopt(const struct td_brain_request *request, const struct td_slurm_comment *comment,
	struct td_brain *brain, uint64_t now_ns)
{
	struct td_brain_place places[TD_SLURM_GPUS_MAX];

	for (uint32_t k = 0; k < comment->gpus; k++)
		places[k] = (struct td_brain_place){comment->node, comment->gpu[k]};
	return comment->gpus == request->gpus &&
	       td_brain_adopt(brain, request, comment->guest, places, now_ns) != -ENOENT;
}

static void tell_running(const struct td_brain_request *request,
	const struct td_slurm_comment *comment, struct td_brain *brain, uint64_t now_ns)
{
	if (td_brain_find(brain, request->id) != TD_NO_NAME) {
		td_brain_ran(brain, request->id, comment->epoch, now_ns);
		return;
	}
	if (adopt(request, comment, brain, now_ns))
		return;
	/* One that the brain has no room for runs on: as a stranger it would be ended. */
	if (!td_brain_submit(brain, request, now_ns))
		td_brain_ran(brain, request->id, comment->epoch, now_ns);
}

/* Whether a dependency of this kind, such as "afterok:", on a job is not fulfilled. */
static bool holds_up(const struct slurm *s, const char *kind, const char *id)
{
	const slurm_job_info_t *other = find_job(s, id);

	if (!other || !is_over(other))
		return other != NULL;
	return base_of(other) == JOB_COMPLETE ? !strncmp(kind, "afternotok:", 11)
					      : !strncmp(kind, "afterok:", 8);
}

/*
 * Whether it depends on the end of a job that has not ended. Slurm does not look at the dependency
 * of a held job, so this does: "afterok:12(unfulfilled),afterany:13(unfulfilled)". One that waits
 * for a start only (after:12), or for one of several jobs (?), is placed at once. One whose
 * dependency has failed never starts, so it gets no place: Slurm has marked it so, or will.
 */
static bool waits_for_others(const struct slurm *s, const char *dependency)
{
	const char *at = dependency ? dependency : "", *end;

	if (strstr(at, "after:") || strchr(at, '?'))
		return false;
	if (strstr(at, "(failed)"))
		return true;
	for (; *at; at = end + (*end != 0)) {
		end = at + strcspn(at, ",");
		for (const char *id = strchr(at, ':'); id && id < end; id = strchr(id + 1, ':'))
			if (holds_up(s, at, id + 1))
				return true;
	}
	return false;
}

/* Whether its user wants it to start later. Slurm sets such a time, too, when it requeues a job. */
static bool is_for_later(const struct slurm *s, const slurm_job_info_t *job)
{
	return waits_for_others(s, job->dependency) ||
	       (!job->restart_cnt && job->eligible_time > time(NULL));
}

/*
 * Whether the placement of a pending job is over: it ran, perhaps only between two looks, or was
 * held since.
 */
static bool is_back(const slurm_job_info_t *job, const struct td_slurm_comment *comment,
	const struct td_brain_job *known)
{
	if (known->phase == TD_BRAIN_RUNNING)
		return true;
	return known->phase == TD_BRAIN_PLACED && comment->epoch >= known->epoch &&
	       (!job->priority || !comment->gpus ||
		       (comment->run != TD_SLURM_ANY_RUN && comment->run != job->restart_cnt));
}

static void tell_pending(const struct slurm *s, const slurm_job_info_t *job,
	const struct td_brain_request *request, const struct td_slurm_comment *comment,
	struct td_brain *brain, uint64_t now_ns)
{
	uint32_t at = td_brain_find(brain, request->id);
	const struct td_brain_job *known = td_brain_job(brain, at);

	/* Its user has changed where it may run, or its nodes have changed. */
	if (known && known->phase == TD_BRAIN_WAITING && known->request.pool != request->pool) {
		td_brain_ended(brain, request->id, now_ns);
		known = NULL;
	}
	if (known && is_back(job, comment, known))
		td_brain_lost(brain, request->id, known->epoch, TD_WHY_EVICTED, now_ns);
	if (!known && ((!job->priority && is_for_later(s, job)) ||
			      td_brain_submit(brain, request, now_ns)))
		return;
	/*
	 * One that waits has to be held. It is not if its user has released it, or if a scheduler
	 * before this one has placed it and it has not started.
	 */
	if (job->priority && (!known || known->phase == TD_BRAIN_WAITING))
		td_brain_ran(brain, request->id, comment->epoch, now_ns);
}

/*
 * Whether a job that has ended, or is to start anew, is still leaving the GPU of its placement.
 * Slurm starts nothing in its place until the node has said that it is over; a node whose slurmd
 * was killed does not say so for a minute.
 */
static bool is_leaving(
	const struct slurm *s, const slurm_job_info_t *job, struct td_brain *brain, uint64_t now_ns)
{
	struct td_slurm_comment comment;
	struct td_brain_request request;
	const struct td_brain_job *known;

	if (!(job->job_state & JOB_COMPLETING) || !read_request(s, job, &comment, &request))
		return false;
	if (td_brain_find(brain, request.id) == TD_NO_NAME)
		(void)adopt(&request, &comment, brain, now_ns);
	known = td_brain_job(brain, td_brain_find(brain, request.id));
	if (!known || known->epoch != comment.epoch)
		return false;
	if (known->phase == TD_BRAIN_PLACED) /* it ran between two looks */
		td_brain_ran(brain, request.id, comment.epoch, now_ns);
	return known->phase == TD_BRAIN_RUNNING;
}

/* Returns whether it is a job of ours that has not ended. */
static bool tell_job(
	const struct slurm *s, const slurm_job_info_t *job, struct td_brain *brain, uint64_t now_ns)
{
	struct td_slurm_comment comment;
	struct td_brain_request request;

	if (is_leaving(s, job, brain, now_ns))
		return true;
	if (is_over(job) || !read_request(s, job, &comment, &request))
		return false;
	if (is_pending(job))
		tell_pending(s, job, &request, &comment, brain, now_ns);
	else if (is_running(job))
		tell_running(&request, &comment, brain, now_ns);
	return true;
}

/* Ends the jobs that Slurm has no longer, or that have ended. */
static void end_others(struct td_brain *brain, const bool *is_there, uint64_t now_ns)
{
	uint32_t max = td_brain_jobs_max(brain);

	for (uint32_t at = 0; at < max; at++) {
		const struct td_brain_job *job = td_brain_job(brain, at);

		if (job && !is_there[at])
			td_brain_ended(brain, job->request.id, now_ns);
	}
}

static int submitted(struct td_engine *engine, struct td_brain *brain, uint64_t now_ns)
{
	struct slurm *s = slurm_of(engine);
	bool *is_there = calloc(td_brain_jobs_max(brain), sizeof(*is_there));
	int r = is_there ? load(s) : -ENOMEM;

	if (!r)
		find_pools(s);
	if (!r)
		tell_nodes(s, brain, now_ns);
	for (uint32_t k = 0; !r && s->jobs && k < s->jobs->record_count; k++) {
		const slurm_job_info_t *job = &s->jobs->job_array[k];
		char id[TD_NAME_MAX];
		bool there = tell_job(s, job, brain, now_ns);
		uint32_t at;

		snprintf(id, sizeof(id), "%u", job->job_id);
		at = td_brain_find(brain, id);
		if (there && at != TD_NO_NAME)
			is_there[at] = true;
	}
	if (!r) {
		tell_nodes(s, brain, now_ns);
		end_others(brain, is_there, now_ns);
	}
	free(is_there);
	return r;
}

/* --- orders --- */

/* Writes why it waits, and keeps what the node has said of an eviction. */
static void set_why(struct td_slurm_comment *comment, const char *why)
{
	const char *detail = strstr(comment->why, TD_SLURM_ENDED ": ");
	size_t len = strlen(why), ended = strlen(TD_SLURM_ENDED);
	bool is_same = len >= ended && !strcmp(why + len - ended, TD_SLURM_ENDED);
	char text[sizeof(comment->why)];

	snprintf(text, sizeof(text), "%s%s", why, detail && is_same ? detail + ended : "");
	strcpy(comment->why, text);
}

/*
 * A node refuses the credential of a job that it ended in the same second, and Slurm would count
 * the job as failed.
 */
#define RESTART_S 2u

/* Sets a job's comment, and with it its node, time and priority if they are given. */
static int update(struct slurm *s, const char *id, const struct td_slurm_comment *comment,
	const char *node, uint32_t priority, uint32_t after_s)
{
	char text[TD_SLURM_COMMENT_MAX], name[TD_SLURM_NODE_MAX];
	job_desc_msg_t job;

	slurm_init_job_desc_msg(&job);
	job.job_id = (uint32_t)strtoul(id, NULL, 10);
	job.admin_comment = td_slurm_comment_write(comment, text);
	job.priority = priority;
	if (node) {
		snprintf(name, sizeof(name), "%s", node);
		job.req_nodes = name;
		job.begin_time = time(NULL) + after_s; /* Slurm lets a requeued job wait longer */
	}
	return slurm_update_job(&job) ? failed(s, "job", id) : 0;
}

static int set_guest(struct slurm *s, const char *id, struct td_slurm_comment *comment, bool guest)
{
	comment->guest = guest;
	return update(s, id, comment, NULL, NO_VAL, 0);
}

/*
 * It was placed before and has not started. After a time to wait Slurm may look at its queue late,
 * and does so at once when a placed job's comment is set (job_submit_tandem.c).
 */
static int look_again(
	struct slurm *s, const slurm_job_info_t *job, const struct td_slurm_comment *comment)
{
	char id[16];

	if (!is_pending(job) || !comment->gpus || job->eligible_time > time(NULL))
		return 0;
	snprintf(id, sizeof(id), "%u", job->job_id);
	return update(s, id, comment, NULL, NO_VAL, 0);
}

static int place(struct td_engine *engine, const struct td_placement *placement)
{
	struct slurm *s = slurm_of(engine);
	slurm_job_info_t *job = find_job(s, placement->id);
	struct td_slurm_comment comment;

	if (!job || td_slurm_comment_parse(job->admin_comment, &comment))
		return -EAGAIN;
	if (comment.epoch >= placement->epoch && comment.guest == placement->guest)
		return look_again(s, job, &comment);
	if (comment.epoch >= placement->epoch)
		return set_guest(s, placement->id, &comment, placement->guest);
	/* A job queued again has its new number of runs when it has left its node. */
	if (!is_pending(job) || job->job_state & JOB_COMPLETING ||
		placement->count > TD_SLURM_GPUS_MAX)
		return -EAGAIN;
	for (uint32_t k = 1; k < placement->count; k++)
		if (strcmp(placement->places[k].node, placement->places[0].node))
			return -EINVAL; /* Slurm's jobs of ours are on one node */
	snprintf(comment.node, sizeof(comment.node), "%s", placement->places[0].node);
	comment.gpus = placement->count;
	for (uint32_t k = 0; k < placement->count; k++)
		comment.gpu[k] = placement->places[k].gpu;
	comment.epoch = placement->epoch;
	comment.run = job->restart_cnt;
	comment.guest = placement->guest;
	*comment.why = 0;
	return update(s, placement->id, &comment, comment.node, INFINITE,
		job->restart_cnt ? RESTART_S : 0);
}

static int upgrade(struct td_engine *engine, const char *id, uint64_t epoch)
{
	struct slurm *s = slurm_of(engine);
	slurm_job_info_t *job = find_job(s, id);
	struct td_slurm_comment comment;

	if (!job || is_over(job) || td_slurm_comment_parse(job->admin_comment, &comment) ||
		comment.epoch != epoch)
		return 0;
	return set_guest(s, id, &comment, false);
}

static int requeue(struct td_engine *engine, const char *id, uint64_t epoch, const char *why)
{
	struct slurm *s = slurm_of(engine);
	slurm_job_info_t *job = find_job(s, id);
	struct td_slurm_comment comment;

	if (!job || td_slurm_comment_parse(job->admin_comment, &comment) ||
		comment.epoch != epoch || is_over(job))
		return 0;
	if (is_running(job) && !job->batch_flag)
		return -EOPNOTSUPP; /* srun and salloc have nobody who could start them again */
	/* JOB_RUNNING: not one that has ended meanwhile, which Slurm would run again. */
	if (is_running(job) && slurm_requeue(job->job_id, JOB_REQUEUE_HOLD | JOB_RUNNING))
		return failed(s, "job", id);
	comment.gpus = 0;
	comment.guest = false;
	set_why(&comment, why);
	return update(s, id, &comment, NULL, is_running(job) ? NO_VAL : 0, 0);
}

static int stop(struct td_engine *engine, const char *id, uint64_t epoch)
{
	struct slurm *s = slurm_of(engine);
	const slurm_job_info_t *job = find_job(s, id);
	struct td_slurm_comment comment;

	if (!job || td_slurm_comment_parse(job->admin_comment, &comment) || comment.epoch != epoch)
		return 0;
	return slurm_kill_job((uint32_t)strtoul(id, NULL, 10), 9, 0) ? failed(s, "job", id) : 0;
}

static int explain(struct td_engine *engine, const char *id, const char *why)
{
	struct slurm *s = slurm_of(engine);
	slurm_job_info_t *job = find_job(s, id);
	struct td_slurm_comment comment;

	if (!job || !is_pending(job) || td_slurm_comment_parse(job->admin_comment, &comment))
		return 0;
	set_why(&comment, why);
	comment.gpus = 0;
	comment.guest = false;
	return update(s, id, &comment, NULL, 0, 0);
}

static const char *why(const struct td_engine *engine)
{
	return ((const struct slurm *)engine)->why;
}

static void engine_free(struct td_engine *engine)
{
	struct slurm *s = slurm_of(engine);

	slurm_free_job_info_msg(s->jobs);
	slurm_free_node_info_msg(s->nodes);
	td_slurm_pools_deinit(&s->pools);
	free(s);
}

static const struct td_engine_kind kind = {
	.name = "slurm",
	.free = engine_free,
	.submitted = submitted,
	.place = place,
	.upgrade = upgrade,
	.requeue = requeue,
	.stop = stop,
	.explain = explain,
	.why = why,
};

struct td_engine *td_slurm_engine_new(uint64_t gpu_bytes)
{
	struct slurm *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	slurm_init(NULL);
	s->engine.kind = &kind;
	s->gpu_bytes = gpu_bytes;
	return &s->engine;
}
