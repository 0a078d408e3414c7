/*
 * The composed seed systems: each on the example that its paper gives, then its invariants on
 * random input.
 */
#include "test.h"

#include <errno.h>
#include <math.h>

#include "policy/cluster/muxflow_cluster.h"
#include "policy/system/antman.h"
#include "policy/system/dcuda.h"
#include "policy/system/mudi.h"
#include "policy/system/muxflow.h"
#include "policy_random.h"

#define GIB (1ull << 30)
#define MS  1000000ull

static const double zeros[TD_PREDICT_INPUTS_MAX];
static double ones[TD_PREDICT_INPUTS_MAX];

/* A linear predictor of given coefficients, bias last. */
static struct td_predictor line(const double *coefficients, uint32_t inputs)
{
	for (uint32_t i = 0; i < TD_PREDICT_INPUTS_MAX; i++)
		ones[i] = 1;
	return (struct td_predictor){.form = TD_PREDICTOR_LINEAR,
		.inputs = inputs,
		.shift = zeros,
		.scale = ones,
		.target_scale = 1,
		.coefficients = coefficients,
		.coefficient_count = inputs + 1};
}

TEST(antman_cuts_at_an_arrival_and_gives_back_in_steps)
{
	struct td_memory_trial_job one[] = {{7, 20 * GIB, GIB, -1}};
	struct td_antman_gpu gpu = {0};
	struct td_antman_gpu_input input = {
		.capacity_bytes = 32 * GIB, .besteffort = one, .besteffort_count = 1};
	struct td_antman_gpu_output out;
	uint64_t now = MS;

	CHECK_EQ(td_antman_gpu_step(&gpu, &td_antman_gpu_default, &input, now, &out), 0);
	CHECK(out.duty_ppm == 1000000 && out.limit_bytes[0] == 20 * GIB);
	input.guaranteed =
		(struct td_duty_input){.guaranteed = true, .busy = true, .job = 1, .company = 1};
	input.guaranteed_bytes = 24 * GIB;
	CHECK_EQ(td_antman_gpu_step(&gpu, &td_antman_gpu_default, &input, now += MS, &out), 0);
	CHECK(out.duty_ppm == 20000 && out.limit_bytes[0] == 0);
	for (int step = 0; step < 200; step++) {
		input.guaranteed.steps++;
		input.guaranteed.step_ns = 100 * MS;
		now += 100 * MS;
		input.guaranteed.step_began_ns = now;
		CHECK_EQ(td_antman_gpu_step(&gpu, &td_antman_gpu_default, &input, now, &out), 0);
		CHECK(out.limit_bytes[0] <= 8 * GIB);
	}
	CHECK(out.duty_ppm == 1000000 && out.limit_bytes[0] > 79 * GIB / 10);
}

TEST(antman_tries_out_the_memory_of_several)
{
	struct td_memory_trial_job two[] = {{1, 24 * GIB, GIB, 0.5}, {2, 24 * GIB, GIB, 0.5}};
	struct td_antman_gpu gpu = {0};
	struct td_antman_gpu_input input = {.capacity_bytes = 32 * GIB,
		.besteffort = two,
		.besteffort_count = 2,
		.window_over = true};
	struct td_antman_gpu_output out;

	/* The second one gains from memory, the first does not. */
	for (uint64_t window = 0; window < 100; window++) {
		CHECK_EQ(
			td_antman_gpu_step(&gpu, &td_antman_gpu_default, &input, window * MS, &out),
			0);
		CHECK(out.limit_bytes[0] + out.limit_bytes[1] <= 32 * GIB);
		two[0].speed = 0.9;
		two[1].speed = (double)out.limit_bytes[1] / (24. * GIB);
	}
	CHECK(out.limit_bytes[1] > 22 * GIB);
	input.besteffort_count = TD_MEMORY_TRIAL_JOBS_MAX + 1;
	CHECK_EQ(td_antman_gpu_step(&gpu, &td_antman_gpu_default, &input, 0, &out), -EINVAL);
}

