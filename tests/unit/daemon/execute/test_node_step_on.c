/*
 * td_node_step_on() does what td_node_step() would: two nodes with the same programs, of which one
 * always takes whole steps, never differ.
 */
#include "test.h"

#include "daemon/node/gpus.h"
#include "unit/daemon/fake_node.h"

#define MS       1000000ull
#define PPM      1000000u
#define PROGRAMS 8u
#define GPUS     2u

static struct world whole, on;
static struct td_meter_page meters[PROGRAMS];
static enum td_mps mps;
static unsigned short_steps;
static uint32_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)(seed >> 8) * n) >> 24);
}

static bool mps_seen(void *arg, const uint8_t *uuid, struct td_mps_seen *ret)
{
	(void)arg, (void)uuid;
	*ret = (struct td_mps_seen){.state = mps, .can_serve = true};
	return true;
}

static void enter(struct world *w)
{
	fake_world = w;
}

static void nvml_says(struct world *w, uint32_t clock_mhz)
{
	struct td_nvml_gpu listed[GPUS];

	for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
		listed[gpu] = (struct td_nvml_gpu){.index = gpu,
			.total_bytes = 64 * MIB,
			.known = TD_GPU_KNOWS_UTILISATION | TD_GPU_KNOWS_CLOCK,
			.utilisation_ppm = PPM / 2,
			.sm_mhz = clock_mhz,
			.sm_max_mhz = 1590};
		memcpy(listed[gpu].uuid, w->node.gpus[gpu].uuid, sizeof(listed[gpu].uuid));
	}
	td_gpus_seen(&w->node, listed, GPUS, w->now);
}

static void join(struct world *w, unsigned i)
{
	struct fake *f = &w->fakes[i];
	char name[8];

	snprintf(name, sizeof(name), "j%u", i);
	fake_hello(w, f, name, TD_BACKEND_SWAP, false);
	f->process->meter = &meters[i];
	f->process->job->settings.class = i % 6 ? TD_CLASS_BESTEFFORT : TD_CLASS_ONLINE;
	if (i == 5)
		strcpy(f->process->job->settings.mem, "3MiB");
	f->spills = i % 2;
	fake_attach(w, f, 0, (uint8_t)(i / 2 % GPUS), MIB);
	fake_want(w, f);
}

static void begin(struct world *w)
{
	world_init(w);
	w->node.io.mps = mps_seen;
	for (unsigned i = 0; i < PROGRAMS; i++)
		join(w, i);
	nvml_says(w, 1590);
	CHECK_EQ(td_options_set(&w->node.options, "policy", "muxflow", NULL), 0);
	td_node_options_changed(&w->node, w->now, "policy");
	(void)settle(w);
	CHECK(!strcmp(w->node.policy->name, "muxflow"));
}

static void begin_both(enum td_mps with, uint32_t from)
{
	mps = with;
	seed = from;
	short_steps = 0;
	memset(meters, 0, sizeof(meters));
	begin(&whole);
	begin(&on);
}

static void happens(struct world *w, uint32_t what, unsigned i, uint32_t clock_mhz)
{
	struct fake *f = &w->fakes[i];

	enter(w);
	switch (what) {
	case 0: nvml_says(w, clock_mhz); break;
	case 1: fake_want(w, f); break;
	case 2: f->process->job->settings.paused = !f->process->job->settings.paused; break;
	case 3:
		fake_dies(w, f);
		join(w, i);
		break;
	default: f->process->job->settings.duty_ppm = clock_mhz % 3 ? 0 : PPM / 4; break;
	}
	(void)settle(w);
}

static void happens_slowly(struct world *w, uint32_t what, unsigned i, uint32_t clock_mhz)
{
	struct td_msg ask = {.type = TD_MSG_TYPE_ask, .ask = {.bytes = MIB}};
	struct fake *f = &w->fakes[i];

	enter(w);
	switch (what) {
	case 0: nvml_says(w, clock_mhz); break;
	case 1: fake_want(w, f); break;
	case 2: f->process->job->settings.paused = !f->process->job->settings.paused; break;
	default:
		if (f->slot[0].asked || f->slot[0].demanded > 4 * MIB)
			break;
		ask.ask.ticket = (uint32_t)(w->now / MS);
		f->slot[0].asked = ask.ask.bytes;
		CHECK_EQ(say(w, f, &ask), 0);
	}
}

