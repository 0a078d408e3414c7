/*
 * How a service hands its port over to a second instance without losing a request. Both listen on
 * the port (SO_REUSEPORT), and the kernel divides new connections among them.
 */
#pragma once

#include <stdint.h>

/* Listens on 127.0.0.1 at the port; 0: any. Returns the socket, or -errno. */
int handover_listen(uint16_t port);

/*
 * Lets all new connections go to the other instance, if there is one, and waits until those that
 * were under way have come here. After that the socket may be closed: its queue is empty.
 */
void handover_turn_away(int fd);
