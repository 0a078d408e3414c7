/* Peer access between devices, for memory of the backend; see peers.c. */
#pragma once

#include <stdbool.h>

/* Returns whether device `from` may use memory of device `to`. */
bool td_peers_reach(int from, int to);
/* Drops the peer access of a context that has been destroyed. */
void td_peers_context_ends(const void *context);
void td_peers_forked(void);
