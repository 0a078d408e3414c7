/* The checks of tandem-web: which requests are allowed, and which orders are valid. */
#include <errno.h>
#include <string.h>

#include "test.h"
#include "web/access.h"
#include "web/listen.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define WRONG "0123456789abcdef0123456789abcdee"

static const struct td_access granted = {.host = "localhost:8080", .cookie = TOKEN};

TEST(the_token_may_come_in_a_cookie_a_header_or_the_pages_address)
{
	struct td_access a = {.host = "127.0.0.1:8080"};

	CHECK_EQ(td_access_judge(&granted, TOKEN), TD_ACCESS_GRANTED);
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_TOKEN);
	a.authorization = "Bearer " TOKEN;
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_GRANTED);
	a.authorization = "Bearer " WRONG;
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_TOKEN);
	a.authorization = NULL;
	a.query = TOKEN;
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_TOKEN);
	a.is_page = true;
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_GRANTED);
	a.query = "";
	a.cookie = TOKEN;
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_TOKEN);
	a.query = NULL;
	a.cookie = TOKEN "0";
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_TOKEN);
}

TEST(only_names_of_this_machine_are_hosts)
{
	static const struct {
		const char *host;
		enum td_verdict verdict;
	} rows[] = {
		{"localhost", TD_ACCESS_GRANTED},
		{"localhost:1", TD_ACCESS_GRANTED},
		{"127.0.0.1:65535", TD_ACCESS_GRANTED},
		{"127.255.0.3", TD_ACCESS_GRANTED},
		{"[::1]:80", TD_ACCESS_GRANTED},
		{"[::1]", TD_ACCESS_GRANTED},
		{"evil.example", TD_ACCESS_HOST},
		{"localhost.evil.example", TD_ACCESS_HOST},
		{"127.0.0.1.evil.example", TD_ACCESS_HOST},
		{"127.0.0.256", TD_ACCESS_HOST},
		{"127.0.1", TD_ACCESS_HOST},
		{"128.0.0.1", TD_ACCESS_HOST},
		{"[::1", TD_ACCESS_HOST},
		{"[::2]:80", TD_ACCESS_HOST},
		{"localhost:80a", TD_ACCESS_HOST},
		{"localhost:123456", TD_ACCESS_HOST},
		{"", TD_ACCESS_HOST},
		{NULL, TD_ACCESS_HOST},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct td_access a = {.host = rows[i].host, .cookie = TOKEN};

		if (td_access_judge(&a, TOKEN) != rows[i].verdict)
			test_fail(__FILE__, __LINE__, "%s", rows[i].host ? rows[i].host : "NULL");
	}
}

TEST(other_pages_are_refused)
{
	struct td_access a = granted;

	a.origin = "http://localhost:8080";
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_GRANTED);
	a.origin = "http://localhost:8081";
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_ORIGIN);
	a.origin = "null";
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_ORIGIN);
	a.origin = NULL;
	a.site = "same-site";
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_ORIGIN);
	a.is_page = true;
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_GRANTED);
}

TEST(who_changes_something_says_where_from)
{
	struct td_access a = granted;

	a.does = true;
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_ORIGIN);
	a.origin = "http://localhost:8080";
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_GRANTED);
	a.origin = NULL;
	a.authorization = "Bearer " TOKEN;
	CHECK_EQ(td_access_judge(&a, TOKEN), TD_ACCESS_GRANTED);
}

static int parse(const char *body, struct td_order *ret)
{
	return td_order_parse(body, strlen(body), ret);
}

TEST(an_order_is_a_verb_and_a_job)
{
	struct td_order order;

	CHECK_EQ(parse("{\"verb\": \"pause\", \"job\": \"17.ab\\\"c\"}\n", &order), 0);
	CHECK_STR(order.verb, "pause");
	CHECK_STR(order.job, "17.ab\"c");
	CHECK_EQ(parse("{\"job\":\"a\",\"verb\":\"b\"}", &order), 0);
}

TEST(anything_else_is_no_order)
{
	static const char *const rows[] = {"", "{}", "[]", "{\"verb\":\"a\"}",
		"{\"verb\":\"a\",\"verb\":\"b\"}", "{\"verb\":\"a\",\"job\":1}",
		"{\"verb\":\"a\",\"job\":\"b\",\"more\":\"c\"}", "{\"verb\":\"a\",\"job\":\"b\"} x",
		"{\"verb\":\"a\",\"job\":\"\"}", "{\"verb\":\"a\",\"job\":\"b\\u0041\"}",
		"{\"verb\":\"aaaaaaaaaaaaaaaa\",\"job\":\"b\"}",
		"{\"verb\":\"a\",\"job\":\"b\nc\"}", "{\"verb\":\"a\",\"job\":\"b"};
	struct td_order order;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (parse(rows[i], &order) != -EINVAL)
			test_fail(__FILE__, __LINE__, "%s", rows[i]);
}

TEST(it_listens_to_this_machine_alone)
{
	char host[64];
	unsigned port;

	CHECK_EQ(td_listen_parse("127.0.0.1:0", host, sizeof(host), &port), 0);
	CHECK_EQ(td_listen_parse("[::1]:8080", host, sizeof(host), &port), 0);
	CHECK_STR(host, "::1");
	CHECK_EQ(port, 8080);
	CHECK_EQ(td_listen_parse("8080", host, sizeof(host), &port), -EINVAL);
	CHECK_EQ(td_listen_parse("127.0.0.1:65536", host, sizeof(host), &port), -EINVAL);
	CHECK_EQ(td_listen_parse("127.0.0.1:", host, sizeof(host), &port), -EINVAL);
}
