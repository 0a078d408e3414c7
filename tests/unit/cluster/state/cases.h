/*
 * The cases to which each kind of state is held. Who includes this says how to open a handle and
 * how to let time go by. Every case has a folder of keys of its own, as etcd keeps its state.
 */
#pragma once

#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "cluster/state/state.h"

/* A new handle. It never returns NULL. */
static struct td_state *open_state(void);
/* Lets this time go by, in which the handle is turned. */
static void let_pass(struct td_state *state, unsigned seconds);
/* Forgets the changes before this revision. */
static void compact(uint64_t revision);
/* The next event, for which it waits if it has to. */
static int await(struct td_state_watch *watch, struct td_state_event *ret);
/* NOTHING, if there is no event within a second. */
static int await_nothing(struct td_state_watch *watch, struct td_state_event *ret);

static struct td_state_write text_write(const char *key, const char *text, uint64_t lease)
{
	return (struct td_state_write){
		.key = key, .value = text, .length = strlen(text), .lease = lease};
}

static uint64_t put(struct td_state *state, const char *key, const char *text)
{
	const struct td_state_write write = text_write(key, text, 0);
	uint64_t revision = 0;

	CHECK_EQ(td_state_put(state, &write, &revision), 0);
	return revision;
}

static void expect(struct td_state *state, const char *key, const char *text)
{
	struct td_state_item item;
	int r = td_state_get(state, key, &item);

	if (!text) {
		CHECK_EQ(r, TD_STATE_ABSENT);
		return;
	}
	CHECK_EQ(r, 0);
	CHECK_STR(item.key, key);
	CHECK_STR(item.value, text);
	CHECK_EQ(item.length, strlen(text));
	td_state_item_deinit(&item);
}

static void expect_event(struct td_state_watch *watch, const char *key, const char *text)
{
	struct td_state_event event;

	CHECK_EQ(await(watch, &event), 0);
	CHECK_STR(event.item.key, key);
	CHECK_EQ(event.is_delete, !text);
	if (text)
		CHECK_STR(event.item.value, text);
}

TEST(a_key_is_what_was_put_last)
{
	struct td_state *state = open_state(), *other = open_state();
	struct td_state_item item;
	uint64_t first, second;

	expect(state, "/last/a", NULL);
	first = put(state, "/last/a", "one");
	second = put(other, "/last/a", "two");
	CHECK(second > first);
	CHECK_EQ(td_state_get(state, "/last/a", &item), 0);
	CHECK_STR(item.value, "two");
	CHECK_EQ(item.created, first);
	CHECK_EQ(item.revision, second);
	CHECK_EQ(item.lease, 0);
	td_state_item_deinit(&item);
	td_state_free(state);
	td_state_free(other);
}

TEST(a_value_may_be_empty_and_have_any_bytes)
{
	struct td_state *state = open_state();
	struct td_state_item item;
	char bytes[256];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)i;
	CHECK_EQ(td_state_put(state, &(struct td_state_write){"/bytes/a", bytes, sizeof(bytes), 0},
			 NULL),
		0);
	CHECK_EQ(td_state_get(state, "/bytes/a", &item), 0);
	CHECK_EQ(item.length, sizeof(bytes));
	CHECK(!memcmp(item.value, bytes, sizeof(bytes)));
	td_state_item_deinit(&item);
	put(state, "/bytes/a", "");
	expect(state, "/bytes/a", "");
	td_state_free(state);
}

TEST(a_list_has_the_keys_of_its_prefix_in_order)
{
	struct td_state *state = open_state();
	struct td_state_list list;
	uint64_t last;

	put(state, "/list/b", "2");
	put(state, "/list/a", "1");
	put(state, "/lisu", "beside");
	last = put(state, "/list/c", "3");
	CHECK_EQ(td_state_list(state, "/list/", &list), 0);
	CHECK_EQ(list.count, 3);
	CHECK_STR(list.item[0].key, "/list/a");
	CHECK_STR(list.item[2].value, "3");
	CHECK(list.revision >= last);
	td_state_list_deinit(&list);
	CHECK_EQ(td_state_list(state, "/none/", &list), 0);
	CHECK_EQ(list.count, 0);
	td_state_list_deinit(&list);
	td_state_free(state);
}

