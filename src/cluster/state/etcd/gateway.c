/* This file implements gateway.h. */
#include "cluster/state/etcd/gateway.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "proto/base64.h"

/* The codes of gRPC that etcd uses. */
enum {
	CODE_INVALID_ARGUMENT = 3,
	CODE_NOT_FOUND = 5,
	CODE_PERMISSION_DENIED = 7,
	CODE_EXHAUSTED = 8,
	CODE_FAILED_PRECONDITION = 9,
	CODE_OUT_OF_RANGE = 11,
	CODE_INTERNAL = 13,
	CODE_UNAVAILABLE = 14,
	CODE_UNAUTHENTICATED = 16,
};

/* -- requests -- */

static void add_bytes(
	struct td_text *body, const char *name, const char *bytes, size_t length, const char *end)
{
	td_text_add(body, "\"%s\":\"", name);
	td_base64_add(body, bytes, length);
	td_text_add(body, "\"%s", end);
}

/* The end of the range of all keys with this prefix: the prefix with its last byte raised. */
static void add_range_end(struct td_text *body, const char *prefix)
{
	size_t length = strlen(prefix);
	char end[TD_STATE_KEY_MAX];

	memcpy(end, prefix, length);
	while (length && (unsigned char)end[length - 1] == 255)
		length--;
	if (length)
		end[length - 1]++;
	else
		end[length++] = 0; /* etcd's sign for all keys from the first on */
	add_bytes(body, "range_end", end, length, "");
}

void td_gateway_range(struct td_text *body, const char *key, uint32_t limit, uint64_t revision,
	const char *behind)
{
	td_text_add(body, "{");
	/* The NUL at its end makes it the first key that is greater. */
	add_bytes(
		body, "key", behind ? behind : key, behind ? strlen(behind) + 1 : strlen(key), "");
	if (limit) {
		td_text_add(body, ",");
		add_range_end(body, key);
		td_text_add(body, ",\"limit\":\"%u\"", limit);
	}
	if (revision)
		td_text_add(body, ",\"revision\":\"%" PRIu64 "\"", revision);
	td_text_add(body, "}");
}

static void add_compare(struct td_text *body, const struct td_state_compare *compare)
{
	td_text_add(body, "{\"result\":\"EQUAL\",\"target\":\"%s\",",
		compare->is_created ? "CREATE" : "MOD");
	add_bytes(body, "key", compare->key, strlen(compare->key), ",");
	td_text_add(body, "\"%s\":\"%" PRIu64 "\"}",
		compare->is_created ? "create_revision" : "mod_revision", compare->expected);
}

static void add_write(struct td_text *body, const struct td_state_write *write)
{
	td_text_add(body, write->value ? "{\"request_put\":{" : "{\"request_delete_range\":{");
	add_bytes(body, "key", write->key, strlen(write->key), "");
	if (write->value) {
		td_text_add(body, ",\"lease\":\"%" PRIu64 "\",", write->lease);
		add_bytes(body, "value", write->value, write->length, "");
	}
	td_text_add(body, "}}");
}

void td_gateway_commit(struct td_text *body, const struct td_state_commit *commit)
{
	td_text_add(body, "{\"compare\":[");
	for (uint32_t i = 0; i < commit->compares; i++) {
		td_text_add(body, i ? "," : "");
		add_compare(body, &commit->compare[i]);
	}
	td_text_add(body, "],\"success\":[");
	for (uint32_t i = 0; i < commit->writes; i++) {
		td_text_add(body, i ? "," : "");
		add_write(body, &commit->write[i]);
	}
	td_text_add(body, "]}");
}

void td_gateway_grant(struct td_text *body, uint32_t ttl_s)
{
	td_text_add(body, "{\"TTL\":\"%u\"}", ttl_s);
}

void td_gateway_lease(struct td_text *body, uint64_t lease)
{
	td_text_add(body, "{\"ID\":\"%" PRIu64 "\"}", lease);
}

void td_gateway_watch(struct td_text *body, const char *prefix, uint64_t from)
{
	td_text_add(body, "{\"create_request\":{");
	add_bytes(body, "key", prefix, strlen(prefix), ",");
	add_range_end(body, prefix);
	td_text_add(body, ",\"start_revision\":\"%" PRIu64 "\",\"progress_notify\":true}}", from);
}

