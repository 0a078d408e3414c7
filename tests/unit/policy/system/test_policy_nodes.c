/*
 * The seed systems as policies of a node: the grants and actions of each on views that its paper
 * describes.
 */
#include "unit/policy/service_curves.h"

#include "policy/system/muxflow.h"

TEST(antman_protects_a_newcomer_at_once_and_gives_back_in_steps)
{
	start("antman", 1);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, 20 * GIB), *job;

	step();
	CHECK(is_open(a) && !grant_of(a)->duty_ppm && grant_of(a)->limit_bytes >= 20 * GIB);
	job = add(2, 0, TD_CLASS_GUARANTEED, 24 * GIB);
	step();
	CHECK(is_open(job) && !grant_of(job)->duty_ppm);
	CHECK(grant_of(job)->limit_bytes >= 24 * GIB);
	CHECK_EQ(grant_of(a)->duty_ppm, 40000);
	CHECK(grant_of(a)->limit_bytes <= 8 * GIB);
	for (int i = 0; i < 300; i++) {
		finish_step(job, 100 * MS);
		step();
	}
	CHECK(!grant_of(a)->duty_ppm);
	CHECK(grant_of(a)->limit_bytes > 79 * GIB / 10 && grant_of(a)->limit_bytes <= 8 * GIB);
}

TEST(antman_wakes_when_a_step_becomes_too_long_and_cuts_then)
{
	start("antman", 1);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *job = add(2, 0, TD_CLASS_GUARANTEED, GIB);

	for (int i = 0; i < 100; i++) {
		finish_step(job, 100 * MS);
		step();
	}
	CHECK(grant_of(a)->duty_ppm > 100000);
	CHECK_EQ(node.plan.next_wakeup_ns, node.now + 105 * MS + 1);
	node.now = node.plan.next_wakeup_ns;
	step();
	CHECK_EQ(grant_of(a)->duty_ppm, 40000);
}

TEST(antman_divides_the_duty_by_weight_and_protects_two_by_the_floor)
{
	start("antman", 1);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *b = add(2, 0, TD_CLASS_BESTEFFORT, GIB),
			      *job = add(3, 0, TD_CLASS_GUARANTEED, GIB);

	b->weight = 3;
	for (int i = 0; i < 100; i++) {
		finish_step(job, 100 * MS);
		step();
	}
	uint32_t together = grant_of(a)->duty_ppm + grant_of(b)->duty_ppm;

	CHECK(together > 100000 && together < TD_PPM);
	CHECK_EQ(grant_of(a)->duty_ppm, together / 4);
	b->wants = false;
	step();
	CHECK_EQ(grant_of(a)->duty_ppm, together);
	CHECK_EQ(grant_of(b)->gate, TD_GATE_ARMED);
	b->wants = true;
	struct td_client_view *other = add(4, 0, TD_CLASS_GUARANTEED, GIB);

	step();
	CHECK(grant_of(a)->duty_ppm + grant_of(b)->duty_ppm <= 20000);
	other->slack_ppm = 10000;
	step();
	CHECK(grant_of(a)->duty_ppm + grant_of(b)->duty_ppm <= 2000);
}

TEST(a_guaranteed_job_that_is_paused_holds_nobody)
{
	static const char *const policies[] = {"antman", "tandem"};

	for (unsigned p = 0; p < 2; p++) {
		start(policies[p], 1);
		struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
				      *job = add(2, 0, TD_CLASS_GUARANTEED, GIB);

		for (int i = 0; i < 10; i++) {
			finish_step(job, 100 * MS);
			step();
		}
		CHECK(grant_of(a)->duty_ppm);
		job->paused = true; /* it wants to go on */
		step();
		CHECK(!is_open(job));
		CHECK_EQ(grant_of(a)->duty_ppm, 0);
		CHECK(grant_of(a)->limit_bytes >= GIB);
		job->paused = false;
		step();
		CHECK(is_open(job) && grant_of(a)->duty_ppm);
	}
}

