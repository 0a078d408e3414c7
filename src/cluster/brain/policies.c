/* The cluster policies behind the brain's table; see policies.h. */
#include "cluster/brain/policies.h"

#include <errno.h>
#include <string.h>

#include "policy/cluster/tandem_cluster.h"

static size_t aligned(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

int td_brain_shape_nodes(const struct td_brain_shape *shape, uint32_t *ret_node_gpus)
{
	if (!shape->nodes_max || shape->nodes_max > TD_BRAIN_NODES_MAX || !shape->node_gpus_max ||
		shape->node_gpus_max > TD_NODE_GPUS_MAX)
		return -EINVAL;
	for (uint32_t n = 0; n < shape->nodes_max; n++)
		ret_node_gpus[n] = shape->node_gpus_max;
	return 0;
}

/* --- tandem --- */

#define TANDEM_BYTES aligned(sizeof(struct td_tandem_cluster))

static size_t tandem_bytes(const struct td_brain_shape *s)
{
	return TANDEM_BYTES + td_tandem_cluster_bytes(s->nodes_max, s->nodes_max * s->node_gpus_max,
				      s->jobs_max, s->kinds_max);
}

static int tandem_gpu(void *memory, uint32_t gpu, bool up)
{
	return up ? td_tandem_cluster_gpu_up(memory, gpu) : td_tandem_cluster_gpu_down(memory, gpu);
}

static void tandem_bar(void *memory, uint32_t gpu, enum td_inventory_bar bar)
{
	td_tandem_cluster_bar(memory, gpu, bar);
}

static void tandem_pools(void *memory, uint32_t node, uint32_t pools)
{
	struct td_tandem_cluster *c = memory;

	td_inventory_set_pools(&c->gpus, node, pools);
	c->freed++; /* jobs that found no place may find one */
}

static int tandem_init(void *memory, const struct td_brain_shape *s)
{
	uint32_t gpus = s->nodes_max * s->node_gpus_max, node_gpus[TD_BRAIN_NODES_MAX];
	struct td_tandem_cluster_params params = td_tandem_cluster_default;
	struct td_tandem_cluster *cluster = memory;
	int r;

	if (s->restart_ns)
		params = td_tandem_cluster_params_of(s->restart_ns);
	r = td_brain_shape_nodes(s, node_gpus);
	if (!r)
		r = td_tandem_cluster_init(cluster, (char *)memory + TANDEM_BYTES,
			tandem_bytes(s) - TANDEM_BYTES, &params, node_gpus, s->nodes_max,
			s->gpu_bytes, s->quotas, s->tenants, s->jobs_max, NULL, s->kinds_max);
	cluster->is_hard = s->is_hard;
	for (uint32_t g = 0; !r && g < gpus; g++)
		r = tandem_gpu(memory, g, false);
	return r;
}

static struct td_tandem_request tandem_request(const struct td_brain_ask *ask)
{
	return (struct td_tandem_request){.tenant = ask->tenant,
		.gpus = ask->gpus,
		.kind = ask->kind,
		.guaranteed = ask->guaranteed,
		.same_node = ask->same_node,
		.bytes = ask->bytes,
		.pool = ask->pool,
		.stays = ask->stays};
}

static int tandem_submit(
	void *memory, uint32_t job, const struct td_brain_ask *ask, uint64_t now_ns)
{
	const struct td_tandem_request request = tandem_request(ask);

	return td_tandem_cluster_submit(memory, job, &request, now_ns);
}

static int tandem_adopt(void *memory, uint32_t job, const struct td_brain_ask *ask,
	const uint32_t *gpus, bool guest, uint64_t attained_ns, uint64_t now_ns)
{
	const struct td_tandem_request request = tandem_request(ask);

	(void)guest;
	return td_tandem_cluster_adopt(memory, job, &request, gpus, attained_ns, now_ns);
}

static void tandem_finish(void *memory, uint32_t job, uint64_t now_ns)
{
	td_tandem_cluster_finish(memory, job, now_ns);
}

static void tandem_requeue(void *memory, uint32_t job, uint64_t now_ns)
{
	td_tandem_cluster_requeue(memory, job, now_ns);
}

/* It judges GPUs by the jobs that are there, not by what a monitor shows. */
static void tandem_load(void *memory, uint32_t gpu, uint32_t load_ppm)
{
	(void)memory;
	(void)gpu;
	(void)load_ppm;
}

static void tandem_demand(void *memory, uint32_t kind, double demand)
{
	td_tandem_cluster_demand(memory, kind, demand);
}

static void tandem_speed(void *memory, uint32_t kind, uint32_t other, bool held, double speed)
{
	td_tandem_cluster_observe(memory, kind, other, held, speed);
}

static enum td_brain_verb tandem_verb(enum td_tandem_verb verb)
{
	switch (verb) {
	case TD_TANDEM_START: return TD_BRAIN_START;
	case TD_TANDEM_START_GUEST: return TD_BRAIN_START_GUEST;
	case TD_TANDEM_MOVE: return TD_BRAIN_MOVE;
	case TD_TANDEM_PREEMPT:
	case TD_TANDEM_VERB_N: break;
	}
	return TD_BRAIN_PREEMPT;
}

#define ROOM 64u

static uint32_t tandem_step(
	void *memory, uint64_t now_ns, struct td_brain_action *ret, uint32_t room)
{
	struct td_tandem_action actions[ROOM];
	uint32_t count = td_tandem_cluster_step(memory, now_ns, actions, room < ROOM ? room : ROOM);

	for (uint32_t a = 0; a < count; a++)
		ret[a] = (struct td_brain_action){tandem_verb(actions[a].verb), actions[a].job};
	return count;
}

static uint32_t tandem_gpus(const void *memory, uint32_t job, uint32_t *ret_gpus)
{
	return td_tandem_cluster_gpus(memory, job, ret_gpus);
}

static uint32_t tandem_quota_left(const void *memory, uint32_t tenant)
{
	const struct td_tandem_cluster *c = memory;

	return c->quota[tenant] > c->used[tenant] ? c->quota[tenant] - c->used[tenant] : 0;
}

static uint64_t tandem_attained_ns(const void *memory, uint32_t job)
{
	return ((const struct td_tandem_cluster *)memory)->las.jobs[job].attained_ns;
}

const struct td_brain_policy td_brain_tandem = {
	.name = "tandem",
	.bytes = tandem_bytes,
	.init = tandem_init,
	.submit = tandem_submit,
	.adopt = tandem_adopt,
	.finish = tandem_finish,
	.requeue = tandem_requeue,
	.gpu = tandem_gpu,
	.bar = tandem_bar,
	.pools = tandem_pools,
	.load = tandem_load,
	.demand = tandem_demand,
	.speed = tandem_speed,
	.step = tandem_step,
	.gpus = tandem_gpus,
	.quota_left = tandem_quota_left,
	.attained_ns = tandem_attained_ns,
};

/* --- AntMan --- */

#define ANTMAN_BYTES aligned(sizeof(struct td_antman_cluster))

static size_t antman_bytes(const struct td_brain_shape *s)
{
	return ANTMAN_BYTES +
	       td_antman_bytes(s->nodes_max, s->nodes_max * s->node_gpus_max, s->jobs_max);
}

static int antman_gpu(void *memory, uint32_t gpu, bool up)
{
	return up ? td_antman_gpu_up(memory, gpu) : td_antman_gpu_down(memory, gpu);
}

static void antman_bar(void *memory, uint32_t gpu, enum td_inventory_bar bar)
{
	struct td_antman_cluster *c = memory;

	td_inventory_bar(&c->gpus, gpu, bar);
}

static void antman_pools(void *memory, uint32_t node, uint32_t pools)
{
	struct td_antman_cluster *c = memory;

	td_inventory_set_pools(&c->gpus, node, pools);
}

static int antman_init(void *memory, const struct td_brain_shape *s)
{
	uint32_t gpus = s->nodes_max * s->node_gpus_max, node_gpus[TD_BRAIN_NODES_MAX];
	int r = td_brain_shape_nodes(s, node_gpus);

	if (!r)
		r = td_antman_init(memory, (char *)memory + ANTMAN_BYTES,
			antman_bytes(s) - ANTMAN_BYTES, &td_antman_default, node_gpus, s->nodes_max,
			s->quotas, s->tenants, s->jobs_max);
	for (uint32_t g = 0; !r && g < gpus; g++)
		r = antman_gpu(memory, g, false);
	return r;
}

static struct td_antman_request antman_request(const struct td_brain_ask *ask)
{
	return (struct td_antman_request){.tenant = ask->tenant,
		.gpus = ask->gpus,
		.kind = !ask->guaranteed ? TD_JOB_OPPORTUNISTIC
			: ask->automatic ? TD_JOB_AUTO
					 : TD_JOB_GUARANTEED,
		.same_node = ask->same_node,
		.pool = ask->pool};
}

static int antman_submit(
	void *memory, uint32_t job, const struct td_brain_ask *ask, uint64_t now_ns)
{
	const struct td_antman_request request = antman_request(ask);

	return td_antman_submit(memory, job, &request, now_ns);
}

static int antman_adopt(void *memory, uint32_t job, const struct td_brain_ask *ask,
	const uint32_t *gpus, bool guest, uint64_t attained_ns, uint64_t now_ns)
{
	const struct td_antman_request request = antman_request(ask);

	(void)attained_ns;
	return td_antman_adopt(memory, job, &request, gpus, guest, now_ns);
}

static void antman_finish(void *memory, uint32_t job, uint64_t now_ns)
{
	td_antman_finish(memory, job, now_ns);
}

/* The job comes again; AntMan has no other way back into the queue. */
static void antman_requeue(void *memory, uint32_t job, uint64_t now_ns)
{
	const struct td_antman_cluster *c = memory;
	const struct td_antman_job before = c->jobs[job];
	const struct td_antman_request request = {.tenant = before.tenant,
		.gpus = before.gpus,
		.kind = before.kind,
		.same_node = before.same_node,
		.pool = before.pool};

	td_antman_finish(memory, job, now_ns);
	(void)td_antman_submit(memory, job, &request, now_ns);
}

static void antman_load(void *memory, uint32_t gpu, uint32_t load_ppm)
{
	const struct td_antman_cluster *c = memory;

	if (gpu < c->gpus.gpu_count && c->gpus.holder[gpu] != TD_CLUSTER_ABSENT)
		td_antman_set_load(memory, gpu, load_ppm);
}

/* It goes by loads, not by what kinds of jobs do to each other. */
static void antman_demand(void *memory, uint32_t kind, double demand)
{
	(void)memory;
	(void)kind;
	(void)demand;
}

static void antman_speed(void *memory, uint32_t kind, uint32_t other, bool held, double speed)
{
	(void)memory;
	(void)kind;
	(void)other;
	(void)held;
	(void)speed;
}

static enum td_brain_verb antman_verb(enum td_antman_verb verb)
{
	switch (verb) {
	case TD_ANTMAN_START: return TD_BRAIN_START;
	case TD_ANTMAN_START_OPPORTUNISTIC: return TD_BRAIN_START_GUEST;
	case TD_ANTMAN_UPGRADE:
	case TD_ANTMAN_N: break;
	}
	return TD_BRAIN_UPGRADE;
}

static uint32_t antman_step(
	void *memory, uint64_t now_ns, struct td_brain_action *ret, uint32_t room)
{
	struct td_antman_action actions[ROOM];
	uint32_t count = td_antman_step(memory, now_ns, actions, room < ROOM ? room : ROOM);

	for (uint32_t a = 0; a < count; a++)
		ret[a] = (struct td_brain_action){antman_verb(actions[a].verb), actions[a].job};
	return count;
}

static uint32_t antman_gpus(const void *memory, uint32_t job, uint32_t *ret_gpus)
{
	return td_antman_gpus(memory, job, ret_gpus);
}

static uint32_t antman_quota_left(const void *memory, uint32_t tenant)
{
	const struct td_antman_tenant *t =
		&((const struct td_antman_cluster *)memory)->tenants[tenant];

	return t->quota > t->used ? t->quota - t->used : 0;
}

static uint64_t antman_attained_ns(const void *memory, uint32_t job)
{
	(void)memory;
	(void)job;
	return 0;
}

const struct td_brain_policy td_brain_antman = {
	.name = "antman",
	.bytes = antman_bytes,
	.init = antman_init,
	.submit = antman_submit,
	.adopt = antman_adopt,
	.finish = antman_finish,
	.requeue = antman_requeue,
	.gpu = antman_gpu,
	.bar = antman_bar,
	.pools = antman_pools,
	.load = antman_load,
	.demand = antman_demand,
	.speed = antman_speed,
	.step = antman_step,
	.gpus = antman_gpus,
	.quota_left = antman_quota_left,
	.attained_ns = antman_attained_ns,
};

/* --- the table --- */

const struct td_brain_policy *td_brain_policy_at(uint32_t number)
{
	static const struct td_brain_policy *const all[] = {&td_brain_tandem, &td_brain_antman,
		&td_brain_dcuda, &td_brain_muxflow, &td_brain_mudi};

	return number < sizeof(all) / sizeof(all[0]) ? all[number] : NULL;
}

const struct td_brain_policy *td_brain_policy_find(const char *name)
{
	const struct td_brain_policy *policy;
	uint32_t k = 0;

	while ((policy = td_brain_policy_at(k)) && strcmp(policy->name, name) != 0)
		k++;
	return policy;
}
