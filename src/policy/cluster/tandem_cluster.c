/* tandem's scheduler of a cluster; see tandem_cluster.h. */
#include "policy/cluster/tandem_cluster.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "policy/cluster/tandem_places.h"

#define NONE    UINT32_MAX
#define HOUR_NS 3600000000000ull

const struct td_tandem_cluster_params td_tandem_cluster_default = {
	.las = {.quantum_ns = 600000000000ull, .factor = 2, .age = 40, .age_max_ns = 24 * HOUR_NS},
	.preempts = true,
	.round_ns = 60000000000ull,
	.run_ns = 120000000000ull,
	.handicap = 3,
	.gain_min = 0,
	.share_min = 0.15,
	.held_min = 0.1,
	.move_gain_min = 0.15,
	.together = 3,
	.settle_ns = 300000000000ull,
	.patience_ns = 1800000000000ull,
	.move_ns = 60000000000ull,
	.window_ns = 600000000000ull,
};

struct td_tandem_cluster_params td_tandem_cluster_params_of(uint64_t move_ns)
{
	struct td_tandem_cluster_params params = td_tandem_cluster_default;

	params.move_ns = params.round_ns = move_ns;
	params.settle_ns = 5 * move_ns;
	params.run_ns = 2 * move_ns;
	params.las.age_max_ns = 1440 * move_ns;
	params.window_ns = params.las.quantum_ns = 10 * move_ns;
	return params;
}

