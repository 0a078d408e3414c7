/*
 * What the program's threads may ask of the agent's side. Nothing here touches the socket: requests are left where the agent finds them,
 * and it is woken. All functions keep errno, and do nothing, or need no answer, while there is no daemon.
 *
 * td_client_need, td_client_memory_changed: see also preload/backend.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A thread waits at the gate, or passes it armed, when it showed `word`. Tells the daemon once per word. */
void td_client_want(uint32_t word);

/*
 * May `bytes` more become resident on this slot (GPU) now? May block while the daemon makes room; call it without the backend's lock.
 * 0: yes; 1: out of memory for this program; 2: leave the bytes off the device, fill will bring them (only with a closed gate).
 * Without a daemon: 0, or 2 while the gate is closed, as far as the job's limit goes for this process alone.
 * Every call that returned 0 or 2 is followed by one td_client_settled with that value, once the bytes are in the backend's stats (then under
 * the lock that stats takes, so that they are never counted twice or not at all) or were given up.
 */
int td_client_need(unsigned slot, uint64_t bytes);
void td_client_settled(unsigned slot, uint64_t bytes, int need);

/*
 * Under the backend's lock, before it records an allocation as being off the device: is the gate still closed, with no fill begun? A fill
 * that begins later waits for the lock, and finds what was recorded.
 */
bool td_client_may_defer(unsigned slot);

/* The device lacks this much of what was granted: the daemon is told, and may find that somebody has to give way. */
void td_client_short(unsigned slot, uint64_t missing_bytes);

/* There is no daemon at present. */
bool td_client_is_alone(void);

/* The totals have changed (alloc, free): the daemon is told soon. */
void td_client_memory_changed(unsigned slot);

/* What the program shall see as its GPU's memory: the daemon's capacity (the last one's), or the device's total; 0 for a slot that is not known. */
uint64_t td_client_capacity(unsigned slot);

/* The same for the program's eyes: at most its job's limit; and what other processes of the job have of that. */
uint64_t td_client_visible(unsigned slot);
uint64_t td_client_others(unsigned slot);

/* Around a wait at the closed gate. */
void td_client_waits(bool begins);
