/* DCUDA, MuxFlow and Mudi behind the brain's table (policies.h, guest_cluster.h). */
#include <string.h>

#include "base/time.h"
#include "cluster/brain/policies.h"

#define MATCH_NS (15 * 60 * TD_NS_PER_S) /* MuxFlow: "every 15 minutes" */
#define MOVE_NS  (60 * TD_NS_PER_S)
#define ROOM     64u

static size_t aligned(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

#define OWN_BYTES aligned(sizeof(struct td_guest_cluster))

static size_t bytes_for(const struct td_brain_shape *s, enum td_guest_rule rule)
{
	return OWN_BYTES + td_guest_cluster_bytes(s->nodes_max, s->nodes_max * s->node_gpus_max,
				   s->jobs_max, s->kinds_max, rule);
}

static int init_as(void *memory, const struct td_brain_shape *s, enum td_guest_rule rule)
{
	const struct td_guest_params params = {.rule = rule,
		.match_ns = s->match_ns ? s->match_ns : MATCH_NS,
		.move_ns = s->restart_ns ? s->restart_ns : MOVE_NS,
		.seed = s->seed ? s->seed : 1};
	uint32_t gpus = s->nodes_max * s->node_gpus_max, node_gpus[TD_BRAIN_NODES_MAX];
	int r = td_brain_shape_nodes(s, node_gpus);

	if (!r)
		r = td_guest_cluster_init(memory, (char *)memory + OWN_BYTES,
			bytes_for(s, rule) - OWN_BYTES, &params, node_gpus, s->nodes_max,
			s->gpu_bytes, s->quotas, s->tenants, s->jobs_max, s->kinds_max);
	for (uint32_t g = 0; !r && g < gpus; g++)
		r = td_guest_cluster_gpu_down(memory, g);
	return r;
}

static struct td_guest_request request_of(const struct td_brain_ask *ask)
{
	return (struct td_guest_request){.tenant = ask->tenant,
		.gpus = ask->gpus,
		.kind = ask->kind,
		.holds = ask->guaranteed,
		.same_node = ask->same_node,
		.bytes = ask->bytes,
		.pool = ask->pool,
		.stays = ask->stays};
}

static int submit(void *memory, uint32_t job, const struct td_brain_ask *ask, uint64_t now_ns)
{
	const struct td_guest_request request = request_of(ask);

	(void)now_ns;
	return td_guest_cluster_submit(memory, job, &request);
}

static int adopt(void *memory, uint32_t job, const struct td_brain_ask *ask, const uint32_t *gpus,
	bool guest, uint64_t attained_ns, uint64_t now_ns)
{
	const struct td_guest_request request = request_of(ask);

	(void)guest;
	(void)attained_ns;
	(void)now_ns;
	return td_guest_cluster_adopt(memory, job, &request, gpus);
}

static void finish(void *memory, uint32_t job, uint64_t now_ns)
{
	(void)now_ns;
	td_guest_cluster_finish(memory, job);
}

static void requeue(void *memory, uint32_t job, uint64_t now_ns)
{
	(void)now_ns;
	td_guest_cluster_requeue(memory, job);
}

static int gpu(void *memory, uint32_t at, bool up)
{
	return up ? td_guest_cluster_gpu_up(memory, at) : td_guest_cluster_gpu_down(memory, at);
}

static void bar(void *memory, uint32_t at, enum td_inventory_bar how)
{
	td_guest_cluster_bar(memory, at, how);
}

static void pools(void *memory, uint32_t node, uint32_t set)
{
	struct td_guest_cluster *c = memory;

	td_inventory_set_pools(&c->gpus, node, set);
	td_guest_cluster_look_again(c);
}

/* These go by what the jobs were told to need, not by what a monitor shows of the GPU. */
static void load(void *memory, uint32_t at, uint32_t load_ppm)
{
	(void)memory;
	(void)at;
	(void)load_ppm;
}

static void demand(void *memory, uint32_t kind, double part)
{
	td_guest_cluster_demand(memory, kind, part);
}

static void speed(void *memory, uint32_t kind, uint32_t other, bool held, double seen)
{
	(void)memory;
	(void)kind;
	(void)other;
	(void)held;
	(void)seen;
}

static enum td_brain_verb verb_of(
	const struct td_guest_cluster *c, const struct td_guest_started *started)
{
	if (started->moves)
		return TD_BRAIN_MOVE;
	return c->jobs[started->job].is.holds ? TD_BRAIN_START : TD_BRAIN_START_GUEST;
}

static uint32_t step(void *memory, uint64_t now_ns, struct td_brain_action *ret, uint32_t room)
{
	const struct td_guest_cluster *c = memory;
	struct td_guest_started jobs[ROOM];
	uint32_t count = td_guest_cluster_step(memory, now_ns, jobs, room < ROOM ? room : ROOM);

	for (uint32_t k = 0; k < count; k++)
		ret[k] = (struct td_brain_action){verb_of(c, &jobs[k]), jobs[k].job};
	return count;
}

static uint32_t gpus_of(const void *memory, uint32_t job, uint32_t *ret_gpus)
{
	return td_guest_cluster_gpus(memory, job, ret_gpus);
}

static uint32_t quota_left(const void *memory, uint32_t tenant)
{
	const struct td_guest_cluster *c = memory;

	return c->quota[tenant] > c->used[tenant] ? c->quota[tenant] - c->used[tenant] : 0;
}

static uint64_t attained_ns(const void *memory, uint32_t job)
{
	(void)memory;
	(void)job;
	return 0;
}

static void gpu_kind(void *memory, uint32_t at, uint32_t kind)
{
	td_guest_cluster_gpu_kind(memory, at, kind);
}

static void know(void *memory, uint32_t of_gpu, uint32_t kind, const struct td_guest_known *known)
{
	td_guest_cluster_know(memory, of_gpu, kind, known);
}

static enum td_guest_wait waits(const void *memory, uint32_t job)
{
	return td_guest_cluster_waits(memory, job);
}

#define POLICY(name_, rule_, by_program_)                                                          \
	static size_t bytes_##name_(const struct td_brain_shape *shape)                            \
	{                                                                                          \
		return bytes_for(shape, rule_);                                                    \
	}                                                                                          \
	static int init_##name_(void *memory, const struct td_brain_shape *shape)                  \
	{                                                                                          \
		return init_as(memory, shape, rule_);                                              \
	}                                                                                          \
	const struct td_brain_policy td_brain_##name_ = {                                          \
		.name = #name_,                                                                    \
		.by_program = by_program_,                                                         \
		.bytes = bytes_##name_,                                                            \
		.init = init_##name_,                                                              \
		.submit = submit,                                                                  \
		.adopt = adopt,                                                                    \
		.finish = finish,                                                                  \
		.requeue = requeue,                                                                \
		.gpu = gpu,                                                                        \
		.bar = bar,                                                                        \
		.pools = pools,                                                                    \
		.load = load,                                                                      \
		.demand = demand,                                                                  \
		.speed = speed,                                                                    \
		.step = step,                                                                      \
		.gpus = gpus_of,                                                                   \
		.quota_left = quota_left,                                                          \
		.attained_ns = attained_ns,                                                        \
		.gpu_kind = gpu_kind,                                                              \
		.know = know,                                                                      \
		.waits = waits,                                                                    \
	}

POLICY(dcuda, TD_GUEST_DCUDA, false);
POLICY(muxflow, TD_GUEST_MUXFLOW, true);
POLICY(mudi, TD_GUEST_MUDI, true);
