/*
 * Drives every policy with random views, faithful and absurd, and checks the invariants of a plan:
 * exclusivity, capacity, limits, groups together, at most all of a GPU's time and SMs, nothing that
 * the node cannot do, actions on existing clients only, determinism. Input: two bytes per event on
 * a node of 2 GPUs and 12 clients.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/algo/control/health.h"
#include "policy/node/plans.h"
#include "policy/node/profile.h"

#define CLIENTS 12
#define GPUS    2
#define MIB     (1ull << 20)
#define ACTIONS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
	struct td_gpu_view gpus[GPUS];
	struct td_client_view clients[CLIENTS];
	struct td_grant grants[CLIENTS], again[CLIENTS];
	struct td_action actions[ACTIONS], actions_again[ACTIONS];
	uint32_t count, next_id;
	uint64_t now;
};

static const char *driven;

static void require_at(int truth, int line)
{
	if (truth)
		return;
	fprintf(stderr, "%s breaks line %d\n", driven, line);
	abort();
}

#define require(truth) require_at(truth, __LINE__)

/*
 * Curves of a service: knee at 0.5 and 20 ms, steep before it; training beside it makes it slower.
 */
static const double zeros[TD_PREDICT_INPUTS_MAX];
static const double ones[TD_PREDICT_INPUTS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const double slow[] = {1e-3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1e-3, 0.01},
		    knee[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.01, 0.4},
		    steep[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0.05},
		    flat[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0.001};

#define LINE(c)                                                                                    \
	{                                                                                          \
		.form = TD_PREDICTOR_LINEAR, .inputs = TD_MUDI_INPUTS, .shift = zeros,             \
		.scale = ones, .target_scale = 1, .coefficients = c,                               \
		.coefficient_count = TD_MUDI_INPUTS + 1                                            \
	}
static const struct td_predictor left = LINE(steep), right = LINE(flat), share = LINE(knee),
				 latency = LINE(slow);
static const struct td_mudi_service service = {&left, &right, &share, &latency, 0, 0, 0, NULL, 0};
static const struct td_profile profile = {50000000, &service, {1, 2, 3}, NULL};

static void arrive(struct world *w, uint8_t bits)
{
	if (w->count == CLIENTS)
		return;
	w->clients[w->count++] = (struct td_client_view){
		.id = w->next_id++,
		.gpu = bits & 1,
		.class = (enum td_class)(bits % TD_CLASS_N),
		.group = bits >> 1 & 7,
		.weight = 1,
		.movable = (bits & 0x30) != 0,
		.migrates = (bits & 0x11) != 0,
		.last_resort = (bits & 0x70) == 0x40,
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

	if (kind % 13 == 0)
		arrive(w, arg);
	if (i >= w->count)
		return;
	switch (kind % 13) {
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
	case 8: /* a step ends */
		c->steps++;
		c->step_ns = (uint64_t)arg * 1000000u;
		c->step_began_ns = arg & 1 ? w->now : 0;
		c->step_unit = arg >> 1 & 3;
		c->slack_ppm = arg & 8 ? arg * 200u : 0;
		c->whole = arg & 16;
		break;
	case 9: /* a GPU's figures */
		w->gpus[arg & 1].known = arg & 2 ? 0 : TD_HAS_ALL;
		w->gpus[arg & 1].utilisation_ppm = w->gpus[arg & 1].sm_activity_ppm = arg * 4000u;
		w->gpus[arg & 1].sm_clock_mhz = arg * 8u;
		w->gpus[arg & 1].sm_clock_max_mhz = arg & 4 ? 1980 : 0;
		w->gpus[arg & 1].xid = (arg & 0xf8) == 0x68 ? 31 : 0;
		w->gpus[arg & 1].xid_of = TD_XID_OF_MPS;
		w->gpus[arg & 1].mps = (enum td_mps)(arg >> 3 & 15) < TD_MPS_N
					       ? (enum td_mps)(arg >> 3 & 15)
					       : TD_MPS_ON;
		w->gpus[arg & 1].used_bytes = (uint64_t)arg * MIB / 3;
		break;
	case 10: /* a service's */
		c->rate_per_s = arg * 2.5;
		c->objective_ns = arg & 1 ? 150000000 : 0;
		c->p50_ns = c->p99_ns = (uint64_t)arg * 1500000u;
		c->sm_share_ppm = arg * 4000u;
		c->batch = arg & 0x7f;
		break;
	case 11: /* a job's */
		c->core_ppm = arg * 5000u;
		c->sm_activity_ppm = arg * 4500u;
		c->minimal_bytes = (uint64_t)arg * MIB / 6;
		c->host_bytes = arg & 8 ? MIB : 0;
		c->weight = 1 + (arg & 7);
		c->fresh = arg >> 4 & 7;
		c->tries += arg >> 7;
		break;
	case 12: c->profile = arg & 0x80 ? NULL : &profile; break;
	default: c->resident_bytes = arg & 0x40 ? c->demanded_bytes : c->demanded_bytes / 2; break;
	}
}

/* Those of the lock give the open what they demand, others may leave a part of it on the host. */
static int gives_all(const struct td_policy *policy)
{
	return !(policy->needs & ~TD_HAS(PRIORITY));
}

static void check_limits(const struct world *w, const struct td_policy *policy)
{
	for (uint32_t g = 0; g < GPUS; g++) {
		uint64_t limits = 0, fixed = 0, stuck = 0;

		for (uint32_t i = 0; i < w->count; i++) {
			const struct td_client_view *c = &w->clients[i];
			int is_open = w->grants[i].gate != TD_GATE_CLOSED;
			int can_leave = c->movable || (c->last_resort && !is_open);
			int stays = is_open || !can_leave;

			if (c->gpu != g)
				continue;
			limits += w->grants[i].limit_bytes;
			fixed += stays ? c->demanded_bytes : 0;
			stuck += can_leave ? 0 : c->resident_bytes;
			require(!stays || !gives_all(policy) ||
				w->grants[i].limit_bytes >= c->demanded_bytes);
			require(can_leave || gives_all(policy) ||
				w->grants[i].limit_bytes >= c->resident_bytes);
		}
		require(limits <= w->gpus[g].capacity_bytes ||
			limits == (gives_all(policy) ? fixed : stuck));
	}
}

/* Time and SMs of a GPU are given once; whoever is not besteffort has all of its time. */
static void check_shares(const struct world *w)
{
	for (uint32_t g = 0; g < GPUS; g++) {
		uint64_t shares = 0, duties = 0;
		uint32_t count = 0;

		for (uint32_t i = 0; i < w->count; i++) {
			const struct td_client_view *c = &w->clients[i];
			const struct td_grant *grant = &w->grants[i];

			require(grant->duty_ppm <= TD_PPM && grant->sm_share_ppm <= TD_PPM);
			require(!grant->duty_ppm || c->class == TD_CLASS_BESTEFFORT);
			require(!grant->hold_new ||
				(c->class == TD_CLASS_BESTEFFORT && c->fresh & TD_FRESH_TOLD));
			if (c->gpu != g || grant->gate == TD_GATE_CLOSED)
				continue;
			shares += grant->sm_share_ppm;
			duties += c->wants ? grant->duty_ppm : 0;
			count++;
		}
		require(shares <= TD_PPM + count && duties <= TD_PPM + count);
	}
}

/* Nothing is planned that this node cannot carry out. */
static void check_abilities(const struct world *w, const struct td_plan *plan, uint32_t has)
{
	static const uint32_t needs[TD_ACTION_N] = {
		[TD_ACTION_EVICT] = TD_HAS(EVICTION),
		[TD_ACTION_MIGRATE] = TD_HAS(MIGRATION),
		[TD_ACTION_RESTART] = TD_HAS(RESTART),
		[TD_ACTION_SHARE] = TD_HAS(SHADOW),
	};

	for (uint32_t i = 0; i < w->count; i++) {
		const struct td_grant *grant = &w->grants[i];

		require(has & TD_HAS(DUTY) || (!grant->duty_ppm && !grant->hold_new));
		require(has & TD_HAS(SM_SHARE) || !grant->sm_share_ppm);
		require(has & TD_HAS(PRIORITY) || !grant->priority);
		require(has & TD_HAS(BATCH) || !grant->batch);
	}
	for (uint32_t k = 0; k < plan->action_count; k++)
		require(!(needs[plan->actions[k].kind] & ~has));
}

/* A turn is bounded, by weight and with what is owed; and it is somebody's who holds the GPU. */
static void check_turns(const struct world *w, const struct td_policy_options *options)
{
	for (uint32_t i = 0; i < w->count; i++) {
		const struct td_grant *grant = &w->grants[i];

		require(grant->turn_reason < TD_TURN_N);
		require((grant->turn_reason == TD_TURN_NONE) == !grant->turn_ns);
		require(!grant->turn_ns || grant->others_wait);
		require(grant->turn_reason == TD_TURN_FIXED ||
			grant->turn_ns <= options->quantum_long_ns);
	}
}

static void check_actions(const struct world *w, const struct td_plan *plan)
{
	require(plan->action_count <= ACTIONS);
	for (uint32_t k = 0; k < plan->action_count; k++) {
		const struct td_action *action = &plan->actions[k];
		uint32_t i = 0;

		while (i < w->count && w->clients[i].id != action->client)
			i++;
		require(i < w->count && action->kind < TD_ACTION_N);
		if (action->kind == TD_ACTION_EVICT || action->kind == TD_ACTION_PAUSE)
			require(w->clients[i].class == TD_CLASS_BESTEFFORT &&
				w->grants[i].gate == TD_GATE_CLOSED);
		if (action->kind == TD_ACTION_MIGRATE)
			require(action->gpu < GPUS && action->gpu != w->clients[i].gpu &&
				w->clients[i].migrates);
		if (action->kind == TD_ACTION_MAKE_ROOM)
			require(w->grants[i].limit_bytes + action->bytes ==
				w->clients[i].resident_bytes);
	}
}

/* A group of which nobody was in. */
static int is_let_in(const struct world *w, uint32_t group)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (w->clients[i].group == group && w->clients[i].phase != TD_PHASE_CLOSED)
			return 0;
	return 1;
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
				 !strcmp(policy->name, "nvshare")) {
				require(w->grants[i].gate == TD_GATE_CLOSED ||
					w->grants[j].gate == TD_GATE_CLOSED);
				/* Who still drains is not joined by anybody. */
				require(!is_let_in(w, a->group) ||
					w->grants[i].gate == TD_GATE_CLOSED ||
					b->phase == TD_PHASE_CLOSED);
			}
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

/*
 * Compares field by field, because padding is the compiler's. td_plan_begin() clears a grant as a
 * whole.
 */
static int is_same(const struct td_action *a, const struct td_action *b)
{
	return a->kind == b->kind && a->client == b->client && a->gpu == b->gpu &&
	       a->bytes == b->bytes;
}

/* has: TD_HAS bits of the node. */
static void drive(const struct td_policy *policy, uint32_t has, const uint8_t *data, size_t size)
{
	struct td_policy_options options = {.enabled = !(size & 1),
		.quantum_ns = 300000000,
		.quantum_min_ns = 20000000,
		.swap_share_ppm = 100000,
		.window_ns = 2000000,
		.swap_share_long_ppm = 10000,
		.quantum_long_ns = size & 2 ? 3000000000 : 100000000};
	void *state = calloc(1, policy->state_bytes), *copy = malloc(policy->state_bytes);
	struct world w = {.now = 1000000000, .next_id = 1};

	driven = policy->name;
	if (!state || !copy)
		abort();
	for (uint32_t g = 0; g < GPUS; g++)
		w.gpus[g] = (struct td_gpu_view){.capacity_bytes = 64 * MIB,
			.handover_ns = g * 5000000,
			.known = TD_HAS_ALL};
	for (size_t i = 0; i + 1 < size && i < 1024; i += 2) {
		struct td_view view = {w.gpus, w.clients, GPUS, 0, has};
		struct td_plan plan = {
			.grants = w.grants, .actions = w.actions, .action_max = ACTIONS};
		struct td_plan again = {
			.grants = w.again, .actions = w.actions_again, .action_max = ACTIONS};

		event(&w, data[i], data[i + 1]);
		td_view_unite_classes(w.clients, w.count);
		view.client_count = w.count;
		if (i % 64 == 0)
			memcpy(copy, state, policy->state_bytes);
		policy->step(state, &options, &view, w.now, &plan);
		require(plan.next_wakeup_ns > w.now);
		if (i % 64 == 0) {
			policy->step(copy, &options, &view, w.now, &again);
			require(plan.next_wakeup_ns == again.next_wakeup_ns);
			require(!memcmp(w.grants, w.again, w.count * sizeof(w.grants[0])));
			require(plan.action_count == again.action_count);
			for (uint32_t k = 0; k < plan.action_count; k++)
				require(is_same(&w.actions[k], &w.actions_again[k]));
		}
		check_limits(&w, policy);
		check_shares(&w);
		check_turns(&w, &options);
		check_actions(&w, &plan);
		check_abilities(&w, &plan, has);
		check_groups(&w, policy, &options);
		carry_out(&w);
	}
	free(state);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t duty = size & 2 ? TD_HAS(DUTY) : 0;

	for (const struct td_policy *const *p = td_policies; *p; p++) {
		drive(*p, TD_HAS_ALL, data, size);
		drive(*p, (*p)->needs | duty, data, size);
	}
	return 0;
}
