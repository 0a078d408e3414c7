/* This file implements lease.h. */
#include "kubernetes/sched/lease.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/list.h"
#include "base/time.h"
#include "cluster/state/kind.h"
#include "kubernetes/sched/write.h"

#define LOOK_NS TD_NS_PER_S /* how often the Lease is looked at for a change */
#define GROUP   "/apis/coordination.k8s.io/v1/namespaces/"

struct lease_state {
	struct td_state base;
	struct td_kube_api *api;
	struct td_kube_lease_options options;
	struct td_text body, answer;
	/* The Lease that was read or written last. */
	struct td_kube_lease seen;
	bool is_there;
	uint64_t seen_ns;               /* when it was first so */
	uint64_t handle, ttl_ns, asked; /* of the lease that was granted; 0: none */
	char holder[TD_KUBE_NAME]; /* the name under which this one holds it; "": it does not */
	uint64_t held;             /* the revision of that */
	uint64_t look_ns;          /* when the watch, of which there is one, has an event */
};

static struct lease_state *lease_of(struct td_state *state)
{
	return td_container_of(state, struct lease_state, base);
}

/* --- the object --- */

static int fail(struct lease_state *l, int status, int result)
{
	td_kube_api_refused(l->api, status, &l->answer);
	snprintf(l->base.why, sizeof(l->base.why), "%.250s", td_kube_api_why(l->api));
	return status == 401 || status == 403 ? TD_STATE_DENIED : result;
}

static int read_answer(struct lease_state *l, uint64_t now_ns)
{
	struct td_kube_lease lease;

	if (td_kube_lease_read(l->answer.text ? l->answer.text : "", l->answer.length, &lease))
		return TD_STATE_BROKEN;
	if (!l->is_there || strcmp(lease.version, l->seen.version))
		l->seen_ns = now_ns;
	l->seen = lease;
	l->is_there = true;
	return 0;
}

static void write_path(const struct lease_state *l, bool is_new, char *ret)
{
	snprintf(ret, TD_KUBE_PATH, GROUP "%.253s/leases%s%.253s", l->options.space,
		is_new ? "" : "/", is_new ? "" : l->options.name);
}

static int look(struct lease_state *l)
{
	char path[TD_KUBE_PATH];
	int status;

	write_path(l, false, path);
	status = td_kube_api_send(l->api, "GET", path, NULL, NULL, &l->answer);
	if (status == 404) {
		l->is_there = false;
		return 0;
	}
	if (status != 200)
		return fail(l, status, TD_STATE_AWAY);
	return read_answer(l, td_time_now_ns());
}

static uint64_t revision_of(const struct lease_state *l)
{
	return l->seen.transitions + 1;
}

static bool is_mine(const struct lease_state *l)
{
	return l->is_there && *l->holder && !strcmp(l->seen.holder, l->holder) &&
	       revision_of(l) == l->held;
}

static bool is_vacant(const struct lease_state *l)
{
	return !l->is_there || !*l->seen.holder ||
	       (!is_mine(l) && td_time_now_ns() - l->seen_ns >= l->seen.duration_s * TD_NS_PER_S);
}

/* Writes the Lease with this holder, if it is still as it was seen. */
static int claim(struct lease_state *l, const char *holder, uint64_t transitions)
{
	struct timespec now;
	struct td_kube_claim claim = {.name = l->options.name,
		.space = l->options.space,
		.holder = holder,
		.version = l->is_there ? l->seen.version : "",
		.duration_s = *holder ? (uint32_t)(l->ttl_ns / TD_NS_PER_S) : 1,
		.transitions = transitions};
	char path[TD_KUBE_PATH];
	int status, r;

	clock_gettime(CLOCK_REALTIME, &now);
	claim.time_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	td_text_clear(&l->body);
	td_kube_write_lease(&l->body, &claim);
	write_path(l, !l->is_there, path);
	status = td_kube_api_send(l->api, l->is_there ? "PUT" : "POST", path, &l->body,
		"application/json", &l->answer);
	if (status == 409 || status == 404) {
		l->is_there = false;
		return TD_STATE_CONFLICT;
	}
	if (status != 200 && status != 201)
		return fail(l, status, TD_STATE_UNSURE);
	r = read_answer(l, td_time_now_ns());
	l->seen_ns = td_time_now_ns();
	return r;
}

/* --- the kind --- */

static int lease_get(struct td_state *state, const char *key, struct td_state_item *ret)
{
	struct lease_state *l = lease_of(state);
	struct td_state_item item = {0};
	int r = strcmp(key, l->options.key) ? TD_STATE_ABSENT : look(l);

	if (!r && is_vacant(l))
		r = TD_STATE_ABSENT;
	if (r)
		return r;
	item = (struct td_state_item){.key = strdup(key),
		.value = strdup(l->seen.holder),
		.length = strlen(l->seen.holder),
		.revision = revision_of(l),
		.created = revision_of(l),
		.lease = is_mine(l) ? l->handle : UINT64_MAX};
	if (!item.key || !item.value) {
		td_state_item_deinit(&item);
		return -ENOMEM;
	}
	*ret = item;
	return 0;
}

static int lease_list(struct td_state *state, const char *prefix, struct td_state_list *ret)
{
	(void)state;
	(void)prefix;
	*ret = (struct td_state_list){0};
	return 0;
}