TEST(muxflow_holds_back_offline_work_when_the_clock_falls)
{
	struct td_sysmonitor_metrics metrics = {.initialised = true,
		.available = true,
		.utilisation_ppm = 600000,
		.sm_activity_ppm = 600000,
		.clock_mhz = 1590};
	struct td_muxflow_gpu gpu = {0};
	struct td_muxflow_output out = {0};
	uint64_t now = 0;

	for (int k = 0; k < 300; k++)
		out = td_muxflow_gpu_step(&gpu, &td_muxflow_t4, &metrics, now += 10 * MS);
	CHECK(out.accepts && out.duty_ppm > 980000);
	metrics.clock_mhz = 850; /* not yet unhealthy, but the load counts as 0.6 x 1.62 = 0.97 */
	for (int k = 0; k < 3000; k++)
		out = td_muxflow_gpu_step(&gpu, &td_muxflow_t4, &metrics, now += 10 * MS);
	CHECK(out.accepts && out.duty_ppm < 2000);
	metrics.clock_mhz = 500;
	out = td_muxflow_gpu_step(&gpu, &td_muxflow_t4, &metrics, now += 10 * MS);
	CHECK(out.evict && out.duty_ppm == 0 && !out.accepts);
}

/* Over 10 s, by hand: after 2.5 s a sample counts a quarter. */
TEST(muxflow_judges_the_health_of_a_gpu_by_means_over_its_time)
{
	struct td_sysmonitor_metrics metrics = {.initialised = true,
		.available = true,
		.utilisation_ppm = 200000,
		.sm_activity_ppm = 400000,
		.clock_mhz = 1500};
	struct td_muxflow_params params = td_muxflow_t4;
	struct td_muxflow_gpu gpu = {0};

	params.smooth_ns = 10000 * MS;
	(void)td_muxflow_gpu_step(&gpu, &params, &metrics, 1000 * MS);
	CHECK_EQ(gpu.mean.clock_mhz, 1500);
	metrics.utilisation_ppm = 600000;
	metrics.sm_activity_ppm = 800000;
	metrics.clock_mhz = 1100;
	(void)td_muxflow_gpu_step(&gpu, &params, &metrics, 3500 * MS);
	CHECK_EQ(gpu.mean.utilisation_ppm, 300000);
	CHECK_EQ(gpu.mean.sm_activity_ppm, 500000);
	CHECK_EQ(gpu.mean.clock_mhz, 1400);
	/* A sample without a clock begins the clock's mean anew. */
	metrics.clock_mhz = 0;
	(void)td_muxflow_gpu_step(&gpu, &params, &metrics, 6000 * MS);
	CHECK_EQ(gpu.mean.clock_mhz, 0);
	metrics.clock_mhz = 900;
	(void)td_muxflow_gpu_step(&gpu, &params, &metrics, 8500 * MS);
	CHECK_EQ(gpu.mean.clock_mhz, 900);
	/* After more than that time only the new sample counts. */
	metrics.utilisation_ppm = 100000;
	(void)td_muxflow_gpu_step(&gpu, &params, &metrics, 20000 * MS);
	CHECK_EQ(gpu.mean.utilisation_ppm, 100000);
}

/*
 * Algorithm 1 by trying all plans: the predictor prefers offline work of low activity beside busy
 * services.
 */
TEST(muxflow_schedules_the_best_plan)
{
	const double coefficients[] = {-0.3, 0, 0, 0, -0.4, 0, 0, 0.5, 0.6};
	const struct td_muxflow_profile online[] = {{0.2, 0.2, 0, 0}, {0.8, 0.8, 0, 0}};
	const struct td_muxflow_profile offline[] = {{0.9, 0.9, 0, 0}, {0.3, 0.1, 0, 0}};
	const bool accepts[] = {true, false};
	struct td_predictor predictor = line(coefficients, TD_MUXFLOW_INPUTS);
	struct td_muxflow_cluster cluster = {
		online, NULL, NULL, 2, offline, NULL, 2, &predictor, &td_dynamic_sm_default};
	static char memory[1 << 16] __attribute__((aligned(64)));
	struct td_match_result result;
	uint32_t matched[2];
	float w[4];

	CHECK(td_match_bytes(2, 2, 2) <= sizeof(memory));
	CHECK_EQ(td_muxflow_schedule(&cluster, w, memory, sizeof(memory), matched, &result), 0);
	/* u0 v0: 0.6 - 0.06 - 0.36 + 0.5 x 0.8 */
	CHECK(fabs(w[0] - 0.58) < 1e-6);
	CHECK(fabs(result.weight - fmax((double)w[0] + w[3], (double)w[1] + w[2])) < 1e-6);
	cluster.accepts = accepts;
	CHECK_EQ(td_muxflow_schedule(&cluster, w, memory, sizeof(memory), matched, &result), 0);
	CHECK(matched[0] == 1 && matched[1] == TD_MATCH_NONE);
}

