/*
 * Programs with duties that share a GPU, on a simulated clock: the arithmetic of the duty
 * (preload/gate/budget.h) and exclusive moments (policy/node/alone.h) together. The GPU serves the
 * programs in slices, or side by side, which neither knows.
 */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "policy/node/alone.h"
#include "preload/gate/budget.h"
#include "preload/gate/hold.h"

#define MS        TD_NS_PER_MS
#define TICK_NS   (50 * TD_NS_PER_US)
#define SLICE_NS  (2 * MS)
#define SWITCH_NS (100 * TD_NS_PER_US)
#define WINDOW_NS (500 * MS)
#define HASH      77
#define PROGRAMS  3

struct program {
	uint32_t duty_ppm;
	uint64_t piece_ns; /* its work comes in pieces of this length */
	struct td_budget budget;
	struct td_solo solo;
	struct td_alone_tenant tenant;
	uint64_t left_ns;  /* of the piece in flight; 0: none is */
	uint64_t begun_ns; /* that */
	uint32_t piece_alone;
	uint32_t let_through;
	uint64_t look_ns; /* a host is late by chance, and then asks again */
	uint64_t used_ns; /* of the GPU, within the window */
};

static struct {
	struct program programs[PROGRAMS];
	unsigned count, seed;
	struct td_alone alone;
	uint32_t last_moment;
	uint64_t alone_next_ns, now;
	bool side_by_side;
	bool moments; /* are given */
	/* in slices: whose it is, what is left of it, of the change to it */
	unsigned turn;
	uint64_t slice_ns, switch_ns;
} w;

static void submit(struct program *p)
{
	uint64_t wait = td_budget_wait_ns(&p->budget, 0, p->duty_ppm, w.now);

	if (p->tenant.ret_hold) {
		p->tenant.dry = p->tenant.ret_hold;
		return;
	}
	if (p->tenant.ret_alone && p->let_through != p->tenant.ret_alone)
		wait = 0;
	if (wait)
		return;
	p->left_ns = p->piece_ns;
	p->begun_ns = w.now - TICK_NS;
	p->piece_alone = p->let_through = p->tenant.ret_alone;
}

static void end(struct program *p)
{
	bool alone = p->piece_alone && p->piece_alone == p->tenant.ret_alone;
	enum td_interval kind = alone ? TD_INTERVAL_ALONE : TD_INTERVAL_CHECKED;
	/* the way of the launch to the GPU is in it, too */
	uint64_t took = w.now - p->begun_ns + (uint64_t)rand_r(&w.seed) % 50000;

	td_budget_charge(&p->budget, td_solo_correct(&p->solo, HASH, took, kind), p->duty_ppm);
	p->tenant.guesses += !td_solo_is_sure(&p->solo, HASH);
	if (alone)
		p->tenant.measured = p->piece_alone;
}

static void serve(struct program *p, uint64_t ns)
{
	ns = ns < p->left_ns ? ns : p->left_ns;
	p->left_ns -= ns;
	p->used_ns += ns;
	if (!p->left_ns)
		end(p);
}

static unsigned waiting(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w.count; i++)
		n += w.programs[i].left_ns > 0;
	return n;
}

static void serve_slices(void)
{
	unsigned before = w.turn;

	if (w.switch_ns) {
		w.switch_ns -= TICK_NS;
		return;
	}
	if (!w.programs[w.turn].left_ns || !w.slice_ns) {
		for (unsigned i = 1; i <= w.count; i++)
			if (w.programs[(before + i) % w.count].left_ns) {
				w.turn = (before + i) % w.count;
				break;
			}
		w.slice_ns = SLICE_NS;
		if (w.turn != before) {
			w.switch_ns = SWITCH_NS;
			return;
		}
	}
	if (waiting() > 1)
		w.slice_ns -= TICK_NS;
	if (w.programs[w.turn].left_ns)
		serve(&w.programs[w.turn], TICK_NS);
}

static void serve_side_by_side(void)
{
	unsigned n = waiting();

	for (unsigned i = 0; i < w.count; i++)
		if (w.programs[i].left_ns)
			serve(&w.programs[i], TICK_NS / n);
}

static void step_daemon(void)
{
	struct td_alone_tenant tenants[PROGRAMS];

	if (!w.moments || w.now < w.alone_next_ns)
		return;
	for (unsigned i = 0; i < w.count; i++)
		tenants[i] = w.programs[i].tenant;
	w.alone_next_ns = td_alone_step(&w.alone, tenants, w.count, &w.last_moment, w.now);
	for (unsigned i = 0; i < w.count; i++)
		w.programs[i].tenant = tenants[i];
}

static void tick(void)
{
	w.now += TICK_NS;
	step_daemon();
	for (unsigned i = 0; i < w.count; i++) {
		struct program *p = &w.programs[i];

		if (p->left_ns || w.now < p->look_ns)
			continue;
		submit(p);
		if (!p->left_ns)
			p->look_ns = w.now + (uint64_t)rand_r(&w.seed) % 500000;
	}
	if (w.side_by_side)
		serve_side_by_side();
	else
		serve_slices();
}

static void begin(unsigned seed, bool side_by_side)
{
	memset(&w, 0, sizeof(w));
	w.seed = seed;
	w.side_by_side = side_by_side;
	w.moments = true;
	w.now = 7000 * MS;
}

static void add(uint32_t duty_ppm, uint64_t piece_ns)
{
	struct program *p = &w.programs[w.count++];

	p->duty_ppm = duty_ppm;
	p->piece_ns = piece_ns;
	p->tenant.id = w.count;
	p->look_ns = w.now + (uint64_t)rand_r(&w.seed) % (40 * MS);
	td_budget_reset(&p->budget, w.now);
}

