/*
 * tandem's scheduler of a cluster: guests where it gains, moves that pay and do not swing,
 * guaranteed jobs as by quota, no job starves.
 */
#include "test.h"

#include <errno.h>
#include <stdlib.h>

#include "policy/cluster/tandem_cluster.h"

#define S       1000000000ull
#define JOBS    256u
#define ACTIONS 64u

enum { HEAVY, LIGHT, HALF, MORE, KINDS };

static const double demands[KINDS] = {0.9, 0.2, 0.5, 0.6};
static struct td_tandem_cluster cluster;
static void *memory;
static struct td_tandem_action actions[ACTIONS];
static uint32_t count, gpus[TD_GANG_MAX];

static struct td_tandem_cluster_params params;

static void start_with(const uint32_t *nodes, uint32_t n, uint64_t gpu_bytes, uint32_t quota)
{
	const uint32_t quotas[] = {quota, quota};
	uint32_t total = 0;
	size_t bytes;

	for (uint32_t i = 0; i < n; i++)
		total += nodes[i];
	bytes = td_tandem_cluster_bytes(n, total, JOBS, KINDS);
	free(memory);
	memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	CHECK_EQ(td_tandem_cluster_init(&cluster, memory, bytes, &params, nodes, n, gpu_bytes,
			 quotas, 2, JOBS, demands, KINDS),
		0);
}

static void start_cluster(const uint32_t *nodes, uint32_t n, uint64_t gpu_bytes, uint32_t quota)
{
	params = td_tandem_cluster_default;
	start_with(nodes, n, gpu_bytes, quota);
}

static int submit(uint32_t job, uint32_t n, uint32_t kind, bool guaranteed, uint64_t now)
{
	const struct td_tandem_request request = {
		.gpus = n, .kind = kind, .guaranteed = guaranteed, .bytes = 4};

	return td_tandem_cluster_submit(&cluster, job, &request, now);
}

static void step(uint64_t now)
{
	count = td_tandem_cluster_step(&cluster, now, actions, ACTIONS);
}

static uint32_t gpu_of(uint32_t job)
{
	return td_tandem_cluster_gpus(&cluster, job, gpus) ? gpus[0] : 999;
}

/* A node of two GPUs, and three jobs at once that ask for one each; guaranteed: the first is. */
static void start_three(uint32_t first, uint32_t second, uint32_t third, bool guaranteed)
{
	const uint32_t nodes[] = {2};

	start_cluster(nodes, 1, 0, 2);
	submit(0, 1, first, guaranteed, 0);
	submit(1, 1, second, false, 0);
	submit(2, 1, third, false, 0);
	step(0);
}

TEST(a_guest_goes_to_an_idle_gpu_and_beside_the_one_with_room_when_there_is_none)
{
	const uint32_t nodes[] = {3};

	start_cluster(nodes, 1, 0, 3);
	submit(0, 1, HEAVY, false, 0);
	submit(1, 1, LIGHT, false, 0);
	submit(2, 1, HEAVY, false, 0);
	step(0);
	CHECK_EQ(count, 3);
	CHECK(gpu_of(0) != gpu_of(1) && gpu_of(1) != gpu_of(2) && gpu_of(0) != gpu_of(2));
	submit(3, 1, LIGHT, false, S);
	step(S);
	CHECK_EQ(gpu_of(3), gpu_of(1));
}

/*
 * Two of 0.5 and one more ask for 1.5 GPUs, though no two of them ask for more than one; beside one
 * of 0.6 it is 1.1.
 */
TEST(three_are_counted_together)
{
	start_three(HALF, MORE, HALF, false);
	CHECK_EQ(gpu_of(2), gpu_of(0));
	submit(3, 1, HALF, false, S);
	step(S);
	CHECK_EQ(gpu_of(3), gpu_of(1));
}

TEST(memory_that_is_not_there_keeps_a_guest_away)
{
	const uint32_t nodes[] = {1};

	start_cluster(nodes, 1, 7, 1);
	submit(0, 1, LIGHT, false, 0);
	submit(1, 1, LIGHT, false, 0);
	step(0);
	CHECK_EQ(count, 1);
	td_tandem_cluster_finish(&cluster, 0, S);
	step(S);
	CHECK_EQ(count, 1);
	CHECK_EQ(actions[0].job, 1);
}

/*
 * One of two GPUs is full of memory. A job that asks for both fails, and so does each later job
 * that asks for as much. A job that asks for one, or is of another kind, does not.
 */
