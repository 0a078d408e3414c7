/*
 * Calls to the agent (agent.h). They are declared here, below the agent in the order of layers, so
 * that every part of the library may make them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Called at the first use of a GPU. td_agent_expect is called before other threads can find the
 * GPU. td_agent_introduce then starts the agent if needed and waits, for a limited time, until the
 * daemon knows the GPU or there is no daemon. A thread that finds the GPU already known waits for
 * the same with td_agent_await, because no memory is granted before.
 */
void td_agent_expect(unsigned slot);
void td_agent_introduce(unsigned slot);
void td_agent_await(unsigned slot);

/*
 * Starts the agent if needed, and wakes it. Returns false if no thread can be created, or if no
 * socket path is set.
 */
bool td_agent_start(void);

/* Wakes the agent so that it looks for work. Any thread; async-signal-safe; keeps errno. */
void td_agent_wake(void);

/* -- called by the agent thread only -- */

/*
 * Returns how many closings of the gate the agent has begun. Memory that came to the device since a
 * given closing began has never been used by the program.
 */
uint64_t td_plans_closings(void);

/*
 * Returns whether all work of this process has ended and no more can begin. Only then may the
 * mapping of memory change.
 */
bool td_plans_is_still(void);
