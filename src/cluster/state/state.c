/* This file implements state.h: it checks arguments, and leaves the rest to the kind. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/state/kind.h"

void td_state_free(struct td_state *state)
{
	if (state)
		state->kind->free(state);
}

void td_state_item_deinit(struct td_state_item *item)
{
	free(item->key);
	free(item->value);
	*item = (struct td_state_item){0};
}

void td_state_list_deinit(struct td_state_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		td_state_item_deinit(&list->item[i]);
	free(list->item);
	*list = (struct td_state_list){0};
}

const char *td_state_text(int result)
{
	static const char *const text[TD_STATE_RESULT_N] = {[TD_STATE_OK] = "done",
#define R(name, words) [TD_STATE_##name] = words,
		TD_STATE_RESULTS(R)
#undef R
	};

	if (result < 0)
		return strerror(-result);
	return result < TD_STATE_RESULT_N ? text[result] : "unknown result";
}

const char *td_state_why(const struct td_state *state)
{
	return state->why;
}

static bool is_key(const char *key)
{
	return *key && strnlen(key, TD_STATE_KEY_MAX) < TD_STATE_KEY_MAX;
}

/* Whether a write has the key of one before it. */
static bool is_twice(const struct td_state_commit *commit, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++)
		if (!strcmp(commit->write[i].key, commit->write[j].key))
			return true;
	return false;
}

int td_state_get(struct td_state *state, const char *key, struct td_state_item *ret)
{
	return is_key(key) ? state->kind->get(state, key, ret) : -EINVAL;
}

int td_state_list(struct td_state *state, const char *prefix, struct td_state_list *ret)
{
	return is_key(prefix) ? state->kind->list(state, prefix, ret) : -EINVAL;
}

int td_state_commit(
	struct td_state *state, const struct td_state_commit *commit, uint64_t *ret_revision)
{
	uint64_t revision = 0;
	int r;

	if (!commit->writes || commit->writes > TD_STATE_WRITES ||
		commit->compares > TD_STATE_WRITES)
		return -EINVAL;
	for (uint32_t i = 0; i < commit->compares; i++)
		if (!is_key(commit->compare[i].key))
			return -EINVAL;
	for (uint32_t i = 0; i < commit->writes; i++)
		if (!is_key(commit->write[i].key) || commit->write[i].length > TD_STATE_VALUE_MAX ||
			is_twice(commit, i))
			return -EINVAL;
	r = state->kind->commit(state, commit, &revision);
	if (!r && ret_revision)
		*ret_revision = revision;
	return r;
}

int td_state_put_if(struct td_state *state, const struct td_state_write *write, uint64_t expected,
	uint64_t *ret_revision)
{
	const struct td_state_compare compare = {.key = write->key, .expected = expected};

	return td_state_commit(state,
		&(struct td_state_commit){
			.compare = &compare, .write = write, .compares = 1, .writes = 1},
		ret_revision);
}

int td_state_put(struct td_state *state, const struct td_state_write *write, uint64_t *ret_revision)
{
	return td_state_commit(
		state, &(struct td_state_commit){.write = write, .writes = 1}, ret_revision);
}

int td_state_delete_if(struct td_state *state, const char *key, uint64_t expected)
{
	return td_state_put_if(state, &(struct td_state_write){.key = key}, expected, NULL);
}

int td_state_grant(
	struct td_state *state, uint32_t ttl_s, uint64_t *ret_lease, uint64_t *ret_ttl_ns)
{
	return ttl_s ? state->kind->grant(state, ttl_s, ret_lease, ret_ttl_ns) : -EINVAL;
}

int td_state_keep_alive(struct td_state *state, uint64_t lease, uint64_t *ret_ttl_ns)
{
	return lease ? state->kind->keep_alive(state, lease, ret_ttl_ns) : TD_STATE_NO_LEASE;
}

int td_state_revoke(struct td_state *state, uint64_t lease)
{
	return lease ? state->kind->revoke(state, lease) : TD_STATE_NO_LEASE;
}

bool td_state_renews_leases(const struct td_state *state)
{
	return state->kind->renews_leases;
}

int td_state_watch(
	struct td_state *state, const char *prefix, uint64_t from, struct td_state_watch **ret)
{
	return is_key(prefix) && from ? state->kind->watch(state, prefix, from, ret) : -EINVAL;
}

void td_state_watch_close(struct td_state_watch *watch)
{
	if (watch)
		watch->state->kind->watch_close(watch);
}

int td_state_next(struct td_state_watch *watch, struct td_state_event *ret)
{
	return watch->state->kind->next(watch, ret);
}

int td_state_fd(const struct td_state *state)
{
	return state->fd;
}

uint64_t td_state_turn(struct td_state *state, uint64_t now_ns)
{
	return state->kind->turn(state, now_ns);
}
