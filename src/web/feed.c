/* This file implements feed.h. */
#include "web/feed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/time.h"
#include "base/uuid.h"
#include "proto/socket.h"
#include "view/metrics.h"
#include "web/round.h"

/* How long a stopped daemon may delay the pages. */
#define PATIENCE_NS (200 * TD_NS_PER_MS)
#define RETRY_NS    TD_NS_PER_S

void td_feed_init(struct td_feed *feed, const char *path, uint64_t period_ns)
{
	memset(feed, 0, sizeof(*feed));
	snprintf(feed->path, sizeof(feed->path), "%s", path);
	feed->period_ns = period_ns;
	feed->watch_fd = feed->events_fd = -1;
	feed->next_event = feed->generation = 1;
}

static void forget_events(struct td_feed *feed)
{
	for (unsigned i = 0; i < TD_FEED_EVENTS; i++)
		free(feed->events[i].text);
	memset(feed->events, 0, sizeof(feed->events));
	feed->next_event = 1;
}

static void hang_up(struct td_feed *feed)
{
	if (feed->watch_fd >= 0)
		close(feed->watch_fd);
	if (feed->events_fd >= 0)
		close(feed->events_fd);
	feed->watch_fd = feed->events_fd = -1;
	td_snapshot_clear(&feed->arriving);
	td_snapshot_clear(&feed->now);
	td_snapshot_clear(&feed->before);
}

void td_feed_deinit(struct td_feed *feed)
{
	hang_up(feed);
	td_snapshot_deinit(&feed->arriving);
	td_snapshot_deinit(&feed->now);
	td_snapshot_deinit(&feed->before);
	forget_events(feed);
	free(feed->past);
}

/* -- connecting -- */

/* Connects and sends `count` requests. Returns the connection, or -errno. */
static int ask(const struct td_feed *feed, const struct td_msg *requests, unsigned count)
{
	int fd = td_socket_connect(feed->path, PATIENCE_NS), r = 0;

	for (unsigned i = 0; fd >= 0 && i < count && !r; i++)
		r = td_socket_send(fd, &requests[i], NULL, 0);
	if (!r)
		return fd;
	close(fd);
	return r;
}

static int watch(const struct td_feed *feed)
{
	struct td_msg requests[] = {{.type = TD_MSG_TYPE_get}, {.type = TD_MSG_TYPE_watch}};

	requests[1].watch.period_ns = feed->period_ns;
	return ask(feed, requests, 2);
}

static int follow(const struct td_feed *feed)
{
	struct td_msg request = {.type = TD_MSG_TYPE_events, .events.follow = 1};

	return ask(feed, &request, 1);
}

static void call(struct td_feed *feed, uint64_t now_ns)
{
	feed->retry_ns = now_ns + RETRY_NS;
	feed->watch_fd = watch(feed);
	if (feed->watch_fd >= 0)
		feed->events_fd = follow(feed);
	if (feed->watch_fd >= 0 && feed->events_fd >= 0) {
		feed->greets = true;
		/* The new connection sends all events again, or those of another daemon. */
		forget_events(feed);
		feed->generation++;
		return;
	}
	snprintf(feed->why, sizeof(feed->why), "no daemon at %.200s (%s): `tandem run` starts one",
		feed->path, strerror(feed->watch_fd < 0 ? -feed->watch_fd : -feed->events_fd));
	hang_up(feed);
}

/* -- the past of GPUs -- */

static struct td_feed_past *past_of(struct td_feed *feed, const uint8_t *gpu)
{
	struct td_feed_past *grown;

