/*
 * The agent: one thread per process that talks to the daemon and does what its plans say. Started
 * at the first use of a context, never at load. While there is no daemon it only tries to find one.
 * What other parts ask of it is in agent_calls.h.
 */
#pragma once

/*
 * The process is exiting. From now on the library makes no driver calls that the program did not
 * ask for.
 */
void td_agent_exiting(void);

void td_agent_forked(void);
