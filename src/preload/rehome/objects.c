/* The table of objects and their twins; see objects.h. */
#include "preload/rehome/objects.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "preload/base/lock.h"

#define BUCKETS 1024

/* An entry of the hash table that finds an object's row by any of the handles that it has. */
struct entry {
	struct entry *next;
	const void *handle;
	struct td_twin *row;
};

static pthread_mutex_t keeping = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* taken before lock */
static struct td_lock lock = TD_LOCK_INIT(TD_RANK_REHOME);
/* Guarded by lock. */
static struct entry *buckets[BUCKETS];
static struct td_twin *rows, *last_row; /* in order of creation */
static size_t row_count;

static _Atomic uint32_t with_variables, without_image;

static bool lacks_image(const struct td_twin *row)
{
	return row->kind == TD_TWIN_MODULE && !row->image && !row->of_library;
}

static struct entry **bucket_of(const void *handle)
{
	return &buckets[((uintptr_t)handle * 0x9e3779b97f4a7c15ull >> 40) % BUCKETS];
}

static struct td_twin *find(enum td_twin_kind kind, const void *handle)
{
	for (const struct entry *e = *bucket_of(handle); e; e = e->next)
		if (e->handle == handle && e->row->kind == kind)
			return e->row;
	return NULL;
}

static bool enter(const void *handle, struct td_twin *row)
{
	struct entry *e = malloc(sizeof(*e));

	if (!e)
		return false;
	*e = (struct entry){.next = *bucket_of(handle), .handle = handle, .row = row};
	*bucket_of(handle) = e;
	return true;
}

static void leave(const struct td_twin *row)
{
	for (unsigned h = 0; h < TD_HOMES_MAX; h++) {
		struct entry **at = row->handles[h] ? bucket_of(row->handles[h]) : NULL;

		while (at && *at) {
			struct entry *e = *at;

			if (e->row == row) {
				*at = e->next;
				free(e);
			} else {
				at = &e->next;
			}
		}
	}
}

bool td_twin_get(enum td_twin_kind kind, const void *handle, struct td_twin *ret)
{
	const struct td_twin *row;

	td_lock_take(&lock);
	row = find(kind, handle);
	if (row)
		*ret = *row;
	td_lock_drop(&lock);
	return row != NULL;
}

bool td_twin_add(const struct td_twin *row)
{
	struct td_twin *fresh = malloc(sizeof(*fresh)), stale;

	if (!fresh)
		return false;
	/* The driver has reused a handle: the end of the old object was not seen. */
	if (td_twin_remove(row->kind, row->handles[row->first], &stale))
		td_twin_release(&stale);
	*fresh = *row;
	fresh->next = NULL;
	td_lock_take(&lock);
	if (!enter(row->handles[row->first], fresh)) {
		td_lock_drop(&lock);
		free(fresh);
		return false;
	}
	*(last_row ? &last_row->next : &rows) = fresh;
	last_row = fresh;
	row_count++;
	td_lock_drop(&lock);
	if (row->has_variables)
		atomic_fetch_add(&with_variables, 1);
	if (lacks_image(row))
		atomic_fetch_add(&without_image, 1);
	return true;
}

void td_twins_keep(void)
{
	pthread_mutex_lock(&keeping);
}

void td_twins_let_go(void)
{
	pthread_mutex_unlock(&keeping);
}

static bool take_out(enum td_twin_kind kind, const void *handle, struct td_twin *ret)
{
	struct td_twin *row, *before = NULL;

	td_lock_take(&lock);
	row = find(kind, handle);
	for (struct td_twin *r = rows; row && r != row; r = r->next)
		before = r;
	if (row) {
		leave(row);
		*(before ? &before->next : &rows) = row->next;
		if (last_row == row)
			last_row = before;
		row_count--;
		*ret = *row;
	}
	td_lock_drop(&lock);
	if (row && row->has_variables)
		atomic_fetch_sub(&with_variables, 1);
	if (row && lacks_image(row))
		atomic_fetch_sub(&without_image, 1);
	free(row);
	return row != NULL;
}

static const void *function_of(const void *module)
{
	const void *handle = NULL;

	td_lock_take(&lock);
	for (const struct td_twin *row = rows; row && !handle; row = row->next)
		if (row->kind == TD_TWIN_FUNCTION && row->of == module)
			handle = row->handles[row->first];
	td_lock_drop(&lock);
	return handle;
}