TEST(beside_two_guaranteed_jobs_besteffort_work_has_the_least_of_their_floors)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *job = add(2, 0, TD_CLASS_GUARANTEED, GIB),
			      *other = add(3, 0, TD_CLASS_GUARANTEED, GIB);

	for (int i = 0; i < 10; i++) {
		finish_step(job, 100 * MS);
		finish_step(other, 50 * MS);
		step();
	}
	CHECK_EQ(grant_of(a)->duty_ppm, 20000);
	other->slack_ppm = 10000;
	step();
	CHECK_EQ(grant_of(a)->duty_ppm, 2000);
}

TEST(when_one_of_two_guaranteed_jobs_goes_besteffort_work_rises_from_the_floor)
{
	static const char *const policies[] = {"antman", "tandem"};

	for (unsigned p = 0; p < 2; p++) {
		start(policies[p], 1);
		struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
				      *job = add(2, 0, TD_CLASS_GUARANTEED, GIB),
				      *other = add(3, 0, TD_CLASS_GUARANTEED, GIB);

		for (int i = 0; i < 300; i++) {
			finish_step(job, 100 * MS);
			finish_step(other, 100 * MS);
			step();
		}
		other->class = TD_CLASS_BESTEFFORT;
		other->paused = true;
		step();
		CHECK(grant_of(a)->duty_ppm && grant_of(a)->duty_ppm <= 40000);
		for (int i = 0; i < 300; i++) {
			finish_step(job, 100 * MS);
			step();
		}
		CHECK(!grant_of(a)->duty_ppm || grant_of(a)->duty_ppm > 500000);
	}
}

TEST(antman_finds_who_gains_from_memory)
{
	start("antman", 1);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, 24 * GIB),
			      *b = add(2, 0, TD_CLASS_BESTEFFORT, 24 * GIB);

	/* a does not mind, b is slow in proportion to what it lacks */
	for (int i = 0; i < 600; i++) {
		uint64_t lacks = 24 * GIB - b->resident_bytes;

		finish_step(a, 100 * MS);
		finish_step(b, 100 * MS + lacks / (24 * GIB / 100) * 3 * MS);
		step();
		CHECK(grant_of(a)->limit_bytes + grant_of(b)->limit_bytes <= 32 * GIB);
	}
	CHECK(grant_of(b)->limit_bytes > 22 * GIB);
}

TEST(muxflow_lets_one_offline_job_in_with_duty_quota_and_share)
{
	start("muxflow", 1);
	struct td_client_view *service = add(1, 0, TD_CLASS_ONLINE, 4 * GIB),
			      *a = add(2, 0, TD_CLASS_BESTEFFORT, 4 * GIB),
			      *b = add(3, 0, TD_CLASS_BESTEFFORT, 4 * GIB);

	service->sm_activity_ppm = 100000;
	service->sm_need_ppm = 304000;
	for (int i = 0; i < 300; i++) {
		node.now += 10 * MS;
		step();
		CHECK(is_open(service) && !grant_of(service)->duty_ppm && !is_open(b));
	}
	CHECK(is_open(a) && grant_of(a)->duty_ppm > 900000);
	CHECK_EQ(grant_of(a)->sm_share_ppm, 690000);
	CHECK(grant_of(a)->limit_bytes <= 128 * GIB / 10);
	CHECK(node.plan.next_wakeup_ns <= node.now + 10 * MS);
	node.view.client_count = 2;
	node.clients[1] = node.clients[2];
	node.clients[1].phase = TD_PHASE_CLOSED;
	step();
	CHECK(is_open(&node.clients[1]));
}

/*
 * Runs a service beside offline work, which adds so much to the SM activity where it may run all of
 * the time. Meters report a mean over the last tenth of a second. Returns the load at the end.
 */
static uint32_t run_beside(struct td_client_view *service, struct td_client_view *offline,
	uint32_t service_ppm, uint32_t offline_ppm, unsigned ms)
{
	uint64_t duty_sum = 0;

	for (unsigned at = 10; at <= ms; at += 10) {
		node.now += 10 * MS;
		if (at % 100 == 0) {
			offline->sm_activity_ppm =
				(uint32_t)(duty_sum / 10 * offline_ppm / 1000000) + 1;
			service->sm_activity_ppm = service_ppm;
			node.gpus[0].sm_activity_ppm = service_ppm + offline->sm_activity_ppm;
			duty_sum = 0;
		}
		step();
		duty_sum += is_open(offline) ? grant_of(offline)->duty_ppm : 0;
	}
	return node.gpus[0].sm_activity_ppm;
}

