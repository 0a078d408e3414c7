/* This file implements exchange.h. */
#include "policy/cluster/exchange.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define PPM 1e6
/* Finer than TD_EXCHANGE_GAIN for any number of GPUs. */
#define TOLERANCE 1e-5
#define LINE      64 /* the alignment that the matching wants */

double td_exchange_speed(const struct td_exchange_gpu *gpu, const struct td_muxflow_profile *job,
	const struct td_dynamic_sm *sm)
{
	double inputs[TD_MUXFLOW_INPUTS], speed;
	uint32_t sm_ppm;

	if (!gpu->online)
		return 1;
	sm_ppm = td_dynamic_sm_ppm(
		sm, (uint32_t)(fmin(fmax(gpu->profile->sm_activity, 0), 1) * PPM));
	td_muxflow_inputs(gpu->profile, job, sm_ppm, inputs);
	speed = td_predict(gpu->speeds, inputs);
	return speed > 0 ? fmin(speed, 1) : 0;
}

/* Returns whether a besteffort job runs or waits there that cannot leave it for another GPU. */
static bool is_held(const struct td_exchange_problem *p, uint32_t gpu)
{
	for (uint32_t j = 0; j < p->job_count; j++)
		if (p->jobs[j].gpu == gpu &&
			(!p->jobs[j].profile || !(p->jobs[j].goes & ~(1ull << gpu))))
			return true;
	return false;
}

/* Returns whether speeds on the GPU can be predicted. */
static bool is_known(const struct td_exchange_gpu *gpu)
{
	return !gpu->online || (gpu->profile && gpu->speeds);
}

/* Returns whether the job may be started again on a GPU that is not its own. */
static bool may_go(
	const struct td_exchange_problem *p, const struct td_exchange_job *job, uint32_t gpu)
{
	const struct td_exchange_gpu *to = &p->gpus[gpu];

	return job->goes >> gpu & 1 && to->accepts && job->bytes <= to->room_bytes &&
	       to->speeds == p->gpus[job->gpu].speeds;
}

/* Returns the weight of the job on the GPU; 0: it may not run there, or nothing is known of it. */
static double weigh(const struct td_exchange_problem *p, uint32_t gpu, uint32_t j)
{
	const struct td_exchange_job *job = &p->jobs[j];
	double speed;

	if (!job->profile || !(job->goes & ~(1ull << job->gpu)) || !is_known(&p->gpus[gpu]) ||
		is_held(p, gpu))
		return 0;
	if (gpu != job->gpu && !may_go(p, job, gpu))
		return 0;
	speed = td_exchange_speed(&p->gpus[gpu], job->profile, p->sm);
	if (gpu == job->gpu)
		return speed;
	return p->cost_ns < p->period_ns ? speed * (1 - (double)p->cost_ns / (double)p->period_ns)
					 : 0;
}

static void match(
	struct td_exchange *exchange, const struct td_exchange_problem *p, uint32_t *ret_of_gpu)
{
	const struct td_match_problem problem = {
		.weights = exchange->weights,
		.stride = p->job_count,
		.rows = p->gpu_count,
		.columns = p->job_count,
	};
	struct td_match_options options = td_match_default;
	struct td_match_result result;
	struct td_match *state;
	char *memory = exchange->memory + (LINE - (uintptr_t)exchange->memory % LINE) % LINE;
	int r;

	options.tolerance = TOLERANCE;
	r = td_match_solve(&problem, &options, memory, sizeof(exchange->memory) - LINE, ret_of_gpu,
		&result, &state);
	assert(r >= 0);
	if (r < 0)
		for (uint32_t gpu = 0; gpu < p->gpu_count; gpu++)
			ret_of_gpu[gpu] = TD_MATCH_NONE;
}

/*
 * Returns whether a besteffort job is on the GPU that is not among those that move. One that waits
 * there gets the GPU as soon as it is free.
 */
static bool stays_there(const struct td_exchange_problem *p, uint32_t gpu,
	const struct td_exchange_move *moves, uint32_t count)
{
	for (uint32_t j = 0; j < p->job_count; j++) {
		bool moves_away = false;

		for (uint32_t m = 0; m < count; m++)
			moves_away |= moves[m].job == j;
		if (p->jobs[j].gpu == gpu && !moves_away)
			return true;
	}
	return false;
}

/* Drops moves to GPUs that will not be free. A move that is dropped may keep another GPU busy. */
static uint32_t drop_vain(
	const struct td_exchange_problem *p, struct td_exchange_move *moves, uint32_t count)
{
	uint32_t m = 0;

	while (m < count) {
		if (!stays_there(p, moves[m].gpu, moves, count)) {
			m++;
			continue;
		}
		moves[m] = moves[--count];
		m = 0;
	}
	return count;
}

static uint32_t list_moves(
	const struct td_exchange_problem *p, const uint32_t *of_gpu, struct td_exchange_move *ret)
{
	uint32_t count = 0;

	for (uint32_t gpu = 0; gpu < p->gpu_count; gpu++) {
		const struct td_exchange_job *job;

		if (of_gpu[gpu] == TD_MATCH_NONE || p->jobs[of_gpu[gpu]].gpu == gpu)
			continue;
		job = &p->jobs[of_gpu[gpu]];
		ret[count++] = (struct td_exchange_move){
			.job = of_gpu[gpu],
			.gpu = gpu,
			.to_ppm = (uint32_t)(td_exchange_speed(&p->gpus[gpu], job->profile, p->sm) *
					     PPM),
			.from_ppm = job->runs && is_known(&p->gpus[job->gpu])
					    ? (uint32_t)(td_exchange_speed(&p->gpus[job->gpu],
								 job->profile, p->sm) *
							 PPM)
					    : 0,
		};
	}
	return drop_vain(p, ret, count);
}

/* Returns what the moves gain, in speeds alone, with their costs taken off. */
static double gain_of(const struct td_exchange *exchange, const struct td_exchange_problem *p,
	const struct td_exchange_move *moves, uint32_t count)
{
	double gain = 0;

	for (uint32_t m = 0; m < count; m++)
		gain += exchange->weights[moves[m].gpu * p->job_count + moves[m].job] -
			moves[m].from_ppm / PPM;
	return gain;
}

uint32_t td_exchange_solve(struct td_exchange *exchange, const struct td_exchange_problem *p,
	struct td_exchange_move *ret_moves)
{
	uint32_t of_gpu[TD_GPU_MAX], count;

	if (!p->job_count || p->gpu_count < 2)
		return 0;
	for (uint32_t gpu = 0; gpu < p->gpu_count; gpu++)
		for (uint32_t j = 0; j < p->job_count; j++)
			exchange->weights[gpu * p->job_count + j] = (float)weigh(p, gpu, j);
	match(exchange, p, of_gpu);
	count = list_moves(p, of_gpu, ret_moves);
	return gain_of(exchange, p, ret_moves, count) >= TD_EXCHANGE_GAIN ? count : 0;
}

bool td_exchange_is_due(
	struct td_exchange *exchange, uint64_t period_ns, bool wanted, uint64_t now_ns)
{
	bool is_due = exchange->due_ns && now_ns >= exchange->due_ns;

	if (!wanted || !period_ns) {
		exchange->due_ns = 0;
		return false;
	}
	/* A shorter period by hand counts at once. */
	if (!exchange->due_ns || is_due || exchange->due_ns - now_ns > period_ns)
		exchange->due_ns = now_ns + period_ns;
	return is_due;
}
