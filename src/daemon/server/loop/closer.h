/*
 * Closes connections in threads. Closing a unix socket also closes the descriptors that were sent
 * over it and not received. The close of such a descriptor may sleep for as long as its sender
 * likes: a TCP socket with SO_LINGER and unsent data does. So the daemon's loop never closes an
 * accepted connection itself.
 *
 * Each user has at most one thread, and only while a connection of his is to be closed. A close
 * that sleeps delays only that user's connections, which count as his until they are closed.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "daemon/record/identity.h"

struct td_closer;

/* Returns 0 or -ENOMEM. */
int td_closer_new(struct td_closer **ret);

/*
 * Frees the closer without waiting. Busy threads end after their next descriptor; descriptors that
 * are not closed by then stay open until the process ends. NULL is allowed.
 */
void td_closer_free(struct td_closer *closer);

/*
 * Takes the connection over. Its peer sees the end at once, and the descriptor is closed soon. If
 * no thread can be started, it stays open, and the user's next descriptor tries again.
 */
void td_closer_close(struct td_closer *closer, struct td_identity who, int fd);

/* These return how many descriptors of the user, or of all users, are not closed yet. */
uint32_t td_closer_count_of(struct td_closer *closer, struct td_identity who);
uint32_t td_closer_count(struct td_closer *closer);
