/* SysMonitor's states, transition by transition, then under random metrics. */
#include "test.h"

#include "policy/algo/control/sysmonitor.h"
#include "policy/system/muxflow.h"
#include "policy_random.h"

#define S 1000000000ull

static const struct td_sysmonitor_params params = {
	.healthy = {.utilisation_ppm = 600000,
		.sm_activity_ppm = 500000,
		.memory_ppm = 700000,
		.clock_mhz = 1200},
	.unhealthy = {.utilisation_ppm = 800000,
		.sm_activity_ppm = 700000,
		.memory_ppm = 850000,
		.clock_mhz = 1000},
	.overlimit = {.utilisation_ppm = 950000,
		.sm_activity_ppm = 900000,
		.memory_ppm = 950000,
		.clock_mhz = 700},
	.period_base_ns = 10 * S,
	.period_max_ns = 3600 * S,
	.window_ns = 7200 * S,
};

static const struct td_sysmonitor_metrics calm = {.initialised = true,
	.available = true,
	.utilisation_ppm = 300000,
	.sm_activity_ppm = 200000,
	.memory_ppm = 400000,
	.clock_mhz = 1500};

static struct td_sysmonitor monitor;
static uint64_t now;

static enum td_sysmonitor_state step(struct td_sysmonitor_metrics metrics)
{
	return td_sysmonitor_step(&monitor, &params, &metrics, now += S);
}

static struct td_sysmonitor_metrics with_utilisation(uint32_t ppm)
{
	struct td_sysmonitor_metrics metrics = calm;

	metrics.utilisation_ppm = ppm;
	return metrics;
}

static void start(void)
{
	memset(&monitor, 0, sizeof(monitor));
	now = 1000 * S;
	CHECK_EQ(step(calm), TD_SYSMONITOR_HEALTHY);
}

TEST(a_gpu_is_healthy_once_it_is_initialised)
{
	struct td_sysmonitor_metrics metrics = calm;

	memset(&monitor, 0, sizeof(monitor));
	metrics.initialised = false;
	CHECK_EQ(step(metrics), TD_SYSMONITOR_INIT);
	CHECK(!td_sysmonitor_accepts(monitor.state));
	CHECK_EQ(step(calm), TD_SYSMONITOR_HEALTHY);
	CHECK(td_sysmonitor_accepts(monitor.state));
}

TEST(one_metric_is_enough_for_unhealthy)
{
	struct td_sysmonitor_metrics bad[4] = {calm, calm, calm, calm};

	bad[0].utilisation_ppm = 800000;
	bad[1].sm_activity_ppm = 700000;
	bad[2].memory_ppm = 850000;
	bad[3].clock_mhz = 999;
	for (int i = 0; i < 4; i++) {
		start();
		CHECK_EQ(step(bad[i]), TD_SYSMONITOR_UNHEALTHY);
		CHECK(!td_sysmonitor_accepts(monitor.state) &&
			!td_sysmonitor_evicts(monitor.state));
	}
}

TEST(between_the_thresholds_nothing_changes)
{
	start();
	CHECK_EQ(step(with_utilisation(799999)), TD_SYSMONITOR_HEALTHY);
	CHECK_EQ(step(with_utilisation(800000)), TD_SYSMONITOR_UNHEALTHY);
	CHECK_EQ(step(with_utilisation(700000)), TD_SYSMONITOR_UNHEALTHY);
	CHECK_EQ(step(with_utilisation(599999)), TD_SYSMONITOR_HEALTHY);
}

TEST(overlimit_is_left_by_way_of_unhealthy_after_the_period)
{
	start();
	CHECK_EQ(step(with_utilisation(950000)), TD_SYSMONITOR_OVERLIMIT);
	CHECK(td_sysmonitor_evicts(monitor.state));
	for (int i = 0; i < 9; i++)
		CHECK_EQ(step(calm), TD_SYSMONITOR_OVERLIMIT);
	CHECK_EQ(step(calm), TD_SYSMONITOR_UNHEALTHY);
	CHECK_EQ(step(calm), TD_SYSMONITOR_HEALTHY);
}

TEST(overlimit_stays_while_a_metric_does)
{
	start();
	for (int i = 0; i < 30; i++)
		CHECK_EQ(step(with_utilisation(960000)), TD_SYSMONITOR_OVERLIMIT);
	CHECK_EQ(step(with_utilisation(940000)), TD_SYSMONITOR_UNHEALTHY);
}

/* 10, 20, 40, ... s: doubled with every entry of the last two hours. */
TEST(the_period_doubles_with_each_entry_and_is_forgotten_after_two_hours)
{
	uint64_t want = 10;

	start();
	for (int entry = 0; entry < 5; entry++, want *= 2) {
		uint64_t entered;

		CHECK_EQ(step(with_utilisation(950000)), TD_SYSMONITOR_OVERLIMIT);
		entered = now;
		while (monitor.state == TD_SYSMONITOR_OVERLIMIT)
			(void)step(calm);
		CHECK_EQ((now - entered) / S, want);
	}
	now += 7200 * S;
	CHECK_EQ(step(with_utilisation(950000)), TD_SYSMONITOR_OVERLIMIT);
	CHECK_EQ((monitor.until_ns - now) / S, 10);
}

