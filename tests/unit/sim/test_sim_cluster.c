/*
 * The engine with its schedulers: work is conserved, gangs are whole, guarantees hold, same seed
 * same run.
 */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "base/time.h"
#include "policy/algo/control/duty.h"
#include "sim/base/random.h"
#include "sim/scheduler/schedulers.h"

#define JOBS 600u

static struct td_profiles profiles;
static struct td_sim_job jobs[JOBS], again[JOBS];
static struct td_cluster cluster;
static struct td_cluster_options options;
static const uint32_t nodes[] = {4, 4, 8};

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-6 * fmax(1, fabs(b));
}

static void begin(void)
{
	td_profiles_generic(&profiles);
	options = (struct td_cluster_options){.contention = {.capped_pressure = 1},
		.costs = {.restart_s = 30, .checkpoint_s = 600}};
}

static struct td_sim_job make_job(
	double submit_s, double work_s, uint32_t gpus, enum td_class class)
{
	return (struct td_sim_job){.submit_ns = (uint64_t)(submit_s * 1e9),
		.work_s = work_s,
		.gpus = gpus,
		.class = class,
		.tenant = class == TD_CLASS_GUARANTEED ? 0 : 1};
}

static void run(const struct td_sched *sched, struct td_sim_job *list, uint32_t count)
{
	CHECK_EQ(td_cluster_init(
			 &cluster, &options, &profiles, nodes, 3, 16ull << 30, list, count, sched),
		0);
	td_cluster_run(&cluster);
}

static double end_s(uint32_t job)
{
	return (double)jobs[job].end_ns * 1e-9;
}

TEST(a_job_alone_takes_as_long_as_it_takes)
{
	for (int s = 0; td_scheds[s]; s++) {
		if (td_scheds[s]->knows_truth) /* it has 8 GPUs at most: test below */
			continue;
		begin();
		jobs[0] = make_job(5, 100, 3, TD_CLASS_GUARANTEED);
		run(td_scheds[s], jobs, 1);
		CHECK_EQ(jobs[0].status, TD_SIM_DONE);
		CHECK(near(end_s(0), 105));
		CHECK(near(cluster.counts.busy_gpu_s, 300));
		CHECK(near(cluster.counts.work_gpu_s, 300));
		td_cluster_deinit(&cluster);
	}
}