static void pass_window(void)
{
	uint64_t end_ns = w.now + WINDOW_NS;

	for (unsigned i = 0; i < w.count; i++)
		w.programs[i].used_ns = 0;
	while (w.now < end_ns)
		tick();
}

static double share(const struct program *p)
{
	return (double)p->used_ns / (double)WINDOW_NS;
}

/*
 * Returns the tolerance: 2 points, or the part of a window that one piece is, of its own or of
 * another that it waits for and catches up with.
 */
static double goal(void)
{
	double most = 0.02;

	for (unsigned i = 0; i < w.count; i++)
		if ((double)w.programs[i].piece_ns > most * (double)WINDOW_NS)
			most = (double)w.programs[i].piece_ns / (double)WINDOW_NS;
	return most;
}

/* Checks the shares over ten windows after the first half second. */
static void check_duties(bool reached)
{
	double sum[PROGRAMS] = {0};

	pass_window();
	for (unsigned n = 0; n < 10; n++) {
		pass_window();
		for (unsigned i = 0; i < w.count; i++) {
			const struct program *p = &w.programs[i];

			sum[i] += share(p) / 10;
			CHECK(share(p) <= p->duty_ppm / 1e6 + goal());
		}
	}
	for (unsigned i = 0; i < w.count; i++) {
		double cap = w.programs[i].duty_ppm / 1e6;

		CHECK(sum[i] <= cap + 0.02);
		CHECK(!reached || sum[i] >= cap - 0.02);
	}
}

TEST(two_programs_get_their_duties_and_no_more_whatever_the_length_of_their_work)
{
	static const uint32_t duties[][2] = {{300000, 600000}, {500000, 400000}, {100000, 800000},
		{200000, 200000}, {450000, 450000}};
	static const uint64_t pieces[][2] = {{20 * MS, 20 * MS}, {2 * MS, 20 * MS},
		{2 * MS, 2 * MS}, {20 * MS, 5 * MS}, {13 * MS, 7 * MS}};

	for (unsigned i = 0; i < 5; i++)
		for (unsigned k = 0; k < 5; k++)
			for (unsigned seed = 1; seed < 4; seed++) {
				begin(seed, seed == 3);
				add(duties[i][0], pieces[k][0]);
				add(duties[i][1], pieces[k][1]);
				/*
				 * A GPU that switches programs every few milliseconds has less to
				 * give.
				 */
				check_duties(duties[i][0] + duties[i][1] < 800000 ||
					     (pieces[k][0] == 20 * MS && pieces[k][1] == 20 * MS));
			}
}

TEST(three_programs_that_ask_for_all_of_it_get_no_more_than_their_duties)
{
	for (unsigned seed = 1; seed < 6; seed++) {
		begin(seed, seed == 5);
		add(300000, 20 * MS);
		add(300000, 10 * MS);
		add(400000, 4 * MS);
		check_duties(false);
	}
}

/* Without moments the duties must be missed, or the tests above would show nothing. */
TEST(without_moments_alone_the_same_programs_stay_far_below)
{
	double sum = 0;

	begin(1, false);
	w.moments = false;
	add(300000, 20 * MS);
	add(600000, 20 * MS);
	pass_window();
	for (unsigned n = 0; n < 10; n++) {
		pass_window();
		sum += (share(&w.programs[0]) + share(&w.programs[1])) / 10;
	}
	CHECK(sum < 0.85);
}

/* -- how long a process is held (preload/gate/hold.h) -- */

TEST(nobody_is_held_for_long_under_one_number)
{
	td_hold hold = 0;

	CHECK(td_hold_lasts(&hold, 3, 5000 * MS));
	CHECK(td_hold_lasts(&hold, 3, 4990 * MS)); /* a thread that read the clock before */
	CHECK(td_hold_lasts(&hold, 3, 5200 * MS));
	CHECK(!td_hold_lasts(&hold, 3, 5202 * MS));
	CHECK(!td_hold_lasts(&hold, 3, 100000 * MS));
	CHECK(td_hold_lasts(&hold, 4, 100000 * MS));
	/* the clock's milliseconds no longer fit 32 bits */
	CHECK(td_hold_lasts(&hold, 5, ((1ull << 32) - 5) * MS));
	CHECK(td_hold_lasts(&hold, 5, ((1ull << 32) + 5) * MS));
	CHECK(!td_hold_lasts(&hold, 5, ((1ull << 32) + 205) * MS));
}

#define MOMENTS 30000u

static td_hold shared_hold;
static _Atomic uint32_t arrived;
static _Atomic bool was_let_go;

/* Both threads ask about each moment at once; the moments are a second apart. */
static void *ask(void *arg)
{
	(void)arg;
	for (uint32_t n = 1; n <= MOMENTS; n++) {
		atomic_fetch_add(&arrived, 1);
		for (unsigned looks = 1; atomic_load(&arrived) < 2 * n; looks++)
			if (looks % 1024 == 0)
				sched_yield();
		if (!td_hold_lasts(&shared_hold, n, n * TD_NS_PER_S))
			atomic_store(&was_let_go, true);
	}
	return NULL;
}

TEST(no_thread_takes_a_new_moment_for_the_last_one)
{
	pthread_t other;

	CHECK_EQ(pthread_create(&other, NULL, ask, NULL), 0);
	(void)ask(NULL);
	CHECK_EQ(pthread_join(other, NULL), 0);
	CHECK(!atomic_load(&was_let_go));
}