TEST(one_that_fails_keeps_back_only_who_asks_as_much)
{
	const uint32_t nodes[] = {2};

	start_cluster(nodes, 1, 7, 2);
	submit(0, 1, LIGHT, false, 0);
	step(0);
	submit(1, 2, LIGHT, false, S);
	submit(2, 2, LIGHT, false, S);
	submit(3, 1, LIGHT, false, S);
	step(S);
	CHECK_EQ(count, 1);
	CHECK_EQ(actions[0].job, 3);
	td_tandem_cluster_finish(&cluster, 0, 2 * S);
	td_tandem_cluster_finish(&cluster, 3, 2 * S);
	step(2 * S);
	CHECK_EQ(count, 1);
	CHECK_EQ(actions[0].job, 1);
}

TEST(what_was_seen_of_a_pair_decides_from_then_on)
{
	const uint32_t nodes[] = {2};

	start_cluster(nodes, 1, 0, 2);
	submit(0, 1, LIGHT, false, 0);
	submit(1, 1, HEAVY, false, 0);
	step(0);
	/*
	 * By its demand a light one would go beside the light one; the observed speeds make that
	 * the worse GPU.
	 */
	td_tandem_cluster_observe(&cluster, LIGHT, LIGHT, false, 0.4);
	td_tandem_cluster_observe(&cluster, LIGHT, HEAVY, false, 0.95);
	td_tandem_cluster_observe(&cluster, HEAVY, LIGHT, false, 0.95);
	submit(2, 1, LIGHT, false, S);
	step(S);
	CHECK_EQ(gpu_of(2), gpu_of(1));
}

TEST(nobody_goes_beside_a_holder_that_leaves_nothing)
{
	const uint32_t nodes[] = {1};

	start_cluster(nodes, 1, 0, 1);
	submit(0, 1, HEAVY, true, 0);
	submit(1, 1, HEAVY, false, 0);
	step(0);
	CHECK_EQ(actions[0].verb, TD_TANDEM_START);
	td_tandem_cluster_observe(&cluster, HEAVY, HEAVY, true, 0.02);
	submit(2, 1, HEAVY, false, S);
	step(S);
	CHECK_EQ(gpu_of(2), 999);
}

TEST(a_service_holds_its_gpu)
{
	const uint32_t nodes[] = {2};

	start_cluster(nodes, 1, 0, 2);
	td_tandem_cluster_serve(&cluster, 0, LIGHT, 1);
	submit(0, 1, HEAVY, true, 0);
	submit(1, 1, HEAVY, true, 0);
	submit(2, 1, LIGHT, false, 0);
	step(0);
	CHECK_EQ(gpu_of(0), 1);
	CHECK_EQ(gpu_of(1), 999);
	CHECK_EQ(gpu_of(2), 0);
}

TEST(a_guest_moves_when_it_gains_and_not_at_once_again)
{
	start_three(HEAVY, MORE, MORE, true);
	CHECK_EQ(gpu_of(1), gpu_of(2));
	td_tandem_cluster_finish(&cluster, 0, 100 * S);
	step(100 * S);
	CHECK_EQ(count, 0); /* it has just started */
	step(400 * S);
	CHECK_EQ(count, 1);
	CHECK_EQ(actions[0].verb, TD_TANDEM_MOVE);
	CHECK(gpu_of(1) != gpu_of(2));
	step(1000 * S);
	CHECK_EQ(count, 0);
}

/* Where a move costs a tenth of a second a guest moves in a second, not in five minutes. */
TEST(times_follow_what_a_move_costs)
{
	const uint32_t nodes[] = {2};

	for (int cheap = 0; cheap < 2; cheap++) {
		params = cheap ? td_tandem_cluster_params_of(S / 10) : td_tandem_cluster_default;
		start_with(nodes, 1, 0, 2);
		for (uint32_t job = 0; job < 3; job++)
			submit(job, 1, MORE, false, 0);
		step(0);
		CHECK_EQ(count, 3);
		CHECK_EQ(gpu_of(2), gpu_of(0));
		td_tandem_cluster_finish(&cluster, 1, S);
		step(S);
		CHECK_EQ(count, cheap);
		CHECK_EQ(gpu_of(2) != gpu_of(0), cheap);
	}
}