static void works(void)
{
	for (unsigned i = 0; i < PROGRAMS; i++) {
		uint64_t ns = random_below(12) * MS, active_ns = ns / (1 + random_below(6));

		if (random_below(3))
			continue;
		atomic_fetch_add(&meters[i].gpu_ns, ns);
		atomic_fetch_add(&meters[i].used_ns[0], ns);
		atomic_fetch_add(&meters[i].active_ns[0], active_ns);
		atomic_fetch_add(&meters[i].core_ns[0], active_ns);
	}
}

static void is_same(const struct fake *a, const struct fake *b)
{
	CHECK_EQ(a->word, b->word);
	CHECK_EQ(a->seq, b->seq);
	CHECK_EQ(a->slot[0].limit, b->slot[0].limit);
	CHECK(!memcmp(&a->pacing, &b->pacing, sizeof(a->pacing)));
}

static void is_shown_the_same(uint32_t row)
{
	const struct td_client_view *a = &whole.node.views[row], *b = &on.node.views[row];

	CHECK_EQ(a->phase, b->phase);
	CHECK_EQ(a->wants, b->wants);
	CHECK_EQ(a->demanded_bytes, b->demanded_bytes);
	CHECK_EQ(a->limit_bytes, b->limit_bytes);
	CHECK_EQ(a->held_ns, b->held_ns);
	CHECK_EQ(a->busy_ppm, b->busy_ppm);
	CHECK_EQ(a->core_ppm, b->core_ppm);
	CHECK_EQ(a->sm_activity_ppm, b->sm_activity_ppm);
	CHECK_EQ(a->sm_need_ppm, b->sm_need_ppm);
	CHECK_EQ(a->has, b->has);
	CHECK_EQ(whole.node.shown[row]->grant.duty_ppm, on.node.shown[row]->grant.duty_ppm);
	CHECK_EQ(whole.node.shown[row]->sm_share_wanted_ppm,
		on.node.shown[row]->sm_share_wanted_ppm);
}

static void are_judged_the_same(uint32_t gpu)
{
	const struct td_gpu_verdict *a = &whole.node.verdicts[gpu], *b = &on.node.verdicts[gpu];
	const struct td_gpu_view *of_whole = &whole.node.gpu_views[gpu],
				 *of_on = &on.node.gpu_views[gpu];

	CHECK_EQ(of_whole->known, of_on->known);
	CHECK_EQ(of_whole->sm_activity_ppm, of_on->sm_activity_ppm);
	CHECK_EQ(a->load_ppm, b->load_ppm);
	CHECK_EQ(a->duty_ppm, b->duty_ppm);
	CHECK_EQ(a->sm_share_ppm, b->sm_share_ppm);
	CHECK_EQ(a->state, b->state);
}

static void are_same(void)
{
	for (unsigned i = 0; i < PROGRAMS; i++)
		is_same(&whole.fakes[i], &on.fakes[i]);
	CHECK_EQ(whole.node.shown_count, on.node.shown_count);
	for (uint32_t row = 0; row < on.node.shown_count; row++)
		is_shown_the_same(row);
	for (uint32_t gpu = 0; gpu < GPUS; gpu++)
		are_judged_the_same(gpu);
}

/* Time passes. Returns whether a program has answered, so that the next step is a whole one. */
static bool pass(bool changed)
{
	uint64_t wakeup = 0, others = 0, before = whole.node.next_seq + on.node.next_seq;
	unsigned closings = 0, after = 0;

	for (unsigned i = 0; i < PROGRAMS; i++)
		closings += on.fakes[i].closings;
	enter(&whole);
	wakeup = td_node_step(&whole.node, whole.now);
	enter(&on);
	if (changed || !td_node_step_on(&on.node, on.now, &others))
		others = td_node_step(&on.node, on.now);
	else
		short_steps++;
	CHECK_EQ(wakeup, others);
	for (unsigned i = 0; i < PROGRAMS; i++)
		after += on.fakes[i].closings;
	if (before == whole.node.next_seq + on.node.next_seq && closings == after)
		return false;
	enter(&whole);
	(void)settle(&whole);
	enter(&on);
	(void)settle(&on);
	return true;
}

static void compare(enum td_mps with, uint32_t from)
{
	bool changed = true;

	begin_both(with, from);
	for (int step = 0; step < 3000; step++) {
		uint32_t what = random_below(100), i = random_below(PROGRAMS),
			 clock_mhz = 600 + random_below(1000);

		works();
		if (what < 5) {
			happens(&whole, what, i, clock_mhz);
			happens(&on, what, i, clock_mhz);
			changed = true;
		}
		changed = pass(changed);
		are_same();
		whole.now = on.now += 10 * MS;
	}
	CHECK(short_steps > 500);
	td_node_deinit(&whole.node);
	td_node_deinit(&on.node);
	whole.node.policy_state = on.node.policy_state = NULL;
}

