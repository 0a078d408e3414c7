/*
 * This file implements etcd_watch.h.
 *
 *            stream begun               "created" came
 *  WAITING ----------------> ASKED -----------------------> FOLLOWING
 *     ^                        |                                |
 *     +------------------------+--------------------------------+
 *            the stream ended, hung, or is at an endpoint that was left
 *
 * etcd never splits a revision over two answers, so a stream resumes at the revision behind the
 * last event. Bytes of an answer that did not come whole are dropped, and come again.
 */
#include "cluster/state/etcd/etcd_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bounds.h"
#include "base/time.h"

#define PAUSE_FIRST_NS (50 * TD_NS_PER_MS)
#define PAUSE_MOST_NS  (2 * TD_NS_PER_S)
#define QUEUE_BYTES    (16u << 20) /* a reader that is slower than this stops the stream */

struct td_etcd_watch *td_etcd_watch_new(
	struct td_post *post, CURLM *multi, const char *prefix, uint64_t from)
{
	struct td_etcd_watch *watch = calloc(1, sizeof(*watch));

	if (watch)
		watch->prefix = strdup(prefix);
	if (!watch || !watch->prefix) {
		free(watch);
		return NULL;
	}
	watch->post = post;
	watch->multi = multi;
	watch->next = from;
	td_list_init(&watch->link);
	return watch;
}

static void stop_stream(struct td_etcd_watch *watch)
{
	if (watch->easy) {
		curl_multi_remove_handle(watch->multi, watch->easy);
		curl_easy_cleanup(watch->easy);
	}
	curl_slist_free_all(watch->headers);
	watch->easy = NULL;
	watch->headers = NULL;
	watch->is_created = watch->is_paused = false;
	td_text_clear(&watch->line);
}

void td_etcd_watch_free(struct td_etcd_watch *watch)
{
	stop_stream(watch);
	td_list_remove(&watch->link);
	for (size_t i = 0; i < watch->count; i++)
		td_state_item_deinit(&watch->queue[watch->first + i].item);
	td_state_item_deinit(&watch->taken.item);
	free(watch->queue);
	td_text_deinit(&watch->body);
	td_text_deinit(&watch->line);
	free(watch->prefix);
	free(watch);
}

/* -- answers -- */

/* Room for one more event: the events move to the front, or the queue grows. */
static bool make_room(struct td_etcd_watch *watch)
{
	size_t room = watch->room ? 2 * watch->room : 16;
	struct td_state_event *queue;

	if (watch->first + watch->count < watch->room)
		return true;
	if (watch->first > watch->room / 2) {
		memmove(watch->queue, watch->queue + watch->first,
			watch->count * sizeof(*watch->queue));
		watch->first = 0;
		return true;
	}
	queue = realloc(watch->queue, room * sizeof(*queue));
	if (!queue)
		return false;
	watch->queue = queue;
	watch->room = room;
	return true;
}

/* The queue takes the events of an answer over, all or none. */
static bool take_events(struct td_etcd_watch *watch, struct td_gateway_answer *answer)
{
	size_t before = watch->count;

	for (size_t i = 0; i < answer->events; i++) {
		if (!make_room(watch)) {
			watch->count = before;
			return false;
		}
		watch->queue[watch->first + watch->count++] = answer->event[i];
	}
	for (size_t i = 0; i < answer->events; i++) {
		watch->bytes += answer->event[i].item.length + TD_STATE_KEY_MAX;
		watch->next = td_max_u64(watch->next, answer->event[i].item.revision + 1);
	}
	answer->events = 0; /* they have a new owner */
	return true;
}

/* The server refuses: with a new login it may not. */
static void be_denied(struct td_etcd_watch *watch)
{
	if (watch->was_denied)
		watch->end = TD_STATE_DENIED;
	watch->was_denied = true;
	td_post_log_out(watch->post);
}

static bool is_about_rights(const char *text)
{
	return strstr(text, "permission denied") || strstr(text, "user name is empty") ||
	       strstr(text, "auth token");
}

/* Takes one answer. Returns false if the stream is of no use any more. */
static bool take_answer(struct td_etcd_watch *watch, struct td_gateway_answer *answer)
{
	bool is_first = !watch->is_created;

	if (answer->is_canceled && answer->compacted)
		watch->end = TD_STATE_COMPACTED;
	else if (answer->is_canceled ? is_about_rights(answer->text)
				     : td_gateway_result(answer, false) == TD_STATE_DENIED)
		be_denied(watch);
	else if (answer->is_canceled || answer->code)
		td_post_move(watch->post, watch->moves);
	if (answer->is_canceled || answer->code)
		return false;
	watch->is_created = true;
	watch->was_denied = false;
	watch->pause_ns = 0;
	/* An etcd that was set back to an older copy has not these revisions yet. */
	if (is_first && answer->revision && answer->revision + 1 < watch->next) {
		watch->end = TD_STATE_COMPACTED;
		return false;
	}
	/* Without events it is a sign of progress: there was nothing up to this revision. */
	if (!answer->events && !is_first)
		watch->next = td_max_u64(watch->next, answer->revision + 1);
	return take_events(watch, answer);
}