TEST(who_has_waited_for_long_is_not_overtaken_on_idle_gpus)
{
	const uint32_t nodes[] = {2};

	params = td_tandem_cluster_default;
	params.preempts = false;
	start_with(nodes, 1, 0, 2);
	submit(0, 1, HEAVY, true, 0);
	step(0);
	td_tandem_cluster_observe(&cluster, HEAVY, HEAVY, true, 0.01);
	submit(1, 2, HEAVY, false, 0);
	submit(2, 1, HEAVY, false, S);
	step(S);
	CHECK_EQ(gpu_of(2), 1);
	td_tandem_cluster_finish(&cluster, 2, 2 * S);
	submit(3, 1, HEAVY, false, 3600 * S);
	step(3600 * S);
	CHECK_EQ(count, 0);
	td_tandem_cluster_finish(&cluster, 0, 3601 * S);
	step(3601 * S);
	CHECK_EQ(actions[0].job, 1);
}

static uint32_t random_below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((*seed >> 33) % n);
}

/*
 * Two services whose rooms alternate, and a guest: returns how often it moves in 48 hours;
 * *ret_work_s is its work less the cost of its moves.
 */
static uint32_t swing(double low, double high, uint64_t half_s, double *ret_work_s)
{
	const uint32_t nodes[] = {2};
	uint32_t moves = 0;

	start_cluster(nodes, 1, 0, 2);
	td_tandem_cluster_serve(&cluster, 0, LIGHT, 0);
	td_tandem_cluster_serve(&cluster, 1, LIGHT, 0);
	*ret_work_s = 0;
	for (uint64_t s = 0; s < 48 * 3600; s += 10) {
		bool odd = s / half_s % 2;

		td_tandem_cluster_room(&cluster, 0, odd ? low : high, s * S);
		td_tandem_cluster_room(&cluster, 1, odd ? high : low, s * S);
		if (!s)
			submit(0, 1, LIGHT, false, 0);
		step(s * S);
		if (count && actions[0].verb == TD_TANDEM_MOVE) {
			moves++;
			*ret_work_s -= 60;
		}
		/* Where there is no room at all it waits. */
		if (gpu_of(0) < 2)
			*ret_work_s += 10 * cluster.rooms[gpu_of(0)].now;
	}
	return moves;
}

TEST(a_load_curve_with_a_short_period_moves_nobody)
{
	double work;

	for (uint64_t half = 10; half <= 150; half += 20)
		for (double low = 0; low < 0.9; low += 0.2)
			for (double high = low; high <= 1; high += 0.2)
				CHECK_EQ(swing(low, high, half, &work), 0);
}

TEST(whatever_the_period_moves_never_cost_much)
{
	for (uint64_t half = 60; half < 6 * 3600; half += half / 2) {
		for (double swings = 0.1; swings < 1; swings += 0.1) {
			double work, stayed = 48 * 3600 * 0.5;
			uint32_t moves = swing(0.5 - swings / 2, 0.5 + swings / 2, half, &work);

			/*
			 * A guest that stays has the mean, and up to half a period more. A guest
			 * that goes wrong learns that in a few moves.
			 */
			if (!(work >= 0.95 * stayed - swings * (double)half))
				test_fail(__FILE__, __LINE__,
					"%u moves, %.0f s of work, %.0f without, swings of %.1f "
					"each %u s",
					moves, work, stayed, swings, (uint32_t)half);
			CHECK(moves <= 48 * 3600 / half + 1);
		}
	}
}

TEST(a_guest_whose_moves_never_pay_moves_ever_more_seldom)
{
	const uint32_t nodes[] = {4};
	uint32_t moves = 0, hour[48] = {0};

	start_cluster(nodes, 1, 0, 4);
	for (uint32_t g = 0; g < 4; g++)
		td_tandem_cluster_serve(&cluster, g, LIGHT, 0);
	submit(0, 1, LIGHT, false, 0);
	/* Wherever it is there is no room, and all other places look empty. */
	for (uint64_t s = 0; s < 48 * 3600; s += 30) {
		for (uint32_t g = 0; g < 4; g++)
			td_tandem_cluster_room(&cluster, g, g == gpu_of(0) ? 0.11 : 0.9, s * S);
		step(s * S);
		if (count && actions[0].verb == TD_TANDEM_MOVE) {
			moves++;
			hour[s / 3600]++;
		}
	}
	CHECK(moves >= 2 && moves <= 10);
	for (int h = 0; h < 48; h++)
		CHECK(hour[h] <= 4);
}

