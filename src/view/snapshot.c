/* See snapshot.h. */
#include "view/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "gpu/nvml.h"

static const char *const key_names[TD_KEY_N] = {
#define KEY(id, name) name,
#include "view/keys.def"
#undef KEY
};

const char *td_snapshot_key_name(enum td_snapshot_key key)
{
	return key < TD_KEY_N ? key_names[key] : "";
}

enum td_snapshot_key td_snapshot_key_of(const char *name)
{
	unsigned key = 0;

	while (key < TD_KEY_N && strcmp(key_names[key], name))
		key++;
	return (enum td_snapshot_key)key;
}

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

/* Makes room for one more entry. False: there is no memory. */
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

/* Is it the same process on the same GPU? A pid that is used again has another start time. */
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

/* The share of the time between two counts of nanoseconds. */
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

/* -- order -- */

static bool matches(const struct td_msg_job *job, const char *filter)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", job->pid);
	return strcasestr(job->job, filter) || strcasestr(job->name, filter) ||
	       strcasestr(job->class, filter) || strcasestr(job->state, filter) ||
	       strstr(pid, filter);
}

struct order {
	const struct td_snapshot *snapshot;
	enum td_snapshot_key key;
	bool descending;
};

static int compare_double(double a, double b)
{
	return (a > b) - (a < b);
}

static int compare_by(
	const struct td_snapshot_job *a, const struct td_snapshot_job *b, enum td_snapshot_key key)
{
	switch (key) {
	case TD_KEY_name: return strcasecmp(a->said.name, b->said.name);
	case TD_KEY_pid: return compare_u64(a->said.pid, b->said.pid);
	case TD_KEY_class: return strcmp(a->said.class, b->said.class);
	case TD_KEY_state: return strcmp(a->said.state, b->said.state);
	case TD_KEY_time: return compare_double(a->held, b->held);
	case TD_KEY_duty: return compare_u64(a->said.duty_ppm, b->said.duty_ppm);
	case TD_KEY_device: return compare_u64(a->said.resident_bytes, b->said.resident_bytes);
	case TD_KEY_host: return compare_u64(a->said.host_bytes, b->said.host_bytes);
	case TD_KEY_limit: return compare_u64(a->said.limit_bytes, b->said.limit_bytes);
	case TD_KEY_step: return compare_u64(a->said.step_ns, b->said.step_ns);
	case TD_KEY_waited: return compare_u64(a->said.waited_ns, b->said.waited_ns);
	case TD_KEY_gpu:
	case TD_KEY_N: break;
	}
	return compare_u64(a->said.gpu, b->said.gpu);
}

static int compare_indices(const void *left, const void *right, void *arg)
{
	const struct order *order = arg;
	const struct td_snapshot_job *a = &order->snapshot->jobs[*(const size_t *)left],
				     *b = &order->snapshot->jobs[*(const size_t *)right];
	int r = compare_by(a, b, order->key);

	if (order->descending)
		r = -r;
	r = r ? r : compare_u64(a->said.gpu, b->said.gpu);
	return r ? r : compare_u64(a->said.pid, b->said.pid);
}

size_t td_snapshot_order(const struct td_snapshot *snapshot, enum td_snapshot_key key,
	bool descending, const char *filter, size_t *ret)
{
	struct order order = {snapshot, key, descending};
	size_t count = 0;

	for (size_t i = 0; i < snapshot->job_count; i++)
		if (!*filter || matches(&snapshot->jobs[i].said, filter))
			ret[count++] = i;
	qsort_r(ret, count, sizeof(*ret), compare_indices, &order);
	return count;
}
