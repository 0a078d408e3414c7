/*
 * One virtual GPU on a fake clock, under a policy, with programs that always compute, want the GPU
 * for a moment now and then, or pretend to. Any two of them exceed its memory. A turn ends with a
 * drain and begins with filling.
 */
#pragma once

#include "test.h"

#include "policy/node/plans.h"

#define MS       1000000ull
#define S        (1000 * MS)
#define GIB      (1ull << 30)
#define PROGRAMS 8

struct program {
	struct td_client_view *client;
	uint64_t burst_ns, think_ns; /* think_ns 0: always wants the GPU */
	uint64_t left_ns, next_ns,
		ends_ns;   /* of the burst; the end of thinking; of a drain or fill */
	uint64_t until_ns; /* always busy up to then, whatever think_ns says */
	uint64_t got_ns, from_got_ns,
		wait_ns; /* useful time, in all and at measure(); the longest wait since then */
	uint64_t began_ns, turns, turn_ns, shortest_ns; /* of contended turns */
	bool cheats; /* idle for a moment just before its turn ends */
	bool renews; /* another one comes instead of it when its burst is over */
};

static struct {
	const struct td_policy *policy;
	void *state;
	struct td_policy_options options;
	struct td_gpu_view gpu;
	struct td_client_view clients[PROGRAMS];
	struct td_grant grants[PROGRAMS];
	struct td_view view;
	struct td_plan plan;
	struct program programs[PROGRAMS];
	uint64_t now, drain_ns, fill_ns, measured_ns, handovers;
} w;

static void begin(uint64_t handover_ns)
{
	free(w.state);
	memset(&w, 0, sizeof(w));
	w.policy = td_policy_find("tandem");
	w.state = calloc(1, w.policy->state_bytes);
	w.options = (struct td_policy_options){.enabled = true,
		.quantum_ns = 100 * S,
		.quantum_min_ns = 100 * MS,
		.swap_share_ppm = 100000,
		.swap_share_long_ppm = 10000,
		.quantum_long_ns = 300 * S};
	w.gpu = (struct td_gpu_view){.capacity_bytes = 16 * GIB, .handover_ns = handover_ns};
	w.drain_ns = handover_ns / 50;
	w.fill_ns = handover_ns - w.drain_ns;
	w.view = (struct td_view){.gpus = &w.gpu, .clients = w.clients, .gpu_count = 1};
	w.plan.grants = w.grants;
	w.now = S;
}

static struct program *add(uint64_t burst_ns, uint64_t think_ns, uint64_t first_ns)
{
	uint32_t i = w.view.client_count++;
	struct program *p = &w.programs[i];

	w.clients[i] = (struct td_client_view){.id = i + 1,
		.group = i + 1,
		.class = TD_CLASS_BESTEFFORT,
		.weight = 1,
		.movable = true,
		.idle_since_ns = w.now,
		.phase_since_ns = w.now,
		.demanded_bytes = 12 * GIB};
	*p = (struct program){.client = &w.clients[i],
		.burst_ns = burst_ns,
		.think_ns = think_ns,
		.next_ns = w.now + first_ns,
		.shortest_ns = UINT64_MAX};
	return p;
}

static bool works(const struct program *p)
{
	return p->client->wants && p->client->phase == TD_PHASE_OPEN;
}

static bool thinks(const struct program *p)
{
	return p->think_ns && w.now >= p->until_ns;
}

static void enter(struct program *p, enum td_phase phase)
{
	p->client->phase = phase;
	p->client->phase_since_ns = w.now;
}

static void note_wait(struct program *p)
{
	uint64_t waited = w.now - p->client->wants_since_ns;

	if (p->client->wants_since_ns >= w.measured_ns && waited > p->wait_ns)
		p->wait_ns = waited;
}

static void note_turn(struct program *p)
{
	p->turn_ns = w.now - p->began_ns;
	p->turns++;
	if (w.measured_ns && p->began_ns >= w.measured_ns && p->turn_ns < p->shortest_ns)
		p->shortest_ns = p->turn_ns;
}