TEST(rooms_that_wander_move_each_guest_once_in_two_hours_at_most)
{
	enum { GPUS = 8, GUESTS = 4, HOURS = 96 };
	const uint32_t nodes[] = {GPUS};
	uint32_t level[GPUS], moves = 0;
	uint64_t seed = 3;

	start_cluster(nodes, 1, 0, GPUS);
	for (uint32_t g = 0; g < GPUS; g++) {
		td_tandem_cluster_serve(&cluster, g, LIGHT, 0);
		level[g] = random_below(&seed, 6);
	}
	for (uint32_t id = 0; id < GUESTS; id++)
		submit(id, 1, LIGHT, false, 0);
	/* Five minutes a step of one level in six, and noise on top each half minute. */
	for (uint64_t s = 0; s < HOURS * 3600; s += 30) {
		for (uint32_t g = 0; g < GPUS; g++) {
			uint32_t way = s % 300 ? 1 : random_below(&seed, 3);

			level[g] += (way == 2 && level[g] < 5) - (way == 0 && level[g] > 0);
			td_tandem_cluster_room(&cluster, g,
				0.1 + 0.1 * level[g] + 0.02 * random_below(&seed, 11), s * S);
		}
		step(s * S);
		for (uint32_t a = 0; a < count; a++)
			moves += actions[a].verb == TD_TANDEM_MOVE;
	}
	CHECK(moves <= GUESTS * HOURS / 2);
}

TEST(a_guaranteed_job_takes_gpus_without_guests_first)
{
	const uint32_t nodes[] = {4, 4};

	start_cluster(nodes, 2, 0, 8);
	for (uint32_t id = 0; id < 4; id++)
		submit(id, 1, HEAVY, false, 0);
	step(0);
	submit(10, 4, HEAVY, true, S);
	step(S);
	CHECK_EQ(count, 1);
	CHECK_EQ(td_tandem_cluster_gpus(&cluster, 10, gpus), 4);
	for (uint32_t k = 0; k < 4; k++)
		CHECK_EQ(cluster.gpus.guest_count[gpus[k]], 0);
	submit(11, 2, HEAVY, true, 2 * S);
	step(2 * S);
	CHECK_EQ(td_tandem_cluster_gpus(&cluster, 11, gpus), 2);
}

static void check_invariants(void)
{
	const struct td_inventory *v = &cluster.gpus;
	uint32_t guests[64] = {0}, total = 0;

	for (uint32_t id = 0; id < JOBS; id++) {
		uint32_t n = td_tandem_cluster_gpus(&cluster, id, gpus);

		CHECK(n == 0 || n == cluster.jobs[id].gpus);
		for (uint32_t k = 0; k < n; k++) {
			for (uint32_t m = 0; m < k; m++)
				CHECK(gpus[m] != gpus[k]);
			if (cluster.jobs[id].guest)
				guests[gpus[k]]++;
			else
				CHECK_EQ(v->holder[gpus[k]], id);
		}
		total += n && cluster.jobs[id].guest;
	}
	CHECK_EQ(total, cluster.running_count);
	for (uint32_t g = 0; g < v->gpu_count; g++) {
		uint64_t bytes = 0;

		CHECK_EQ(guests[g], v->guest_count[g]);
		CHECK(guests[g] <= td_tandem_cluster_default.together);
		for (uint32_t k = 0; k < v->guest_count[g]; k++)
			bytes += cluster.jobs[v->guest[g * TD_GUESTS + k]].bytes;
		CHECK(bytes <= 16);
	}
}

TEST(random_events_never_break_an_invariant)
{
	const uint32_t nodes[] = {4, 8, 2, 8, 1};
	uint64_t seed = 5, now = 0;

	for (int run = 0; run < 20; run++) {
		start_cluster(nodes, 5, 16, 20);
		td_tandem_cluster_serve(&cluster, 3, HEAVY, 2);
		for (int event = 0; event < 1000; event++) {
			uint32_t job = random_below(&seed, JOBS);

			now += random_below(&seed, 60) * S;
			if (random_below(&seed, 3))
				(void)submit(job, 1 + random_below(&seed, 6),
					random_below(&seed, KINDS), random_below(&seed, 3) == 0,
					now);
			else
				td_tandem_cluster_finish(&cluster, job, now);
			td_tandem_cluster_observe(&cluster, random_below(&seed, KINDS),
				random_below(&seed, KINDS), random_below(&seed, 2),
				random_below(&seed, 101) / 100.);
			step(now);
			CHECK(count < ACTIONS);
			check_invariants();
		}
		for (uint32_t id = 0; id < JOBS; id++)
			td_tandem_cluster_finish(&cluster, id, now);
		CHECK_EQ(cluster.running_count, 0);
		CHECK_EQ(cluster.las.waiting + cluster.las.running, 0);
		check_invariants();
	}
}

