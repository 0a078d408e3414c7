/* Implements queues by attained service; see las.h. */
#include "policy/cluster/las.h"

#include <string.h>

#define NONE  TD_LAS_NONE
#define NEVER UINT64_MAX

size_t td_las_bytes(uint32_t jobs_max)
{
	return jobs_max * (sizeof(struct td_las_job) + sizeof(uint32_t));
}

void td_las_init(struct td_las *las, void *memory, const struct td_las_params *params,
	uint32_t queues, uint32_t jobs_max)
{
	double end = (double)params->quantum_ns;

	*las = (struct td_las){
		.params = *params, .queue_count = queues, .jobs_max = jobs_max, .jobs = memory};
	las->heap = (uint32_t *)(las->jobs + jobs_max);
	memset(memory, 0, td_las_bytes(jobs_max));
	memset(las->queues, 0xff, sizeof(las->queues));
	for (uint32_t q = 0; q < TD_LAS_QUEUES_MAX; q++)
		las->queues[q].count = 0;
	for (uint32_t k = 0; k < TD_LAS_LEVELS; k++, end *= params->factor) {
		double patience = params->age * end;

		las->ends_ns[k] = end < 1e18 ? (uint64_t)end : NEVER;
		las->patience_ns[k] = NEVER;
		if (params->age > 0)
			las->patience_ns[k] = patience < (double)params->age_max_ns
						      ? (uint64_t)patience
						      : params->age_max_ns;
	}
	las->ends_ns[TD_LAS_LEVELS - 1] = NEVER;
}

/* --- lists --- */

static struct td_las_list *list_of(struct td_las *las, const struct td_las_job *job)
{
	struct td_las_queue *queue = &las->queues[job->queue];

	return job->runs ? &queue->running[job->level] : &queue->waiting[job->level];
}

static void unlink_job(struct td_las *las, uint32_t id)
{
	struct td_las_job *job = &las->jobs[id];
	struct td_las_list *list = list_of(las, job);

	*(job->previous == NONE ? &list->first : &las->jobs[job->previous].next) = job->next;
	*(job->next == NONE ? &list->last : &las->jobs[job->next].previous) = job->previous;
}

static void append(struct td_las *las, uint32_t id)
{
	struct td_las_job *job = &las->jobs[id];
	struct td_las_list *list = list_of(las, job);

	job->order = las->orders++;
	job->next = NONE;
	job->previous = list->last;
	*(list->last == NONE ? &list->first : &las->jobs[list->last].next) = id;
	list->last = id;
}

static void count_waiting(struct td_las *las, const struct td_las_job *job, uint32_t more)
{
	las->waiting += more;
	las->queues[job->queue].count += more;
}

/* --- the heap of those that run --- */

static void put_at(struct td_las *las, uint32_t at, uint32_t id)
{
	las->heap[at] = id;
	las->jobs[id].at = at;
}

static bool falls_before(const struct td_las *las, uint32_t a, uint32_t b)
{
	const struct td_las_job *x = &las->jobs[a], *y = &las->jobs[b];

	return x->falls_ns != y->falls_ns ? x->falls_ns < y->falls_ns : x->order < y->order;
}

static void sift(struct td_las *las, uint32_t at)
{
	uint32_t id = las->heap[at];

	for (; at && falls_before(las, id, las->heap[(at - 1) / 2]); at = (at - 1) / 2)
		put_at(las, at, las->heap[(at - 1) / 2]);
	for (uint32_t child; (child = 2 * at + 1) < las->running; at = child) {
		if (child + 1 < las->running &&
			falls_before(las, las->heap[child + 1], las->heap[child]))
			child++;
		if (!falls_before(las, las->heap[child], id))
			break;
		put_at(las, at, las->heap[child]);
	}
	put_at(las, at, id);
}

static void set_fall(struct td_las *las, struct td_las_job *job)
{
	uint64_t end = las->ends_ns[job->level];

	job->falls_ns = NEVER;
	if (end != NEVER)
		job->falls_ns =
			job->since_ns +
			(end > job->attained_ns ? (end - job->attained_ns) / job->gpus + 1 : 0);
}

static void leave_heap(struct td_las *las, uint32_t id)
{
	uint32_t at = las->jobs[id].at, last = las->heap[--las->running];

	if (last == id)
		return;
	put_at(las, at, last);
	sift(las, at);
}