TEST(a_gang_waits_until_all_of_its_gpus_are_free_and_nobody_overtakes)
{
	begin();
	jobs[0] = make_job(0, 100, 10, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(1, 50, 8, TD_CLASS_BESTEFFORT);
	jobs[2] = make_job(2, 10, 1, TD_CLASS_BESTEFFORT);
	run(&td_sched_fifo, jobs, 3);
	CHECK(near(end_s(0), 100));
	CHECK(near(end_s(1), 150));
	CHECK(near(end_s(2), 110));
	td_cluster_deinit(&cluster);
}

TEST(two_jobs_packed_slow_each_other_down)
{
	double speed;

	begin();
	jobs[0] = make_job(0, 60, 16, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(0, 60, 16, TD_CLASS_BESTEFFORT);
	run(&td_sched_gandiva, jobs, 2);
	speed = 1 / (1 + 0.6 + 0.2 / 3);
	CHECK(near(end_s(0), 60 / speed));
	CHECK(near(end_s(1), 60 / speed));
	CHECK(near(cluster.counts.shared_gpu_s, 16 * 60 / speed));
	td_cluster_deinit(&cluster);
}

TEST(an_evicted_job_goes_back_to_its_checkpoint_and_pays_for_the_restart)
{
	begin();
	jobs[0] = make_job(0, 2000, 16, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(1000, 100, 2, TD_CLASS_GUARANTEED);
	run(&td_sched_preempt, jobs, 2);
	CHECK(near(end_s(1), 1100));
	CHECK_EQ(jobs[0].evictions, 1);
	/* At 600 of 1000 s again from 1100 s on, and 30 s more. */
	CHECK(near(end_s(0), 1100 + 1400 + 30));
	CHECK(near(cluster.counts.lost_s, 400 * 16));
	td_cluster_deinit(&cluster);
}

/* It has worked for 720 s, saves that, and pays 30 s for starting again. */
TEST(a_suspended_job_goes_on_where_it_was_and_pays_for_the_restart)
{
	begin();
	jobs[0] = make_job(0, 2000, 16, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(710, 100, 16, TD_CLASS_BESTEFFORT);
	for (uint32_t p = 0; p < profiles.count; p++)
		profiles.profiles[p].told_demand = 1;
	run(&td_sched_tandem, jobs, 2);
	CHECK_EQ(jobs[0].suspensions, 1);
	CHECK_EQ(cluster.counts.suspensions, 1);
	CHECK_EQ(jobs[0].evictions, 0);
	CHECK(end_s(1) < 710 + 60 + 100 + 1);
	CHECK(near(end_s(0), 2000 + 100 + 30));
	CHECK(near(cluster.counts.lost_s, 0));
	td_cluster_deinit(&cluster);
}

TEST(a_guest_leaves_the_guaranteed_job_its_speed)
{
	begin();
	jobs[0] = make_job(0, 1000, 16, TD_CLASS_GUARANTEED);
	jobs[1] = make_job(1, 100, 4, TD_CLASS_BESTEFFORT);
	for (uint32_t p = 0; p < profiles.count; p++)
		profiles.profiles[p].contender.demand = 0.5;
	run(&td_sched_antman, jobs, 2);
	CHECK_EQ(cluster.counts.beside_starts, 1);
	CHECK(end_s(0) < 1000 * 1.05);
	CHECK(jobs[1].status == TD_SIM_DONE);
	td_cluster_deinit(&cluster);
}

/*
 * The job that holds all GPUs has come 3 s after a tick: the monitor shows it at 13 s, and the
 * guest does not wait for the tick at 20.
 */
TEST(antmans_guest_starts_as_soon_as_the_monitor_shows_room)
{
	begin();
	for (uint32_t p = 0; p < profiles.count; p++)
		profiles.profiles[p].contender.demand = 0.5;
	jobs[0] = make_job(0, 1, 1, TD_CLASS_GUARANTEED);
	jobs[1] = make_job(3, 1000, 16, TD_CLASS_GUARANTEED);
	jobs[2] = make_job(4, 100, 4, TD_CLASS_BESTEFFORT);
	run(&td_sched_antman, jobs, 3);
	CHECK(near((double)jobs[1].start_ns * 1e-9, 3));
	CHECK(near((double)jobs[2].start_ns * 1e-9, 13));
	td_cluster_deinit(&cluster);
}

/*
 * Two of all GPUs one after the other and a last one that comes at 100 s: 16 GPUs are busy until 80
 * s, none from then to 100 s, and later time is not counted.
 */
TEST(how_busy_gpus_are_while_jobs_come_is_counted)
{
	begin();
	jobs[0] = make_job(0, 50, 16, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(1, 30, 16, TD_CLASS_BESTEFFORT);
	jobs[2] = make_job(100, 1000, 16, TD_CLASS_BESTEFFORT);
	run(&td_sched_fifo, jobs, 3);
	CHECK(near(cluster.counts.arriving_s, 100));
	CHECK(near(cluster.counts.arriving_busy_gpu_s, 16 * 80));
	CHECK(near(cluster.counts.busy_gpu_s, 16 * 1080));
	td_cluster_deinit(&cluster);
	/* The last one comes while the first two are at work. */
	jobs[2] = make_job(60, 1000, 16, TD_CLASS_BESTEFFORT);
	run(&td_sched_fifo, jobs, 3);
	CHECK(near(cluster.counts.arriving_s, 60));
	CHECK(near(cluster.counts.arriving_busy_gpu_s, 16 * 60));
	td_cluster_deinit(&cluster);
}

/*
 * A guest beside a holder, and half of the GPUs come free after 500 s: within a minute it has moved
 * to two of them for 30 s of work, once. AntMan's own guest stays beside the holder.
 */
TEST(antmans_guests_move_where_that_is_asked_for_and_stay_where_they_are_else)
{
	begin();
	for (uint32_t p = 0; p < profiles.count; p++)
		profiles.profiles[p].contender.demand = 0.5;
	for (int moves = 0; moves < 2; moves++) {
		jobs[0] = make_job(0, 5000, 8, TD_CLASS_GUARANTEED);
		jobs[1] = make_job(0, 500, 8, TD_CLASS_GUARANTEED);
		jobs[2] = make_job(1, 1000, 2, TD_CLASS_BESTEFFORT);
		run(moves ? &td_sched_antman_moving : &td_sched_antman, jobs, 3);
		CHECK(near((double)jobs[2].start_ns * 1e-9, 10));
		CHECK_EQ(jobs[2].moves, moves);
		CHECK_EQ(end_s(2) > 2000, !moves);
		CHECK(!moves || (end_s(2) > 500 + 1000 && end_s(2) < 570 + 1000 + 30));
		td_cluster_deinit(&cluster);
	}
}

/*
 * FIFO has no guests, and every besteffort job of tandem's may be one: the count goes by the other
 * jobs on the GPU.
 */
TEST(a_start_beside_another_job_is_one_on_its_gpu)
{
	begin();
	for (uint32_t i = 0; i < 3; i++)
		jobs[i] = make_job(0, 60, 1, TD_CLASS_BESTEFFORT);
	run(&td_sched_antman, jobs, 3);
	CHECK_EQ(cluster.counts.beside_starts, 0);
	td_cluster_deinit(&cluster);
	jobs[0] = make_job(0, 60, 16, TD_CLASS_BESTEFFORT);
	jobs[1] = make_job(0, 60, 16, TD_CLASS_BESTEFFORT);
	run(&td_sched_gandiva, jobs, 2);
	CHECK_EQ(cluster.counts.beside_starts, 1);
	td_cluster_deinit(&cluster);
}

/*
 * The generic kind beside itself goes at 0.6, beside a guarded holder next to nothing is left;
 * elsewhere a GPU comes free.
 */
TEST(tandem_moves_a_guest_that_gains_by_it_and_counts_what_it_costs)
{
	begin();
	jobs[0] = make_job(0, 5000, 15, TD_CLASS_GUARANTEED);
	jobs[1] = make_job(1, 3000, 1, TD_CLASS_BESTEFFORT);
	jobs[2] = make_job(2, 3000, 1, TD_CLASS_BESTEFFORT);
	jobs[3] = make_job(3, 3000, 1, TD_CLASS_BESTEFFORT);
	jobs[0].work_s = 1000;
	run(&td_sched_tandem, jobs, 4);
	CHECK(cluster.counts.moves > 0);
	CHECK(near(cluster.counts.move_s, 30 * (double)cluster.counts.moves));
	CHECK_EQ(jobs[1].moves + jobs[2].moves + jobs[3].moves, cluster.counts.moves);
	/* All of them have had a GPU to themselves from shortly after 1000 s on. */
	for (int i = 1; i < 4; i++)
		CHECK(end_s(i) < 1000 + 3000 + 60);
	CHECK(end_s(0) < 1060);
	td_cluster_deinit(&cluster);
}

/*
 * Two kinds: like beside like goes badly, one beside the other well. Eight jobs on four GPUs: the
 * optimum pairs them as they fit, round-robin as they come.
 */
TEST(the_optimum_is_no_slower_than_anybody_on_a_small_case)
{
	static const uint32_t four[] = {4};
	static const int order[] = {0, 0, 1, 1, 0, 0, 1, 1};
	double optimum = 0;

	for (int s = -1; s < 0 || td_scheds[s]; s++) {
		const struct td_sched *sched = s < 0 ? &td_sched_optimum : td_scheds[s];
		double sum = 0;

		begin();
		profiles.count = 2;
		for (int p = 0; p < 2; p++) {
			profiles.profiles[p].contender = td_contender_neutral;
			profiles.profiles[p].contender.sensitivity = p ? 0.1 : 1;
			profiles.profiles[p].contender.pressure = p ? 0.1 : 1;
		}
		for (int i = 0; i < 8; i++) {
			jobs[i] = make_job(i, 1000, 1, TD_CLASS_BESTEFFORT);
			jobs[i].profile = (uint32_t)order[i];
		}
		CHECK_EQ(td_cluster_init(&cluster, &options, &profiles, four, 1, 0, jobs, 8, sched),
			0);
		td_cluster_run(&cluster);
		for (uint32_t i = 0; i < 8; i++)
			sum += end_s(i);
		if (s < 0)
			optimum = sum;
		else if (sched == &td_sched_round_robin)
			CHECK(sum > 1.02 * optimum);
		else if (sched !=
			 &td_sched_tandem) /* which moves jobs later on; the optimum does not */
			CHECK(sum >= optimum - 1e-3);
		td_cluster_deinit(&cluster);
	}
	CHECK_EQ(td_cluster_init(
			 &cluster, &options, &profiles, nodes, 3, 0, jobs, 8, &td_sched_optimum),
		-E2BIG);
}

static void make_many(struct td_sim_job *list, uint64_t seed)
{
	static const uint32_t sizes[] = {1, 1, 1, 1, 2, 4, 8, 16};
	double now = 0;

	for (uint32_t i = 0; i < JOBS; i++) {
		now += td_random_exponential(&seed, 60);
		list[i] = make_job(now, 10 + td_random_exponential(&seed, 600),
			sizes[td_random_below(&seed, 8)],
			td_random_below(&seed, 2) ? TD_CLASS_GUARANTEED : TD_CLASS_BESTEFFORT);
		list[i].memory_bytes = (uint64_t)td_random_below(&seed, 12) << 30;
		list[i].host_cost = 2;
	}
}

TEST(every_job_ends_and_work_is_conserved)
{
	for (int s = 0; td_scheds[s]; s++) {
		if (td_scheds[s]->knows_truth) /* it has 8 GPUs at most: test below */
			continue;
		double work = 0;

		begin();
		make_many(jobs, 7);
		run(td_scheds[s], jobs, JOBS);
		for (uint32_t i = 0; i < JOBS; i++) {
			CHECK_EQ(jobs[i].status, TD_SIM_DONE);
			CHECK(jobs[i].start_ns >= jobs[i].submit_ns);
			CHECK((double)(jobs[i].end_ns - jobs[i].start_ns) * 1e-9 >
				jobs[i].work_s - 1e-3);
			work += jobs[i].work_s * jobs[i].gpus;
		}
		work += cluster.counts.lost_s + cluster.counts.restart_s + cluster.counts.move_s;
		if (!(fabs(cluster.counts.work_gpu_s / work - 1) < 1e-6))
			test_fail(__FILE__, __LINE__, "%s: %g GPU-seconds of work, expected %g",
				td_scheds[s]->name, cluster.counts.work_gpu_s, work);
		CHECK_EQ(cluster.busy_gpus, 0);
		td_cluster_deinit(&cluster);
	}
}

TEST(the_same_run_is_the_same)
{
	begin();
	make_many(jobs, 9);
	make_many(again, 9);
	run(&td_sched_antman, jobs, JOBS);
	td_cluster_deinit(&cluster);
	run(&td_sched_antman, again, JOBS);
	td_cluster_deinit(&cluster);
	for (uint32_t i = 0; i < JOBS; i++)
		CHECK(jobs[i].start_ns == again[i].start_ns && jobs[i].end_ns == again[i].end_ns);
}

TEST(a_run_that_is_stopped_keeps_what_has_been)
{
	begin();
	make_many(jobs, 11);
	options.until_s = 3600;
	run(&td_sched_fifo, jobs, JOBS);
	CHECK(cluster.ended > 0 && cluster.ended < JOBS);
	CHECK(cluster.now_ns <= cluster.first_ns + 3700 * TD_NS_PER_S);
	td_cluster_deinit(&cluster);
}

TEST(what_cannot_run_is_refused)
{
	begin();
	jobs[0] = make_job(0, 1, 17, TD_CLASS_BESTEFFORT);
	CHECK(td_cluster_init(&cluster, &options, &profiles, nodes, 3, 0, jobs, 1, &td_sched_fifo) <
		0);
	/* The same for every scheduler: FIFO has no memory of its own to look at. */
	jobs[0] = make_job(0, 1, 1, TD_CLASS_BESTEFFORT);
	jobs[0].memory_bytes = 17ull << 30;
	for (int s = 0; td_scheds[s]; s++)
		CHECK_EQ(td_cluster_init(&cluster, &options, &profiles, nodes, 3, 16ull << 30, jobs,
				 1, td_scheds[s]),
			-EINVAL);
	CHECK_STR(td_cluster_misfit(&jobs[0], 16, 16ull << 30),
		"more memory than a GPU of the cluster has");
	CHECK(!td_cluster_misfit(&jobs[0], 16, 0));
	jobs[0] = make_job(0, 1, 1, TD_CLASS_BESTEFFORT);
	jobs[0].profile = 1;
	CHECK(td_cluster_init(&cluster, &options, &profiles, nodes, 3, 0, jobs, 1, &td_sched_fifo) <
		0);
}

/* The duty is not stepped for ever: its mean over 12,000 steps stands for all of them. */
TEST(a_settled_duty_is_that_of_stepping_throughout)
{
	static const struct td_contention contention = {.capped_pressure = 1};
	static const bool guest[2] = {false, true};
	uint64_t seed = 21;

	for (int k = 0; k < 40; k++) {
		struct td_contender pair[2] = {td_contender_neutral, td_contender_neutral};
		double settled[2], throughout[2];

		for (int i = 0; i < 2; i++) {
			pair[i].sensitivity = 0.1 + td_random_unit(&seed);
			pair[i].pressure = 0.1 + td_random_unit(&seed);
			pair[i].host = 0.3 * td_random_unit(&seed);
		}
		td_duty_settle(&contention, pair, guest, 2, &td_duty_default, 12000, settled);
		td_duty_settle(&contention, pair, guest, 2, &td_duty_default, 200000, throughout);
		CHECK(fabs(settled[0] / throughout[0] - 1) < 0.01);
		CHECK(fabs(settled[1] - throughout[1]) < 0.05);
	}
}

/*
 * No scheduler knows how fast pairs are that have not run: with other numbers behind the same use
 * of the GPU, all decisions before anything has run are the same.
 */
TEST(what_pairs_would_do_changes_no_first_decision)
{
	static uint32_t places[JOBS];

	for (int s = 0; td_scheds[s]; s++) {
		if (td_scheds[s]->knows_truth) /* it has 8 GPUs at most: test below */
			continue;
		for (int permuted = 0; permuted < 2; permuted++) {
			uint32_t used = 0;

			begin();
			profiles.count = 3;
			for (uint32_t p = 0; p < 3; p++) {
				struct td_contender *kind = &profiles.profiles[p].contender;

				*kind = td_contender_neutral;
				kind->sensitivity = 0.2 + 0.7 * (permuted ? 2 - p : p);
				kind->pressure = 0.9 - 0.3 * (permuted ? 2 - p : p);
				kind->demand = 0.3;
			}
			make_many(jobs, 13);
			for (uint32_t i = 0; i < JOBS; i++) {
				jobs[i].submit_ns = 0;
				jobs[i].profile = i % 3;
			}
			options.until_s = 1e-9;
			run(td_scheds[s], jobs, JOBS);
			for (uint32_t i = 0; i < JOBS; i++) {
				uint32_t place = jobs[i].status == TD_SIM_RUNNING
							 ? cluster.places[jobs[i].place]
							 : 999;

				if (permuted)
					CHECK_EQ(place, places[i]);
				places[i] = place;
				used += place != 999;
			}
			CHECK(used > 3);
			td_cluster_deinit(&cluster);
		}
	}
}
