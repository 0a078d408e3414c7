/*
 * Reports to the daemon on memory that processes share (ipc.h), so that a user can find out why a
 * handle does not work for others or for this process. Any thread counts; the agent sends.
 */
#pragma once

#include <stdint.h>

#include "proto/words.h"

struct td_msg;

/* Handles that can be opened, and how often they are open. */
void td_shares_set(uint32_t handles, uint32_t open);
void td_shares_set_unreachable(enum td_unreachable why);
void td_shares_deny(enum td_denied why);

/* Agent only: sends what is new; or, to another daemon, all of it. */
void td_shares_step(void (*send)(const struct td_msg *msg));
void td_shares_again(void);

void td_shares_forked(void);
