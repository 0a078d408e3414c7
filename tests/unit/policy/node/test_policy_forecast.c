/* The forecast by a service's latency curves, and the policy tandem with it. */
#include "unit/policy/service_curves.h"

#include "policy/node/beside/forecast.h"

/* Ten convolutions double the time of a batch: 20 ms more. */
static const double sensitive[] = {0.002, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.001, 0.02};
static struct td_mudi_service curves;
static const struct td_profile profile = {.service = &curves},
			       convolutions = {.layers = {[0] = 10}};
static struct td_forecast forecast;

/* A batch of 64 takes 25 ms alone and 45 ms beside the task. At W per second it may take 51 s/W. */
static struct td_client_view *service_and_task(struct td_client_view **ret_task)
{
	struct td_client_view *service;

	start("tandem", 1);
	service = add_service();
	lines[3].coefficients = sensitive;
	curves = service_curves;
	service->profile = &profile;
	service->batch = 64;
	*ret_task = add(2, 0, TD_CLASS_BESTEFFORT, GIB);
	(*ret_task)->profile = &convolutions;
	forecast = (struct td_forecast){0};
	return service;
}

static uint32_t look(void)
{
	td_forecast_step(&forecast, &node.view, &node.plan, 0, node.now);
	return forecast.duty_ppm;
}

static bool is_about(uint32_t ppm, uint32_t expected_ppm)
{
	return ppm + 20000 > expected_ppm && ppm < expected_ppm + 20000;
}

TEST(forecast_gives_what_the_curves_leave_at_the_present_rate)
{
	struct td_client_view *task, *service = service_and_task(&task);

	CHECK_EQ(look(), TD_PPM);
	service->rate_per_s = 1500;
	CHECK(is_about(look(), 437000));
	service->rate_per_s = 2500;
	CHECK_EQ(look(), 1); /* no room, which is not the same as not known */
	/* Half the duty with twice the time that the neighbour costs. */
	service->rate_per_s = 1500;
	forecast = (struct td_forecast){0};
	task = add(3, 0, TD_CLASS_BESTEFFORT, GIB);
	task->profile = &convolutions;
	CHECK(is_about(look(), 218000));
}

TEST(forecast_gives_less_the_less_sure_the_curves_are)
{
	struct td_client_view *task, *service = service_and_task(&task);
	uint32_t left_ppm;

	look();
	left_ppm = forecast.left_ppm;
	CHECK_EQ(forecast.error_ns, 0);
	curves.error_s = 0.004;
	forecast = (struct td_forecast){0};
	look();
	CHECK_EQ(forecast.left_ppm, left_ppm); /* the error is that beside neighbours */
	CHECK_EQ(forecast.error_ns, 4 * MS);
	service->rate_per_s = 1500;
	CHECK(is_about(look(), 365000));
}

TEST(forecast_takes_a_grown_rate_at_once_and_a_fallen_one_after_some_seconds)
{
	struct td_client_view *task, *service = service_and_task(&task);

	look();
	service->rate_per_s = 1500;
	CHECK(look() < TD_PPM);
	service->rate_per_s = 1000;
	node.now += 4000 * MS;
	CHECK(look() < TD_PPM);
	node.now += 2000 * MS;
	CHECK(look() < TD_PPM);
	node.now += 5000 * MS;
	CHECK_EQ(look(), TD_PPM);
}

TEST(forecast_leaves_the_sms_that_the_service_does_not_need_for_half_as_many_requests_again)
{
	struct td_client_view *task, *service = service_and_task(&task);

	look();
	CHECK(is_about(forecast.left_ppm, 680000));
	service->rate_per_s = 1300;
	look();
	CHECK(is_about(forecast.left_ppm, 600000));
	/* It cannot take more than it was started with. */
	service->sm_share_ppm = 250000;
	look();
	CHECK_EQ(forecast.left_ppm, 750000);
}

TEST(forecast_knows_nothing_without_curves_layers_mps_or_beside_a_second_service)
{
	struct td_client_view *task, *service = service_and_task(&task), *other;

	CHECK(look());
	task->profile = NULL;
	CHECK(!look() && forecast.left_ppm);
	task->profile = &convolutions;
	node.gpus[0].mps = TD_MPS_OFF;
	CHECK(!look() && !forecast.left_ppm);
	node.gpus[0].mps = TD_MPS_ON;
	CHECK(look());
	service->profile = NULL;
	CHECK(!look() && !forecast.left_ppm);
	service->profile = &profile;
	curves.batch_min = 65;
	CHECK(!look());
	curves.batch_min = 16;
	service->rate_per_s++;
	CHECK(look());
	other = add(4, 0, TD_CLASS_ONLINE, GIB);
	CHECK(!look());
	other->stands_by = true;
	CHECK(look());
}

static uint32_t duty_of(const struct td_client_view *client)
{
	return grant_of(client)->duty_ppm ? grant_of(client)->duty_ppm : TD_PPM;
}

/* P99 is that of the last second and far below the objective in all of these steps. */
static uint32_t duty_after_growth(struct td_client_view *service, const struct td_client_view *task)
{
	service->p99_ns = 60 * MS;
	for (int i = 0; i < 100; i++) {
		node.now += 10 * MS;
		step();
	}
	CHECK(duty_of(task) > 900000);
	service->rate_per_s = 2000;
	node.now += 10 * MS;
	step();
	return duty_of(task);
}

TEST(tandem_lowers_the_duty_when_the_rate_grows_before_p99_shows_it)
{
	struct td_client_view *task, *service = service_and_task(&task);
	uint32_t lowered = duty_after_growth(service, task);

	CHECK(lowered <= 30000);
	CHECK(node.verdicts[0].forecast_ppm);
	/* The P99 stays low: the curves were too careful, and the duty comes back. */
	for (int i = 0; i < 500; i++) {
		node.now += 10 * MS;
		step();
	}
	CHECK(duty_of(task) > 500000);
	/* It does not: the duty falls below the forecast. */
	service->p99_ns = 260 * MS;
	for (int i = 0; i < 500; i++) {
		node.now += 10 * MS;
		step();
	}
	CHECK(duty_of(task) < 30000);
	service = service_and_task(&task);
	service->profile = NULL;
	CHECK(duty_after_growth(service, task) > 900000);
	CHECK(!node.verdicts[0].forecast_ppm);
}

TEST(tandem_begins_with_the_forecast_where_there_is_no_p99_yet)
{
	struct td_client_view *task, *service = service_and_task(&task);

	service->rate_per_s = 1500;
	step();
	CHECK(is_about(duty_of(task), 437000));
	/* Even alone it cannot bear half as much again: training that comes gets the floor. */
	CHECK_EQ(node.verdicts[0].sm_share_ppm, 100000);
}

/* Without a P99, curves or the SMs' activity nothing tells that the service suffers. */
TEST(tandem_holds_nothing_back_beside_a_service_of_which_nothing_is_known)
{
	struct td_client_view *task, *service = service_and_task(&task);

	service->profile = NULL;
	node.gpus[0].known = 0;
	step();
	CHECK_EQ(duty_of(task), 1000000);
	/* With the activity alone the controller decides by that: there is room. */
	node.gpus[0].known = TD_HAS(SM_ACTIVITY);
	node.gpus[0].sm_activity_ppm = 100000;
	for (int i = 0; i < 100; i++) {
		node.now += 100 * MS;
		step();
	}
	CHECK(duty_of(task) > 500000);
}
