/*
 * The end of a program that is a client of MPS: its work on the GPU ends, and its contexts are
 * destroyed, before the process does (MuxFlow 4.2). A process that ends with work in flight may
 * hang the MPS server, and with it every neighbour.
 *
 *   a signal that ends the program by default (caught.h), its own _exit(), an order of the daemon
 *     FREEZE   no thread launches any more                    the agent closes the gate
 *     EMPTY    threads inside submitting calls come out
 *     DRAIN    what was submitted has ended                   the drain thread
 *     PARK     the program's threads stand still              they would see errors from now on
 *     DESTROY  the contexts are destroyed                     a thread of its own
 *     TELL     the daemon hears how it went                   the agent
 *     END      the process ends as it would have, by that signal or with that status
 *   exit()
 *     DRAIN and TELL; destructors and the driver do the rest
 *
 * Each stage has a bound, so that the process ends whatever the GPU and the driver do. If work does
 * not end in time, the daemon has the MPS server let go of the process (terminate_client), which
 * makes its end harmless, too.
 *
 * One thread does all this (armed: it exists), since the agent may be inside a call to the driver.
 * It and the destroyer are started early, since parked threads may hold the lock of malloc.
 * What cannot be caught (SIGKILL, exit_group by number) the daemon notices: no LEFT has come.
 */
#pragma once

#include <stdbool.h>

#include "cuda/types.h"

struct td_gpu_info;
struct td_msg;

/* Does the GPU have a context of the process, and does it share that GPU by MPS? */
bool td_exit_is_mps(const struct td_gpu_info *gpu);

/*
 * Agent: the process has used so many GPUs. With the first one that it shares by MPS it is armed.
 * again: now and then, dispositions are looked at again.
 */
void td_exit_look(unsigned gpus, bool again);

/*
 * Agent, in each step: does what was asked of it. send: NULL while there is no daemon. True: the
 * gate is frozen, and nothing else is to be done any more.
 */
bool td_exit_step(void (*send)(const struct td_msg *msg));

/* exit() has begun. Returns when work has ended, or after a while. */
void td_exit_begins(void);

/*
 * The program calls _exit(). Does not return if the process is ended here; else that call is to be
 * made.
 */
void td_exit_now(int status);

/*
 * A call that waited for work has come back with this. If that is an error by which the process's
 * own end shows, the thread stays here until then.
 */
void td_exit_waited(CUresult result);

void td_exit_forked(void);
