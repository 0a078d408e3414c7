/* Calls to the agent (agent.h) for all parts of the library, which lie below it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * For the first use of a GPU. td_agent_expect comes before other threads can find the GPU. Then
 * td_agent_introduce starts the agent if it does not run, and waits, boundedly, until the daemon
 * knows of the GPU or there is no daemon. Threads that find the GPU known wait for the same
 * (td_agent_await): before that, nobody has granted memory.
 */
void td_agent_expect(unsigned slot);
void td_agent_introduce(unsigned slot);
void td_agent_await(unsigned slot);

/*
 * Starts the agent if it does not run, and wakes it. False: it cannot run, or there is no path
 * where a daemon could be.
 */
bool td_agent_start(void);

/* Something for the agent to look at. From any thread, async-signal-safe, keeps errno. */
void td_agent_wake(void);

/* -- agent thread only -- */

/*
 * Counts how often the gate was found closed after it was open, or changed. Memory that came to the
 * device since a count has been out of the program's reach.
 */
uint64_t td_plans_closings(void);

/*
 * Has all work of this process ended, and can none begin? Only then may a mapping change its place.
 */
bool td_plans_is_still(void);
