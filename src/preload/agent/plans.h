/*
 * The agent's part of plans: the daemon's grants, and how far the agent has carried them out. Only
 * the agent thread uses it. Messages go out through a function that tests replace.
 *
 *   the gate word is closed --> EMPTYING    waits until no thread is inside a submitting call
 *   no thread is inside     --> DRAINING    waits until the device has done all submitted work
 *   the drain is done       --> DRAINED     DRAINED is sent; memory is shrunk to the GRANT
 *   the deadline has passed --> STUCK       STUCK is sent; waits for the word to change
 *   GRANT(open)             --> memory is filled, READY is sent, and the daemon opens the word
 *
 * Every stage ends when the word opens.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/agent_calls.h"
#include "preload/base/backend.h"

struct td_msg;

enum td_closing {
	TD_CLOSING_NONE,
	TD_CLOSING_EMPTYING, /* threads are inside submitting calls */
	TD_CLOSING_DRAINING, /* the drain thread waits for the GPU */
	TD_CLOSING_DRAINED,
	TD_CLOSING_STUCK,
};

/* Sends a message to the daemon. A failed send is noticed at the next receive. */
typedef void (*td_plans_send_fn)(const struct td_msg *msg);

void td_plans_init(td_plans_send_fn send);

/* The connection is new or lost: all plans are dropped. */
void td_plans_reset(void);

void td_plans_set_backend(const struct td_backend *backend);
const struct td_backend *td_plans_backend(void);

/* Handles a GRANT; other messages are ignored. */
void td_plans_message(const struct td_msg *msg);

/* The slot's GPU was attached or detached. Plans are carried out only while it is attached. */
void td_plans_attached(unsigned slot, bool attached);

/*
 * Does what can be done now about a closed gate. Called first in each step, because others wait for
 * it.
 */
void td_plans_close(uint64_t now_ns);

/* Does what can be done now. Returns the latest time for the next call (monotonic ns). */
uint64_t td_plans_step(uint64_t now_ns);

enum td_closing td_plans_closing(void);

/*
 * Called when the daemon is lost. Returns true if it had closed the gate and none of our work was
 * running, or could run.
 */
bool td_plans_was_waiting(uint32_t word);

/*
 * Without a daemon: moves all memory back as far as the devices have room. Returns true if the
 * devices can reach all of it.
 */
bool td_plans_fill_alone(void);

/*
 * Frees blocks that are kept for small allocations and were not used lately. Called once a second.
 */
void td_plans_trim_idle(void);

/* Reports every slot's memory to the daemon now. */
void td_plans_report(void);

void td_plans_exiting(void);
