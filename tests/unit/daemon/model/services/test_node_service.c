/* Figures of a service from a page that the test writes, on a clock of the test's. */
#include <errno.h>
#include <stdlib.h>

#include "test.h"

#include "daemon/model/services/service.h"

#define MS 1000000ull

static struct td_service_page page;
static struct td_service *service;
static uint64_t now;

static void start(void)
{
	struct td_msg_service msg = {.name = "api", .objective_ns = 50 * MS, .batch_max = 32};

	free(service);
	service = NULL;
	memset(&page, 0, sizeof(page));
	now = 1000 * MS;
	CHECK_EQ(td_service_declare(&service, &msg, &page), 0);
	td_service_look(service, now);
}

/* A quarter of a second in which so many requests come and are answered after that time. */
static void pass(uint32_t requests, uint64_t latency_ns)
{
	atomic_fetch_add(&page.arrived, requests);
	atomic_fetch_add(&page.answered, requests);
	atomic_fetch_add(&page.latency[td_histogram_bucket(latency_ns)], requests);
	now += TD_SERVICE_LOOK_NS;
	td_service_look(service, now);
}

static bool is_near(uint64_t value, uint64_t expected)
{
	return value <= expected + expected / 25 && value + expected / 25 >= expected;
}

TEST(figures_are_of_the_last_second)
{
	start();
	CHECK(service->rate_per_s < 0.1 && !service->p99_ns);
	pass(25, 10 * MS);
	CHECK(service->rate_per_s > 99.9 && service->rate_per_s < 100.1);
	CHECK(is_near(service->p99_ns, 10 * MS) && is_near(service->p50_ns, 10 * MS));
	for (int i = 0; i < 4; i++)
		pass(50, 20 * MS);
	CHECK(service->rate_per_s > 199.9 && service->rate_per_s < 200.1);
	CHECK(is_near(service->p50_ns, 20 * MS) && is_near(service->mean_ns, 20 * MS));
	for (int i = 0; i < 4; i++)
		pass(0, 0);
	CHECK(service->rate_per_s < 0.1 && !service->p99_ns && !service->waiting);
}

TEST(a_slow_answer_in_a_hundred_is_not_in_the_p99_and_two_are)
{
	start();
	atomic_fetch_add(&page.latency[td_histogram_bucket(300 * MS)], 1);
	pass(99, 10 * MS);
	CHECK(is_near(service->p99_ns, 10 * MS));
	start();
	atomic_fetch_add(&page.latency[td_histogram_bucket(300 * MS)], 2);
	pass(98, 10 * MS);
	CHECK(is_near(service->p99_ns, 300 * MS));
}

TEST(counts_may_pass_any_power_of_two)
{
	start();
	atomic_store(&page.latency[td_histogram_bucket(10 * MS)], (1ull << 32) - 10);
	for (int i = 0; i < 5; i++)
		pass(0, 0);
	CHECK(!service->p99_ns);
	pass(25, 10 * MS);
	CHECK(is_near(service->p99_ns, 10 * MS) && is_near(service->mean_ns, 10 * MS));
	pass(75, 30 * MS);
	CHECK(is_near(service->mean_ns, 25 * MS));
}

TEST(looks_are_not_more_frequent_than_they_should_be)
{
	start();
	atomic_store(&page.arrived, 1000);
	td_service_look(service, now + TD_SERVICE_LOOK_NS - 1);
	CHECK_EQ(service->waiting, 0);
	td_service_look(service, now + TD_SERVICE_LOOK_NS);
	CHECK_EQ(service->waiting, 1000);
}

TEST(lies_are_bounded)
{
	struct td_msg_service nameless = {.objective_ns = 1};
	struct td_service *none = NULL;

	start();
	pass(25, 10 * MS);
	atomic_store(&page.arrived, 0); /* fewer than before, and than were answered */
	pass(0, 0);
	CHECK_EQ(service->waiting, 0);
	atomic_store(&page.arrived, UINT64_MAX);
	pass(0, 0);
	CHECK_EQ(service->waiting, UINT32_MAX);
	CHECK_EQ(td_service_declare(&none, &nameless, &page), -EINVAL);
	CHECK(!none);
	td_service_look(NULL, now);
}