static bool take_line(struct td_etcd_watch *watch, const char *bytes, size_t length)
{
	struct td_gateway_answer answer;
	bool is_good;

	if (!length)
		return true;
	if (td_gateway_parse(bytes, length, &answer))
		return false;
	is_good = take_answer(watch, &answer);
	td_gateway_answer_deinit(&answer);
	return is_good;
}

/* libcurl calls this with bytes that end anywhere. */
static size_t take_bytes(char *bytes, size_t size, size_t count, void *arg)
{
	struct td_etcd_watch *watch = arg;
	const char *at = bytes, *end = bytes + size * count;

	if (watch->bytes > QUEUE_BYTES) {
		watch->is_paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		td_text_put(&watch->line, at, (size_t)(stop - at));
		at = newline ? newline + 1 : end;
		if (watch->line.failed || watch->line.length > TD_POST_ANSWER_MAX)
			return 0;
		if (!newline)
			break;
		if (!take_line(watch, watch->line.text, watch->line.length))
			return 0;
		td_text_clear(&watch->line);
	}
	return count;
}

/* -- the stream -- */

static void wait_again(struct td_etcd_watch *watch, uint64_t now_ns)
{
	stop_stream(watch);
	watch->retry_ns = now_ns + watch->pause_ns;
	watch->pause_ns =
		td_min_u64(td_max_u64(2 * watch->pause_ns, PAUSE_FIRST_NS), PAUSE_MOST_NS);
}

void td_etcd_watch_ended(struct td_etcd_watch *watch, CURLcode code, uint64_t now_ns)
{
	/* An error before the stream begins is one answer without a newline. */
	if (!watch->is_created && !watch->end)
		(void)take_line(watch, watch->line.text, watch->line.length);
	if (code && code != CURLE_WRITE_ERROR)
		td_post_move(watch->post, watch->moves);
	wait_again(watch, now_ns);
}

static void begin(struct td_etcd_watch *watch, uint64_t now_ns)
{
	int r;

	watch->moves = watch->post->moves;
	td_text_clear(&watch->body);
	td_gateway_watch(&watch->body, watch->prefix, watch->next);
	r = td_post_stream(watch->post, "/v3/watch", &watch->body, &watch->easy, &watch->headers);
	if (r) {
		watch->end = r == TD_STATE_DENIED ? r : 0;
		td_post_move(watch->post, watch->moves);
		wait_again(watch, now_ns);
		return;
	}
	watch->begun_ns = now_ns;
	curl_easy_setopt(watch->easy, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(watch->easy, CURLOPT_WRITEDATA, watch);
	curl_easy_setopt(watch->easy, CURLOPT_PRIVATE, watch);
	if (curl_multi_add_handle(watch->multi, watch->easy))
		wait_again(watch, now_ns);
}

uint64_t td_etcd_watch_turn(struct td_etcd_watch *watch, uint64_t now_ns)
{
	if (watch->easy && watch->moves != watch->post->moves) {
		stop_stream(watch);
		watch->retry_ns = now_ns;
	}
	if (watch->easy && !watch->is_created &&
		now_ns >= watch->begun_ns + watch->post->timeout_ns) {
		td_post_move(watch->post, watch->moves);
		wait_again(watch, now_ns);
	}
	if (!watch->easy && !watch->end && now_ns >= watch->retry_ns)
		begin(watch, now_ns);
	if (watch->end)
		return UINT64_MAX;
	if (!watch->easy)
		return watch->retry_ns;
	return watch->is_created ? UINT64_MAX : watch->begun_ns + watch->post->timeout_ns;
}

int td_etcd_watch_next(struct td_etcd_watch *watch, struct td_state_event *ret)
{
	if (!watch->count && watch->is_paused) {
		watch->is_paused = false;
		(void)curl_easy_pause(watch->easy, CURLPAUSE_CONT);
	}
	if (!watch->count)
		return watch->end ? watch->end : TD_STATE_NOTHING;
	td_state_item_deinit(&watch->taken.item);
	watch->taken = watch->queue[watch->first++];
	watch->count--;
	watch->bytes -= watch->taken.item.length + TD_STATE_KEY_MAX;
	if (!watch->count)
		watch->first = 0;
	*ret = watch->taken;
	return 0;
}
