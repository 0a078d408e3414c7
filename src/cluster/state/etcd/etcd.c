/*
 * This file implements etcd.h: the kind of state whose requests go to etcd (post.h), and whose
 * watches are streams in one handle of libcurl for many. One epoll descriptor has their sockets.
 */
#include "cluster/state/etcd/etcd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/bounds.h"
#include "base/err.h"
#include "base/time.h"
#include "cluster/state/etcd/etcd_watch.h"

#define PAGE_KEYS  1000u
#define PAGE_LARGE 40u   /* keys whose values, however long, are not more than an answer may be */
#define PAGES_MAX  10000 /* of one list: an answer that always has more is broken */
#define LIST_AGAIN 3     /* how often a list begins anew because its revision was compacted */
#define EVENTS     32

struct etcd {
	struct td_state base;
	struct td_post post;
	CURLM *multi;
	struct td_list watches; /* struct td_etcd_watch.link */
	uint64_t timer_ns;      /* when libcurl wants to be called; UINT64_MAX: never */
	int nudge;              /* an eventfd: timer_ns was set outside of a turn */
	bool in_turn;
};

static struct etcd *etcd_of(struct td_state *state)
{
	return td_container_of(state, struct etcd, base);
}

/* -- requests -- */

/* Sends a request and frees its body. */
static int send_body(struct etcd *etcd, const char *path, struct td_text *body, bool is_write,
	struct td_gateway_answer *ret)
{
	int r = td_post_send(&etcd->post, path, body, is_write, ret);

	td_text_deinit(body);
	if (r)
		snprintf(etcd->base.why, sizeof(etcd->base.why), "%s", etcd->post.why);
	return r;
}

static int etcd_get(struct td_state *state, const char *key, struct td_state_item *ret)
{
	struct td_gateway_answer answer;
	struct td_text body = {0};
	int r;

	td_gateway_range(&body, key, 0, 0, NULL);
	r = send_body(etcd_of(state), "/v3/kv/range", &body, false, &answer);
	if (r)
		return r;
	if (answer.items) {
		*ret = answer.item[0];
		answer.item[0] = (struct td_state_item){0};
	} else {
		r = TD_STATE_ABSENT;
	}
	td_gateway_answer_deinit(&answer);
	return r;
}

/* Adds the next keys to the list. *ret_has_more: there are more behind them. */
static int list_page(struct etcd *etcd, const char *prefix, uint32_t keys,
	struct td_state_list *list, char *last, bool *ret_has_more)
{
	struct td_gateway_answer answer;
	struct td_state_item *longer;
	struct td_text body = {0};
	int r;

	td_gateway_range(&body, prefix, keys, list->revision, *last ? last : NULL);
	r = send_body(etcd, "/v3/kv/range", &body, false, &answer);
	if (r)
		return r;
	longer = realloc(list->item, (list->count + answer.items + 1) * sizeof(*longer));
	if (!longer) {
		td_gateway_answer_deinit(&answer);
		return -ENOMEM;
	}
	list->item = longer;
	for (size_t i = 0; i < answer.items; i++)
		list->item[list->count++] = answer.item[i];
	if (!list->revision)
		list->revision = answer.revision;
	*ret_has_more = answer.has_more && answer.items;
	answer.items = 0; /* they have a new owner */
	td_gateway_answer_deinit(&answer);
	if (list->count)
		strcpy(last, list->item[list->count - 1].key);
	return 0;
}

static int etcd_list(struct td_state *state, const char *prefix, struct td_state_list *ret)
{
	struct etcd *etcd = etcd_of(state);
	int r = 0;

	for (int i = 0; i < LIST_AGAIN; i++) {
		struct td_state_list list = {0};
		char last[TD_STATE_KEY_MAX] = "";
		uint32_t keys = PAGE_KEYS;
		bool has_more = true;

		r = 0;
		for (int page = 0; !r && has_more; page++) {
			r = page < PAGES_MAX ? list_page(etcd, prefix, keys, &list, last, &has_more)
					     : TD_STATE_BROKEN;
			if (r != -EMSGSIZE || keys == PAGE_LARGE)
				continue;
			keys = PAGE_LARGE;
			r = 0;
		}
		if (!r) {
			*ret = list;
			return 0;
		}
		td_state_list_deinit(&list);
		if (r != TD_STATE_COMPACTED)
			return r;
	}
	return TD_STATE_AWAY;
}

