/* Moves guests where that pays; see tandem_cluster.h. */
#include <math.h>

#include "policy/cluster/tandem_places.h"

#define NONE       UINT32_MAX
#define MOVES_MAX  32u   /* maximum number of moves per step */
#define FAST       0.999 /* a guest at least this fast stays where it is */
#define LOOKS_MIN  256u
#define UNPAID_MAX 8u /* maximum number of doublings of the wait: from 10 min to 43 h */

/*
 * Returns the job's speed, which is that on the slowest of its GPUs. *ret_relief is the gain of the
 * others, per GPU, if it left all of them.
 */
static double speed_now(const struct td_tandem_cluster *c, uint32_t id, double *ret_relief)
{
	const struct td_tandem_job *job = &c->jobs[id];
	double speed = 1;

	*ret_relief = 0;
	for (uint32_t p = job->place; p != NONE; p = c->places[p].next) {
		struct td_tandem_company here =
			td_tandem_company(c, c->places[p].gpu, id, TD_BY_MEAN);

		speed = fmin(speed, td_tandem_speed(c, &here, job->kind, NONE, NONE));
		for (uint32_t k = 0; k < here.count; k++)
			*ret_relief +=
				(td_tandem_speed(c, &here, here.kinds[k], k, NONE) -
					td_tandem_speed(c, &here, here.kinds[k], k, job->kind)) /
				job->gpus;
	}
	return speed;
}

static struct td_tandem_stay note_stay(
	const struct td_tandem_cluster *c, uint32_t gpu, double speed)
{
	double room = td_tandem_mean_room(c, gpu);
	bool served = c->gpus.holder[gpu] == TD_CLUSTER_SERVICE && room > 0;

	return (struct td_tandem_stay){
		gpu, room, served ? speed / room : 0, td_tandem_room_sum(c, gpu)};
}

/* Returns by how much the mean room at a GPU since the move exceeds what was expected. */
static double excess_of(
	const struct td_tandem_cluster *c, const struct td_tandem_stay *stay, double passed)
{
	return stay->ratio * ((td_tandem_room_sum(c, stay->gpu) - stay->sum) / passed - stay->room);
}

/*
 * Tells whether the last move has gained what it cost. For a gang only the promised gain is used.
 */
static bool has_paid(const struct td_tandem_cluster *c, const struct td_tandem_job *job)
{
	double passed = (double)(c->now_ns - job->since_ns), gain = job->promised;

	if (!job->moved)
		return true;
	if (job->gpus == 1 && passed > 0)
		gain += fmin(0, excess_of(c, &job->here, passed)) -
			fmax(0, excess_of(c, &job->left, passed));
	return passed * gain >= (double)c->params.move_ns;
}

/* Tells whether the last move is too long ago to count. */
static bool is_forgiven(const struct td_tandem_cluster *c, const struct td_tandem_job *job)
{
	return c->now_ns - job->since_ns >= c->params.window_ns << job->unpaid;
}

static bool try_move(struct td_tandem_cluster *c, uint32_t id, uint64_t now_ns)
{
	struct td_tandem_job *job = &c->jobs[id];
	double relief, speed, own = 1, gain = 0;
	bool paid;

	if (job->stays || now_ns - job->since_ns < c->params.settle_ns ||
		now_ns - job->looked_ns < c->params.settle_ns)
		return false;
	speed = speed_now(c, id, &relief);
	paid = has_paid(c, job);
	if (speed > FAST || !(paid || is_forgiven(c, job)))
		return false;
	job->looked_ns = now_ns;
	if (td_tandem_choose(c, id, true, TD_BY_MEAN, speed - relief) < job->gpus)
		return false;
	for (uint32_t k = 0; k < job->gpus; k++) {
		own = fmin(own, c->choices[k].own);
		gain += (c->choices[k].score - c->choices[k].own) / job->gpus;
	}
	gain += own - speed + relief;
	if (gain < c->params.move_gain_min ||
		gain * (double)c->params.window_ns < (double)c->params.move_ns)
		return false;
	job->left = note_stay(c, c->places[job->place].gpu, speed);
	td_tandem_vacate(c, id);
	td_tandem_settle(c, id, now_ns);
	job->here = note_stay(c, c->places[job->place].gpu, own);
	job->moved = true;
	if (paid)
		job->unpaid -= job->unpaid > 0;
	else
		job->unpaid += job->unpaid < UNPAID_MAX;
	job->promised = gain;
	return true;
}

/*
 * Considers some guests in turn, so many that each has its turn once in settle_ns. So the cost of a
 * step does not grow with the cluster.
 */
void td_tandem_move(struct td_tandem_cluster *c, uint64_t now_ns)
{
	uint64_t passed = now_ns - c->moved_ns;
	uint32_t moves = 0, looks;

	if (passed < c->params.move_ns / 2 || !c->running_count)
		return;
	c->moved_ns = now_ns;
	looks = passed < c->params.settle_ns
			? (uint32_t)((double)c->running_count * (double)passed /
				     (double)c->params.settle_ns)
			: c->running_count;
	if (looks < LOOKS_MIN)
		looks = c->running_count < LOOKS_MIN ? c->running_count : LOOKS_MIN;
	for (; looks && moves < MOVES_MAX; looks--) {
		c->cursor = (c->cursor + 1) % c->running_count;
		if (!try_move(c, c->running[c->cursor], now_ns))
			continue;
		td_tandem_act(c, TD_TANDEM_MOVE, c->running[c->cursor]);
		moves++;
	}
}
