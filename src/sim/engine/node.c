/*
 * Simulates a node; see node.h. State changes at events only: the ends of blocks and of fillings,
 * and the policy's wake-up.
 */
#include "sim/engine/node.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define ROUNDS_MAX 2000000u
#define NS         1e9

struct node {
	const struct td_node_sim *sim;
	struct td_node_job *jobs;
	uint32_t count;
	struct td_client_view clients[TD_NODE_JOBS_MAX];
	struct td_grant grants[TD_NODE_JOBS_MAX];
	struct td_action actions[TD_ACTION_MAX];
	double host_left_ns[TD_NODE_JOBS_MAX], gpu_left_ns[TD_NODE_JOBS_MAX];
	uint64_t filled_ns[TD_NODE_JOBS_MAX]; /* when the filling of a job's memory ends */
	uint32_t last_filled; /* the job whose memory is on the device, if not all fits */
	uint64_t now_ns, wakeup_ns;
	uint32_t handovers;
	void *state;
};

static bool is_over(const struct node *node, uint32_t i)
{
	return node->host_left_ns[i] <= 0 && node->gpu_left_ns[i] <= 0;
}

static uint64_t demanded(const struct node *node)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < node->count; i++)
		sum += is_over(node, i) ? 0 : node->jobs[i].bytes;
	return sum;
}

static void ask_policy(struct node *node)
{
	struct td_gpu_view gpu = {
		.capacity_bytes = node->sim->capacity_bytes, .handover_ns = node->sim->handover_ns};
	struct td_view view = {.gpus = &gpu, .clients = node->clients, .gpu_count = 1};
	struct td_client_view kept[TD_NODE_JOBS_MAX];
	uint32_t index[TD_NODE_JOBS_MAX];
	struct td_plan plan = {.grants = node->grants,
		.actions = node->actions,
		.action_max = TD_ACTION_MAX,
		.next_wakeup_ns = TD_NEVER};
	struct td_grant grants[TD_NODE_JOBS_MAX] = {0};

	for (uint32_t i = 0; i < node->count; i++) {
		if (is_over(node, i))
			continue;
		index[view.client_count] = i;
		kept[view.client_count++] = node->clients[i];
	}
	view.clients = kept;
	plan.grants = grants;
	node->sim->policy->step(node->state, &node->sim->options, &view, node->now_ns, &plan);
	node->wakeup_ns = plan.next_wakeup_ns;
	for (uint32_t k = 0; k < view.client_count; k++)
		node->grants[index[k]] = grants[k];
}

static void enter(struct node *node, uint32_t i, enum td_phase phase)
{
	node->clients[i].phase = phase;
	node->clients[i].phase_since_ns = node->now_ns;
}

/*
 * Returns the filling time of a turn. Swapped memory is moved before the gate opens. Managed memory
 * comes while the job runs, as slowly as when it thrashes, until the job has lost handover_ns in
 * all. So ever shorter quanta turn into thrashing.
 */
static uint64_t filling_ns(const struct td_node_sim *sim)
{
	if (!sim->pages_itself)
		return sim->handover_ns;
	return (uint64_t)((double)sim->handover_ns / (1 - 1 / sim->thrash));
}

/*
 * Carries the plan out. Returns whether anything has changed; then the policy has to be asked
 * again.
 */
static bool carry_out(struct node *node)
{
	bool changed = false, fits = demanded(node) <= node->sim->capacity_bytes;

	for (uint32_t i = 0; i < node->count; i++) {
		struct td_client_view *client = &node->clients[i];
		bool open = node->grants[i].gate != TD_GATE_CLOSED;

		if (is_over(node, i) || open == (client->phase != TD_PHASE_CLOSED))
			continue;
		changed = true;
		if (!open) {
			enter(node, i, TD_PHASE_CLOSED);
		} else if (fits || !node->sim->options.enabled || node->last_filled == i) {
			enter(node, i, TD_PHASE_OPEN);
			node->last_filled = i;
		} else {
			enter(node, i, node->sim->pages_itself ? TD_PHASE_OPEN : TD_PHASE_FILLING);
			node->filled_ns[i] = node->now_ns + filling_ns(node->sim);
			node->handovers += node->last_filled != UINT32_MAX;
			if (node->last_filled == UINT32_MAX)
				node->filled_ns[i] = node->now_ns;
			node->last_filled = i;
		}
	}
	return changed;
}

/* Returns the GPU work that each running job does per second. */
static double rate_of(const struct node *node)
{
	uint32_t running = 0;
	uint64_t bytes = 0, alive = demanded(node);
	double rate = 1;

	for (uint32_t i = 0; i < node->count; i++) {
		if (is_over(node, i) || node->clients[i].phase != TD_PHASE_OPEN ||
			!node->clients[i].wants)
			continue;
		running++;
		bytes += node->jobs[i].bytes;
	}
	if (running > 1)
		rate = (bytes <= node->sim->capacity_bytes ? node->sim->overlap
							   : 1 / node->sim->thrash) /
		       running;
	if (alive <= node->sim->capacity_bytes)
		rate /= node->sim->managed_cost;
	return rate;
}