static int etcd_commit(
	struct td_state *state, const struct td_state_commit *commit, uint64_t *ret_revision)
{
	struct etcd *etcd = etcd_of(state);
	struct td_gateway_answer answer;
	struct td_text body = {0};
	int r;

	td_gateway_commit(&body, commit);
	r = send_body(etcd, "/v3/kv/txn", &body, true, &answer);
	if (r)
		return r;
	*ret_revision = answer.revision;
	/*
	 * Where a kept connection broke, libcurl has sent the commit again. Then its first copy may
	 * be the reason why the second finds other revisions.
	 */
	if (!answer.is_done)
		r = etcd->post.is_renewed ? TD_STATE_UNSURE : TD_STATE_CONFLICT;
	td_gateway_answer_deinit(&answer);
	return r;
}

static int etcd_grant(
	struct td_state *state, uint32_t ttl_s, uint64_t *ret_lease, uint64_t *ret_ttl_ns)
{
	struct td_gateway_answer answer;
	struct td_text body = {0};
	int r;

	td_gateway_grant(&body, ttl_s);
	r = send_body(etcd_of(state), "/v3/lease/grant", &body, true, &answer);
	if (r)
		return r;
	if (!answer.lease || !answer.ttl_s || answer.ttl_s > UINT32_MAX) {
		r = TD_STATE_BROKEN;
	} else {
		*ret_lease = answer.lease;
		*ret_ttl_ns = answer.ttl_s * TD_NS_PER_S;
	}
	td_gateway_answer_deinit(&answer);
	return r;
}

static int etcd_keep_alive(struct td_state *state, uint64_t lease, uint64_t *ret_ttl_ns)
{
	struct td_gateway_answer answer;
	struct td_text body = {0};
	int r;

	td_gateway_lease(&body, lease);
	r = send_body(etcd_of(state), "/v3/lease/keepalive", &body, false, &answer);
	if (r)
		return r;
	/* A lease that has ended is an answer without a TTL. */
	if (!answer.ttl_s || answer.ttl_s > UINT32_MAX)
		r = TD_STATE_NO_LEASE;
	else
		*ret_ttl_ns = answer.ttl_s * TD_NS_PER_S;
	td_gateway_answer_deinit(&answer);
	return r;
}

static int etcd_revoke(struct td_state *state, uint64_t lease)
{
	struct td_gateway_answer answer;
	struct td_text body = {0};
	int r;

	td_gateway_lease(&body, lease);
	r = send_body(etcd_of(state), "/v3/lease/revoke", &body, true, &answer);
	if (!r)
		td_gateway_answer_deinit(&answer);
	return r;
}

/* -- watches -- */

static int etcd_watch(
	struct td_state *state, const char *prefix, uint64_t from, struct td_state_watch **ret)
{
	struct etcd *etcd = etcd_of(state);
	struct td_etcd_watch *watch = td_etcd_watch_new(&etcd->post, etcd->multi, prefix, from);

	if (!watch)
		return -ENOMEM;
	watch->base.state = state;
	td_list_append(&etcd->watches, &watch->link);
	(void)td_etcd_watch_turn(watch, td_time_now_ns());
	*ret = &watch->base;
	return 0;
}

static void etcd_watch_close(struct td_state_watch *base)
{
	td_etcd_watch_free(td_container_of(base, struct td_etcd_watch, base));
}

static int etcd_next(struct td_state_watch *base, struct td_state_event *ret)
{
	return td_etcd_watch_next(td_container_of(base, struct td_etcd_watch, base), ret);
}

/* libcurl wants to know this of a socket, or nothing any more. */
static int follow_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct etcd *etcd = arg;
	struct epoll_event event = {.data.fd = fd};

	(void)easy;
	(void)known;
	event.events = (what == CURL_POLL_IN || what == CURL_POLL_INOUT ? EPOLLIN : 0u) |
		       (what == CURL_POLL_OUT || what == CURL_POLL_INOUT ? EPOLLOUT : 0u);
	if (what == CURL_POLL_REMOVE)
		(void)epoll_ctl(etcd->base.fd, EPOLL_CTL_DEL, fd, NULL);
	else if (epoll_ctl(etcd->base.fd, EPOLL_CTL_ADD, fd, &event) && errno == EEXIST)
		(void)epoll_ctl(etcd->base.fd, EPOLL_CTL_MOD, fd, &event);
	return 0;
}

