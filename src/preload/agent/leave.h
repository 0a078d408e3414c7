/*
 * The daemon has asked the program to end (LEAVE). It ends by SIGTERM, as if somebody had sent it:
 *
 *   by default  The daemon closes the gate. SIGTERM is raised when nothing is in flight any more,
 *               so that no work is cut off, or when the patience is over.
 *   a handler   It is called at once, and the gate is left as it is: the handler may want to save
 *               what is on the GPU.
 *   ignored     As by default. SIGKILL is the daemon's business.
 *
 * Without the daemon nobody closes the gate: then it is raised at once. It is raised once for each
 * LEAVE. All of this is the agent's. Under MPS the signal is caught, and the process ends by
 * clean_exit.h.
 */
#pragma once

#include <stdint.h>

struct td_msg;
struct td_msg_leave;

/* LEAVE has come. LEAVING is sent by send(). */
void td_leave_asked(
	const struct td_msg_leave *msg, void (*send)(const struct td_msg *msg), uint64_t now_ns);

/* Behind the steps that close and drain. Returns when to be called again, or UINT64_MAX. */
uint64_t td_leave_step(uint64_t now_ns);

/* The connection is lost. */
void td_leave_lost(void);

/* In the child, which nobody has asked to end. */
void td_leave_forked(void);
