/* What all parts of the library may ask of the agent (agent.h), which is above them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A GPU is used for the first time. td_agent_expect, before other threads can find it; then td_agent_introduce starts the agent if it does not
 * run, and waits, boundedly, until the daemon knows of the GPU or there is none. Threads that find it known wait for the same
 * (td_agent_await): what they took before that nobody would have granted.
 */
void td_agent_expect(unsigned slot);
void td_agent_introduce(unsigned slot);
void td_agent_await(unsigned slot);

/* Starts it if it does not run, and wakes it. False: it cannot run, or there is no place where a daemon could be. */
bool td_agent_start(void);

/* Something for the agent to look at. From any thread, async-signal-safe, keeps errno. */
void td_agent_wake(void);

/* -- agent thread only -- */

/* How often the gate has been found closed after it was open, or changed: memory that came to the device since has been out of the program's reach. */
uint64_t td_plans_closings(void);

/* Has all of this process's work ended, and can none begin?: what is mapped may change its place only then. */
bool td_plans_is_still(void);
