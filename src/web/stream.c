/*
 * This file implements stream.h. The format is that of the HTML Living Standard, 9.2 "Server-sent
 * events".
 */
#include "web/stream.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "view/jobs.h"
#include "web/http.h"
#include "web/round.h"

#define PIECE_BYTES (32 * 1024)
/* A message with events ends at about this length. */
#define EVENTS_BYTES (256 * 1024)

/*
 * A page that reads the stream. `piece` is the message that is being sent, and `sent` the bytes of
 * it that were sent. After it the next message is chosen: hello, state, events or round. If there
 * is none, the connection is suspended.
 */
struct td_http_page {
	struct td_http *http;
	struct td_http_page *next;
	struct MHD_Connection *connection;
	bool is_suspended;
	struct td_text piece;
	size_t sent;
	uint64_t generation; /* the feed's generation when hello was sent; 0: it was not sent */
	uint64_t state_of, round_of, next_event;
};

/* -- messages -- */

static void add_hello(const struct td_http *http, struct td_text *text)
{
	td_text_add(text, "event: hello\ndata: {\"version\":\"%s\",\"host\":", TANDEM_VERSION);
	td_text_add_json(text, http->host);
	td_text_add(text, ",\"period\":%llu,\"fields\":",
		(unsigned long long)(http->feed->period_ns / TD_NS_PER_MS));
	td_round_write_fields(text);
	td_text_add(text, ",\"columns\":");
	td_jobs_write_columns(text);
	td_text_add(text, ",\"verbs\":");
	td_verbs_write(text);
	td_text_add(text, ",\"past\":");
	td_feed_write_past(http->feed, text);
	td_text_add(text, "}\n\n");
}

static void add_events(struct td_http_page *page, struct td_text *text)
{
	const struct td_feed *feed = page->http->feed;
	char before = '[';

	if (page->next_event + TD_FEED_EVENTS < feed->next_event)
		page->next_event = feed->next_event - TD_FEED_EVENTS;
	td_text_add(text, "event: events\ndata: ");
	while (page->next_event < feed->next_event && text->length < EVENTS_BYTES) {
		const char *row = feed->events[page->next_event++ % TD_FEED_EVENTS].text;

		if (!row)
			continue;
		td_text_put(text, &before, 1);
		td_text_put(text, row, strlen(row));
		before = ',';
	}
	td_text_add(text, before == '[' ? "[]\n\n" : "]\n\n");
}

/* Writes the next message. Returns false if there is none. */
static bool choose(struct td_http_page *page)
{
	const struct td_http *http = page->http;
	struct td_text *text = &page->piece;

	td_text_clear(text);
	page->sent = 0;
	if (page->generation != http->feed->generation) {
		page->generation = http->feed->generation;
		page->next_event = 1;
		add_hello(http, text);
	} else if (page->state_of != http->state_of) {
		page->state_of = http->state_of;
		td_text_put(text, http->state.text, http->state.length);
	} else if (page->next_event < http->feed->next_event) {
		add_events(page, text);
	} else if (page->round_of != http->round_of && http->round.length) {
		page->round_of = http->round_of;
		td_text_put(text, http->round.text, http->round.length);
	}
	return text->length > 0;
}

static ssize_t read_page(void *arg, uint64_t position, char *buf, size_t room)
{
	struct td_http_page *page = arg;
	size_t left;

	(void)position;
	if (page->sent == page->piece.length && !choose(page)) {
		page->is_suspended = true;
		MHD_suspend_connection(page->connection);
		return 0;
	}
	if (page->piece.failed)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	left = page->piece.length - page->sent;
	if (room > left)
		room = left;
	memcpy(buf, page->piece.text + page->sent, room);
	page->sent += room;
	return (ssize_t)room;
}

static void page_ends(void *arg)
{
	struct td_http_page *page = arg, **at = &page->http->pages;

	while (*at && *at != page)
		at = &(*at)->next;
	if (*at)
		*at = page->next;
	td_text_deinit(&page->piece);
	free(page);
}

struct MHD_Response *td_stream_response(struct td_http *http, struct MHD_Connection *connection)
{
	struct td_http_page *page = calloc(1, sizeof(*page));
	struct MHD_Response *response;

	if (!page)
		return NULL;
	page->http = http;
	page->connection = connection;
	page->next = http->pages;
	http->pages = page;
	response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, PIECE_BYTES, read_page, page, page_ends);
	if (!response) {
		page_ends(page);
		return NULL;
	}
	td_stream_update(http);
	return response;
}

/* -- new rounds and events -- */

/* Formats the last round. This is done only when a page is to read it. */
static void update_round(struct td_http *http)
{
	if (http->round_of == http->feed->rounds)
		return;
	td_text_clear(&http->round);
	td_text_add(&http->round, "event: round\ndata: ");
	td_round_write(&http->round, &http->feed->now, http->feed->wall_ns);
	td_text_add(&http->round, "\n\n");
	http->round_of = http->feed->rounds;
}

static void update_state(struct td_http *http)
{
	struct td_text text = {0};

	td_text_add(&text, "event: state\ndata: {\"policy\":");
	td_text_add_json(&text, http->feed->policy);
	td_text_add(&text, ",\"hostLimit\":");
	td_text_add_json(&text, http->feed->host_limit);
	td_text_add(&text, ",\"why\":");
	td_text_add_json(&text, http->feed->why);
	td_text_add(&text, "}\n\n");
	if (text.failed || (http->state.text && !strcmp(http->state.text, text.text))) {
		td_text_deinit(&text);
		return;
	}
	td_text_deinit(&http->state);
	http->state = text;
	http->state_of++;
}

void td_stream_update(struct td_http *http)
{
	if (!http->pages)
		return;
	update_round(http);
	update_state(http);
	td_stream_wake_all(http);
}

void td_stream_wake_all(struct td_http *http)
{
	for (struct td_http_page *page = http->pages; page; page = page->next) {
		if (page->is_suspended)
			MHD_resume_connection(page->connection);
		page->is_suspended = false;
	}
}
