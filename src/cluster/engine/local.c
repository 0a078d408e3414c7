/* The engine of the tests; see local.h. */
#include "cluster/engine/local.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct td_local *local_of(struct td_engine *engine)
{
	return (struct td_local *)engine;
}

struct td_local_job *td_local_find(struct td_local *local, const char *id)
{
	for (uint32_t k = 0; k < local->jobs; k++)
		if (local->job[k].state != TD_LOCAL_ABSENT && !strcmp(local->job[k].request.id, id))
			return &local->job[k];
	return NULL;
}

struct td_local_job *td_local_submit(struct td_local *local, const struct td_brain_request *request)
{
	for (uint32_t k = 0; k < local->jobs; k++)
		if (local->job[k].state == TD_LOCAL_ABSENT) {
			local->job[k] =
				(struct td_local_job){.request = *request, .state = TD_LOCAL_WAITS};
			return &local->job[k];
		}
	return NULL;
}

void td_local_node(struct td_local *local, const char *name, uint32_t gpus)
{
	uint32_t k = 0;

	while (k + 1 < local->nodes && *local->node[k].name && strcmp(local->node[k].name, name))
		k++;
	snprintf(local->node[k].name, sizeof(local->node[k].name), "%s", name);
	local->node[k].gpus = gpus;
}

/* --- what the brain is told --- */

static void tell_node(const struct td_brain_node *node, struct td_brain *brain, uint64_t now_ns)
{
	if (node->gpus)
		(void)td_brain_node_seen(brain, node, now_ns);
	else if (*node->name)
		td_brain_node_left(brain, node->name, now_ns);
}

static void tell_running(const struct td_local_job *job, struct td_brain *brain, uint64_t now_ns)
{
	struct td_brain_request request = job->request;
	struct td_brain_place places[TD_GANG_MAX];

	if (td_brain_find(brain, request.id) != TD_NO_NAME) {
		td_brain_ran(brain, request.id, job->epoch, now_ns);
		return;
	}
	for (uint32_t k = 0; k < request.gpus; k++)
		places[k] = (struct td_brain_place){job->node[k], job->gpu[k]};
	request.epoch = job->epoch;
	if (td_brain_adopt(brain, &request, job->guest, places, now_ns) != -ENOENT)
		return;
	(void)td_brain_submit(brain, &request, now_ns);
	td_brain_ran(brain, request.id, job->epoch, now_ns);
}

static void tell_waiting(const struct td_local_job *job, struct td_brain *brain, uint64_t now_ns)
{
	struct td_brain_request request = job->request;

	request.epoch = job->epoch;
	(void)td_brain_submit(brain, &request, now_ns);
}

static int submitted(struct td_engine *engine, struct td_brain *brain, uint64_t now_ns)
{
	struct td_local *local = local_of(engine);

	if (local->is_away)
		return -EAGAIN;
	for (uint32_t k = 0; k < local->nodes; k++)
		tell_node(&local->node[k], brain, now_ns);
	for (uint32_t k = 0; k < local->jobs; k++) {
		struct td_local_job *job = &local->job[k];

		switch (job->state) {
		case TD_LOCAL_ABSENT: break;
		case TD_LOCAL_WAITS: tell_waiting(job, brain, now_ns); break;
		case TD_LOCAL_RUNS: tell_running(job, brain, now_ns); break;
		case TD_LOCAL_ENDED:
			td_brain_ended(brain, job->request.id, now_ns);
			job->state = TD_LOCAL_ABSENT;
			break;
		}
	}
	return 0;
}

/* --- orders --- */

static int place(struct td_engine *engine, const struct td_placement *placement)
{
	struct td_local *local = local_of(engine);
	struct td_local_job *job = td_local_find(local, placement->id);

	local->places++;
	if (local->is_away)
		return -EAGAIN;
	if (!job || job->epoch >= placement->epoch)
		return 0; /* it has ended, or this was done */
	if (job->state == TD_LOCAL_RUNS) {
		local->twice++;
		return -EAGAIN;
	}
	for (uint32_t k = 0; k < placement->count; k++) {
		strcpy(job->node[k], placement->places[k].node);
		job->gpu[k] = placement->places[k].gpu;
	}
	job->epoch = placement->epoch;
	job->revision = placement->revision;
	job->guest = placement->guest;
	job->state = TD_LOCAL_RUNS;
	job->starts++;
	*job->why = 0;
	return 0;
}

static int upgrade(struct td_engine *engine, const char *id, uint64_t epoch)
{
	struct td_local_job *job = td_local_find(local_of(engine), id);

	if (local_of(engine)->is_away)
		return -EAGAIN;
	if (job && job->epoch == epoch)
		job->guest = false;
	return 0;
}

static int requeue(struct td_engine *engine, const char *id, uint64_t epoch, const char *why)
{
	struct td_local_job *job = td_local_find(local_of(engine), id);

	if (local_of(engine)->is_away)
		return -EAGAIN;
	if (!job || job->epoch != epoch || job->state != TD_LOCAL_RUNS)
		return 0;
	if (local_of(engine)->is_stuck)
		return -EOPNOTSUPP;
	job->state = TD_LOCAL_WAITS;
	snprintf(job->why, sizeof(job->why), "%s", why);
	return 0;
}

static int stop(struct td_engine *engine, const char *id, uint64_t epoch)
{
	struct td_local_job *job = td_local_find(local_of(engine), id);

	if (local_of(engine)->is_away)
		return -EAGAIN;
	if (job && job->epoch == epoch && job->state == TD_LOCAL_RUNS)
		job->state = TD_LOCAL_ENDED;
	return 0;
}

static int explain(struct td_engine *engine, const char *id, const char *why)
{
	struct td_local_job *job = td_local_find(local_of(engine), id);

	if (local_of(engine)->is_away)
		return -EAGAIN;
	if (job)
		snprintf(job->why, sizeof(job->why), "%s", why);
	return 0;
}

static const char *why(const struct td_engine *engine)
{
	(void)engine;
	return "";
}

static void engine_free(struct td_engine *engine)
{
	td_local_deinit(local_of(engine));
}

static const struct td_engine_kind kind = {
	.name = "local",
	.free = engine_free,
	.submitted = submitted,
	.place = place,
	.upgrade = upgrade,
	.requeue = requeue,
	.stop = stop,
	.explain = explain,
	.why = why,
};

int td_local_init(struct td_local *local, uint32_t jobs, uint32_t nodes)
{
	*local = (struct td_local){.engine = {&kind}, .jobs = jobs, .nodes = nodes};
	local->job = calloc(jobs, sizeof(*local->job));
	local->node = calloc(nodes, sizeof(*local->node));
	return local->job && local->node ? 0 : -ENOMEM;
}

void td_local_deinit(struct td_local *local)
{
	free(local->job);
	free(local->node);
	local->job = NULL;
	local->node = NULL;
}
