/* This file implements watch.h. */
#include "kubernetes/sched/watch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bounds.h"
#include "base/log.h"
#include "base/time.h"

#define PAGE           500
#define STREAM_S       290 /* the server ends a stream after this */
#define PAUSE_FIRST_NS (100 * TD_NS_PER_MS)
#define PAUSE_MOST_NS  (10 * TD_NS_PER_S)
#define LINE_MAX_BYTES (16u << 20)
#define GONE           410

void td_kube_watch_renew(struct td_kube_watch *watch)
{
	td_kube_stream_close(&watch->stream);
	td_text_clear(&watch->line);
	watch->is_listed = false;
	watch->retry_ns = 0;
}

void td_kube_watch_deinit(struct td_kube_watch *watch)
{
	td_kube_stream_close(&watch->stream);
	td_text_deinit(&watch->line);
	td_text_deinit(&watch->answer);
}

static void wait_again(struct td_kube_watch *watch)
{
	watch->pause_ns =
		td_min_u64(td_max_u64(2 * watch->pause_ns, PAUSE_FIRST_NS), PAUSE_MOST_NS);
	watch->retry_ns = td_time_now_ns() + watch->pause_ns;
}

/* --- the list --- */

/* The token of the next page is the server's, so its bytes are escaped. */
static void write_page(char *path, const struct td_kube_watch *watch, const char *more)
{
	int used = snprintf(path, TD_KUBE_PATH, "%s?limit=%d%s%s", watch->path, PAGE,
		watch->selector, more ? "&continue=" : "");

	for (; more && *more && used < (int)TD_KUBE_PATH - 4; more++)
		used += snprintf(
			path + used, TD_KUBE_PATH - (size_t)used, "%%%02X", (unsigned char)*more);
}

static void take_items(struct td_kube_watch *watch, const struct td_kube_list *list)
{
	const json_t *item;
	size_t k;

	json_array_foreach(list->items, k, item)
	{
		watch->take(watch->arg, item, false);
	}
}

/* Takes one page. Returns 0; 1: there are more, at the path; -errno. */
static int take_page(struct td_kube_watch *watch, char *path)
{
	struct td_kube_list list;
	int status = td_kube_api_send(watch->api, "GET", path, NULL, NULL, &watch->answer), r;

	if (status != 200) {
		td_kube_api_refused(watch->api, status, &watch->answer);
		return -EAGAIN;
	}
	r = td_kube_list_read(watch->answer.text, watch->answer.length, &list);
	if (r)
		return r;
	take_items(watch, &list);
	strcpy(watch->version, list.version);
	r = list.more != NULL;
	if (r && 3 * strlen(list.more) + strlen(path) + 16 < TD_KUBE_PATH)
		write_page(path, watch, list.more);
	else if (r)
		r = -EMSGSIZE;
	td_kube_list_deinit(&list);
	return r;
}

static void list_all(struct td_kube_watch *watch)
{
	char path[TD_KUBE_PATH];
	int r;

	watch->begin(watch->arg);
	write_page(path, watch, NULL);
	do {
		r = take_page(watch, path);
	} while (r == 1);
	if (r) {
		if (!watch->is_failing)
			td_log(TD_LOG_WARN, "path=%s not listed, so nothing is placed: %s",
				watch->path,
				r == -EAGAIN ? td_kube_api_why(watch->api) : strerror(-r));
		watch->is_failing = true;
		wait_again(watch);
		return;
	}
	watch->end(watch->arg);
	watch->is_failing = false;
	watch->is_listed = true;
	watch->retry_ns = 0;
}

/* --- the watch --- */

/* Returns false if the stream is of no use any more. */
static bool take_event(struct td_kube_watch *watch, const struct td_kube_event *event)
{
	if (event->type == TD_KUBE_ERROR) {
		/* Another error than GONE ends the stream, and it begins again. */
		if (event->code == GONE)
			watch->is_listed = false;
		return false;
	}
	if (event->type != TD_KUBE_BOOKMARK)
		watch->take(watch->arg, event->object, event->type == TD_KUBE_DELETED);
	if (*event->version)
		strcpy(watch->version, event->version);
	watch->pause_ns = 0;
	return true;
}

/* A line that is no event, such as a proxy's page, ends the stream. */
static bool take_line(struct td_kube_watch *watch)
{
	struct td_kube_event event;
	bool is_good;

	if (!watch->line.length)
		return true;
	if (td_kube_event_read(watch->line.text, watch->line.length, &event))
		return false;
	is_good = take_event(watch, &event);
	td_kube_event_deinit(&event);
	return is_good;
}

static bool take_bytes(void *arg, const char *bytes, size_t length)
{
	struct td_kube_watch *watch = arg;
	const char *at = bytes, *end = bytes + length;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		td_text_put(&watch->line, at, (size_t)(stop - at));
		at = newline ? newline + 1 : end;
		if (watch->line.failed || watch->line.length > LINE_MAX_BYTES) {
			watch->is_listed = false; /* an event is lost */
			return false;
		}
		if (!newline)
			break;
		if (!take_line(watch))
			return false;
		td_text_clear(&watch->line);
	}
	return true;
}

static void ended(void *arg, int status)
{
	struct td_kube_watch *watch = arg;

	td_text_clear(&watch->line);
	watch->line.failed = false;
	if (status == GONE)
		watch->is_listed = false;
	if (status == 200 && !watch->pause_ns) {
		watch->pause_ns = PAUSE_FIRST_NS / 2; /* a stream that said something */
		watch->retry_ns = 0;
		return;
	}
	wait_again(watch);
}

static void begin_stream(struct td_kube_watch *watch)
{
	char path[TD_KUBE_PATH];

	snprintf(path, sizeof(path),
		"%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%s%s",
		watch->path, STREAM_S, watch->version, watch->selector);
	watch->stream.arg = watch;
	watch->stream.take = take_bytes;
	watch->stream.ended = ended;
	td_text_clear(&watch->line);
	if (td_kube_stream_open(&watch->stream, watch->api, path))
		wait_again(watch);
}

uint64_t td_kube_watch_turn(struct td_kube_watch *watch, uint64_t now_ns)
{
	if (!watch->stream.easy && now_ns >= watch->retry_ns) {
		if (!watch->is_listed)
			list_all(watch);
		if (watch->is_listed)
			begin_stream(watch);
	}
	return watch->stream.easy ? UINT64_MAX : watch->retry_ns;
}
