/* This file implements mirror.h. */
#include "cluster/state/mirror.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"

#define RETRY_NS TD_NS_PER_S

int td_mirror_init(struct td_mirror *mirror, struct td_state *state, const char *prefix,
	td_mirror_changed_fn *changed, void *arg)
{
	*mirror = (struct td_mirror){.state = state, .changed = changed, .arg = arg};
	if (strlen(prefix) >= TD_STATE_KEY_MAX)
		return -EINVAL;
	strcpy(mirror->prefix, prefix);
	return 0;
}

void td_mirror_deinit(struct td_mirror *mirror)
{
	td_state_watch_close(mirror->watch);
	td_state_list_deinit(&mirror->list);
	*mirror = (struct td_mirror){0};
}

/* Tells the differences of two sorted lists. */
static void tell_differences(const struct td_mirror *mirror, const struct td_state_list *before,
	const struct td_state_list *now)
{
	size_t i = 0, j = 0;

	while (i < before->count || j < now->count) {
		int order = i == before->count ? 1
			    : j == now->count  ? -1
					       : strcmp(before->item[i].key, now->item[j].key);

		if (order < 0)
			mirror->changed(mirror->arg, &before->item[i], true);
		else if (order > 0 || before->item[i].revision != now->item[j].revision)
			mirror->changed(mirror->arg, &now->item[j], false);
		i += order <= 0;
		j += order >= 0;
	}
}

static int read_list(struct td_mirror *mirror)
{
	struct td_state_list list, before = mirror->list;
	int r = td_state_list(mirror->state, mirror->prefix, &list);

	if (!r) {
		r = td_state_watch(
			mirror->state, mirror->prefix, list.revision + 1, &mirror->watch);
		if (r)
			td_state_list_deinit(&list);
	}
	if (r)
		return r;
	mirror->list = list;
	mirror->room = list.count;
	tell_differences(mirror, &before, &list);
	td_state_list_deinit(&before);
	return 0;
}

/* The index of the key, or of the first one that is greater. */
static size_t find(const struct td_state_list *list, const char *key)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(list->item[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool copy(struct td_state_item *to, const struct td_state_item *from)
{
	*to = *from;
	to->key = strdup(from->key);
	to->value = malloc(from->length + 1);
	if (to->key && to->value) {
		memcpy(to->value, from->value, from->length + 1);
		return true;
	}
	td_state_item_deinit(to);
	return false;
}

/* Opens a gap at this index. Returns false if memory is short. */
static bool insert(struct td_mirror *mirror, size_t at)
{
	struct td_state_list *list = &mirror->list;

	if (list->count >= mirror->room) {
		size_t room = 2 * list->count + 16;
		struct td_state_item *longer = realloc(list->item, room * sizeof(*longer));

		if (!longer)
			return false;
		list->item = longer;
		mirror->room = room;
	}
	memmove(list->item + at + 1, list->item + at, (list->count - at) * sizeof(*list->item));
	list->item[at] = (struct td_state_item){0};
	list->count++;
	return true;
}

static int take(struct td_mirror *mirror, const struct td_state_event *event)
{
	struct td_state_list *list = &mirror->list;
	size_t at = find(list, event->item.key);
	bool is_known = at < list->count && !strcmp(list->item[at].key, event->item.key);
	struct td_state_item item;

	if (event->is_delete) {
		if (!is_known)
			return 0;
		item = list->item[at];
		memmove(list->item + at, list->item + at + 1,
			(--list->count - at) * sizeof(*list->item));
		mirror->changed(mirror->arg, &item, true);
		td_state_item_deinit(&item);
		return 0;
	}
	if (!copy(&item, &event->item))
		return -ENOMEM;
	if (!is_known && !insert(mirror, at)) {
		td_state_item_deinit(&item);
		return -ENOMEM;
	}
	td_state_item_deinit(&list->item[at]);
	list->item[at] = item;
	mirror->changed(mirror->arg, &list->item[at], false);
	return 0;
}

static int follow(struct td_mirror *mirror)
{
	struct td_state_event event;
	int r;

	while (!(r = td_state_next(mirror->watch, &event))) {
		r = take(mirror, &event);
		if (r)
			break;
	}
	if (r == TD_STATE_NOTHING)
		return 0;
	td_state_watch_close(mirror->watch);
	mirror->watch = NULL;
	return r;
}

int td_mirror_turn(struct td_mirror *mirror, uint64_t now_ns, uint64_t *ret_wakeup_ns)
{
	int r = 0;

	if (mirror->watch)
		r = follow(mirror);
	if (!mirror->watch && now_ns >= mirror->next_ns) {
		mirror->next_ns = now_ns + RETRY_NS;
		r = read_list(mirror);
	}
	*ret_wakeup_ns = mirror->watch ? UINT64_MAX : mirror->next_ns;
	return r == TD_STATE_COMPACTED && mirror->watch ? 0 : r;
}

bool td_mirror_follows(const struct td_mirror *mirror)
{
	return mirror->watch;
}