TEST(the_period_has_a_bound)
{
	struct td_sysmonitor_params quick = params;
	struct td_sysmonitor_metrics over = with_utilisation(950000);

	quick.period_base_ns = 1;
	quick.period_max_ns = 5000;
	start();
	for (int i = 0; i < 200; i++) {
		now += 5000;
		(void)td_sysmonitor_step(&monitor, &quick, &over, now);
		CHECK(monitor.until_ns - now <= 5000 || monitor.until_ns < now);
		now += 5000;
		(void)td_sysmonitor_step(&monitor, &quick, &calm, now);
	}
	CHECK_EQ(monitor.entry_count, TD_SYSMONITOR_ENTRIES_MAX);
}

TEST(an_unavailable_gpu_is_disabled_from_every_state_and_starts_anew)
{
	struct td_sysmonitor_metrics gone = calm;

	gone.available = false;
	start();
	CHECK_EQ(step(with_utilisation(950000)), TD_SYSMONITOR_OVERLIMIT);
	CHECK_EQ(step(gone), TD_SYSMONITOR_DISABLED);
	CHECK(td_sysmonitor_evicts(monitor.state));
	CHECK_EQ(step(calm), TD_SYSMONITOR_INIT);
	CHECK_EQ(step(calm), TD_SYSMONITOR_HEALTHY);
}

TEST(an_unknown_clock_is_never_bad)
{
	struct td_sysmonitor_metrics metrics = calm;

	start();
	metrics.clock_mhz = 0;
	CHECK_EQ(step(metrics), TD_SYSMONITOR_HEALTHY);
}

/* The drawing, as a table: from, to. */
static const bool drawn[TD_SYSMONITOR_N][TD_SYSMONITOR_N] = {
	[TD_SYSMONITOR_INIT] = {[TD_SYSMONITOR_INIT] = true,
		[TD_SYSMONITOR_HEALTHY] = true,
		[TD_SYSMONITOR_DISABLED] = true},
	[TD_SYSMONITOR_HEALTHY] = {[TD_SYSMONITOR_HEALTHY] = true,
		[TD_SYSMONITOR_UNHEALTHY] = true,
		[TD_SYSMONITOR_OVERLIMIT] = true,
		[TD_SYSMONITOR_DISABLED] = true},
	[TD_SYSMONITOR_UNHEALTHY] = {[TD_SYSMONITOR_HEALTHY] = true,
		[TD_SYSMONITOR_UNHEALTHY] = true,
		[TD_SYSMONITOR_OVERLIMIT] = true,
		[TD_SYSMONITOR_DISABLED] = true},
	[TD_SYSMONITOR_OVERLIMIT] = {[TD_SYSMONITOR_UNHEALTHY] = true,
		[TD_SYSMONITOR_OVERLIMIT] = true,
		[TD_SYSMONITOR_DISABLED] = true},
	[TD_SYSMONITOR_DISABLED] = {[TD_SYSMONITOR_INIT] = true, [TD_SYSMONITOR_DISABLED] = true},
};

/*
 * Brings a monitor with the thresholds of the product to a state. The paper (4.1) gives none: they
 * are "empirically selected".
 */
static void bring_to(enum td_sysmonitor_state state)
{
	const struct td_sysmonitor_params *t4 = &td_muxflow_t4.monitor;
	struct td_sysmonitor_metrics metrics = calm;

	memset(&monitor, 0, sizeof(monitor));
	now = 1000 * S;
	if (state == TD_SYSMONITOR_INIT)
		return;
	(void)td_sysmonitor_step(&monitor, t4, &metrics, now);
	if (state == TD_SYSMONITOR_UNHEALTHY)
		metrics.memory_ppm = t4->unhealthy.memory_ppm;
	if (state == TD_SYSMONITOR_OVERLIMIT)
		metrics.memory_ppm = t4->overlimit.memory_ppm;
	metrics.available = state != TD_SYSMONITOR_DISABLED;
	(void)td_sysmonitor_step(&monitor, t4, &metrics, now);
	CHECK_EQ(monitor.state, state);
}

/* One metric is at a level, and the others are calm. */
static struct td_sysmonitor_metrics at(
	const struct td_sysmonitor_limits *level, unsigned metric, bool just_better)
{
	struct td_sysmonitor_metrics metrics = calm;
	uint32_t less = just_better ? 1 : 0;

	switch (metric) {
	case 0: metrics.utilisation_ppm = level->utilisation_ppm - less; break;
	case 1: metrics.sm_activity_ppm = level->sm_activity_ppm - less; break;
	case 2: metrics.memory_ppm = level->memory_ppm - less; break;
	default: metrics.clock_mhz = level->clock_mhz - 1 + less; break;
	}
	return metrics;
}

