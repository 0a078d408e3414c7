/*
 * Closes connections in threads. Closing a unix socket closes the descriptors that lie in it
 * unread, and the close of such a descriptor may sleep for as long as its sender likes: a TCP
 * socket with SO_LINGER and unsent data does. So the daemon's loop closes no connection that came
 * from somebody else.
 *
 * Each user has at most one thread, and has it only while something of his is to be closed. What
 * delays it delays that user's connections alone, which count as his until they are closed.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct td_closer;

/* Returns 0 or -ENOMEM. */
int td_closer_new(struct td_closer **ret);

/* Waits for nothing: threads that are busy end after their next descriptor, and what is not closed
 * by then stays open until the process ends. NULL is allowed. */
void td_closer_free(struct td_closer *closer);

/*
 * Takes the connection over. Its other end sees the end at once, and the descriptor is closed soon.
 * If no thread can be had it stays open, and the user's next descriptor tries again.
 */
void td_closer_close(struct td_closer *closer, uid_t uid, int fd);

/* Return how many descriptors of the user, or of all users, are not closed yet. */
uint32_t td_closer_count_of(struct td_closer *closer, uid_t uid);
uint32_t td_closer_count(struct td_closer *closer);