static int set_timer(CURLM *multi, long timeout_ms, void *arg)
{
	struct etcd *etcd = arg;

	(void)multi;
	etcd->timer_ns = timeout_ms < 0 ? UINT64_MAX
					: td_time_now_ns() + (uint64_t)timeout_ms * TD_NS_PER_MS;
	if (!etcd->in_turn)
		(void)eventfd_write(etcd->nudge, 1);
	return 0;
}

static void serve_sockets(struct etcd *etcd, uint64_t now_ns)
{
	struct epoll_event event[EVENTS];
	int count = epoll_wait(etcd->base.fd, event, EVENTS, 0), running;

	for (int i = 0; i < count; i++) {
		int flags = (event[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
			    (event[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
			    (event[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

		if (event[i].data.fd == etcd->nudge)
			(void)eventfd_read(etcd->nudge, &(eventfd_t){0});
		else
			curl_multi_socket_action(etcd->multi, event[i].data.fd, flags, &running);
	}
	if (now_ns >= etcd->timer_ns) {
		etcd->timer_ns = UINT64_MAX;
		curl_multi_socket_action(etcd->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
}

static void end_streams(struct etcd *etcd, uint64_t now_ns)
{
	const CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(etcd->multi, &left))) {
		CURLcode code = message->data.result;
		char *watch = NULL;

		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &watch);
		td_etcd_watch_ended((struct td_etcd_watch *)(void *)watch, code, now_ns);
	}
}

static uint64_t etcd_turn(struct td_state *state, uint64_t now_ns)
{
	struct etcd *etcd = etcd_of(state);
	uint64_t next_ns = UINT64_MAX;
	struct td_list *it;

	etcd->in_turn = true;
	serve_sockets(etcd, now_ns);
	end_streams(etcd, now_ns);
	td_list_for_each (it, &etcd->watches)
		next_ns = td_min_u64(
			next_ns, td_etcd_watch_turn(
					 td_container_of(it, struct td_etcd_watch, link), now_ns));
	etcd->in_turn = false;
	return td_min_u64(next_ns, etcd->timer_ns);
}

/* -- handles -- */

static void etcd_free(struct td_state *state)
{
	struct etcd *etcd = etcd_of(state);

	while (!td_list_empty(&etcd->watches))
		td_etcd_watch_free(td_container_of(etcd->watches.next, struct td_etcd_watch, link));
	curl_multi_cleanup(etcd->multi);
	td_post_deinit(&etcd->post);
	if (etcd->nudge >= 0)
		close(etcd->nudge);
	if (state->fd >= 0)
		close(state->fd);
	free(etcd);
	curl_global_cleanup();
}

static const struct td_state_kind kind = {
	.free = etcd_free,
	.get = etcd_get,
	.list = etcd_list,
	.commit = etcd_commit,
	.grant = etcd_grant,
	.keep_alive = etcd_keep_alive,
	.revoke = etcd_revoke,
	.watch = etcd_watch,
	.watch_close = etcd_watch_close,
	.next = etcd_next,
	.turn = etcd_turn,
	.renews_leases = true,
};

int td_etcd_open(const struct td_etcd_options *options, struct td_state **ret, struct td_err *err)
{
	struct etcd *etcd = calloc(1, sizeof(*etcd));
	struct epoll_event event = {.events = EPOLLIN};
	int r;

	if (!etcd || curl_global_init(CURL_GLOBAL_DEFAULT)) {
		free(etcd);
		return td_err_set(err, -ENOMEM, "out of memory");
	}
	etcd->base.kind = &kind;
	td_list_init(&etcd->watches);
	etcd->timer_ns = UINT64_MAX;
	etcd->base.fd = epoll_create1(EPOLL_CLOEXEC);
	etcd->nudge = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	etcd->multi = curl_multi_init();
	event.data.fd = etcd->nudge;
	if (etcd->base.fd < 0 || etcd->nudge < 0 || !etcd->multi ||
		epoll_ctl(etcd->base.fd, EPOLL_CTL_ADD, etcd->nudge, &event))
		r = td_err_set(err, -ENOMEM, "out of memory or descriptors");
	else
		r = td_post_init(&etcd->post, options, err);
	if (r) {
		etcd_free(&etcd->base);
		return r;
	}
	curl_multi_setopt(etcd->multi, CURLMOPT_SOCKETFUNCTION, follow_socket);
	curl_multi_setopt(etcd->multi, CURLMOPT_SOCKETDATA, etcd);
	curl_multi_setopt(etcd->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(etcd->multi, CURLMOPT_TIMERDATA, etcd);
	*ret = &etcd->base;
	return 0;
}