/* They drain and fill a while after they were told to: that long, nothing but time passes. */
static void answer_late(uint32_t from)
{
	bool changed = true;

	begin_both(TD_MPS_ON, from);
	for (int step = 0; step < 3000; step++) {
		uint64_t wakeup, other = 0;

		works();
		if (random_below(100) < 5) {
			uint32_t what = random_below(4), i = random_below(PROGRAMS),
				 clock_mhz = 600 + random_below(1000);

			happens_slowly(&whole, what, i, clock_mhz);
			happens_slowly(&on, what, i, clock_mhz);
			changed = true;
		}
		enter(&whole);
		wakeup = td_node_step(&whole.node, whole.now);
		enter(&on);
		if (changed || !td_node_step_on(&on.node, on.now, &other))
			other = td_node_step(&on.node, on.now);
		else
			short_steps++;
		CHECK_EQ(wakeup, other);
		are_same();
		changed = false;
		for (unsigned i = 0; i < PROGRAMS; i++)
			if (!random_below(60)) {
				enter(&whole);
				fake_act(&whole, &whole.fakes[i]);
				enter(&on);
				fake_act(&on, &on.fakes[i]);
				changed = true;
			}
		whole.now = on.now += 10 * MS;
	}
	CHECK(short_steps > 500);
	td_node_deinit(&whole.node);
	td_node_deinit(&on.node);
	whole.node.policy_state = on.node.policy_state = NULL;
}

TEST(programs_that_answer_late)
{
	for (uint32_t from = 21; from <= 30; from++)
		answer_late(from);
}

TEST(side_by_side_under_mps)
{
	for (uint32_t from = 1; from <= 5; from++)
		compare(TD_MPS_ON, from);
}

TEST(where_programs_take_turns)
{
	for (uint32_t from = 11; from <= 13; from++)
		compare(TD_MPS_OFF, from);
}

/* A step at the time of the last one, without an event, does nothing. */
static void does_nothing_again(struct world *w, uint64_t wakeup)
{
	uint32_t words[PROGRAMS], seq = w->node.next_seq;
	struct td_pacing pacing[PROGRAMS];
	uint64_t events = w->node.events.next;

	for (unsigned i = 0; i < PROGRAMS; i++) {
		words[i] = w->fakes[i].word;
		pacing[i] = w->fakes[i].pacing;
	}
	enter(w);
	CHECK_EQ(td_node_step(&w->node, w->now), wakeup);
	CHECK_EQ(w->node.next_seq, seq);
	CHECK_EQ(w->node.events.next, events);
	for (unsigned i = 0; i < PROGRAMS; i++) {
		CHECK_EQ(w->fakes[i].word, words[i]);
		CHECK(!memcmp(&w->fakes[i].pacing, &pacing[i], sizeof(pacing[i])));
	}
}

TEST(a_second_step_does_nothing)
{
	begin_both(TD_MPS_ON, 21);
	for (int step = 0; step < 1000; step++) {
		uint32_t what = random_below(100), seq;
		uint64_t wakeup;

		works();
		if (what < 5)
			happens(&on, what, random_below(PROGRAMS), 600 + random_below(1000));
		seq = on.node.next_seq;
		enter(&on);
		wakeup = td_node_step(&on.node, on.now);
		if (on.node.next_seq == seq && wakeup > on.now)
			does_nothing_again(&on, wakeup);
		else
			(void)settle(&on);
		on.now += 10 * MS;
	}
}

/* The rows of the last step named it. */
TEST(a_whole_step_follows_the_end_of_a_program)
{
	uint64_t wakeup;

	begin_both(TD_MPS_ON, 1);
	CHECK(td_node_step_on(&on.node, on.now + MS, &wakeup));
	fake_dies(&on, &on.fakes[3]);
	CHECK(!td_node_step_on(&on.node, on.now + 2 * MS, &wakeup));
}

TEST(other_policies_take_whole_steps)
{
	uint64_t wakeup;

	begin_both(TD_MPS_ON, 1);
	CHECK(td_node_step_on(&on.node, on.now + MS, &wakeup));
	CHECK_EQ(td_options_set(&on.node.options, "policy", "nvshare", NULL), 0);
	td_node_options_changed(&on.node, on.now, "policy");
	(void)settle(&on);
	CHECK(!td_node_step_on(&on.node, on.now + MS, &wakeup));
}