bool td_twin_remove(enum td_twin_kind kind, const void *handle, struct td_twin *ret)
{
	const void *function, *module;
	struct td_twin gone;
	bool removed;

	td_twins_keep();
	removed = take_out(kind, handle, ret);
	module = removed && kind == TD_TWIN_MODULE ? ret->handles[ret->first] : NULL;
	while (module && (function = function_of(module)))
		if (take_out(TD_TWIN_FUNCTION, function, &gone))
			td_twin_release(&gone);
	td_twins_let_go();
	return removed;
}

void td_twin_release(struct td_twin *row)
{
	free(row->image);
	free(row->name);
	row->image = row->name = NULL;
}

bool td_twin_set_handle(enum td_twin_kind kind, const void *handle, int home, void *at_home)
{
	struct td_twin *row;
	bool set;

	td_lock_take(&lock);
	row = find(kind, handle);
	set = row && !row->handles[home] && enter(at_home, row);
	if (set)
		row->handles[home] = at_home;
	td_lock_drop(&lock);
	return set;
}

void td_twin_set(enum td_twin_kind kind, const void *handle, int what, int value)
{
	struct td_twin *row;
	unsigned i = 0;

	td_lock_take(&lock);
	row = find(kind, handle);
	while (row && i < row->set_count && row->sets[i].what != what)
		i++;
	if (row && i < TD_TWIN_SETS_MAX) {
		row->sets[i] = (struct td_twin_set){what, value};
		row->set_count += i == row->set_count;
	}
	td_lock_drop(&lock);
	if (!row || i == TD_TWIN_SETS_MAX)
		td_unmovable_note(TD_UNMOVABLE(HANDLES));
}

void td_twin_set_recorded(const void *event, int home)
{
	struct td_twin *row;

	td_lock_take(&lock);
	row = find(TD_TWIN_EVENT, event);
	if (row)
		row->recorded = home;
	td_lock_drop(&lock);
}

void *td_twin_at(enum td_twin_kind kind, const void *handle, int home, bool *ret_known)
{
	const struct td_twin *row;
	void *at;

	td_lock_take(&lock);
	row = find(kind, handle);
	at = row ? row->handles[home] : NULL;
	td_lock_drop(&lock);
	*ret_known = row != NULL;
	return at;
}

void *td_twin_program(enum td_twin_kind kind, void *handle)
{
	const struct td_twin *row;

	td_lock_take(&lock);
	row = find(kind, handle);
	if (row)
		handle = row->handles[row->first];
	td_lock_drop(&lock);
	return handle;
}

int td_twin_each(int (*visit)(const struct td_twin *row, void *arg), void *arg)
{
	struct td_twin *copies, row;
	size_t count = 0;
	int r = 0;

	td_lock_take(&lock);
	copies = malloc((row_count + 1) * sizeof(*copies));
	for (const struct td_twin *it = rows; copies && it; it = it->next)
		copies[count++] = *it;
	td_lock_drop(&lock);
	if (!copies)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* A row that has been removed meanwhile is skipped. */
	for (size_t i = 0; i < count && !r; i++) {
		td_twins_keep();
		if (td_twin_get(copies[i].kind, copies[i].handles[copies[i].first], &row))
			r = visit(&row, arg);
		td_twins_let_go();
	}
	free(copies);
	return r;
}

uint32_t td_twin_with_variables(void)
{
	return atomic_load(&with_variables);
}

uint32_t td_twin_without_image(void)
{
	return atomic_load(&without_image);
}

static const void *first_of(const void *context, enum td_twin_kind *ret_kind)
{
	const void *handle = NULL;

	td_lock_take(&lock);
	for (const struct td_twin *row = rows; row && !handle; row = row->next) {
		if (row->context != context)
			continue;
		handle = row->handles[row->first];
		*ret_kind = row->kind;
	}
	td_lock_drop(&lock);
	return handle;
}

void td_twins_drop(const void *context)
{
	enum td_twin_kind kind = TD_TWIN_CONTEXT;
	struct td_twin row;
	const void *handle;

	while (context && (handle = first_of(context, &kind)))
		if (td_twin_remove(kind, handle, &row))
			td_twin_release(&row);
}

/*
 * Called in a forked child, whose driver knows none of the objects. The memory of the rows is not
 * freed.
 */
void td_twins_forked(void)
{
	keeping = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	td_lock_reset(&lock);
	memset(buckets, 0, sizeof(buckets));
	rows = last_row = NULL;
	row_count = 0;
	atomic_store(&with_variables, 0);
	atomic_store(&without_image, 0);
}
