/*
 * Drives every policy with random views, faithful and absurd, and checks what a plan must keep: exclusivity, capacity, limits,
 * groups together, no hand-over without a waiter, determinism. Input: two bytes per event on a node of 2 GPUs and 12 clients.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/plans.h"

#define CLIENTS 12
#define GPUS    2
#define MIB     (1ull << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	struct td_gpu_view gpus[GPUS];
	struct td_client_view clients[CLIENTS];
	struct td_grant grants[CLIENTS], again[CLIENTS];
	uint32_t count, next_id;
	uint64_t now;
};

static void require(int truth)
{
	if (!truth)
		abort();
}

static void arrive(struct world *w, uint8_t bits)
{
	if (w->count == CLIENTS)
		return;
	w->clients[w->count++] = (struct td_client_view){
		.id = w->next_id++,
		.gpu = bits & 1,
		.group = bits >> 1 & 7,
		.weight = 1,
		.movable = (bits & 0x30) != 0,
		.pages_itself = (bits & 0x30) == 0x30,
		.demanded_bytes = (uint64_t)(bits >> 2) * MIB,
		.phase_since_ns = w->now,
	};
}

static void leave(struct world *w, uint32_t i)
{
	memmove(&w->clients[i], &w->clients[i + 1], (w->count - i - 1) * sizeof(w->clients[0]));
	w->count--;
}

static void set_phase(struct world *w, struct td_client_view *c, enum td_phase phase)
{
	c->phase = phase;
	c->phase_since_ns = w->now;
}

static void event(struct world *w, uint8_t kind, uint8_t arg)
{
	uint32_t i = arg % CLIENTS;
	struct td_client_view *c = &w->clients[i];

	if (kind % 9 == 0)
		arrive(w, arg);
	if (i >= w->count)
		return;
	switch (kind % 9) {
	case 1:
		c->wants = true;
		c->wants_since_ns = w->now;
		break;
	case 2:
		c->wants = false;
		c->idle_since_ns = w->now;
		break;
	case 3: c->demanded_bytes = (uint64_t)arg * MIB / 3; break;
	case 4: c->paused = arg & 0x80; break;
	case 5:
		if (arg & 0x80)
			leave(w, i);
		break;
	case 6: /* the executor makes progress */
		if (c->phase == TD_PHASE_DRAINING)
			set_phase(w, c, arg & 0x80 ? TD_PHASE_OPEN : TD_PHASE_CLOSED);
		else if (c->phase == TD_PHASE_FILLING)
			set_phase(w, c, TD_PHASE_OPEN);
		break;
	case 7: w->now += (uint64_t)arg * 3000000u; break;
	default: c->resident_bytes = arg & 0x40 ? c->demanded_bytes : c->demanded_bytes / 2; break;
	}
}

static void check_limits(const struct world *w)
{
	for (uint32_t g = 0; g < GPUS; g++) {
		uint64_t limits = 0, fixed = 0;

		for (uint32_t i = 0; i < w->count; i++) {
			int stays = w->grants[i].gate != TD_GATE_CLOSED || !w->clients[i].movable;

			if (w->clients[i].gpu != g)
				continue;
			limits += w->grants[i].limit_bytes;
			fixed += stays ? w->clients[i].demanded_bytes : 0;
			require(!stays || w->grants[i].limit_bytes >= w->clients[i].demanded_bytes);
		}
		require(limits <= w->gpus[g].capacity_bytes || limits == fixed);
	}
}

static void check_groups(const struct world *w, const struct td_policy *policy,
	const struct td_policy_options *options)
{
	for (uint32_t i = 0; i < w->count; i++) {
		const struct td_client_view *a = &w->clients[i];

		require(!(a->paused && w->grants[i].gate != TD_GATE_CLOSED));
		for (uint32_t j = 0; j < w->count; j++) {
			const struct td_client_view *b = &w->clients[j];

			if (a->group == b->group)
				require((w->grants[i].gate == TD_GATE_CLOSED) ==
					(w->grants[j].gate == TD_GATE_CLOSED));
			else if (a->gpu == b->gpu && options->enabled &&
				 !strcmp(policy->name, "nvshare"))
				require(w->grants[i].gate == TD_GATE_CLOSED ||
					w->grants[j].gate == TD_GATE_CLOSED);
		}
	}
}

/* Gates follow the plan as the executor's state machine lets them. */
static void carry_out(struct world *w)
{
	for (uint32_t i = 0; i < w->count; i++) {
		struct td_client_view *c = &w->clients[i];
		int closed = w->grants[i].gate == TD_GATE_CLOSED;

		if (closed && c->phase == TD_PHASE_OPEN)
			set_phase(w, c, TD_PHASE_DRAINING);
		else if (closed && c->phase == TD_PHASE_FILLING)
			set_phase(w, c, TD_PHASE_CLOSED);
		else if (!closed && c->phase == TD_PHASE_CLOSED)
			set_phase(w, c, TD_PHASE_FILLING);
	}
}

static void drive(const struct td_policy *policy, const uint8_t *data, size_t size)
{
	struct td_policy_options options = {.enabled = !(size & 1),
		.quantum_ns = 300000000,
		.quantum_min_ns = 20000000,
		.swap_share_ppm = 100000,
		.window_ns = 2000000};
	void *state = calloc(1, policy->state_bytes), *copy = malloc(policy->state_bytes);
	struct world w = {.now = 1000000000};

	if (!state || !copy)
		abort();
	for (uint32_t g = 0; g < GPUS; g++)
		w.gpus[g] = (struct td_gpu_view){
			.capacity_bytes = 64 * MIB, .handover_ns = g * 5000000};
	for (size_t i = 0; i + 1 < size && i < 4096; i += 2) {
		struct td_view view = {w.gpus, w.clients, GPUS, 0, TD_HAS_ALL};
		struct td_plan plan = {.grants = w.grants}, again = {.grants = w.again};

		event(&w, data[i], data[i + 1]);
		view.client_count = w.count;
		if (i % 64 == 0)
			memcpy(copy, state, policy->state_bytes);
		policy->step(state, &options, &view, w.now, &plan);
		require(plan.next_wakeup_ns > w.now);
		if (i % 64 == 0) {
			policy->step(copy, &options, &view, w.now, &again);
			require(plan.next_wakeup_ns == again.next_wakeup_ns);
			require(!memcmp(w.grants, w.again, w.count * sizeof(w.grants[0])));
		}
		check_limits(&w);
		check_groups(&w, policy, &options);
		carry_out(&w);
	}
	free(state);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (const struct td_policy *const *p = td_policies; *p; p++)
		drive(*p, data, size);
	return 0;
}
