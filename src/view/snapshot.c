/* This file implements snapshot.h. */
#include "view/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "gpu/nvml.h"

void td_snapshot_init(struct td_snapshot *snapshot)
{
	memset(snapshot, 0, sizeof(*snapshot));
}

void td_snapshot_deinit(struct td_snapshot *snapshot)
{
	free(snapshot->gpus);
	free(snapshot->jobs);
	free(snapshot->others);
	td_snapshot_init(snapshot);
}

void td_snapshot_clear(struct td_snapshot *snapshot)
{
	snapshot->time_ns = 0;
	snapshot->gpu_count = snapshot->job_count = snapshot->other_count = 0;
}

/* Makes room for one more entry. Returns false if memory is short. */
static bool make_room(void **rows, size_t count, size_t *room, size_t bytes)
{
	size_t more = *room ? 2 * *room : 16;
	void *grown;

	if (count < *room)
		return true;
	grown = realloc(*rows, more * bytes);
	if (!grown)
		return false;
	*rows = grown;
	*room = more;
	return true;
}

int td_snapshot_take(struct td_snapshot *s, const struct td_msg *msg)
{
	switch (msg->type) {
	case TD_MSG_TYPE_gpu:
		if (!make_room((void **)&s->gpus, s->gpu_count, &s->gpu_room, sizeof(*s->gpus)))
			return -ENOMEM;
		s->gpus[s->gpu_count++] = msg->gpu;
		return 0;
	case TD_MSG_TYPE_job:
		if (!make_room((void **)&s->jobs, s->job_count, &s->job_room, sizeof(*s->jobs)))
			return -ENOMEM;
		s->jobs[s->job_count++] = (struct td_snapshot_job){.said = msg->job};
		return 0;
	case TD_MSG_TYPE_others:
		if (!make_room((void **)&s->others, s->other_count, &s->other_room,
			    sizeof(*s->others)))
			return -ENOMEM;
		s->others[s->other_count++] = msg->others;
		return 0;
	case TD_MSG_TYPE_end: s->time_ns = msg->end.time_ns; return 1;
	default: return 0;
	}
}

/* -- rates -- */

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/*
 * Compares whether two rows are the same process on the same GPU. A pid that is used again has
 * another start time.
 */
static int compare_identity(const struct td_msg_job *a, const struct td_msg_job *b)
{
	int r = compare_u64(a->pid, b->pid);

	r = r ? r : compare_u64(a->gpu, b->gpu);
	return r ? r : compare_u64(a->started_ns, b->started_ns);
}

static int compare_rows(const void *a, const void *b)
{
	const struct td_snapshot_job *const *left = a, *const *right = b;

	return compare_identity(&(*left)->said, &(*right)->said);
}

static double per_second(uint64_t now, uint64_t before, double seconds)
{
	return now > before ? (double)(now - before) / seconds : 0;
}

/* Returns the share of the time between two counts of nanoseconds; at most 1. */
static double share(uint64_t now_ns, uint64_t before_ns, double seconds)
{
	double part = per_second(now_ns, before_ns, seconds) / (double)TD_NS_PER_S;

	return part > 1 ? 1 : part;
}

int td_snapshot_rates(struct td_snapshot *now, const struct td_snapshot *before)
{
	double seconds = (double)(now->time_ns - before->time_ns) / (double)TD_NS_PER_S;
	const struct td_snapshot_job **sorted;

	if (!before->job_count || !before->time_ns || now->time_ns <= before->time_ns)
		return 0;
	sorted = malloc(before->job_count * sizeof(const struct td_snapshot_job *));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < before->job_count; i++)
		sorted[i] = &before->jobs[i];
	qsort(sorted, before->job_count, sizeof(const struct td_snapshot_job *), compare_rows);
	for (size_t i = 0; i < now->job_count; i++) {
		struct td_snapshot_job *job = &now->jobs[i];
		const struct td_snapshot_job *key = job,
					     *const *found =
						     bsearch(&key, sorted, before->job_count,
							     sizeof(const struct td_snapshot_job *),
							     compare_rows);
		const struct td_msg_job *old;

		if (!found)
			continue;
		old = &(*found)->said;
		job->has_rates = true;
		job->held = share(job->said.held_ns, old->held_ns, seconds);
		job->busy = share(job->said.gpu_time_ns, old->gpu_time_ns, seconds);
		job->in_bytes = per_second(job->said.in_bytes, old->in_bytes, seconds);
		job->out_bytes = per_second(job->said.out_bytes, old->out_bytes, seconds);
		job->launches = per_second(job->said.launches, old->launches, seconds);
	}
	free(sorted);
	return 0;
}

double td_snapshot_use(const struct td_snapshot *s, const struct td_msg_gpu *gpu)
{
	double held = -1;

	if (gpu->known & TD_GPU_KNOWS_UTILISATION)
		return gpu->util_ppm / 1e6;
	for (size_t i = 0; i < s->job_count; i++)
		if (s->jobs[i].said.gpu == gpu->index && s->jobs[i].has_rates)
			held = (held < 0 ? 0 : held) + s->jobs[i].held;
	return held > 1 ? 1 : held;
}