/* --- what happens to a job --- */

void td_las_submit(struct td_las *las, uint32_t id, uint32_t queue, uint32_t gpus, uint64_t now_ns)
{
	las->jobs[id] = (struct td_las_job){
		.there = true, .queue = queue, .gpus = gpus, .since_ns = now_ns};
	count_waiting(las, &las->jobs[id], 1);
	append(las, id);
}

void td_las_start(struct td_las *las, uint32_t id, uint64_t now_ns)
{
	struct td_las_job *job = &las->jobs[id];

	unlink_job(las, id);
	count_waiting(las, job, -1u);
	job->runs = true;
	job->since_ns = now_ns;
	append(las, id);
	set_fall(las, job);
	put_at(las, las->running, id);
	sift(las, las->running++);
}

/* Adds the service since since_ns. */
static void settle(struct td_las_job *job, uint64_t now_ns)
{
	job->attained_ns += (now_ns - job->since_ns) * job->gpus;
	job->since_ns = now_ns;
}

void td_las_stop(struct td_las *las, uint32_t id, uint64_t now_ns)
{
	struct td_las_job *job = &las->jobs[id];

	unlink_job(las, id);
	leave_heap(las, id);
	settle(job, now_ns);
	job->runs = false;
	count_waiting(las, job, 1);
	append(las, id);
}

void td_las_remove(struct td_las *las, uint32_t id)
{
	struct td_las_job *job = &las->jobs[id];

	if (!job->there)
		return;
	unlink_job(las, id);
	if (job->runs)
		leave_heap(las, id);
	else
		count_waiting(las, job, -1u);
	job->there = false;
}

/* --- time --- */

static void fall(struct td_las *las, uint32_t id, uint64_t now_ns)
{
	struct td_las_job *job = &las->jobs[id];

	unlink_job(las, id);
	settle(job, now_ns);
	while (job->attained_ns >= las->ends_ns[job->level])
		job->level++;
	append(las, id);
	set_fall(las, job);
	sift(las, job->at);
}

/* Puts the job back to level 0, before all jobs that wait there. */
static void promote(struct td_las *las, uint32_t id)
{
	struct td_las_job *job = &las->jobs[id];
	struct td_las_list *list;

	unlink_job(las, id);
	job->level = 0;
	job->attained_ns = 0;
	list = list_of(las, job);
	job->previous = NONE;
	job->next = list->first;
	job->order = job->next == NONE ? las->orders++ : las->jobs[job->next].order;
	*(list->first == NONE ? &list->last : &las->jobs[list->first].previous) = id;
	list->first = id;
}

static void age(struct td_las *las, const struct td_las_queue *queue, uint64_t now_ns)
{
	for (uint32_t k = 1; k < TD_LAS_LEVELS; k++)
		for (uint32_t id; (id = queue->waiting[k].first) != NONE;) {
			if (now_ns - las->jobs[id].since_ns < las->patience_ns[k])
				break;
			promote(las, id);
		}
}

void td_las_advance(struct td_las *las, uint64_t now_ns)
{
	while (las->running && las->jobs[las->heap[0]].falls_ns <= now_ns)
		fall(las, las->heap[0], now_ns);
	for (uint32_t q = 0; q < las->queue_count; q++)
		if (las->queues[q].count)
			age(las, &las->queues[q], now_ns);
}

/* --- order --- */

static uint32_t first_from(const struct td_las *las, uint32_t queue, uint32_t level)
{
	for (; level < TD_LAS_LEVELS; level++)
		if (las->queues[queue].waiting[level].first != NONE)
			return las->queues[queue].waiting[level].first;
	return NONE;
}

uint32_t td_las_first(const struct td_las *las, uint32_t queue)
{
	return las->queues[queue].count ? first_from(las, queue, 0) : NONE;
}

uint32_t td_las_next(const struct td_las *las, uint32_t id)
{
	const struct td_las_job *job = &las->jobs[id];

	return job->next != NONE ? job->next : first_from(las, job->queue, job->level + 1);
}

bool td_las_before(const struct td_las *las, uint32_t a, uint32_t b)
{
	const struct td_las_job *x = &las->jobs[a], *y = &las->jobs[b];

	return x->level != y->level ? x->level < y->level : x->order < y->order;
}