TEST(a_put_that_expects_another_revision_writes_nothing)
{
	struct td_state *state = open_state();
	const struct td_state_write one = text_write("/if/a", "one", 0);
	const struct td_state_write two = text_write("/if/a", "two", 0);
	uint64_t first = 0, second = 0;

	CHECK_EQ(td_state_put_if(state, &one, 0, &first), 0);
	CHECK_EQ(td_state_put_if(state, &two, 0, NULL), TD_STATE_CONFLICT);
	expect(state, "/if/a", "one");
	CHECK_EQ(td_state_put_if(state, &two, first, &second), 0);
	CHECK(second > first);
	CHECK_EQ(td_state_put_if(state, &one, first, NULL), TD_STATE_CONFLICT);
	CHECK_EQ(td_state_delete_if(state, "/if/a", first), TD_STATE_CONFLICT);
	expect(state, "/if/a", "two");
	CHECK_EQ(td_state_delete_if(state, "/if/a", second), 0);
	expect(state, "/if/a", NULL);
	CHECK_EQ(td_state_delete_if(state, "/if/a", second), TD_STATE_CONFLICT);
	td_state_free(state);
}

TEST(a_commit_writes_all_or_nothing)
{
	struct td_state *state = open_state();
	uint64_t made = put(state, "/all/fence", "x"), changed = put(state, "/all/fence", "y");
	struct td_state_compare compare = {"/all/fence", true, made};
	const struct td_state_write write[] = {
		text_write("/all/a", "1", 0), {.key = "/all/fence"}, text_write("/all/b", "2", 0)};
	const struct td_state_commit commit = {&compare, write, 1, 3};
	struct td_state_list list;
	uint64_t revision;

	CHECK(changed > made);
	compare.expected = changed;
	CHECK_EQ(td_state_commit(state, &commit, &revision), TD_STATE_CONFLICT);
	expect(state, "/all/a", NULL);
	compare.expected = made;
	CHECK_EQ(td_state_commit(state, &commit, &revision), 0);
	CHECK_EQ(td_state_list(state, "/all/", &list), 0);
	CHECK_EQ(list.count, 2);
	CHECK_EQ(list.item[0].revision, revision);
	CHECK_EQ(list.item[1].revision, revision);
	td_state_list_deinit(&list);
	td_state_free(state);
}

TEST(arguments_that_no_state_takes_are_refused)
{
	struct td_state *state = open_state();
	char key[TD_STATE_KEY_MAX + 1] = "";
	const struct td_state_write twice[] = {
		text_write("/bad/a", "1", 0), text_write("/bad/a", "2", 0)};
	struct td_state_item item;

	memset(key, 'k', TD_STATE_KEY_MAX);
	CHECK_EQ(td_state_get(state, key, &item), -EINVAL);
	CHECK_EQ(td_state_get(state, "", &item), -EINVAL);
	CHECK_EQ(td_state_commit(state, &(struct td_state_commit){NULL, twice, 0, 2}, NULL),
		-EINVAL);
	CHECK_EQ(td_state_commit(state, &(struct td_state_commit){NULL, twice, 0, 0}, NULL),
		-EINVAL);
	CHECK_EQ(td_state_put(state,
			 &(struct td_state_write){"/bad/a", "", TD_STATE_VALUE_MAX + 1, 0}, NULL),
		-EINVAL);
	td_state_free(state);
}

TEST(keys_go_when_their_lease_ends)
{
	struct td_state *state = open_state();
	uint64_t lease, ttl_ns;
	struct td_state_write write;

	CHECK_EQ(td_state_grant(state, 2, &lease, &ttl_ns), 0);
	CHECK(ttl_ns >= 2 * TD_NS_PER_S);
	write = text_write("/lease/a", "bound", lease);
	CHECK_EQ(td_state_put(state, &write, NULL), 0);
	write.key = "/lease/b";
	CHECK_EQ(td_state_put(state, &write, NULL), 0);
	put(state, "/lease/b", "free"); /* a put without the lease takes the key out of it */
	for (int i = 0; i < 3; i++) {
		let_pass(state, 1);
		CHECK_EQ(td_state_keep_alive(state, lease, &ttl_ns), 0);
		CHECK(ttl_ns >= 2 * TD_NS_PER_S);
	}
	expect(state, "/lease/a", "bound");
	let_pass(state, 4);
	expect(state, "/lease/a", NULL);
	expect(state, "/lease/b", "free");
	CHECK_EQ(td_state_keep_alive(state, lease, &ttl_ns), TD_STATE_NO_LEASE);
	CHECK_EQ(td_state_put(state, &write, NULL), TD_STATE_NO_LEASE);
	CHECK_EQ(td_state_revoke(state, lease), TD_STATE_NO_LEASE);
	td_state_free(state);
}

