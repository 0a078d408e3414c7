/*
 * What the daemon is told of memory that processes share (ipc.h), so that a user finds there why a handle is of no use: to others, or to this process. Counted by
 * any thread, told by the agent.
 */
#pragma once

#include <stdint.h>

struct td_msg;

/* Why a handle of another process's could not be opened. On the wire. */
enum td_denied {
	TD_DENIED_NOBODY, /* its owner has ended, or cannot be reached from here */
	TD_DENIED_USER,   /* it is another user's */
	TD_DENIED_FREED,  /* there is no such memory any more */
	TD_DENIED_FAILED, /* it could not be mapped */
	TD_DENIED_N,
};

/* Why programs in other network namespaces cannot open memory of this one: it does not listen at its path. On the wire. */
enum td_unreachable {
	TD_UNREACHABLE_NOT,     /* they can */
	TD_UNREACHABLE_NOWHERE, /* there is no directory */
	TD_UNREACHABLE_TAKEN,   /* something else is there that it cannot remove */
	TD_UNREACHABLE_FAILED,  /* nothing can be made there */
	TD_UNREACHABLE_N,
};

/* Handles that can be opened, and how often they are open. */
void td_shares_set(uint32_t handles, uint32_t open);
void td_shares_set_unreachable(enum td_unreachable why);
void td_shares_deny(enum td_denied why);

/* Agent only: sends what is new; or, to another daemon, all of it. */
void td_shares_step(void (*send)(const struct td_msg *msg));
void td_shares_again(void);

void td_shares_forked(void);