/* --- preemption --- */

TEST(a_job_that_comes_takes_the_place_of_one_that_has_run_for_long)
{
	const uint32_t nodes[] = {1};

	start_cluster(nodes, 1, 4, 1);
	submit(0, 1, HEAVY, false, 0);
	step(0);
	submit(1, 1, HEAVY, false, 500 * S);
	step(500 * S);
	CHECK_EQ(count, 0); /* it is at the same level: nobody is stopped for it */
	step(700 * S);
	CHECK_EQ(count, 2);
	CHECK_EQ(actions[0].verb, TD_TANDEM_PREEMPT);
	CHECK_EQ(actions[0].job, 0);
	CHECK_EQ(actions[1].verb, TD_TANDEM_START_GUEST);
	CHECK_EQ(actions[1].job, 1);
	CHECK_EQ(gpu_of(0), 999);
	td_tandem_cluster_finish(&cluster, 1, 800 * S);
	step(800 * S);
	CHECK_EQ(gpu_of(0), 0);
}

static void submit_one_that_stays(uint32_t job, uint32_t kind, bool guaranteed)
{
	const struct td_tandem_request request = {
		.gpus = 1, .kind = kind, .guaranteed = guaranteed, .bytes = 4, .stays = true};

	CHECK_EQ(td_tandem_cluster_submit(&cluster, job, &request, 0), 0);
}

/* The first guest may not be stopped, so a guaranteed job comes beside it. */
TEST(a_guest_that_stays_is_not_stopped)
{
	const uint32_t nodes[] = {1};

	start_cluster(nodes, 1, 0, 1);
	submit_one_that_stays(0, HEAVY, false);
	step(0);
	submit(1, 1, HEAVY, false, 500 * S);
	step(500 * S);
	step(700 * S);
	CHECK_EQ(count, 0);
	td_tandem_cluster_observe(&cluster, HEAVY, HEAVY, true, 0.01);
	submit(2, 1, HEAVY, true, 800 * S);
	step(800 * S);
	CHECK_EQ(count, 1);
	CHECK_EQ(actions[0].verb, TD_TANDEM_START);
	CHECK_EQ(gpu_of(0), 0);
	CHECK_EQ(gpu_of(2), 0);
}

/* GPUs of 7 bytes, of which each job needs 4. */
TEST(a_holder_fits_beside_the_guests_where_no_memory_moves)
{
	const uint32_t nodes[] = {1, 1};

	start_cluster(nodes, 2, 7, 2);
	cluster.is_hard = true;
	submit_one_that_stays(0, LIGHT, false);
	submit(1, 1, LIGHT, false, 0);
	step(0);
	CHECK_EQ(count, 2);
	submit(2, 1, LIGHT, true, 800 * S);
	step(800 * S);
	CHECK_EQ(count, 2);
	CHECK_EQ(actions[0].verb, TD_TANDEM_PREEMPT);
	CHECK_EQ(actions[0].job, 1);
	CHECK_EQ(gpu_of(2), 1 - gpu_of(0));
	/* There is no room for another holder, because the guest stays. */
	submit(3, 1, LIGHT, true, 900 * S);
	step(900 * S);
	CHECK_EQ(count, 0);
}

TEST(a_guaranteed_job_that_stays_keeps_its_quota)
{
	const uint32_t nodes[] = {2};

	start_cluster(nodes, 1, 0, 1);
	submit_one_that_stays(0, HEAVY, true);
	step(0);
	submit(1, 1, HEAVY, true, 500 * S);
	for (uint64_t s = 500; s < 7000; s += 100) {
		step(s * S);
		CHECK_EQ(count, 0);
	}
	td_tandem_cluster_finish(&cluster, 0, 7000 * S);
	step(7000 * S);
	CHECK_EQ(count, 1);
}

TEST(a_guest_that_stays_does_not_move)
{
	const uint32_t nodes[] = {2};

	start_cluster(nodes, 1, 0, 2);
	submit(0, 1, HEAVY, true, 0);
	submit_one_that_stays(1, MORE, false);
	submit_one_that_stays(2, MORE, false);
	step(0);
	CHECK_EQ(gpu_of(1), gpu_of(2));
	td_tandem_cluster_finish(&cluster, 0, 100 * S);
	step(100 * S);
	step(400 * S);
	CHECK_EQ(count, 0);
}