TEST(muxflow_settles_within_500_ms_of_a_step)
{
	static const uint32_t offline_ppm[] = {1000000, 800000, 500000};

	for (size_t i = 0; i < sizeof(offline_ppm) / sizeof(offline_ppm[0]); i++) {
		start("muxflow", 1);
		struct td_client_view *service = add(1, 0, TD_CLASS_ONLINE, GIB),
				      *a = add(2, 0, TD_CLASS_BESTEFFORT, GIB);
		uint32_t load;

		node.gpus[0].sm_clock_mhz = 1005; /* no correction */
		(void)run_beside(service, a, 450000, offline_ppm[i], 3000);
		for (unsigned step = 0; step < 4; step++) {
			load = run_beside(
				service, a, step % 2 ? 450000 : 750000, offline_ppm[i], 500);
			CHECK(load > 855000 && load < 945000);
			CHECK_EQ(node.verdicts[0].state == TD_SYSMONITOR_OVERLIMIT, false);
			/* It stays: within 6 % for a tenth of a second, and 5 % after that. */
			for (unsigned at = 0; at < 15; at++) {
				load = run_beside(service, a, step % 2 ? 450000 : 750000,
					offline_ppm[i], 100);
				CHECK(load > (at ? 855000 : 846000));
				CHECK(load < (at ? 945000 : 954000));
			}
		}
	}
}

TEST(muxflow_evicts_when_overloaded_but_not_for_want_of_figures)
{
	start("muxflow", 1);
	struct td_client_view *service = add(1, 0, TD_CLASS_ONLINE, GIB),
			      *a = add(2, 0, TD_CLASS_BESTEFFORT, GIB);

	service->sm_activity_ppm = 300000;
	node.gpus[0].known = 0;
	step();
	CHECK(!is_open(a) && !count_actions(TD_ACTION_EVICT, NULL));
	node.gpus[0].known = TD_HAS_ALL;
	for (int i = 0; i < 7; i++) {
		node.now += 10 * MS;
		step();
	}
	CHECK(is_open(a));
	node.gpus[0].sm_activity_ppm = 990000;
	node.now += 500 * MS;
	step();
	CHECK(is_open(a) && !count_actions(TD_ACTION_EVICT, NULL));
	node.now += 1000 * MS;
	step();
	CHECK(!is_open(a) && is_open(service));
	CHECK_EQ(count_actions(TD_ACTION_EVICT, a), 1);
	CHECK(!count_actions(TD_ACTION_EVICT, service));
}

/* Under MPS nobody tells whose memory is whose, so the capacity may be low for all that is used. */
TEST(muxflow_judges_memory_by_what_the_gpu_has)
{
	start("muxflow", 1);
	struct td_client_view *service = add(1, 0, TD_CLASS_ONLINE, GIB),
			      *a = add(2, 0, TD_CLASS_BESTEFFORT, GIB);

	service->sm_activity_ppm = 300000;
	node.gpus[0].total_bytes = 16 * GIB;
	node.gpus[0].capacity_bytes = 6 * GIB;
	node.gpus[0].used_bytes = 10 * GIB;
	for (int i = 0; i < 200; i++) {
		node.now += 10 * MS;
		step();
	}
	CHECK_EQ(node.verdicts[0].state, TD_SYSMONITOR_HEALTHY);
	CHECK(is_open(a));
	node.gpus[0].used_bytes = 16 * GIB;
	for (int i = 0; i < 1000; i++) {
		node.now += 10 * MS;
		step();
	}
	CHECK_EQ(node.verdicts[0].state, TD_SYSMONITOR_OVERLIMIT);
}

