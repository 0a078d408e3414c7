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
	uint64_t quantum_ns; /* of GPU time: the end of level 0 */
	double factor;       /* of a level's end over that of the level above it; above 1 */
	double age;          /* see Ageing; 0: nobody ages */
	uint64_t age_max_ns;
};

struct td_las_job {
	bool there, runs;
	uint32_t queue, level, gpus, previous, next;
	uint32_t at;          /* in the heap, while it runs */
	uint64_t attained_ns; /* up to since_ns */
	uint64_t since_ns;    /* the present list's, for waiting and running alike */
	uint64_t order;       /* of joining its list */
	uint64_t falls_ns;    /* when it reaches the end of its level, while it runs */
};

struct td_las_list {
	uint32_t first, last;
};

struct td_las {
	struct td_las_params params;
	uint64_t ends_ns[TD_LAS_LEVELS]; /* of service; the last level has none */
	uint64_t patience_ns[TD_LAS_LEVELS];
	struct td_las_queue {
		struct td_las_list waiting[TD_LAS_LEVELS], running[TD_LAS_LEVELS];
		uint32_t count; /* of those that wait */
	} queues[TD_LAS_QUEUES_MAX];
	uint32_t queue_count, jobs_max, waiting, running;
	struct td_las_job *jobs;
	uint32_t *heap; /* of those that run, by falls_ns */
	uint64_t orders;
};

size_t td_las_bytes(uint32_t jobs_max);
/* memory: td_las_bytes(). queues: at most TD_LAS_QUEUES_MAX. */
void td_las_init(struct td_las *las, void *memory, const struct td_las_params *params,
	uint32_t queues, uint32_t jobs_max);

/* A job that is not there waits at level 0 of a queue. */
void td_las_submit(
	struct td_las *las, uint32_t job, uint32_t queue, uint32_t gpus, uint64_t now_ns);
void td_las_start(struct td_las *las, uint32_t job, uint64_t now_ns);
/* A running job waits again, as the last of its level. */
void td_las_stop(struct td_las *las, uint32_t job, uint64_t now_ns);
void td_las_remove(struct td_las *las, uint32_t job);

/* Moves jobs to the levels that they have at this time. */
void td_las_advance(struct td_las *las, uint64_t now_ns);

/* The first that waits in a queue, by level and order; TD_LAS_NONE. */
uint32_t td_las_first(const struct td_las *las, uint32_t queue);
/* The one that waits behind this one. */
uint32_t td_las_next(const struct td_las *las, uint32_t job);

/* True: a goes before b. */
bool td_las_before(const struct td_las *las, uint32_t a, uint32_t b);
