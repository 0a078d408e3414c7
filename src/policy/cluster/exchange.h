/*
 * MuxFlow's global rescheduling (3, 5.2) on one node: every quarter of an hour, on which GPU each
 * besteffort job should run.
 *
 *   weight of a job on a GPU = its predicted speed there, of its speed alone (Algorithm 1)
 *     x (1 - cost / period)   on another GPU than its own: a restart costs it so much of the period
 *   M <- maximum-weight matching of GPUs and jobs      (match/match.h)
 *   a job whose GPU in M is another one is exchanged, if that GPU will be free
 *
 * A GPU without an online job gives a besteffort job its speed alone. A GPU takes no part if it
 * accepts nobody, if the profile of its online job is not known, or if a besteffort job is there
 * that cannot be exchanged. A job takes no part if its profile is not known or if it may run on its
 * own GPU only. Speeds are known on GPUs of the job's own kind.
 *
 * Invariants
 * - at most one job is sent to a GPU, and only to one that it may run on, that accepts it, whose
 *   room holds it, and that no other besteffort job will use;
 * - the jobs that are exchanged gain together at least TD_EXCHANGE_GAIN of a GPU, with the costs of
 *   their restarts taken off; otherwise nobody is;
 * - nothing is done more often than once in a period, and the first time after a whole one;
 * - same input, same result.
 */
#pragma once

#include "policy/cluster/muxflow_cluster.h"
#include "policy/policy.h"

/* The most jobs that are compared. Further ones stay where they are. */
#define TD_EXCHANGE_JOBS 64
/* The least gain, in speeds alone of a job. It is above the error of the matching. */
#define TD_EXCHANGE_GAIN 0.02

struct td_exchange_gpu {
	const struct td_predictor *speeds; /* of its kind of GPU; NULL: not known */
	bool online;                       /* online or guaranteed jobs are there */
	/* The one online job there; NULL: it is not known, or there are several. */
	const struct td_muxflow_profile *profile;
	bool accepts;        /* more besteffort work may be placed there */
	uint64_t room_bytes; /* that a besteffort job may have there */
};

struct td_exchange_job {
	uint32_t client; /* its id, for the caller */
	uint32_t gpu;
	bool runs;      /* it is the besteffort job that runs on its GPU */
	uint64_t goes;  /* a bit for each GPU on which it may be started again; 0: it may not be */
	uint64_t bytes; /* that it has allocated */
	const struct td_muxflow_profile *profile; /* NULL: not known */
};

struct td_exchange_move {
	uint32_t job, gpu;         /* indices */
	uint32_t from_ppm, to_ppm; /* predicted speeds, of that alone; from_ppm 0: it waits */
};

struct td_exchange {
	uint64_t due_ns; /* when the next exchange is due; 0: none is planned */
	/* For the matching: td_match_bytes(TD_GPU_MAX, TD_EXCHANGE_JOBS, TD_GPU_MAX) at most. */
	float weights[TD_GPU_MAX * TD_EXCHANGE_JOBS];
	char memory[1 << 17];
};

struct td_exchange_problem {
	const struct td_exchange_gpu *gpus;
	const struct td_exchange_job *jobs;
	uint32_t gpu_count, job_count; /* at most TD_GPU_MAX and TD_EXCHANGE_JOBS */
	const struct td_dynamic_sm *sm;
	uint64_t period_ns, cost_ns;
};

/* Returns the predicted speed of the job on the GPU, of its speed alone, from 0 to 1. */
double td_exchange_speed(const struct td_exchange_gpu *gpu, const struct td_muxflow_profile *job,
	const struct td_dynamic_sm *sm);

/* Finds the jobs to exchange. ret_moves has room for job_count. Returns their number. */
uint32_t td_exchange_solve(struct td_exchange *exchange, const struct td_exchange_problem *problem,
	struct td_exchange_move *ret_moves);

/*
 * Tells whether an exchange is due, and plans the next one if so. While `wanted` is false, or the
 * period is 0, none is planned.
 */
bool td_exchange_is_due(
	struct td_exchange *exchange, uint64_t period_ns, bool wanted, uint64_t now_ns);