/*
 * Makes slopes that grow with the layers of a task, by service; cut-off at 40 %, latency with the
 * batch.
 */
static void make_service(
	double sensitivity, double *store, struct td_predictor *p, struct td_mudi_service *service)
{
	memset(store, 0, 4 * (TD_MUDI_INPUTS + 1) * sizeof(double));
	for (int k = 0; k < 4; k++)
		p[k] = line(store + k * (TD_MUDI_INPUTS + 1), TD_MUDI_INPUTS);
	store[0] = -0.001 * sensitivity; /* left slope per conv layer */
	store[TD_MUDI_INPUTS] = -0.05;
	store[TD_MUDI_INPUTS + 1] = -0.0001 * sensitivity;        /* right slope */
	store[2 * (TD_MUDI_INPUTS + 1) + TD_MUDI_INPUTS] = 0.4;   /* knee */
	store[3 * (TD_MUDI_INPUTS + 1) + TD_MUDI_LAYERS] = 0.004; /* latency per doubling */
	*service = (struct td_mudi_service){&p[0], &p[1], &p[2], &p[3], 0, 0, 0, NULL, 0};
}

/*
 * Only DCUDA's own moves change anything: they must come to an end, whatever compaction and
 * balancing each want.
 */
TEST(dcuda_settles_when_nothing_else_moves)
{
	static struct td_dcuda_plan plan;
	uint64_t random = 77;

	for (uint32_t round = 0; round < 3000; round++) {
		uint32_t gpus = 2 + random_below(&random, 5), count = 1 + random_below(&random, 12);
		struct td_balance_app apps[12];
		double heavy = 0.2 + random_unit(&random);
		uint32_t steps = 0;

		for (uint32_t i = 0; i < count; i++) {
			apps[i].gpu = random_below(&random, gpus);
			apps[i].core = random_unit(&random) * heavy;
			apps[i].memory = random_unit(&random) * heavy;
			apps[i].movable = random_below(&random, 6) > 0;
		}
		do
			CHECK_EQ(td_dcuda_step(&td_dcuda_default, apps, count, gpus, 0, &plan), 0);
		while (plan.moves && ++steps < 20);
		CHECK(steps < 20);
	}
}

TEST(muxflow_tells_its_predictor_the_service_then_the_job_then_the_share)
{
	const struct td_muxflow_profile online = {.utilisation = 1,
						.sm_activity = 2,
						.sm_occupancy = 3},
					offline = {.utilisation = 4,
						.sm_activity = 5,
						.sm_occupancy = 6,
						.alone_s = 7};
	double inputs[TD_MUXFLOW_INPUTS];

	td_muxflow_inputs(&online, &offline, 8000000, inputs);
	for (int i = 0; i < TD_MUXFLOW_INPUTS; i++)
		CHECK(fabs(inputs[i] - (i + 1)) < 1e-12);
}

TEST(mudi_puts_a_task_beside_the_least_sensitive_service)
{
	static double store[2][4 * (TD_MUDI_INPUTS + 1)];
	struct td_predictor p[2][4];
	struct td_mudi_service services[2];
	const double layers[TD_MUDI_LAYERS] = {50};
	const struct td_selector_device devices[] = {{0, 0, true, GIB}, {1, 0, true, GIB}};
	double scores[2];

	make_service(3, store[0], p[0], &services[0]);
	make_service(1, store[1], p[1], &services[1]);
	CHECK_EQ(td_mudi_assign(services, 2, devices, 2, layers, 0, scores), 1);
	/* (0.05 + 0.05 + 0.005) / 2 and (0.05 + 0.15 + 0.015) / 2 */
	CHECK(fabs(scores[1] - 0.0525) < 1e-9 && fabs(scores[0] - 0.1075) < 1e-9);
}