	for (size_t i = 0; i < feed->past_count; i++)
		if (!memcmp(feed->past[i].gpu, gpu, 16))
			return &feed->past[i];
	grown = realloc(feed->past, (feed->past_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	feed->past = grown;
	grown = &feed->past[feed->past_count++];
	memset(grown, 0, sizeof(*grown));
	memcpy(grown->gpu, gpu, 16);
	return grown;
}

static void note_gpus(struct td_feed *feed)
{
	for (size_t i = 0; i < feed->past_count; i++)
		feed->past[i].seen = false;
	for (size_t i = 0; i < feed->now.gpu_count; i++) {
		const struct td_msg_gpu *gpu = &feed->now.gpus[i];
		struct td_feed_past *past = past_of(feed, gpu->gpu);

		if (!past)
			continue;
		past->seen = true;
		past->points[past->count++ % TD_FEED_PAST] = (struct td_feed_point){
			.time_ns = feed->now.time_ns,
			.resident_bytes = gpu->resident_bytes,
			.demanded_bytes = gpu->demanded_bytes,
			.busy = (float)td_snapshot_use(&feed->now, gpu),
		};
	}
	for (size_t i = 0; i < feed->past_count; i++)
		if (!feed->past[i].seen)
			feed->past[i--] = feed->past[--feed->past_count];
}

static const struct td_feed_point *point(const struct td_feed_past *past, uint64_t i)
{
	uint64_t first = past->count > TD_FEED_PAST ? past->count - TD_FEED_PAST : 0;

	return &past->points[(first + i) % TD_FEED_PAST];
}

static void write_points(const struct td_feed_past *past, struct td_text *text)
{
	uint64_t count = past->count > TD_FEED_PAST ? TD_FEED_PAST : past->count;

	for (uint64_t i = 0; i < count; i++) {
		const struct td_feed_point *p = point(past, i);

		td_text_add(text, "%s[%llu,%.3g,%llu,%llu]", i ? "," : "",
			(unsigned long long)p->time_ns / 1000000, p->busy,
			(unsigned long long)p->resident_bytes,
			(unsigned long long)p->demanded_bytes);
	}
}

void td_feed_write_past(const struct td_feed *feed, struct td_text *text)
{
	for (size_t i = 0; i < feed->now.gpu_count; i++) {
		const struct td_msg_gpu *gpu = &feed->now.gpus[i];
		char uuid[TD_UUID_TEXT];

		td_text_add(text, "%c\"%s\":[", i ? ',' : '{', td_gpu_uuid(uuid, gpu));
		for (size_t k = 0; k < feed->past_count; k++)
			if (!memcmp(feed->past[k].gpu, gpu->gpu, 16))
				write_points(&feed->past[k], text);
		td_text_put(text, "]", 1);
	}
	td_text_add(text, feed->now.gpu_count ? "}" : "{}");
}

/* -- messages -- */

static void swap(struct td_snapshot *a, struct td_snapshot *b)
{
	struct td_snapshot kept = *a;

	*a = *b;
	*b = kept;
}

static uint64_t wall_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * TD_NS_PER_S + (uint64_t)now.tv_nsec;
}

static void end_round(struct td_feed *feed)
{
	swap(&feed->before, &feed->now);
	swap(&feed->now, &feed->arriving);
	td_snapshot_clear(&feed->arriving);
	/* If memory is short, the rows have no rates. */
	(void)td_snapshot_rates(&feed->now, &feed->before);
	note_gpus(feed);
	*feed->why = 0;
	feed->wall_ns = wall_now_ns();
	feed->rounds++;
}

static void copy(char *to, size_t room, const char *text)
{
	snprintf(to, room, "%.*s", (int)room - 1, text);
}

/* Takes a message. Returns whether a round is complete. */
static bool take(struct td_feed *feed, const struct td_msg *msg)
{
	if (msg->type == TD_MSG_TYPE_option && !strcmp(msg->option.key, "policy"))
		copy(feed->policy, sizeof(feed->policy), msg->option.value);
	if (msg->type == TD_MSG_TYPE_option && !strcmp(msg->option.key, "host.limit"))
		copy(feed->host_limit, sizeof(feed->host_limit), msg->option.value);
	if (feed->greets) {
		feed->greets = msg->type != TD_MSG_TYPE_end;
		return false;
	}
	if (td_snapshot_take(&feed->arriving, msg) != 1)
		return false;
	end_round(feed);
	return true;
}

/* Asks for the options again over a new connection, since one was changed. */
static void ask_again(struct td_feed *feed)
{
	int fd = watch(feed);

	if (fd < 0)
		return;
	close(feed->watch_fd);
	feed->watch_fd = fd;
	feed->greets = true;
	td_snapshot_clear(&feed->arriving);
}

static bool take_event(struct td_feed *feed, const struct td_msg_event *event)
{
	struct td_feed_event *kept = &feed->events[feed->next_event % TD_FEED_EVENTS];
	struct td_text text = {0};

	/*
	 * A job may become idle many times a second. That would push all other events out of the
	 * list.
	 */
	if (!strcmp(event->kind, "idle"))
		return false;
	td_round_write_event(&text, event);
	if (text.failed) {
		td_text_deinit(&text);
		return false;
	}
	free(kept->text);
	*kept = (struct td_feed_event){feed->next_event++, text.text};
	if (!strcmp(event->kind, "option") && !event->pid && feed->rounds)
		ask_again(feed);
	return true;
}

/* Takes the messages of one of the two connections. Returns false if it has ended. */
static bool listen_to(struct td_feed *feed, int fd, bool *ret_new)
{
	struct td_msg msg;

	for (;;) {
		int r = td_socket_recv(fd, &msg, NULL, MSG_DONTWAIT);

		if (r == TD_PROTO_UNKNOWN)
			continue;
		if (r)
			return r == -EAGAIN;
		td_proto_each_str(&msg, td_printable);
		if (msg.type == TD_MSG_TYPE_error) {
			copy(feed->why, sizeof(feed->why), msg.error.text);
			return false;
		}
		if (msg.type == TD_MSG_TYPE_event)
			*ret_new |= take_event(feed, &msg.event);
		else
			*ret_new |= take(feed, &msg);
		/* ask_again() has replaced the connection. */
		if (fd != feed->watch_fd && fd != feed->events_fd)
			return true;
	}
}

void td_feed_fds(const struct td_feed *feed, struct pollfd *ret)
{
	ret[0] = (struct pollfd){feed->watch_fd, POLLIN, 0};
	ret[1] = (struct pollfd){feed->events_fd, POLLIN, 0};
}

bool td_feed_turn(struct td_feed *feed, uint64_t now_ns, uint64_t *ret_wakeup_ns)
{
	bool new = false;

	if (feed->watch_fd < 0 && now_ns >= feed->retry_ns) {
		call(feed, now_ns);
		new = true;
	}
	if (feed->watch_fd >= 0 && (!listen_to(feed, feed->watch_fd, &new) ||
					   !listen_to(feed, feed->events_fd, &new))) {
		if (!*feed->why)
			copy(feed->why, sizeof(feed->why),
				"the daemon has ended: waiting for another one");
		hang_up(feed);
		feed->retry_ns = now_ns + RETRY_NS;
		new = true;
	}
	*ret_wakeup_ns = feed->watch_fd < 0 ? feed->retry_ns : UINT64_MAX;
	return new;
}

bool td_feed_has_job(const struct td_feed *feed, const char *job)
{
	for (size_t i = 0; i < feed->now.job_count; i++)
		if (!strcmp(feed->now.jobs[i].said.job, job))
			return true;
	return false;
}