TEST(nobody_is_stopped_where_preemption_is_off)
{
	const uint32_t nodes[] = {1};

	params = td_tandem_cluster_default;
	params.preempts = false;
	start_with(nodes, 1, 4, 1);
	submit(0, 1, HEAVY, false, 0);
	step(0);
	submit(1, 1, HEAVY, false, 7000 * S);
	step(7000 * S);
	step(9000 * S);
	CHECK_EQ(gpu_of(0), 0);
}

/* A gang needs both GPUs, of which one has a job that has only just begun. */
TEST(a_gang_stops_nobody_unless_it_gets_all_of_its_gpus)
{
	const uint32_t nodes[] = {2};

	start_cluster(nodes, 1, 4, 2);
	submit(0, 1, HEAVY, false, 0);
	step(0);
	submit(1, 1, HEAVY, false, 700 * S);
	step(700 * S);
	submit(2, 2, HEAVY, false, 710 * S);
	step(770 * S);
	CHECK_EQ(count, 0);
	step(1400 * S);
	CHECK_EQ(count, 3);
	CHECK_EQ(td_tandem_cluster_gpus(&cluster, 2, gpus), 2);
}

/* The quota fits the cluster, so a guaranteed job waits for no guest, however young that is. */
TEST(a_guaranteed_job_within_its_quota_stops_guests_at_once)
{
	const uint32_t nodes[] = {1}, quota = 1;
	size_t bytes = td_tandem_cluster_bytes(1, 1, JOBS, KINDS);

	free(memory);
	memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	CHECK_EQ(td_tandem_cluster_init(&cluster, memory, bytes, &td_tandem_cluster_default, nodes,
			 1, 0, &quota, 1, JOBS, demands, KINDS),
		0);
	submit(0, 1, HEAVY, false, 0);
	step(0);
	td_tandem_cluster_observe(&cluster, HEAVY, HEAVY, true, 0.01);
	submit(1, 1, HEAVY, true, S);
	step(S);
	CHECK_EQ(count, 2);
	CHECK_EQ(actions[0].verb, TD_TANDEM_PREEMPT);
	CHECK_EQ(actions[1].verb, TD_TANDEM_START);
	for (uint64_t s = 60; s < 7200; s += 60) {
		step(s * S);
		CHECK_EQ(gpu_of(1), 0);
	}
}

/* Both tenants own one of two GPUs: neither takes the other's, however long that has run. */
TEST(quotas_that_fit_are_kept_between_tenants)
{
	const uint32_t nodes[] = {2}, quotas[] = {1, 1};
	size_t bytes = td_tandem_cluster_bytes(1, 2, JOBS, KINDS);
	struct td_tandem_request request = {.gpus = 1, .kind = HEAVY, .guaranteed = true};

	free(memory);
	memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	CHECK_EQ(td_tandem_cluster_init(&cluster, memory, bytes, &td_tandem_cluster_default, nodes,
			 1, 0, quotas, 2, JOBS, demands, KINDS),
		0);
	for (uint32_t id = 0; id < 2; id++, request.tenant++)
		CHECK_EQ(td_tandem_cluster_submit(&cluster, id, &request, 0), 0);
	step(0);
	CHECK_EQ(count, 2);
	request.tenant = 0;
	for (uint32_t id = 2; id < 6; id++)
		CHECK_EQ(td_tandem_cluster_submit(&cluster, id, &request, S), 0);
	for (uint64_t s = 60; s < 20000; s += 60) {
		step(s * S);
		CHECK(gpu_of(1) != 999);
		CHECK(cluster.used[0] <= 1);
	}
	request.gpus = 2;
	CHECK_EQ(td_tandem_cluster_submit(&cluster, 9, &request, S), -EDQUOT);
}

/* 40 jobs for one GPU, all alike: each has its turns, and nobody is stopped twice in a minute. */
TEST(all_who_wait_have_their_turn)
{
	const uint32_t nodes[] = {1};
	uint32_t stops[40] = {0}, turns[40] = {0};

	start_cluster(nodes, 1, 4, 1);
	for (uint32_t id = 0; id < 40; id++)
		submit(id, 1, HEAVY, false, 0);
	for (uint64_t s = 0; s < 200000; s += 30) {
		step(s * S);
		for (uint32_t a = 0; a < count; a++)
			if (actions[a].verb == TD_TANDEM_PREEMPT)
				stops[actions[a].job]++;
			else
				turns[actions[a].job]++;
	}
	for (uint32_t id = 0; id < 40; id++) {
		CHECK(turns[id] >= 2);
		CHECK(stops[id] <= 20);
	}
}
