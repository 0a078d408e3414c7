/*
 * This file implements closer.h. The lock guards everything here. It is not held while a descriptor
 * is closed.
 */
#include "daemon/server/loop/closer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"

/* The size of a thread's stack. The thread calls close() and little else. */
#define STACK_BYTES ((size_t)128 << 10)

struct item {
	struct td_list of_user;
	int fd;
};

/* A user with descriptors that are to be closed. */
struct user {
	struct td_list of_closer, items;
	struct td_closer *closer;
	struct td_identity who;
	uint32_t count; /* the items, and the one that is being closed */
	bool has_thread;
};

struct td_closer {
	pthread_mutex_t lock;
	struct td_list users;
	uint32_t count, threads;
	bool freed; /* td_closer_free() was called: the last thread frees the memory */
};

int td_closer_new(struct td_closer **ret)
{
	struct td_closer *closer = calloc(1, sizeof(*closer));

	if (!closer)
		return -ENOMEM;
	pthread_mutex_init(&closer->lock, NULL);
	td_list_init(&closer->users);
	*ret = closer;
	return 0;
}

static void free_user(struct user *user)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &user->items)
		free(td_container_of(it, struct item, of_user));
	td_list_remove(&user->of_closer);
	free(user);
}

static void free_all(struct td_closer *closer)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &closer->users)
		free_user(td_container_of(it, struct user, of_closer));
	pthread_mutex_destroy(&closer->lock);
	free(closer);
}

void td_closer_free(struct td_closer *closer)
{
	bool is_last;

	if (!closer)
		return;
	pthread_mutex_lock(&closer->lock);
	closer->freed = true;
	is_last = !closer->threads;
	pthread_mutex_unlock(&closer->lock);
	if (is_last)
		free_all(closer);
}

/* Called with the lock held; it is released while the descriptor closes. */
static void close_first(struct user *user)
{
	struct td_closer *closer = user->closer;
	struct item *item = td_container_of(user->items.next, struct item, of_user);
	int fd = item->fd;

	td_list_remove(&item->of_user);
	pthread_mutex_unlock(&closer->lock);
	free(item);
	close(fd);
	pthread_mutex_lock(&closer->lock);
	user->count--;
	closer->count--;
}

static void *closer_thread(void *arg)
{
	struct user *user = arg;
	struct td_closer *closer = user->closer;
	bool is_last;

	pthread_mutex_lock(&closer->lock);
	while (!closer->freed && !td_list_empty(&user->items))
		close_first(user);
	free_user(user);
	is_last = !--closer->threads && closer->freed;
	pthread_mutex_unlock(&closer->lock);
	if (is_last)
		free_all(closer);
	return NULL;
}

static struct user *find_user(const struct td_closer *closer, struct td_identity who)
{
	struct td_list *it;

	td_list_for_each (it, &closer->users) {
		struct user *user = td_container_of(it, struct user, of_closer);

		if (td_identity_is_counted_as(user->who, who))
			return user;
	}
	return NULL;
}

static struct user *find_or_add(struct td_closer *closer, struct td_identity who)
{
	struct user *user = find_user(closer, who);

	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->closer = closer;
	user->who = who;
	td_list_init(&user->items);
	td_list_append(&closer->users, &user->of_closer);
	return user;
}

/* Starts the user's thread. Signals are blocked in it, since the main thread handles them. */
static bool start_thread(struct user *user)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;
	bool started;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = !pthread_create(&thread, &attributes, closer_thread, user);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return started;
}

void td_closer_close(struct td_closer *closer, struct td_identity who, int fd)
{
	struct item *item = malloc(sizeof(*item));
	struct user *user;

	(void)shutdown(fd, SHUT_RDWR);
	pthread_mutex_lock(&closer->lock);
	user = item ? find_or_add(closer, who) : NULL;
	closer->count++;
	if (user) {
		item->fd = fd;
		td_list_append(&user->items, &item->of_user);
		user->count++;
	} else {
		free(item);
	}
	if (user && !user->has_thread && start_thread(user)) {
		user->has_thread = true;
		closer->threads++;
	}
	pthread_mutex_unlock(&closer->lock);
}

uint32_t td_closer_count_of(struct td_closer *closer, struct td_identity who)
{
	const struct user *user;
	uint32_t count;

	pthread_mutex_lock(&closer->lock);
	user = find_user(closer, who);
	count = user ? user->count : 0;
	pthread_mutex_unlock(&closer->lock);
	return count;
}

uint32_t td_closer_count(struct td_closer *closer)
{
	uint32_t count;

	pthread_mutex_lock(&closer->lock);
	count = closer->count;
	pthread_mutex_unlock(&closer->lock);
	return count;
}