void td_gateway_login(struct td_text *body, const char *user, const char *password)
{
	td_text_add(body, "{\"name\":");
	td_text_add_json(body, user);
	td_text_add(body, ",\"password\":");
	td_text_add_json(body, password);
	td_text_add(body, "}");
}

/* -- answers -- */

/* The number of a field: a string of digits, or a number that JSON allows. Absent is 0. */
static bool get_number(const json_t *object, const char *name, uint64_t *ret)
{
	const json_t *field = json_object_get(object, name);
	const char *text = json_string_value(field);
	char *end;

	*ret = 0;
	if (!field)
		return true;
	if (json_is_integer(field) && json_integer_value(field) >= 0) {
		*ret = (uint64_t)json_integer_value(field);
		return true;
	}
	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && !*end;
}

static bool get_bool(const json_t *object, const char *name, bool *ret)
{
	const json_t *field = json_object_get(object, name);

	*ret = json_is_true(field);
	return !field || json_is_boolean(field);
}

/* The bytes of a field. Absent is empty. Returns 0, TD_STATE_BROKEN or -ENOMEM. */
static int get_bytes(const json_t *object, const char *name, char **ret, size_t *ret_length)
{
	const json_t *field = json_object_get(object, name);
	const char *text = field ? json_string_value(field) : "";
	size_t length = field ? json_string_length(field) : 0;
	char *bytes;

	if (!text)
		return TD_STATE_BROKEN;
	bytes = malloc(length / 4 * 3 + 1);
	if (!bytes)
		return -ENOMEM;
	if (!td_base64_decode(text, length, bytes, ret_length)) {
		free(bytes);
		return TD_STATE_BROKEN;
	}
	*ret = bytes;
	return 0;
}

/* Whether a key is one that a state takes. */
static bool is_ours(const char *key, size_t length)
{
	return length && length < TD_STATE_KEY_MAX && strlen(key) == length;
}

/* Reads a key with its value. Returns 0, TD_STATE_ABSENT (a key that no state takes), ... */
static int read_item(const json_t *object, struct td_state_item *ret)
{
	struct td_state_item item = {0};
	size_t length = 0;
	int r = json_is_object(object) ? 0 : TD_STATE_BROKEN;

	if (!r && (!get_number(object, "mod_revision", &item.revision) ||
			  !get_number(object, "create_revision", &item.created) ||
			  !get_number(object, "lease", &item.lease)))
		r = TD_STATE_BROKEN;
	if (!r)
		r = get_bytes(object, "key", &item.key, &length);
	if (!r && !is_ours(item.key, length))
		r = TD_STATE_ABSENT;
	if (!r)
		r = get_bytes(object, "value", &item.value, &item.length);
	if (r)
		td_state_item_deinit(&item);
	else
		*ret = item;
	return r;
}

static int read_items(const json_t *array, struct td_gateway_answer *answer)
{
	size_t count = json_array_size(array);

	if (array && !json_is_array(array))
		return TD_STATE_BROKEN;
	answer->item = calloc(count + 1, sizeof(*answer->item));
	if (!answer->item)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int r = read_item(json_array_get(array, i), &answer->item[answer->items]);

		if (!r)
			answer->items++;
		else if (r != TD_STATE_ABSENT)
			return r;
	}
	return 0;
}

static int read_events(const json_t *array, struct td_gateway_answer *answer)
{
	size_t count = json_array_size(array);

	if (array && !json_is_array(array))
		return TD_STATE_BROKEN;
	answer->event = calloc(count + 1, sizeof(*answer->event));
	if (!answer->event)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const json_t *row = json_array_get(array, i);
		const char *type = json_string_value(json_object_get(row, "type"));
		struct td_state_event *event = &answer->event[answer->events];
		int r = read_item(json_object_get(row, "kv"), &event->item);

		event->is_delete = type && !strcmp(type, "DELETE");
		if (!r)
			answer->events++;
		else if (r != TD_STATE_ABSENT)
			return r;
	}
	return 0;
}