TEST(figures_go_on_when_another_instance_takes_over)
{
	struct td_msg_service msg = {.name = "api", .objective_ns = 50 * MS, .batch_max = 32};
	struct td_service_page first;
	struct td_service *shadow = NULL;

	start();
	for (int i = 0; i < 4; i++)
		pass(25, 10 * MS);
	atomic_fetch_add(&page.arrived, 5); /* these wait in the first instance */
	first = page;
	memset(&page, 0, sizeof(page));
	CHECK_EQ(td_service_declare(&shadow, &msg, &page), 0);
	service->page = &first;
	td_service_follow(shadow, service);
	free(service);
	service = shadow;
	CHECK(service->rate_per_s > 99.9 && service->rate_per_s < 100.1);
	CHECK(is_near(service->p99_ns, 10 * MS));
	pass(25, 20 * MS);
	CHECK(service->rate_per_s > 99.9 && service->rate_per_s < 106);
	CHECK(is_near(service->p99_ns, 20 * MS) && is_near(service->p50_ns, 10 * MS));
	CHECK_EQ(service->waiting, 0);
	strcpy(service->name, "other");
	td_service_follow(service, service);
	td_service_follow(NULL, service);
	td_service_follow(service, NULL);
	CHECK_EQ(service->waiting, 0);
}

static struct td_msg_figures heard = {.name = "api",
	.objective_ns = 50 * MS,
	.known = 1,
	.has_tail = 1,
	.rate_milli = 12500,
	.mean_ns = 10 * MS,
	.p50_ns = 9 * MS,
	.p99_ns = 20 * MS,
	.waiting = 3,
	.source = "requests"};

TEST(figures_from_outside_count_until_they_are_outdated)
{
	free(service);
	service = NULL;
	CHECK(!td_service_is_known(service));
	CHECK(td_service_hear(&service, &heard, now));
	CHECK(!td_service_hear(&service, &heard, now));
	CHECK(td_service_is_known(service) && service->p99_ns == 20 * MS && service->waiting == 3);
	CHECK(service->rate_per_s > 12.4 && service->rate_per_s < 12.6);
	td_service_look(service, now + TD_SERVICE_OUTDATED_NS);
	CHECK(td_service_is_known(service));
	td_service_look(service, now + TD_SERVICE_OUTDATED_NS + 1);
	CHECK(!td_service_is_known(service) && !service->p99_ns && !service->waiting);
	CHECK(*service->why);
}

TEST(unknown_figures_from_outside_are_none_and_say_why)
{
	struct td_msg_figures unknown = heard;

	unknown.known = 0;
	strcpy(unknown.why, "it does not answer");
	free(service);
	service = NULL;
	CHECK(td_service_hear(&service, &heard, now));
	CHECK(!td_service_hear(&service, &unknown, now));
	CHECK(!td_service_is_known(service) && !service->p99_ns && service->rate_per_s < 0.1);
	CHECK_STR(service->why, "it does not answer");
	unknown.known = 1;
	unknown.has_tail = 0;
	(void)td_service_hear(&service, &unknown, now);
	CHECK(td_service_is_known(service) && !service->p99_ns && service->rate_per_s > 12);
}

TEST(what_the_program_tells_goes_before_figures_from_outside)
{
	struct td_msg_service msg = {.name = "own"};

	start();
	CHECK(!td_service_hear(&service, &heard, now));
	CHECK_STR(service->name, "api");
	CHECK(!service->p99_ns);
	free(service);
	service = NULL;
	(void)td_service_hear(&service, &heard, now);
	CHECK_EQ(td_service_declare(&service, &msg, &page), 0);
	CHECK_STR(service->name, "own");
	CHECK(!service->p99_ns && service->page == &page);
	CHECK(!td_service_hear(&service, &heard, now) && !service->p99_ns);
}
