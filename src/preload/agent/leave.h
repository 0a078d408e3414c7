/*
 * The daemon has asked the program to end (LEAVE). The library raises SIGTERM, as if a user had
 * sent it. The program's disposition of SIGTERM decides how:
 *
 *   default    The daemon closes the gate. SIGTERM is raised once no work is in flight, so that
 *              none is cut off, or when LEAVE's patience is over.
 *   handler    It is raised at once and the gate stays as it is: the handler may want to save data
 *              that is on the GPU.
 *   ignored    As for the default. Only the daemon may send SIGKILL.
 *
 * If the daemon is lost, nothing closes the gate, so SIGTERM is raised at once. Each LEAVE raises
 * it once. Only the agent calls these functions. Under MPS the signal is caught and clean_exit.h
 * ends the process.
 */
#pragma once

#include <stdint.h>

struct td_msg;
struct td_msg_leave;

/* Called when LEAVE has come. It answers with LEAVING through send(). */
void td_leave_asked(
	const struct td_msg_leave *msg, void (*send)(const struct td_msg *msg), uint64_t now_ns);

/*
 * Called after the steps that close and drain. Returns the time of the next call (monotonic ns), or
 * UINT64_MAX for none.
 */
uint64_t td_leave_step(uint64_t now_ns);

/* The connection to the daemon is lost. */
void td_leave_lost(void);

/* Called in a forked child: forgets a LEAVE, because it was meant for the parent. */
void td_leave_forked(void);