TEST(a_revoked_lease_takes_its_keys_with_it_at_once)
{
	struct td_state *state = open_state();
	uint64_t lease, ttl_ns;
	struct td_state_write write;

	CHECK_EQ(td_state_grant(state, 60, &lease, &ttl_ns), 0);
	write = text_write("/revoke/a", "bound", lease);
	CHECK_EQ(td_state_put(state, &write, NULL), 0);
	CHECK_EQ(td_state_revoke(state, lease), 0);
	expect(state, "/revoke/a", NULL);
	td_state_free(state);
}

TEST(a_watch_tells_each_change_of_its_prefix_in_order)
{
	struct td_state *state = open_state(), *other = open_state();
	struct td_state_watch *watch;
	struct td_state_event event;
	uint64_t from = put(state, "/watch/a", "1");

	CHECK_EQ(td_state_watch(state, "/watch/", from, &watch), 0);
	expect_event(watch, "/watch/a", "1");
	CHECK_EQ(await_nothing(watch, &event), TD_STATE_NOTHING);
	put(other, "/watch/a", "2");
	put(other, "/watcher", "beside");
	put(other, "/watch/b", "3");
	CHECK_EQ(td_state_delete_if(other, "/watch/b", put(other, "/watch/b", "4")), 0);
	expect_event(watch, "/watch/a", "2");
	expect_event(watch, "/watch/b", "3");
	expect_event(watch, "/watch/b", "4");
	expect_event(watch, "/watch/b", NULL);
	CHECK_EQ(await_nothing(watch, &event), TD_STATE_NOTHING);
	td_state_watch_close(watch);
	td_state_free(state);
	td_state_free(other);
}

TEST(a_watch_tells_all_writes_of_one_commit)
{
	struct td_state *state = open_state();
	const struct td_state_write write[] = {
		text_write("/batch/a", "1", 0), text_write("/batch/b", "2", 0)};
	struct td_state_watch *watch;
	uint64_t revision;

	CHECK_EQ(
		td_state_commit(state, &(struct td_state_commit){NULL, write, 0, 2}, &revision), 0);
	put(state, "/batch/c", "3");
	CHECK_EQ(td_state_watch(state, "/batch/", revision, &watch), 0);
	expect_event(watch, "/batch/a", "1");
	expect_event(watch, "/batch/b", "2");
	expect_event(watch, "/batch/c", "3");
	td_state_free(state);
}

TEST(a_watch_tells_the_end_of_a_lease)
{
	struct td_state *state = open_state();
	struct td_state_watch *watch;
	uint64_t lease, ttl_ns, revision;
	struct td_state_write write;

	CHECK_EQ(td_state_grant(state, 2, &lease, &ttl_ns), 0);
	write = text_write("/ends/a", "bound", lease);
	CHECK_EQ(td_state_put(state, &write, &revision), 0);
	CHECK_EQ(td_state_watch(state, "/ends/", revision + 1, &watch), 0);
	let_pass(state, 4);
	expect_event(watch, "/ends/a", NULL);
	td_state_free(state);
}

TEST(a_watch_from_a_compacted_revision_says_so)
{
	struct td_state *state = open_state();
	uint64_t first = put(state, "/old/a", "1"), last;
	struct td_state_watch *watch, *newer;
	struct td_state_event event;

	put(state, "/old/a", "2");
	last = put(state, "/old/a", "3");
	compact(last);
	CHECK_EQ(td_state_watch(state, "/old/", first, &watch), 0);
	CHECK_EQ(await(watch, &event), TD_STATE_COMPACTED);
	CHECK_EQ(await(watch, &event), TD_STATE_COMPACTED);
	CHECK_EQ(td_state_watch(state, "/old/", last + 1, &newer), 0);
	put(state, "/old/a", "4");
	expect_event(newer, "/old/a", "4");
	td_state_free(state);
}
