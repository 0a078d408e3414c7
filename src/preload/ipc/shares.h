/*
 * Tells the daemon about memory that processes share (ipc.h), so that a user can find out why a
 * handle cannot be opened. Any thread may set the figures; the agent sends them.
 */
#pragma once

#include <stdint.h>

#include "proto/words.h"

struct td_msg;

/* Sets how many handles other programs can open, and how many times they have these open now. */
void td_shares_set(uint32_t handles, uint32_t open);
void td_shares_set_unreachable(enum td_unreachable why);
void td_shares_deny(enum td_denied why);

/* Agent only: sends what has changed or, after td_shares_again, everything. */
void td_shares_step(void (*send)(const struct td_msg *msg));
void td_shares_again(void);

void td_shares_forked(void);