TEST(mudi_tunes_batch_and_share_under_the_objective)
{
	static double store[4 * (TD_MUDI_INPUTS + 1)];
	static struct td_mudi_device device;
	struct td_predictor p[4];
	struct td_mudi_service service;
	const double layers[TD_MUDI_LAYERS] = {50};
	struct td_slo slo = {.objective_s = 0.2,
		.rate_per_s = 1000,
		.load_max = 0.8,
		.headroom = 0.1,
		.share_min = 0.01};
	struct td_curve curve;
	int rounds = 0;

	make_service(1, store, p, &service);
	td_mudi_begin(&device, &service, layers, &slo);
	CHECK(!device.paused && device.share > 0.39 && device.share < 0.41);
	while (!device.tuned && rounds++ < 100) /* the task likes large batches */
		(void)td_mudi_observe(&device, &service, layers, 0.2 + 5. / device.batch);
	CHECK(rounds <= 25);
	slo.batch = device.batch;
	curve = td_mudi_curve(&service, layers, device.batch);
	CHECK(td_curve_at(&curve, device.share) <= td_slo_latency_limit_s(&slo));
	CHECK(device.batch > 150);  /* the largest that holds it is 171 */
	CHECK(device.share > 0.42); /* the cut-off would just do; a tenth more is for errors */
	CHECK(!td_mudi_observe(&device, &service, layers, 1));
}

TEST(mudi_tries_no_more_batches_than_its_tuner_can_have)
{
	static double store[4 * (TD_MUDI_INPUTS + 1)];
	static struct td_mudi_device device;
	struct td_predictor p[4];
	struct td_mudi_service service;
	const double layers[TD_MUDI_LAYERS] = {50};
	const struct td_slo slo = {.objective_s = 1e6,
		.rate_per_s = 1,
		.load_max = 0.8,
		.headroom = 0.1,
		.share_min = 0.01};

	make_service(1, store, p, &service);
	service.batch_min = 1;
	service.batch_max = 2 * TD_BATCH_CANDIDATES_MAX;
	td_mudi_begin(&device, &service, layers, &slo);
	CHECK(!device.paused);
	CHECK_EQ(device.tuner.count, TD_BATCH_CANDIDATES_MAX);
}

static void tune_through(
	struct td_mudi_device *device, const struct td_mudi_service *service, const double *layers)
{
	for (int round = 0; !device->tuned && !device->paused && round < 100; round++)
		(void)td_mudi_observe(device, service, layers, 0.2 + 5. / device->batch);
}

/*
 * The tuned batch and share hold `margin` of the objective by the curve, and leave training a
 * tenth.
 */
static void check_tuned(const struct td_mudi_device *device, const struct td_mudi_service *service,
	const double *layers, struct td_slo slo, double margin)
{
	struct td_curve curve = td_mudi_curve(service, layers, device->batch);

	slo.batch = device->batch;
	slo.objective_s *= margin;
	CHECK(device->tuned && !device->paused);
	CHECK(device->share <= 0.9 + 1e-12);
	CHECK(td_curve_at(&curve, device->share) <= td_slo_latency_limit_s(&slo) + 1e-12);
}

TEST(mudi_tunes_for_less_of_the_objective_when_it_is_seen_to_be_missed)
{
	static double store[4 * (TD_MUDI_INPUTS + 1)];
	static struct td_mudi_device device;
	struct td_predictor p[4];
	struct td_mudi_service service;
	const double layers[TD_MUDI_LAYERS] = {50};
	const struct td_slo slo = {.objective_s = 0.2,
		.rate_per_s = 1000,
		.load_max = 0.8,
		.headroom = 0.1,
		.share_min = 0.01};
	double margin = 1;

	make_service(1, store, p, &service);
	device = (struct td_mudi_device){.batch = 0};
	td_mudi_begin(&device, &service, layers, &slo);
	tune_through(&device, &service, layers);
	check_tuned(&device, &service, layers, slo, 1);
	for (int misses = 0; misses < 6; misses++) {
		margin *= 0.9;
		td_mudi_miss(&device, &service, layers);
		CHECK(!device.tuned || device.paused);
		tune_through(&device, &service, layers);
		check_tuned(&device, &service, layers, slo, margin);
	}
	for (int misses = 0; !device.paused; misses++) {
		CHECK(misses < 40);
		td_mudi_miss(&device, &service, layers);
		tune_through(&device, &service, layers);
	}
	CHECK(device.share > 0.99); /* the service has the whole GPU */
}