static size_t aligned(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

/* The maximum number of jobs on one GPU: its guests and a holder. */
#define PLACES (TD_GUESTS + 1u)

size_t td_tandem_cluster_bytes(uint32_t nodes, uint32_t gpus, uint32_t jobs_max, uint32_t kinds)
{
	return aligned(td_inventory_bytes(nodes, gpus)) + aligned(td_las_bytes(jobs_max)) +
	       aligned(jobs_max * sizeof(struct td_tandem_job)) +
	       aligned((size_t)gpus * PLACES * sizeof(struct td_antman_place)) +
	       aligned((size_t)gpus * TD_GUESTS * sizeof(uint32_t)) +
	       aligned(gpus * sizeof(uint64_t)) + 2 * aligned(gpus * sizeof(uint32_t)) +
	       aligned(gpus * sizeof(struct td_tandem_room)) +
	       aligned(gpus * sizeof(struct td_tandem_choice)) +
	       aligned(TD_TANDEM_ACTIONS * sizeof(struct td_tandem_action)) +
	       aligned(kinds * sizeof(double)) + 2 * aligned((size_t)kinds * kinds * sizeof(float));
}

static void *carve(char **at, size_t bytes)
{
	void *here = *at;

	*at += aligned(bytes);
	memset(here, 0, bytes);
	return here;
}

int td_tandem_cluster_init(struct td_tandem_cluster *c, void *memory, size_t bytes,
	const struct td_tandem_cluster_params *params, const uint32_t *node_gpus, uint32_t nodes,
	uint64_t gpu_bytes, const uint32_t *quotas, uint32_t tenants, uint32_t jobs_max,
	const double *demands, uint32_t kinds)
{
	char *at = memory;
	uint32_t gpus = 0;
	int r;

	for (uint32_t n = 0; n < nodes; n++)
		gpus += node_gpus[n];
	if (!kinds || params->together > TD_GUESTS || !tenants || tenants > TD_TENANTS_MAX)
		return -EINVAL;
	if (bytes < td_tandem_cluster_bytes(nodes, gpus, jobs_max, kinds))
		return -ENOMEM;
	*c = (struct td_tandem_cluster){.params = *params,
		.kinds = kinds,
		.jobs_max = jobs_max,
		.gpu_bytes = gpu_bytes,
		.tenant_count = tenants,
		.unheld = gpus,
		.to_hold = gpus,
		.arrived = NONE};
	r = td_inventory_init(&c->gpus, at, node_gpus, nodes, 0);
	if (r)
		return r;
	at += aligned(td_inventory_bytes(nodes, gpus));
	td_las_init(&c->las, at, &params->las, tenants + 1, jobs_max);
	at += aligned(td_las_bytes(jobs_max));
	memcpy(c->quota, quotas, tenants * sizeof(*quotas));
	c->jobs = carve(&at, jobs_max * sizeof(*c->jobs));
	c->places = carve(&at, (size_t)gpus * PLACES * sizeof(*c->places));
	c->running = carve(&at, (size_t)gpus * TD_GUESTS * sizeof(*c->running));
	c->service_bytes = carve(&at, gpus * sizeof(*c->service_bytes));
	c->service_kind = carve(&at, gpus * sizeof(*c->service_kind));
	c->marks = carve(&at, gpus * sizeof(*c->marks));
	c->actions = carve(&at, TD_TANDEM_ACTIONS * sizeof(*c->actions));
	c->rooms = carve(&at, gpus * sizeof(*c->rooms));
	c->choices = carve(&at, gpus * sizeof(*c->choices));
	c->demands = carve(&at, kinds * sizeof(*c->demands));
	c->beside = carve(&at, (size_t)kinds * kinds * sizeof(*c->beside));
	c->guarded = carve(&at, (size_t)kinds * kinds * sizeof(*c->guarded));
	for (uint32_t k = 0; k < kinds; k++)
		c->demands[k] = demands ? demands[k] : 1;
	for (uint32_t g = 0; g < gpus; g++)
		c->rooms[g] = (struct td_tandem_room){1, 1, 0, TD_TANDEM_NEVER};
	for (uint32_t p = 0; p < gpus * PLACES; p++)
		c->places[p].next = p + 1 < gpus * PLACES ? p + 1 : NONE;
	return 0;
}

uint32_t td_tandem_cluster_gpus(const struct td_tandem_cluster *c, uint32_t id, uint32_t *ret_gpus)
{
	uint32_t n = 0;

	if (id >= c->jobs_max || !c->jobs[id].gpus || !c->las.jobs[id].runs)
		return 0;
	for (uint32_t p = c->jobs[id].place; p != NONE; p = c->places[p].next)
		ret_gpus[n++] = c->places[p].gpu;
	return n;
}

/* --- jobs --- */

void td_tandem_cluster_serve(
	struct td_tandem_cluster *c, uint32_t gpu, uint32_t kind, uint64_t bytes)
{
	td_inventory_hold(&c->gpus, gpu, TD_CLUSTER_SERVICE);
	c->unheld--;
	c->to_hold--;
	c->service_kind[gpu] = kind;
	c->service_bytes[gpu] = bytes;
	td_tandem_note_load(c, gpu);
}

void td_tandem_cluster_room(struct td_tandem_cluster *c, uint32_t gpu, double room, uint64_t now_ns)
{
	struct td_tandem_room *at = &c->rooms[gpu];

	room = fmin(fmax(room, 0), 1);
	c->freed += room > at->now;
	c->now_ns = now_ns;
	at->sum = td_tandem_room_sum(c, gpu);
	at->mean = at->since_ns == TD_TANDEM_NEVER ? room : td_tandem_mean_room(c, gpu);
	at->now = room;
	at->since_ns = now_ns;
	td_tandem_note_load(c, gpu);
}

/*
 * Adds `more` to the GPUs that a tenant's guaranteed jobs ask for, and updates the sum over all
 * tenants, where each counts up to its quota.
 */
static void ask(struct td_tandem_cluster *c, uint32_t tenant, uint32_t more)
{
	uint32_t quota = c->quota[tenant], before = c->asked[tenant], now = before + more;

	c->asked[tenant] = now;
	c->asked_in_all += (now < quota ? now : quota) - (before < quota ? before : quota);
}

int td_tandem_cluster_submit(struct td_tandem_cluster *c, uint32_t id,
	const struct td_tandem_request *request, uint64_t now_ns)
{
	uint32_t queue = request->guaranteed ? request->tenant : c->tenant_count;

	if (id >= c->jobs_max || c->jobs[id].gpus || request->kind >= c->kinds || !request->gpus ||
		request->gpus > TD_GANG_MAX || request->gpus > c->gpus.gpu_count ||
		(request->guaranteed && request->tenant >= c->tenant_count))
		return -EINVAL;
	if (request->guaranteed && request->gpus > c->quota[request->tenant])
		return -EDQUOT;
	c->jobs[id] = (struct td_tandem_job){.kind = request->kind,
		.gpus = request->gpus,
		.tenant = request->tenant,
		.place = NONE,
		.guest = !request->guaranteed,
		.same_node = request->same_node && request->gpus > 1,
		.bytes = request->bytes,
		.pool = request->pool < TD_POOLS ? request->pool : TD_ANYWHERE,
		.stays = request->stays,
		.submit_ns = now_ns,
		.looked_ns = now_ns};
	td_las_submit(&c->las, id, queue, request->gpus, now_ns);
	if (request->guaranteed)
		ask(c, request->tenant, request->gpus);
	else if (c->arrived == NONE)
		c->arrived = id;
	return 0;
}

void td_tandem_place(struct td_tandem_cluster *c, uint32_t id, uint64_t now_ns)
{
	struct td_tandem_job *job = &c->jobs[id];

	td_tandem_settle(c, id, now_ns);
	td_las_start(&c->las, id, now_ns);
	if (job->guest) {
		job->index = c->running_count;
		c->running[c->running_count++] = id;
		return;
	}
	c->used[job->tenant] += job->gpus;
	c->unheld -= job->gpus;
}

void td_tandem_stop(struct td_tandem_cluster *c, uint32_t id)
{
	struct td_tandem_job *job = &c->jobs[id];
	uint32_t last;

	td_tandem_vacate(c, id);
	if (!job->guest) {
		c->used[job->tenant] -= job->gpus;
		c->unheld += job->gpus;
		return;
	}
	last = c->running[--c->running_count];
	c->running[job->index] = last;
	c->jobs[last].index = job->index;
}

void td_tandem_cluster_finish(struct td_tandem_cluster *c, uint32_t id, uint64_t now_ns)
{
	if (id >= c->jobs_max || !c->jobs[id].gpus)
		return;
	c->now_ns = now_ns;
	if (c->las.jobs[id].runs)
		td_tandem_stop(c, id);
	if (c->arrived == id)
		c->arrived = c->las.jobs[id].next;
	td_las_remove(&c->las, id);
	if (!c->jobs[id].guest)
		ask(c, c->jobs[id].tenant, -c->jobs[id].gpus);
	c->jobs[id].gpus = 0;
}

void td_tandem_cluster_observe(
	struct td_tandem_cluster *c, uint32_t kind, uint32_t other, bool held, double speed)
{
	float *seen;

	if (kind >= c->kinds || other >= c->kinds ||
		!(speed >= 0 && speed <= (held ? TD_TANDEM_OVER : 1)))
		return;
	seen = (held ? c->guarded : c->beside) + (size_t)kind * c->kinds + other;
	speed = fmax(speed, 0.001);
	*seen = (float)(*seen > 0 ? (*seen + speed) / 2 : speed);
}

/* --- decisions --- */

void td_tandem_act(struct td_tandem_cluster *c, enum td_tandem_verb verb, uint32_t job)
{
	c->actions[c->action_count++] = (struct td_tandem_action){verb, job};
}

/* Moves decided actions to ret_actions, behind the n that it holds. Returns their new number. */
static uint32_t hand_over(struct td_tandem_cluster *c, struct td_tandem_action *ret_actions,
	uint32_t n, uint32_t room)
{
	while (n < room && c->action_next < c->action_count)
		ret_actions[n++] = c->actions[c->action_next++];
	if (c->action_next == c->action_count)
		c->action_next = c->action_count = 0;
	return n;
}

uint32_t td_tandem_cluster_step(struct td_tandem_cluster *c, uint64_t now_ns,
	struct td_tandem_action *ret_actions, uint32_t room)
{
	uint32_t n = hand_over(c, ret_actions, 0, room);

	c->now_ns = now_ns;
	if (c->action_count)
		return n;
	td_las_advance(&c->las, now_ns);
	td_tandem_start(c, now_ns);
	td_tandem_move(c, now_ns);
	return hand_over(c, ret_actions, n, room);
}
