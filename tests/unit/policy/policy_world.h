/*
 * A small node of fake clients on a fake clock that carries plans out at once or slowly, as a test
 * needs.
 */
#pragma once

#include "test.h"

#include "policy/node/plans.h"
#include "unit/policy/beyond.h"

#define MS  1000000ull
#define GIB (1ull << 30)

struct node {
	struct td_policy_options options;
	struct td_gpu_view gpus[TD_GPU_MAX];
	struct td_client_view clients[TD_CLIENT_MAX];
	struct td_grant grants[TD_CLIENT_MAX];
	struct td_view view;
	struct td_plan plan;
	const struct td_policy *policy;
	void *state;
	uint64_t now;
};

static struct node node;

__attribute__((unused)) static void start(const char *policy, uint32_t gpus)
{
	free(node.state);
	memset(&node, 0, sizeof(node));
	node.policy = td_policy_find(policy);
	node.state = calloc(1, node.policy->state_bytes);
	node.options = (struct td_policy_options){.enabled = true,
		.quantum_ns = 1000 * MS,
		.quantum_min_ns = 20 * MS,
		.swap_share_ppm = 100000,
		.window_ns = 2 * MS,
		.swap_share_long_ppm = 10000,
		.quantum_long_ns = 10000 * MS};
	for (uint32_t g = 0; g < gpus; g++)
		node.gpus[g].capacity_bytes = 16 * GIB;
	node.view = (struct td_view){.gpus = node.gpus, .clients = node.clients, .gpu_count = gpus};
	node.plan.grants = node.grants;
	node.now = 1000 * MS;
}

__attribute__((unused)) static struct td_client_view *add(
	uint32_t group, uint32_t gpu, uint64_t bytes)
{
	struct td_client_view *c = &node.clients[node.view.client_count++];

	*c = (struct td_client_view){.id = node.view.client_count,
		.gpu = gpu,
		.group = group,
		.class = TD_CLASS_BESTEFFORT,
		.weight = 1,
		.phase = TD_PHASE_CLOSED,
		.phase_since_ns = node.now,
		.movable = true,
		.demanded_bytes = bytes};
	return c;
}

__attribute__((unused)) static void want(struct td_client_view *c)
{
	c->wants = true;
	c->wants_since_ns = node.now;
}

__attribute__((unused)) static void idle(struct td_client_view *c)
{
	c->wants = false;
	c->idle_since_ns = node.now;
}

__attribute__((unused)) static void enter(struct td_client_view *c, enum td_phase phase)
{
	c->phase = phase;
	c->phase_since_ns = node.now;
}

__attribute__((unused)) static void step(void)
{
	put_beyond(node.clients, node.view.client_count, TD_CLIENT_MAX);
	node.policy->step(node.state, &node.options, &node.view, node.now, &node.plan);
}

/* Carries the plan out: drains end at once, memory moves at once, where the ledger has room. */
__attribute__((unused)) static void carry_out(void)
{
	for (uint32_t i = 0; i < node.view.client_count; i++) {
		struct td_client_view *c = &node.clients[i];

		if (node.grants[i].gate == TD_GATE_CLOSED && c->phase != TD_PHASE_CLOSED)
			enter(c, TD_PHASE_CLOSED);
		c->limit_bytes = node.grants[i].limit_bytes;
		if (c->resident_bytes > c->limit_bytes)
			c->resident_bytes = c->limit_bytes;
	}
	for (uint32_t i = 0; i < node.view.client_count; i++) {
		struct td_client_view *c = &node.clients[i];

		if (node.grants[i].gate == TD_GATE_CLOSED || c->phase == TD_PHASE_OPEN)
			continue;
		c->resident_bytes = c->demanded_bytes;
		enter(c, TD_PHASE_OPEN);
	}
}

__attribute__((unused)) static void settle(void)
{
	for (int i = 0; i < 3; i++) {
		step();
		carry_out();
	}
	step();
}

__attribute__((unused)) static enum td_gate gate_of(const struct td_client_view *c)
{
	return node.grants[c - node.clients].gate;
}
