/*
 * The rounds of the node's daemon (WATCH), one a second. Without a daemon it tries again each
 * second.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "view/snapshot.h"

struct td_rounds {
	char socket[256];
	int fd; /* below 0: not connected; -errno of the last attempt */
	uint64_t retry_ns, heard_ns;
	struct td_snapshot arriving, now, before;
};

/* Copies the path of the daemon's socket. */
void td_rounds_init(struct td_rounds *rounds, const char *socket);
void td_rounds_deinit(struct td_rounds *rounds);

/*
 * Takes what has come. Returns whether rounds->now is a new round. While the daemon is away,
 * now.time_ns is 0. *ret_wakeup_ns is when to call it again at the latest.
 */
bool td_rounds_turn(struct td_rounds *rounds, uint64_t now_ns, uint64_t *ret_wakeup_ns);

/* Whether there is no daemon: the last attempt found no socket, or nobody who listens there. */
bool td_rounds_is_refused(const struct td_rounds *rounds);