TEST(mudi_follows_a_rate_that_has_moved_and_leaves_training_a_tenth)
{
	static double store[4 * (TD_MUDI_INPUTS + 1)];
	static struct td_mudi_device device;
	struct td_predictor p[4];
	struct td_mudi_service service;
	const double layers[TD_MUDI_LAYERS] = {50};
	struct td_slo slo = {.objective_s = 0.2,
		.rate_per_s = 300,
		.load_max = 0.8,
		.headroom = 0.1,
		.share_min = 0.01};
	uint32_t tuned = 0;

	make_service(1, store, p, &service);
	device = (struct td_mudi_device){.batch = 0};
	td_mudi_begin(&device, &service, layers, &slo);
	tune_through(&device, &service, layers);
	for (; slo.rate_per_s < 40000; slo.rate_per_s *= 1.6) {
		bool fits = td_mudi_fits(&service, layers, &slo);

		td_mudi_rescale(&device, &service, layers, &slo);
		tune_through(&device, &service, layers);
		CHECK_EQ(device.paused, !fits);
		if (device.paused)
			continue;
		check_tuned(&device, &service, layers, slo, 1);
		tuned++;
	}
	CHECK(tuned >= 5 && device.paused);
}

TEST(mudi_pauses_training_that_the_objective_cannot_bear)
{
	static double store[4 * (TD_MUDI_INPUTS + 1)];
	static struct td_mudi_device device;
	struct td_predictor p[4];
	struct td_mudi_service service;
	const double layers[TD_MUDI_LAYERS] = {50};
	struct td_slo slo = {
		.objective_s = 0.001, .rate_per_s = 10, .load_max = 0.8, .share_min = 0.01};

	make_service(1, store, p, &service);
	td_mudi_begin(&device, &service, layers, &slo);
	CHECK(device.paused && device.batch == 0);
	CHECK(device.share > 0.99);
	CHECK(!td_mudi_observe(&device, &service, layers, 1));
}

TEST(dcuda_balances_before_it_slices_and_compacts_last)
{
	struct td_balance_app apps[] = {
		{0, 0.9, 0.1, true}, {0, 0.6, 0.1, true}, {1, 0.3, 0.1, true}};
	static struct td_dcuda_plan plan;

	CHECK_EQ(td_dcuda_step(&td_dcuda_default, apps, 3, 2, 0, &plan), 0);
	CHECK(plan.moves == 1 && plan.move[0].app == 1);
	CHECK(plan.runs[0] && plan.runs[1] && plan.runs[2]);
	apps[0].core = 0.3;
	apps[1].core = 0.2;
	CHECK_EQ(td_dcuda_step(&td_dcuda_default, apps, 3, 2, 0, &plan), 0);
	CHECK(plan.moves == 1 && apps[0].gpu == apps[1].gpu && apps[1].gpu == apps[2].gpu);
	apps[0].gpu = 2;
	CHECK_EQ(td_dcuda_step(&td_dcuda_default, apps, 3, 2, 0, &plan), -EINVAL);
}

TEST(dcuda_gives_every_group_its_slice)
{
	struct td_balance_app apps[] = {
		{0, 0.9, 0.1, true}, {0, 0.8, 0.1, true}, {0, 0.1, 0.1, true}, {0, 0.7, 0.1, true}};
	uint32_t slices[4] = {0};
	static struct td_dcuda_plan plan;

	for (uint64_t k = 0; k < 30; k++) {
		CHECK_EQ(td_dcuda_step(&td_dcuda_default, apps, 4, 1, k * TD_SLICE_NS, &plan), 0);
		CHECK_EQ(plan.moves, 0);
		for (int i = 0; i < 4; i++)
			slices[i] += plan.runs[i];
	}
	for (int i = 0; i < 4; i++)
		CHECK_EQ(slices[i], 10); /* {0.9, 0.1}, {0.8}, {0.7} */
}
