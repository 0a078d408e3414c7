/* Bodies and answers of etcd's gateway, as etcd 3.4 has them. */
#include "test.h"

#include "base/text.h"
#include "cluster/state/etcd/gateway.h"

static struct td_gateway_answer answer;

static int parse(const char *text)
{
	return td_gateway_parse(text, strlen(text), &answer);
}

TEST(a_range_has_its_keys_with_zeros_left_out)
{
	CHECK_EQ(parse("{\"header\":{\"revision\":\"7\"},\"kvs\":[{\"key\":\"L2E=\","
		       "\"create_revision\":\"2\",\"mod_revision\":\"7\",\"value\":\"AAE=\"},"
		       "{\"key\":\"L2I=\",\"lease\":\"9223372036854775807\"}],\"count\":\"2\"}"),
		0);
	CHECK_EQ(answer.revision, 7);
	CHECK_EQ(answer.items, 2);
	CHECK_STR(answer.item[0].key, "/a");
	CHECK_EQ(answer.item[0].created, 2);
	CHECK_EQ(answer.item[0].length, 2);
	CHECK_EQ(answer.item[0].value[1], 1);
	CHECK_EQ(answer.item[1].length, 0);
	CHECK_STR(answer.item[1].value, "");
	CHECK(answer.item[1].lease == INT64_MAX);
	CHECK(!answer.has_more && !answer.is_done && !answer.code);
	td_gateway_answer_deinit(&answer);
}

TEST(keys_that_no_state_takes_are_left_out)
{
	CHECK_EQ(parse("{\"kvs\":[{\"key\":\"YQBi\"},{\"key\":\"\"},{\"key\":\"L2I=\"}]}"), 0);
	CHECK_EQ(answer.items, 1);
	CHECK_STR(answer.item[0].key, "/b");
	td_gateway_answer_deinit(&answer);
}

TEST(events_are_puts_unless_they_say_delete)
{
	CHECK_EQ(parse("{\"result\":{\"header\":{\"revision\":\"9\"},\"events\":["
		       "{\"kv\":{\"key\":\"L2E=\",\"mod_revision\":\"8\"}},"
		       "{\"type\":\"DELETE\",\"kv\":{\"key\":\"L2I=\",\"mod_revision\":\"9\"}}]}}"),
		0);
	CHECK_EQ(answer.events, 2);
	CHECK(!answer.event[0].is_delete && answer.event[1].is_delete);
	CHECK_EQ(answer.event[1].item.revision, 9);
	td_gateway_answer_deinit(&answer);
}

TEST(errors_of_requests_and_of_streams_have_their_results)
{
	static const struct {
		const char *text;
		int read, write;
	} of[] = {
		{"{\"error\":\"e\",\"code\":5}", TD_STATE_NO_LEASE, TD_STATE_NO_LEASE},
		{"{\"error\":\"e\",\"code\":7}", TD_STATE_DENIED, TD_STATE_DENIED},
		{"{\"error\":\"e\",\"code\":3}", TD_STATE_DENIED, TD_STATE_DENIED},
		{"{\"message\":\"e\",\"code\":11}", TD_STATE_COMPACTED, TD_STATE_COMPACTED},
		{"{\"error\":\"e\",\"code\":14}", TD_STATE_AWAY, TD_STATE_UNSURE},
		{"{\"error\":\"e\"}", TD_STATE_BROKEN, TD_STATE_UNSURE},
		{"{\"error\":{\"grpc_code\":16,\"message\":\"e\"}}", TD_STATE_DENIED,
			TD_STATE_DENIED},
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		CHECK_EQ(parse(of[i].text), 0);
		CHECK_STR(answer.text, "e");
		CHECK_EQ(td_gateway_result(&answer, false), of[i].read);
		CHECK_EQ(td_gateway_result(&answer, true), of[i].write);
		td_gateway_answer_deinit(&answer);
	}
}

TEST(texts_of_etcd_do_not_break_a_line_of_a_log)
{
	CHECK_EQ(parse("{\"error\":\"a\\nb\\u001b[2J\",\"code\":14}"), 0);
	CHECK(*answer.text && !strpbrk(answer.text, "\n\033"));
	td_gateway_answer_deinit(&answer);
	CHECK_EQ(parse("{\"result\":{\"canceled\":true,\"cancel_reason\":\"a\\nb\"}}"), 0);
	CHECK(*answer.text && !strchr(answer.text, '\n'));
	td_gateway_answer_deinit(&answer);
}

TEST(answers_that_are_none_are_broken)
{
	static const char *const bad[] = {"", "[]", "{", "\"x\"", "{} {}", "{\"kvs\":1}",
		"{\"kvs\":[1]}", "{\"kvs\":[{\"key\":\"L2E\"}]}",
		"{\"header\":{\"revision\":\"x\"}}", "{\"header\":{\"revision\":\"-1\"}}",
		"{\"header\":{\"revision\":-1}}",
		"{\"header\":{\"revision\":\"99999999999999999999\"}}", "{\"succeeded\":\"yes\"}",
		"{\"result\":3}", "{\"ID\":{}}", "{\"error\":{\"grpc_code\":\"x\"}}"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (parse(bad[i]) != TD_STATE_BROKEN)
			test_fail(__FILE__, __LINE__, "%s", bad[i]);
}

TEST(a_token_that_would_begin_a_header_line_is_none)
{
	CHECK_EQ(parse("{\"token\":\"a\\r\\nX: y\"}"), 0);
	CHECK(!answer.token);
	td_gateway_answer_deinit(&answer);
	CHECK_EQ(parse("{\"token\":\"abc.1\"}"), 0);
	CHECK_STR(answer.token, "abc.1");
	td_gateway_answer_deinit(&answer);
}

TEST(bodies_are_as_etcd_wants_them)
{
	const struct td_state_compare compare[] = {{"/a", false, 5}, {"/b", true, 0}};
	const struct td_state_write write[] = {
		{.key = "/a", .value = "x", .length = 1, .lease = 4}, {.key = "/b"}};
	struct td_text body = {0};

	td_gateway_commit(&body, &(struct td_state_commit){compare, write, 2, 2});
	CHECK_STR(body.text,
		"{\"compare\":[{\"result\":\"EQUAL\",\"target\":\"MOD\",\"key\":\"L2E=\","
		"\"mod_revision\":\"5\"},{\"result\":\"EQUAL\",\"target\":\"CREATE\",\"key\":"
		"\"L2I=\",\"create_revision\":\"0\"}],\"success\":[{\"request_put\":{\"key\":"
		"\"L2E=\",\"lease\":\"4\",\"value\":\"eA==\"}},{\"request_delete_range\":{\"key\":"
		"\"L2I=\"}}]}");
	td_text_clear(&body);
	td_gateway_range(&body, "/a/", 10, 3, NULL);
	CHECK_STR(body.text, "{\"key\":\"L2Ev\",\"range_end\":\"L2Ew\",\"limit\":\"10\","
			     "\"revision\":\"3\"}");
	td_text_clear(&body);
	td_gateway_range(&body, "\xff", 1, 0, "/a"); /* behind a key; no prefix ends 0xff */
	CHECK_STR(body.text, "{\"key\":\"L2EA\",\"range_end\":\"AA==\",\"limit\":\"1\"}");
	td_text_deinit(&body);
}