static enum td_sysmonitor_state from(
	enum td_sysmonitor_state state, struct td_sysmonitor_metrics metrics, uint64_t later_ns)
{
	bring_to(state);
	return td_sysmonitor_step(&monitor, &td_muxflow_t4.monitor, &metrics, now + later_ns);
}

TEST(each_metric_makes_each_transition_at_its_threshold)
{
	const struct td_sysmonitor_params *t4 = &td_muxflow_t4.monitor;

	for (unsigned m = 0; m < 4; m++) {
		CHECK_EQ(from(TD_SYSMONITOR_HEALTHY, at(&t4->unhealthy, m, true), S),
			TD_SYSMONITOR_HEALTHY);
		CHECK_EQ(from(TD_SYSMONITOR_HEALTHY, at(&t4->unhealthy, m, false), S),
			TD_SYSMONITOR_UNHEALTHY);
		CHECK_EQ(from(TD_SYSMONITOR_HEALTHY, at(&t4->overlimit, m, true), S),
			TD_SYSMONITOR_UNHEALTHY);
		CHECK_EQ(from(TD_SYSMONITOR_HEALTHY, at(&t4->overlimit, m, false), S),
			TD_SYSMONITOR_OVERLIMIT);
		CHECK_EQ(from(TD_SYSMONITOR_UNHEALTHY, at(&t4->overlimit, m, true), S),
			TD_SYSMONITOR_UNHEALTHY);
		CHECK_EQ(from(TD_SYSMONITOR_UNHEALTHY, at(&t4->overlimit, m, false), S),
			TD_SYSMONITOR_OVERLIMIT);
		CHECK_EQ(from(TD_SYSMONITOR_UNHEALTHY, at(&t4->healthy, m, false), S),
			TD_SYSMONITOR_UNHEALTHY);
		CHECK_EQ(from(TD_SYSMONITOR_UNHEALTHY, at(&t4->healthy, m, true), S),
			TD_SYSMONITOR_HEALTHY);
		CHECK_EQ(from(TD_SYSMONITOR_OVERLIMIT, at(&t4->overlimit, m, false),
				 t4->period_base_ns),
			TD_SYSMONITOR_OVERLIMIT);
		CHECK_EQ(from(TD_SYSMONITOR_OVERLIMIT, at(&t4->overlimit, m, true),
				 t4->period_base_ns - 1),
			TD_SYSMONITOR_OVERLIMIT);
		CHECK_EQ(from(TD_SYSMONITOR_OVERLIMIT, at(&t4->overlimit, m, true),
				 t4->period_base_ns),
			TD_SYSMONITOR_UNHEALTHY);
	}
}

TEST(every_state_is_left_for_disabled_and_that_for_init_alone)
{
	struct td_sysmonitor_metrics gone = calm, unknown = calm;

	gone.available = unknown.initialised = false;
	for (unsigned state = 0; state < TD_SYSMONITOR_N; state++)
		CHECK_EQ(from((enum td_sysmonitor_state)state, gone, S), TD_SYSMONITOR_DISABLED);
	CHECK_EQ(from(TD_SYSMONITOR_DISABLED, calm, S), TD_SYSMONITOR_INIT);
	CHECK_EQ(from(TD_SYSMONITOR_INIT, unknown, S), TD_SYSMONITOR_INIT);
	CHECK_EQ(from(TD_SYSMONITOR_INIT, calm, S), TD_SYSMONITOR_HEALTHY);
}

TEST(no_state_is_ever_skipped)
{
	bool seen[TD_SYSMONITOR_N][TD_SYSMONITOR_N] = {0};
	uint64_t seed = 5;

	start();
	for (int i = 0; i < 200000; i++) {
		struct td_sysmonitor_metrics metrics = {
			.initialised = random_below(&seed, 8),
			.available = random_below(&seed, 32),
			.utilisation_ppm = random_below(&seed, 1000001),
			.sm_activity_ppm = random_below(&seed, 950001),
			.memory_ppm = random_below(&seed, 960001),
			.clock_mhz = random_below(&seed, 1600),
		};
		enum td_sysmonitor_state before = monitor.state;
		uint64_t until = monitor.until_ns;
		enum td_sysmonitor_state after;

		now += random_next(&seed) % (20 * S);
		after = step(random_below(&seed, 2) ? calm : metrics);
		CHECK(drawn[before][after]);
		seen[before][after] = true;
		if (before == TD_SYSMONITOR_OVERLIMIT && after == TD_SYSMONITOR_UNHEALTHY)
			CHECK(now >= until);
	} /* And all of the drawing was tried. */
	CHECK(!memcmp(seen, drawn, sizeof(seen)));
}