TEST(muxflow_judges_each_gpu)
{
	start("muxflow", 2);
	struct td_client_view *service = add(1, 0, TD_CLASS_ONLINE, GIB);

	service->sm_activity_ppm = 300000;
	step();
	CHECK(node.verdicts[0].known && !node.verdicts[0].accepts && node.verdicts[1].accepts);
	for (int i = 0; i < 10; i++)
		step();
	CHECK(node.verdicts[0].accepts && !node.verdicts[0].resets);
	CHECK_EQ(node.verdicts[0].state, TD_SYSMONITOR_HEALTHY);
	CHECK(node.verdicts[0].load_ppm >= 239999 && node.verdicts[0].load_ppm <= 240000);
	node.gpus[0].sm_activity_ppm = 990000;
	node.now += 1000 * MS;
	step();
	CHECK_EQ(node.verdicts[0].state, TD_SYSMONITOR_OVERLIMIT);
	CHECK_EQ(node.verdicts[0].until_ns, node.now + 10000 * MS);
	node.gpus[1].mps = TD_MPS_FAILED;
	step();
	CHECK(node.verdicts[1].resets && !node.verdicts[1].accepts && !node.verdicts[0].resets);
}

TEST(muxflow_restarts_the_online_jobs_first)
{
	start("muxflow", 1);
	struct td_client_view *second = add(1, 0, TD_CLASS_GUARANTEED, GIB),
			      *first = add(2, 0, TD_CLASS_ONLINE, GIB);

	node.gpus[0].mps = TD_MPS_FAILED;
	step();
	CHECK_EQ(node.plan.action_count, 2);
	CHECK_EQ(node.actions[0].client, first->id);
	CHECK_EQ(node.actions[1].client, second->id);
	/* Nobody is there who can do it. */
	first->has &= ~TD_HAS(RESTART);
	step();
	CHECK_EQ(node.plan.action_count, 1);
	CHECK_EQ(node.actions[0].client, second->id);
}

TEST(muxflow_restarts_what_an_error_has_hit)
{
	start("muxflow", 2);
	struct td_client_view *service = add(1, 0, TD_CLASS_ONLINE, GIB),
			      *a = add(2, 0, TD_CLASS_BESTEFFORT, GIB),
			      *elsewhere = add(3, 1, TD_CLASS_ONLINE, GIB);

	node.gpus[0].mps = TD_MPS_ON;
	node.gpus[0].xid = 31;
	node.gpus[0].xid_ns = node.now;
	node.gpus[0].xid_of = TD_XID_OF_MPS;
	step();
	CHECK_EQ(count_actions(TD_ACTION_RESTART, service), 1);
	CHECK_EQ(count_actions(TD_ACTION_EVICT, a), 1);
	CHECK(!count_actions(TD_ACTION_RESTART, elsewhere) && !is_open(a));
}

TEST(tandem_holds_besteffort_work_to_what_a_guaranteed_job_bears)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB), *job;

	step();
	CHECK(is_open(a) && !grant_of(a)->duty_ppm);
	job = add(2, 0, TD_CLASS_GUARANTEED, GIB);
	finish_step(job, 100 * MS);
	step();
	step();
	CHECK(is_open(job) && !grant_of(job)->duty_ppm && grant_of(job)->priority == 2);
	CHECK_EQ(grant_of(a)->duty_ppm, 20000);
	for (int i = 0; i < 300; i++) {
		finish_step(job, 100 * MS);
		step();
	}
	CHECK(!grant_of(a)->duty_ppm);
	finish_step(job, 120 * MS);
	step();
	CHECK_EQ(grant_of(a)->duty_ppm, 20000);
	job->wants = false;
	step();
	CHECK_EQ(grant_of(a)->pause_until_ns, UINT64_MAX);
	/* Where a node cannot hold a job to a duty it is not asked to. */
	job->wants = true;
	node.view.has &= ~(TD_HAS(DUTY) | TD_HAS(PRIORITY));
	step();
	CHECK(!grant_of(a)->duty_ppm && !grant_of(job)->priority && is_open(a));
}

TEST(tandem_cuts_besteffort_work_while_a_service_misses_its_objective)
{
	start("tandem", 1);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *online = add(2, 0, TD_CLASS_ONLINE, GIB);

	online->objective_ns = 100 * MS;
	online->p99_ns = 130 * MS;
	for (int i = 0; i < 400; i++) {
		node.now += 10 * MS;
		step();
	}
	CHECK(grant_of(a)->duty_ppm >= 20000 && grant_of(a)->duty_ppm < 25000);
	CHECK_EQ(node.plan.next_wakeup_ns, node.now + 10 * MS);
	online->p99_ns = 50 * MS;
	for (int i = 0; i < 1000; i++) {
		node.now += 10 * MS;
		step();
	}
	CHECK(!grant_of(a)->duty_ppm);
	/* For a service without figures, the load of the GPU decides. */
	online->p99_ns = 0;
	node.gpus[0].sm_activity_ppm = 990000;
	for (int i = 0; i < 3000; i++) {
		node.now += 10 * MS;
		step();
	}
	CHECK(grant_of(a)->duty_ppm >= 20000 && grant_of(a)->duty_ppm < 25000);
}