/* Everything that happens by itself up to now. */
static void progress(struct program *p)
{
	if (p->client->phase == TD_PHASE_DRAINING && p->ends_ns <= w.now) {
		note_turn(p);
		enter(p, TD_PHASE_CLOSED);
	} else if (p->client->phase == TD_PHASE_FILLING && p->ends_ns <= w.now) {
		enter(p, TD_PHASE_OPEN);
		p->began_ns = w.now;
		if (p->client->wants)
			note_wait(p);
	}
	if (!p->client->wants && p->next_ns <= w.now) {
		p->client->wants = true;
		p->client->wants_since_ns = w.now;
		p->left_ns = p->burst_ns;
		if (p->client->phase == TD_PHASE_OPEN)
			note_wait(p);
	} else if (works(p) && !p->left_ns && p->renews) {
		enter(p, TD_PHASE_CLOSED);
		p->client->group += PROGRAMS;
		p->client->wants_since_ns = w.now;
		p->left_ns = p->burst_ns;
	} else if (works(p) && !p->left_ns && thinks(p)) {
		p->client->wants = false;
		p->client->idle_since_ns = w.now;
		p->next_ns = w.now + p->think_ns;
	}
}

static void carry_out(struct program *p)
{
	const struct td_grant *grant = &w.grants[p->client - w.clients];
	bool closed = grant->gate == TD_GATE_CLOSED;

	if (closed && p->client->phase == TD_PHASE_OPEN) {
		enter(p, TD_PHASE_DRAINING);
		p->ends_ns = w.now + w.drain_ns;
	} else if (!closed && p->client->phase == TD_PHASE_CLOSED) {
		enter(p, TD_PHASE_FILLING);
		p->ends_ns = w.now + w.fill_ns;
		w.handovers++;
	}
	/* It knows when its turn ends, and stops its work 10 ms before that. */
	if (p->cheats && works(p) && grant->turn_ns && p->left_ns > 10 * MS &&
		p->began_ns + grant->turn_ns > w.now + 10 * MS)
		p->left_ns = p->began_ns + grant->turn_ns - w.now - 10 * MS;
}

static uint64_t next_event(void)
{
	uint64_t at = w.plan.next_wakeup_ns;

	for (uint32_t i = 0; i < w.view.client_count; i++) {
		const struct program *p = &w.programs[i];
		uint64_t mine = UINT64_MAX;

		if (p->client->phase == TD_PHASE_DRAINING || p->client->phase == TD_PHASE_FILLING)
			mine = p->ends_ns;
		else if (!p->client->wants)
			mine = p->next_ns;
		else if (works(p) && (thinks(p) || p->renews))
			mine = w.now + p->left_ns;
		else if (works(p) && p->until_ns > w.now)
			mine = p->until_ns;
		if (!p->client->wants && p->next_ns < mine)
			mine = p->next_ns;
		at = mine < at ? mine : at;
	}
	return at;
}

static void run_for(uint64_t ns)
{
	uint64_t until = w.now + ns;

	while (w.now < until) {
		uint64_t at;

		for (uint32_t i = 0; i < w.view.client_count; i++)
			progress(&w.programs[i]);
		w.policy->step(w.state, &w.options, &w.view, w.now, &w.plan);
		CHECK(w.plan.next_wakeup_ns > w.now);
		for (uint32_t i = 0; i < w.view.client_count; i++)
			carry_out(&w.programs[i]);
		at = next_event();
		at = at > w.now ? at : w.now + 1;
		at = at < until ? at : until;
		for (uint32_t i = 0; i < w.view.client_count; i++) {
			struct program *p = &w.programs[i];
			uint64_t worked = works(p) ? at - w.now : 0;

			p->got_ns += worked;
			p->left_ns -= worked < p->left_ns ? worked : p->left_ns;
		}
		w.now = at;
	}
}

/* From here on. */
static void measure(void)
{
	w.measured_ns = w.now;
	w.handovers = 0;
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		w.programs[i].from_got_ns = w.programs[i].got_ns;
		w.programs[i].wait_ns = 0;
	}
}

static uint64_t got_ns(const struct program *p)
{
	return p->got_ns - p->from_got_ns;
}

/* Returns its share of the time since then, in ppm. */
static uint64_t share(const struct program *p)
{
	return got_ns(p) / ((w.now - w.measured_ns) / TD_PPM);
}

static uint64_t swapping(void)
{
	return w.handovers * w.gpu.handover_ns / ((w.now - w.measured_ns) / TD_PPM);
}
