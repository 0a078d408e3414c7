/* The readings of /metrics, from a server in this process that answers what a case says. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include "base/err.h"
#include "base/time.h"
#include "cli/scrape/scraper.h"
#include "test.h"

static struct td_scraper scraper = {.fetch.fd = -1};
static struct td_msg msg;
static uint64_t now;
static int listener = -1;

static void begin(const char *latency)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	char url[128];

	if (listener >= 0)
		close(listener);
	td_fetch_deinit(&scraper.fetch);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!bind(listener, (const struct sockaddr *)&address, sizeof(address)));
	CHECK(!listen(listener, 4));
	CHECK(!getsockname(listener, (struct sockaddr *)&address, &len));
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/metrics%s", ntohs(address.sin_port),
		latency);
	CHECK(!td_scraper_init(&scraper, url, NULL));
	td_scraper_service(&scraper, "api", 50 * TD_NS_PER_MS);
	now = TD_NS_PER_S;
}

/* The scraper goes on until it has something to say. */
static void wait_for_message(void)
{
	while (!td_scraper_turn(&scraper, now, &msg)) {
		struct pollfd fd = {scraper.fetch.fd, scraper.fetch.events, 0};

		CHECK(poll(&fd, 1, 10000) == 1);
	}
	CHECK_EQ(msg.type, TD_MSG_TYPE_figures);
}

/* A reading is due, and the server sends `page` in two pieces. */
static void serve(const char *page)
{
	char request[1024];
	size_t half = strlen(page) / 2;
	int fd;

	now = td_scraper_wake_ns(&scraper) > now ? td_scraper_wake_ns(&scraper) : now;
	CHECK(!td_scraper_turn(&scraper, now, &msg));
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0);
	while (!scraper.fetch.sent || scraper.fetch.events == POLLOUT) {
		struct pollfd poll_fd = {scraper.fetch.fd, POLLOUT, 0};

		CHECK(poll(&poll_fd, 1, 10000) == 1);
		CHECK(!td_scraper_turn(&scraper, now, &msg));
	}
	CHECK(recv(fd, request, sizeof(request), 0) > 0);
	CHECK(!strncmp(request, "GET /metrics HTTP/1.0\r\n", 23));
	CHECK(send(fd, page, half, 0) == (ssize_t)half);
	(void)td_scraper_turn(&scraper, now, &msg);
	CHECK(send(fd, page + half, strlen(page) - half, 0) >= 0);
	close(fd);
	wait_for_message();
}

#define OK   "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
#define NAME "http_request_duration_seconds"

TEST(two_readings_make_figures)
{
	begin("");
	serve(OK NAME "_count 0\n" NAME "_bucket{le=\"0.1\"} 0\n");
	CHECK(!msg.figures.known);
	CHECK_STR(msg.figures.name, "api");
	CHECK_EQ(msg.figures.objective_ns, 50 * TD_NS_PER_MS);
	serve(OK NAME "_count 10\n" NAME "_bucket{le=\"0.1\"} 10\n");
	CHECK(msg.figures.known && msg.figures.has_tail);
	CHECK_EQ(msg.figures.rate_milli, 10000);
	CHECK_EQ(msg.figures.p99_ns, 99000000);
	CHECK_STR(msg.figures.source, NAME);
}

TEST(a_metric_that_begins_with_the_first_request_began_at_nothing)
{
	begin("");
	serve(OK "other 1\n");
	CHECK_STR(msg.figures.why, "they have no metric of an engine that tandem knows");
	serve(OK NAME "_count 4\n" NAME "_bucket{le=\"0.1\"} 4\n");
	CHECK(msg.figures.known);
	CHECK_EQ(msg.figures.rate_milli, 4000);
}

TEST(after_a_failure_nothing_is_known_until_two_readings)
{
	begin("");
	serve(OK NAME "_count 10\n");
	serve(OK NAME "_count 20\n");
	CHECK(msg.figures.known && !msg.figures.has_tail);
	serve("HTTP/1.1 500 Internal Server Error\r\n\r\n");
	CHECK(!msg.figures.known && !msg.figures.rate_milli);
	CHECK_STR(msg.figures.why, "its answer is not a page with status 200");
	serve(OK NAME "_count 30\n");
	CHECK(!msg.figures.known);
	serve(OK NAME "_count 40\n");
	CHECK(msg.figures.known);
	serve(OK NAME "_count 3\n");
	CHECK_STR(msg.figures.why, "the service has begun to count anew");
	serve(OK NAME "_count 5\n");
	CHECK_EQ(msg.figures.rate_milli, 2000);
}

TEST(a_server_that_is_not_there_or_says_nothing_is_no_answer)
{
	begin("");
	CHECK(!td_scraper_turn(&scraper, now, &msg));
	now += TD_SCRAPE_TIMEOUT_NS;
	CHECK(td_scraper_turn(&scraper, now, &msg));
	CHECK_STR(msg.figures.why, "it has not answered in time");
	close(listener);
	listener = -1;
	now += TD_SCRAPE_PERIOD_NS;
	wait_for_message();
	CHECK(!msg.figures.known);
}

TEST(a_named_histogram_is_read_instead)
{
	begin(",latency=my_ms");
	serve(OK NAME "_count 10\nmy_ms_count 0\n");
	serve(OK NAME "_count 30\nmy_ms_count 1\nmy_ms_bucket{le=\"2\"} 1\n");
	CHECK_EQ(msg.figures.rate_milli, 1000);
	CHECK_EQ(msg.figures.p50_ns, 1000000);
	serve(OK NAME "_count 30\n");
	CHECK_STR(msg.figures.why, "they do not have the named histogram");
}

static const char *refused(const char *text)
{
	static struct td_err err;

	err.msg[0] = 0;
	CHECK(td_scraper_init(&scraper, text, &err));
	return err.msg;
}

TEST(a_bad_url_is_quoted_and_refused)
{
	const char *const bad[] = {"", "http://", "https://localhost/", "127.0.0.1:80",
		"http://:80/", "http://127.0.0.1:x/", "http://127.0.0.1:123456/", "http://[::1/",
		"http://a b/", "http://[]:1/"};

	td_fetch_deinit(&scraper.fetch);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(strstr(refused(bad[i]), "is not valid: expected http://HOST[:PORT]/PATH"));
	CHECK(strstr(refused("http://127.0.0.1:1/,latency="), "latency \"\" is not valid"));
	CHECK(strstr(refused("http://127.0.0.1:1/,latency=a-b"), "latency \"a-b\" is not valid"));
	CHECK(!td_scraper_init(&scraper, "http://[::1]:8000", NULL));
	CHECK_STR(scraper.fetch.path, "/metrics");
}
