/*
 * A node as a policy sees it, on a simulated clock: views are made by hand, and a plan takes effect
 * at once.
 */
#pragma once

#include "test.h"

#include "policy/node/admit.h"
#include "policy/node/plans.h"
#include "unit/policy/beyond.h"
#include "policy/node/profile.h"
#include "policy_random.h"

#define MS  1000000ull
#define GIB (1ull << 30)

struct node {
	struct td_policy_options options;
	struct td_gpu_view gpus[TD_GPU_MAX];
	struct td_client_view clients[64];
	struct td_grant grants[64];
	struct td_action actions[64];
	struct td_gpu_verdict verdicts[TD_GPU_MAX];
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
	node.options = (struct td_policy_options){.enabled = true, .quantum_ns = 1000 * MS};
	for (uint32_t g = 0; g < gpus; g++)
		node.gpus[g] = (struct td_gpu_view){.capacity_bytes = 32 * GIB,
			.known = TD_HAS_ALL,
			.utilisation_ppm = 300000,
			.sm_activity_ppm = 300000,
			.sm_clock_mhz = 1590,
			.sm_clock_max_mhz = 1590,
			.mps = TD_MPS_ON};
	node.view = (struct td_view){node.gpus, node.clients, gpus, 0, TD_HAS_ALL};
	node.plan = (struct td_plan){.verdicts = node.verdicts,
		.grants = node.grants,
		.actions = node.actions,
		.action_max = 64};
	node.now = 1000 * MS;
}

__attribute__((unused)) static struct td_client_view *add(
	uint32_t group, uint32_t gpu, enum td_class class, uint64_t bytes)
{
	struct td_client_view *c = &node.clients[node.view.client_count++];

	*c = (struct td_client_view){.id = node.view.client_count,
		.gpu = gpu,
		.group = group,
		.class = class,
		.weight = 1,
		.has = TD_HAS_ALL,
		.wants = true,
		.wants_since_ns = node.now,
		.phase = TD_PHASE_CLOSED,
		.movable = true,
		.migrates = true,
		.demanded_bytes = bytes};
	return c;
}

/* One step; gates follow at once. */
__attribute__((unused)) static void step(void)
{
	put_beyond(node.clients, node.view.client_count, 64);
	node.policy->step(node.state, &node.options, &node.view, node.now, &node.plan);
	for (uint32_t i = 0; i < node.view.client_count; i++) {
		struct td_client_view *c = &node.clients[i];

		c->phase = node.grants[i].gate == TD_GATE_CLOSED ? TD_PHASE_CLOSED : TD_PHASE_OPEN;
		c->resident_bytes = node.grants[i].limit_bytes < c->demanded_bytes
					    ? node.grants[i].limit_bytes
					    : c->demanded_bytes;
	}
}

__attribute__((unused)) static const struct td_grant *grant_of(const struct td_client_view *c)
{
	return &node.grants[c - node.clients];
}

__attribute__((unused)) static bool is_open(const struct td_client_view *c)
{
	return grant_of(c)->gate != TD_GATE_CLOSED;
}

__attribute__((unused)) static uint32_t count_actions(
	enum td_action_kind kind, const struct td_client_view *c)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < node.plan.action_count; k++)
		n += node.actions[k].kind == kind && (!c || node.actions[k].client == c->id);
	return n;
}

__attribute__((unused)) static void finish_step(struct td_client_view *c, uint64_t ns)
{
	node.now += ns;
	c->steps++;
	c->step_ns = ns;
	c->step_began_ns = node.now;
}