TEST(a_wide_job_is_not_overtaken_on_the_gpus_that_it_waits_for)
{
	uint32_t places[TD_GPU_MAX] = {1, 1};

	start("muxflow", 2);
	struct td_client_view *a = add(1, 0, TD_CLASS_BESTEFFORT, GIB),
			      *wide0 = add(2, 0, TD_CLASS_BESTEFFORT, GIB),
			      *wide1 = add(2, 1, TD_CLASS_BESTEFFORT, GIB),
			      *late = add(3, 1, TD_CLASS_BESTEFFORT, GIB);

	td_admit(&node.view, places, &node.plan);
	CHECK(is_open(a) && !is_open(wide0) && !is_open(wide1) && !is_open(late));
	a->phase = TD_PHASE_DRAINING; /* it was paused, but is still there */
	a->paused = true;
	td_admit(&node.view, places, &node.plan);
	CHECK(!is_open(a) && !is_open(wide0));
	a->phase = TD_PHASE_CLOSED;
	td_admit(&node.view, places, &node.plan);
	CHECK(is_open(wide0) && is_open(wide1) && !is_open(late));
}

/*
 * Under any view, every policy keeps time, SMs and memory within bounds, and its promises about
 * groups and pauses.
 */
TEST(every_policy_keeps_its_bounds_under_random_views)
{
	uint64_t random = 88172645463325252ull;

	for (const struct td_policy *const *p = td_policies; *p; p++) {
		start((*p)->name, 3);
		make_curves();
		for (uint32_t i = 0; i < 40; i++) {
			struct td_client_view *c =
				add(1 + random_below(&random, 20), random_below(&random, 3),
					(enum td_class)random_below(&random, TD_CLASS_N),
					random_below(&random, 12) * GIB);

			c->profile = &service_profile;
			c->sm_share_ppm = random_below(&random, TD_PPM);
			c->core_ppm = random_below(&random, 900000);
			c->movable = random_below(&random, 4) > 0;
		}
		for (uint32_t round = 0; round < 300; round++) {
			struct td_client_view *c = &node.clients[random_below(&random, 40)];
			uint64_t limits[3] = {0}, stuck[3] = {0};

			node.view.has = TD_HAS_ALL & ~(round % 2 ? TD_HAS(SHADOW) : 0);
			c->has = node.view.has;
			node.now += 1 + random_below(&random, 200) * MS;
			node.gpus[0].sm_activity_ppm = random_below(&random, TD_PPM);
			c->paused = random_below(&random, 5) == 0;
			c->wants = random_below(&random, 3) > 0;
			c->objective_ns = random_below(&random, 300) * MS;
			c->rate_per_s = random_unit(&random) * 1000;
			finish_step(c, (1 + random_below(&random, 200)) * MS);
			td_view_unite_classes(node.clients, 40);
			step();
			CHECK(node.plan.next_wakeup_ns > node.now);
			for (uint32_t i = 0; i < 40; i++) {
				const struct td_client_view *it = &node.clients[i];

				CHECK(!it->paused || !is_open(it));
				CHECK(node.grants[i].duty_ppm <= TD_PPM);
				limits[it->gpu] += node.grants[i].limit_bytes;
				stuck[it->gpu] +=
					!it->movable || is_open(it) ? it->demanded_bytes : 0;
				for (uint32_t k = 0; k < i; k++)
					CHECK(node.clients[k].group != it->group ||
						is_open(it) == is_open(&node.clients[k]));
			}
			for (uint32_t g = 0; g < 3; g++)
				CHECK(limits[g] <= 32 * GIB || limits[g] <= stuck[g]);
		}
	}
}