/* Takes the Lease if nobody holds it. */
static int take(struct lease_state *l, const struct td_state_write *write)
{
	uint64_t transitions;
	int r = look(l);

	if (r)
		return r;
	if (!l->handle || write->lease != l->handle)
		return TD_STATE_NO_LEASE;
	if (!is_vacant(l))
		return TD_STATE_CONFLICT;
	transitions = l->is_there ? l->seen.transitions + 1 : 0;
	r = claim(l, write->value, transitions);
	if (r && r != TD_STATE_UNSURE)
		return r;
	/* Where no answer came, the Lease says whether it was taken. */
	snprintf(l->holder, sizeof(l->holder), "%s", write->value);
	l->held = transitions + 1;
	if (l->options.leads)
		l->options.leads(l->options.arg);
	return r;
}

/* Checks that the key was made by this revision, and is this one's. */
static int check(struct lease_state *l, const struct td_state_compare *compare)
{
	int r = look(l);

	if (r)
		return r;
	return is_mine(l) && revision_of(l) == compare->expected ? 0 : TD_STATE_CONFLICT;
}

static int lease_commit(
	struct td_state *state, const struct td_state_commit *commit, uint64_t *ret_revision)
{
	struct lease_state *l = lease_of(state);
	int r = 0;

	for (uint32_t k = 0; !r && k < commit->compares; k++) {
		const struct td_state_compare *compare = &commit->compare[k];

		if (!strcmp(compare->key, l->options.key) && compare->expected)
			r = check(l, compare);
	}
	for (uint32_t k = 0; !r && k < commit->writes; k++)
		if (!strcmp(commit->write[k].key, l->options.key) && commit->write[k].value)
			r = take(l, &commit->write[k]);
	if (!r && ret_revision)
		*ret_revision = revision_of(l);
	return r;
}

static int lease_grant(
	struct td_state *state, uint32_t ttl_s, uint64_t *ret_lease, uint64_t *ret_ttl_ns)
{
	struct lease_state *l = lease_of(state);

	l->handle = ++l->asked;
	l->ttl_ns = ttl_s * TD_NS_PER_S;
	*ret_lease = l->handle;
	*ret_ttl_ns = l->ttl_ns;
	return 0;
}

static int lease_keep_alive(struct td_state *state, uint64_t lease, uint64_t *ret_ttl_ns)
{
	struct lease_state *l = lease_of(state);
	int r;

	if (!l->handle || lease != l->handle || !*l->holder)
		return TD_STATE_NO_LEASE;
	/* Somebody may have added a label: the version is read first. */
	r = look(l);
	if (!r && !is_mine(l))
		return TD_STATE_NO_LEASE;
	r = r ? r : claim(l, l->holder, l->seen.transitions);
	if (r)
		return r == TD_STATE_DENIED ? r : TD_STATE_AWAY;
	*ret_ttl_ns = l->ttl_ns;
	return 0;
}

static int lease_revoke(struct td_state *state, uint64_t lease)
{
	struct lease_state *l = lease_of(state);
	int r;

	if (!l->handle || lease != l->handle)
		return TD_STATE_NO_LEASE;
	r = *l->holder ? look(l) : 0;
	if (!r && is_mine(l))
		r = claim(l, "", l->seen.transitions);
	if (r == TD_STATE_AWAY || r == TD_STATE_UNSURE)
		return r;
	l->handle = 0;
	*l->holder = 0;
	return 0;
}

/* --- the watch: whoever follows the key looks at it again and again --- */

static int lease_watch(
	struct td_state *state, const char *prefix, uint64_t from, struct td_state_watch **ret)
{
	struct td_state_watch *watch = calloc(1, sizeof(*watch));

	(void)prefix;
	(void)from;
	if (!watch)
		return -ENOMEM;
	watch->state = state;
	lease_of(state)->look_ns = td_time_now_ns() + LOOK_NS;
	*ret = watch;
	return 0;
}

static void lease_watch_close(struct td_state_watch *watch)
{
	lease_of(watch->state)->look_ns = UINT64_MAX;
	free(watch);
}

static int lease_next(struct td_state_watch *watch, struct td_state_event *ret)
{
	(void)ret;
	return td_time_now_ns() < lease_of(watch->state)->look_ns ? TD_STATE_NOTHING
								  : TD_STATE_COMPACTED;
}

static uint64_t lease_turn(struct td_state *state, uint64_t now_ns)
{
	(void)now_ns;
	return lease_of(state)->look_ns;
}

static void lease_free(struct td_state *state)
{
	struct lease_state *l = lease_of(state);

	td_text_deinit(&l->body);
	td_text_deinit(&l->answer);
	free(l);
}

static const struct td_state_kind kind = {
	.free = lease_free,
	.get = lease_get,
	.list = lease_list,
	.commit = lease_commit,
	.grant = lease_grant,
	.keep_alive = lease_keep_alive,
	.revoke = lease_revoke,
	.watch = lease_watch,
	.watch_close = lease_watch_close,
	.next = lease_next,
	.turn = lease_turn,
};

struct td_state *td_kube_lease_open(
	struct td_kube_api *api, const struct td_kube_lease_options *options)
{
	struct lease_state *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->base.kind = &kind;
	l->base.fd = -1;
	l->api = api;
	l->options = *options;
	l->look_ns = UINT64_MAX;
	return &l->base;
}
