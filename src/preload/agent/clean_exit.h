/*
 * Ends a program that is a client of MPS: its work on the GPU ends, and its contexts are destroyed,
 * before the process ends (MuxFlow 4.2). A process that ends with work in flight may hang the MPS
 * server, and with it every other client.
 *
 *   on a signal whose default is to end the program (caught.h), _exit(), or the daemon's order
 *     FREEZE   no thread launches any more                    the agent closes the gate
 *     EMPTY    threads inside submitting calls come out
 *     DRAIN    submitted work ends                            the drain thread waits for it
 *     PARK     the program's threads are stopped              they would see errors from now on
 *     DESTROY  the contexts are destroyed                     a thread of its own does it
 *     TELL     the daemon learns whether work has ended       the agent sends LEFT
 *     END      the process ends by that signal or with that status
 *   on exit()
 *     DRAIN and TELL; destructors and the driver do the rest
 *
 * Each stage has a time limit, so the process ends even if the GPU or the driver hangs. If work
 * does not end in time, the daemon has the MPS server release the process (terminate_client). Then
 * its end cannot hang the server either.
 *
 * The exit thread does all this, since the agent may be inside a driver call. A process is armed
 * when that thread exists. It and the destroyer thread are started early, since a stopped thread
 * may hold malloc's lock. SIGKILL and a direct exit_group system call cannot be caught. The daemon
 * notices them because the connection ends without LEFT.
 */
#pragma once

#include <stdbool.h>

#include "cuda/types.h"

struct td_gpu_info;
struct td_msg;

/* Returns true if the process has a context on the GPU and uses that GPU through MPS. */
bool td_exit_is_mps(const struct td_gpu_info *gpu);

/*
 * Agent: looks whether one of the process's `gpus` GPUs is used through MPS, and if so arms the
 * process. again: also catches signals whose disposition has become SIG_DFL since.
 */
void td_exit_look(unsigned gpus, bool again);

/*
 * Agent, in each step: does what the exit thread has asked of it. send is NULL while there is no
 * daemon. Returns true once the gate is frozen; the agent then does nothing else.
 */
bool td_exit_step(void (*send)(const struct td_msg *msg));

/* Called when exit() begins. Returns when submitted work has ended, or after a few seconds. */
void td_exit_begins(void);

/*
 * Called for the program's _exit(). If the process is armed, the exit thread ends it, and this does
 * not return. Otherwise it returns and the caller makes the real _exit().
 */
void td_exit_now(int status);

/*
 * Called with the result of a driver call that waited for work. If destroying the contexts may have
 * caused an error, the thread stays here until the process ends, so that the program does not see
 * it.
 */
void td_exit_waited(CUresult result);

void td_exit_forked(void);