static double own_rate(const struct node *node, uint32_t i, double rate)
{
	return node->now_ns < node->filled_ns[i] ? rate / node->sim->thrash : rate;
}

static double next_event(const struct node *node, double rate)
{
	double next = node->wakeup_ns == TD_NEVER ? INFINITY : (double)node->wakeup_ns;

	for (uint32_t i = 0; i < node->count; i++) {
		const struct td_client_view *client = &node->clients[i];

		if (is_over(node, i))
			continue;
		if (!client->wants)
			next = fmin(next, (double)node->now_ns + node->host_left_ns[i]);
		else if (client->phase == TD_PHASE_OPEN)
			next = fmin(next, (double)node->now_ns +
						  node->gpu_left_ns[i] / own_rate(node, i, rate));
		if (client->phase != TD_PHASE_CLOSED && node->now_ns < node->filled_ns[i])
			next = fmin(next, (double)node->filled_ns[i]);
	}
	return next;
}

static void advance(struct node *node, uint64_t to_ns, double rate)
{
	double passed = (double)(to_ns - node->now_ns), rates[TD_NODE_JOBS_MAX];

	for (uint32_t i = 0; i < node->count; i++)
		rates[i] = own_rate(node, i, rate);
	node->now_ns = to_ns;
	for (uint32_t i = 0; i < node->count; i++) {
		struct td_client_view *client = &node->clients[i];

		if (is_over(node, i))
			continue;
		if (client->phase == TD_PHASE_OPEN)
			client->held_ns += (uint64_t)passed;
		if (!client->wants) {
			node->host_left_ns[i] -= passed;
			if (node->host_left_ns[i] < 1) {
				node->host_left_ns[i] = 0;
				client->wants = true;
				client->wants_since_ns = to_ns;
			}
		} else if (client->phase == TD_PHASE_OPEN) {
			node->gpu_left_ns[i] -= passed * rates[i];
			if (node->gpu_left_ns[i] < 1) {
				node->gpu_left_ns[i] = 0;
				node->jobs[i].end_s = (double)to_ns / NS;
			}
		} else if (client->phase == TD_PHASE_FILLING && node->filled_ns[i] <= to_ns) {
			enter(node, i, TD_PHASE_OPEN);
		}
	}
}

static void run_node(struct node *node, struct td_node_result *ret)
{
	for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
		uint32_t left = 0;
		double rate, next;

		for (uint32_t i = 0; i < node->count; i++)
			left += !is_over(node, i);
		if (!left)
			break;
		ask_policy(node);
		if (carry_out(node))
			continue;
		rate = rate_of(node);
		next = next_event(node, rate);
		if (!(next < 1e18)) {
			ret->stuck = true;
			break;
		}
		advance(node, next > (double)node->now_ns ? (uint64_t)ceil(next) : node->now_ns + 1,
			rate);
	}
	for (uint32_t i = 0; i < node->count; i++) {
		ret->stuck |= !is_over(node, i);
		ret->end_s = fmax(ret->end_s, node->jobs[i].end_s);
	}
	ret->handovers = node->handovers;
}

int td_node_simulate(const struct td_node_sim *sim, struct td_node_job *jobs, uint32_t count,
	struct td_node_result *ret)
{
	td_auto_free struct node *node = calloc(1, sizeof(*node));
	size_t bytes = (sim->policy->state_bytes + 63) & ~(size_t)63;
	td_auto_free void *state = aligned_alloc(64, bytes ? bytes : 64);

	if (!count || count > TD_NODE_JOBS_MAX)
		return -EINVAL;
	if (!node || !state)
		return -ENOMEM;
	memset(state, 0, bytes);
	*node = (struct node){.sim = sim,
		.jobs = jobs,
		.count = count,
		.now_ns = 1000,
		.wakeup_ns = TD_NEVER,
		.last_filled = UINT32_MAX,
		.state = state};
	for (uint32_t i = 0; i < count; i++) {
		node->clients[i] = (struct td_client_view){.id = i + 1,
			.group = i + 1,
			.class = TD_CLASS_BESTEFFORT,
			.weight = 1,
			.movable = true,
			.pages_itself = sim->pages_itself,
			.idle_since_ns = 1,
			.demanded_bytes = jobs[i].bytes,
			.limit_bytes = jobs[i].bytes};
		/*
		 * Jobs start a microsecond apart, because two that want the GPU at the same instant
		 * have no order.
		 */
		node->host_left_ns[i] = jobs[i].host_s * NS + 1000. * i + 1;
		node->gpu_left_ns[i] = jobs[i].gpu_s * NS;
	}
	*ret = (struct td_node_result){0};
	run_node(node, ret);
	return 0;
}