static int read_token(const json_t *object, struct td_gateway_answer *answer)
{
	const char *token = json_string_value(json_object_get(object, "token"));

	/* It goes into a header line. */
	if (!token || !*token || strpbrk(token, "\r\n"))
		return 0;
	answer->token = strdup(token);
	return answer->token ? 0 : -ENOMEM;
}

/* An error is {"error": "text", "code": N}; in a stream {"error": {"grpc_code": N, ...}}. */
static int read_error(const json_t *root, struct td_gateway_answer *answer)
{
	const json_t *error = json_object_get(root, "error");
	const char *text = json_string_value(error);
	uint64_t code = 0;

	if (json_is_object(error)) {
		text = json_string_value(json_object_get(error, "message"));
		root = error;
	}
	if (!get_number(root, json_is_object(error) ? "grpc_code" : "code", &code) ||
		code > INT16_MAX)
		return TD_STATE_BROKEN;
	if (!text)
		text = json_string_value(json_object_get(root, "message"));
	if (text || code)
		answer->code = code ? (int)code : -1;
	snprintf(answer->text, sizeof(answer->text), "%s", text ? text : "");
	return 0;
}

static int read_answer(const json_t *root, struct td_gateway_answer *answer)
{
	const json_t *result = json_object_get(root, "result"), *reason;
	const json_t *body = result ? result : root;
	const json_t *header = json_object_get(body, "header");
	int r;

	if (!json_is_object(root) || !json_is_object(body))
		return TD_STATE_BROKEN;
	if (!get_number(header, "revision", &answer->revision) ||
		!get_number(body, "ID", &answer->lease) ||
		!get_number(body, "TTL", &answer->ttl_s) ||
		!get_number(body, "compact_revision", &answer->compacted) ||
		!get_bool(body, "succeeded", &answer->is_done) ||
		!get_bool(body, "more", &answer->has_more) ||
		!get_bool(body, "canceled", &answer->is_canceled))
		return TD_STATE_BROKEN;
	r = read_error(root, answer);
	if (!r)
		r = read_items(json_object_get(body, "kvs"), answer);
	if (!r)
		r = read_events(json_object_get(body, "events"), answer);
	if (!r)
		r = read_token(body, answer);
	reason = json_object_get(body, "cancel_reason");
	if (json_is_string(reason))
		snprintf(answer->text, sizeof(answer->text), "%s", json_string_value(reason));
	(void)td_printable(answer->text); /* it goes into logs */
	return r;
}

int td_gateway_parse(const char *bytes, size_t length, struct td_gateway_answer *ret)
{
	struct td_gateway_answer answer = {0};
	json_error_t error;
	json_t *root = json_loadb(bytes, length, 0, &error);
	int r = root ? read_answer(root, &answer) : TD_STATE_BROKEN;

	json_decref(root);
	if (r)
		td_gateway_answer_deinit(&answer);
	else
		*ret = answer;
	return r;
}

void td_gateway_answer_deinit(struct td_gateway_answer *answer)
{
	for (size_t i = 0; i < answer->items; i++)
		td_state_item_deinit(&answer->item[i]);
	for (size_t i = 0; i < answer->events; i++)
		td_state_item_deinit(&answer->event[i].item);
	free(answer->item);
	free(answer->event);
	free(answer->token);
	*answer = (struct td_gateway_answer){0};
}

int td_gateway_result(const struct td_gateway_answer *answer, bool is_write)
{
	switch (answer->code) {
	case 0: return 0;
	case CODE_PERMISSION_DENIED:
	case CODE_UNAUTHENTICATED:
	case CODE_FAILED_PRECONDITION: /* a login where authentication is off */
	case CODE_INVALID_ARGUMENT: /* no user, or a wrong password */ return TD_STATE_DENIED;
	case CODE_NOT_FOUND: return TD_STATE_NO_LEASE;
	case CODE_OUT_OF_RANGE: return TD_STATE_COMPACTED;
	case CODE_EXHAUSTED: /* etcd's database is full, or it has too many requests */
		return TD_STATE_AWAY;
	case CODE_UNAVAILABLE:
	case CODE_INTERNAL: return is_write ? TD_STATE_UNSURE : TD_STATE_AWAY;
	default: return is_write ? TD_STATE_UNSURE : TD_STATE_BROKEN;
	}
}
