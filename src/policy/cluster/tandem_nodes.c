/*
 * Handles nodes that go down and come up, and jobs that ran before the scheduler; see
 * tandem_cluster.h.
 */
#include <errno.h>

#include "policy/cluster/tandem_places.h"

#define NONE UINT32_MAX

static void stop(struct td_tandem_cluster *c, uint32_t id, uint64_t now_ns)
{
	td_tandem_cluster_requeue(c, id, now_ns);
	td_tandem_act(c, TD_TANDEM_PREEMPT, id);
}

/* Returns the number of jobs on each GPU of a node, summed over its GPUs. */
static uint32_t places_on(const struct td_inventory *v, uint32_t node)
{
	uint32_t count = 0;

	for (uint32_t g = v->first_gpu[node]; g < v->first_gpu[node + 1]; g++)
		count += v->guest_count[g] + (v->holder[g] != TD_NO_JOB);
	return count;
}

int td_tandem_cluster_node_down(struct td_tandem_cluster *c, uint32_t node, uint64_t now_ns)
{
	struct td_inventory *v = &c->gpus;

	if (node >= v->node_count)
		return -EINVAL;
	if (c->action_count + places_on(v, node) > TD_TANDEM_ACTIONS)
		return -EAGAIN;
	for (uint32_t g = v->first_gpu[node]; g < v->first_gpu[node + 1]; g++) {
		uint32_t holder = v->holder[g];

		while (v->guest_count[g])
			stop(c, v->guest[(size_t)g * TD_GUESTS], now_ns);
		if (holder == TD_CLUSTER_SERVICE || holder == TD_CLUSTER_ABSENT)
			continue;
		if (holder != TD_NO_JOB)
			stop(c, holder, now_ns);
		(void)td_tandem_cluster_gpu_down(c, g);
	}
	return 0;
}

int td_tandem_cluster_node_up(struct td_tandem_cluster *c, uint32_t node)
{
	struct td_inventory *v = &c->gpus;

	if (node >= v->node_count)
		return -EINVAL;
	for (uint32_t g = v->first_gpu[node]; g < v->first_gpu[node + 1]; g++)
		(void)td_tandem_cluster_gpu_up(c, g);
	return 0;
}

int td_tandem_cluster_gpu_down(struct td_tandem_cluster *c, uint32_t gpu)
{
	struct td_inventory *v = &c->gpus;

	if (gpu >= v->gpu_count)
		return -EINVAL;
	if (v->holder[gpu] == TD_CLUSTER_SERVICE || v->holder[gpu] == TD_CLUSTER_ABSENT)
		return 0;
	if (v->holder[gpu] != TD_NO_JOB || v->guest_count[gpu])
		return -EBUSY;
	td_inventory_hold(v, gpu, TD_CLUSTER_ABSENT);
	td_inventory_set_load(v, gpu, TD_TANDEM_FULL_PPM);
	c->unheld--;
	c->to_hold--;
	return 0;
}

int td_tandem_cluster_gpu_up(struct td_tandem_cluster *c, uint32_t gpu)
{
	struct td_inventory *v = &c->gpus;

	if (gpu >= v->gpu_count)
		return -EINVAL;
	if (v->holder[gpu] != TD_CLUSTER_ABSENT)
		return 0;
	td_inventory_hold(v, gpu, TD_NO_JOB);
	td_tandem_note_load(c, gpu);
	c->unheld++;
	c->to_hold++;
	c->freed++;
	return 0;
}

void td_tandem_cluster_bar(struct td_tandem_cluster *c, uint32_t gpu, enum td_inventory_bar bar)
{
	if (gpu >= c->gpus.gpu_count)
		return;
	td_inventory_bar(&c->gpus, gpu, bar);
	c->freed++;
}

void td_tandem_cluster_requeue(struct td_tandem_cluster *c, uint32_t id, uint64_t now_ns)
{
	if (id >= c->jobs_max || !c->jobs[id].gpus || !c->las.jobs[id].runs)
		return;
	td_tandem_stop(c, id);
	td_las_stop(&c->las, id, now_ns);
}

void td_tandem_cluster_demand(struct td_tandem_cluster *c, uint32_t kind, double demand)
{
	if (kind < c->kinds && demand > 0)
		c->demands[kind] = demand;
}

/* Tells whether a job may run on these GPUs beside the jobs that are there. */
static bool may_have(struct td_tandem_cluster *c, uint32_t id, const uint32_t *gpus, uint32_t count)
{
	const struct td_inventory *v = &c->gpus;

	c->mark++;
	for (uint32_t k = 0; k < count; k++) {
		uint32_t g = gpus[k];

		if (g >= v->gpu_count || c->marks[g] == c->mark ||
			v->holder[g] == TD_CLUSTER_ABSENT)
			return false;
		if (c->jobs[id].guest ? v->guest_count[g] >= c->params.together
				      : v->holder[g] != TD_NO_JOB)
			return false;
		c->marks[g] = c->mark;
	}
	return true;
}

int td_tandem_cluster_adopt(struct td_tandem_cluster *c, uint32_t id,
	const struct td_tandem_request *request, const uint32_t *gpus, uint64_t attained_ns,
	uint64_t now_ns)
{
	int r = td_tandem_cluster_submit(c, id, request, now_ns);

	if (r)
		return r;
	if (!may_have(c, id, gpus, request->gpus)) {
		td_tandem_cluster_finish(c, id, now_ns);
		return -EBUSY;
	}
	for (uint32_t k = 0; k < request->gpus; k++)
		c->choices[k].gpu = gpus[k];
	if (c->arrived == id)
		c->arrived = td_las_next(&c->las, id);
	c->las.jobs[id].attained_ns = attained_ns;
	td_tandem_place(c, id, now_ns);
	td_las_advance(&c->las, now_ns);
	return 0;
}
