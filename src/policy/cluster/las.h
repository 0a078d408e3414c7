/*
 * Queues by attained service: who has had the least GPU time so far runs first.
 *
 * Purpose. Nobody knows how long a job will run. Most jobs are short and a few are very long, so a
 * job that has run for long will probably run on for long. Serving the least attained service first
 * therefore comes near to serving the shortest job first, without being told anything (Tiresias,
 * NSDI 2019, 3.2: discretised two-dimensional least attained service).
 *
 * A job's service is its GPUs times the time that it has had them. There are TD_LAS_LEVELS levels.
 * A job begins at level 0, and goes down to level k + 1 when its service reaches
 * quantum x factor^k. Within a level the order is that in which jobs have joined it, so jobs of a
 * level do not preempt each other, and a job is preempted a few times in its life only.
 *
 * Ageing. Whoever has waited at level k for age x quantum x factor^k begins again at level 0,
 * before all who wait there. age_max_ns bounds the wait of the deep levels. Only the first of each
 * level is looked at: it has waited for the longest.
 *
 * Queues. The levels exist once for each queue: one for each tenant's guaranteed jobs, and one for
 * all other jobs. The caller decides between queues.
 *
 * Cost: an arrival, a start, a stop and an end take O(log running); td_las_advance() takes that for
 * each job that changes its level, and TD_LAS_LEVELS for each queue in which somebody waits.
 *
 * Invariants
 * - a job that is there is in one list: waiting or running, of its queue and its level;
 * - a job at level k above 0 has had at least quantum x factor^(k - 1) of service;
 * - same calls, same order. The caller provides all memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TD_LAS_LEVELS     8u
#define TD_LAS_QUEUES_MAX 65u
#define TD_LAS_NONE       UINT32_MAX

struct td_las_params {
	uint64_t quantum_ns; /* GPU time that a job gets at level 0 */
	double factor;       /* ratio of the quanta of two neighbouring levels; above 1 */
	double age;          /* see Ageing; 0: no ageing */
	uint64_t age_max_ns;
};

struct td_las_job {
	bool there, runs;
	uint32_t queue, level, gpus, previous, next;
	uint32_t at;          /* index in the heap, while it runs */
	uint64_t attained_ns; /* service until since_ns */
	uint64_t since_ns;    /* when it joined its list, waiting or running */
	uint64_t order;       /* position in its list; later jobs have larger numbers */
	uint64_t falls_ns;    /* when it reaches the end of its level, if it runs */
};

struct td_las_list {
	uint32_t first, last;
};

struct td_las {
	struct td_las_params params;
	/* Service at the end of each level; the last level has no end. */
	uint64_t ends_ns[TD_LAS_LEVELS];
	uint64_t patience_ns[TD_LAS_LEVELS];
	struct td_las_queue {
		struct td_las_list waiting[TD_LAS_LEVELS], running[TD_LAS_LEVELS];
		uint32_t count; /* number of waiting jobs */
	} queues[TD_LAS_QUEUES_MAX];
	uint32_t queue_count, jobs_max, waiting, running;
	struct td_las_job *jobs;
	uint32_t *heap; /* the running jobs by falls_ns */
	uint64_t orders;
};

size_t td_las_bytes(uint32_t jobs_max);
/* Makes empty queues. memory has td_las_bytes() bytes; queues is at most TD_LAS_QUEUES_MAX. */
void td_las_init(struct td_las *las, void *memory, const struct td_las_params *params,
	uint32_t queues, uint32_t jobs_max);

/* Adds a new job, which waits at level 0 of a queue. */
void td_las_submit(
	struct td_las *las, uint32_t job, uint32_t queue, uint32_t gpus, uint64_t now_ns);
void td_las_start(struct td_las *las, uint32_t job, uint64_t now_ns);
/* Makes a running job wait again, as the last of its level. */
void td_las_stop(struct td_las *las, uint32_t job, uint64_t now_ns);
void td_las_remove(struct td_las *las, uint32_t job);

/* Moves jobs to the levels that they have at this time. */
void td_las_advance(struct td_las *las, uint64_t now_ns);

/* Returns the first waiting job of a queue, by level and order; TD_LAS_NONE: there is none. */
uint32_t td_las_first(const struct td_las *las, uint32_t queue);
/* Returns the job that waits behind this one; TD_LAS_NONE: there is none. */
uint32_t td_las_next(const struct td_las *las, uint32_t job);

/* Tells whether job a goes before job b. */
bool td_las_before(const struct td_las *las, uint32_t a, uint32_t b);
