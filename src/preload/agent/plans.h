/*
 * The agent's part of plans: what the daemon granted, and how far the agent is with it. All of it
 * belongs to the agent thread. Messages go through a function that tests replace.
 *
 *   the gate word is closed --> EMPTYING    until no thread is inside a submitting call
 *   no thread is inside     --> DRAINING    until the device has done what was submitted
 *   the drain is done       --> DRAINED     told; memory is shrunk to the GRANT
 *   the deadline has passed --> STUCK       told; waits for the word to change
 *   GRANT(open)             --> memory is filled, READY is told, and the daemon opens the word
 *
 * An opened word ends every stage.
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

/* Sends a message to the daemon; a failure shows at the next receive. */
typedef void (*td_plans_send_fn)(const struct td_msg *msg);

void td_plans_init(td_plans_send_fn send);

/* A new connection, or none: nothing is planned any more. */
void td_plans_reset(void);

void td_plans_set_backend(const struct td_backend *backend);
const struct td_backend *td_plans_backend(void);

/* A GRANT; other messages are passed over. */
void td_plans_message(const struct td_msg *msg);

/* The GPU was attached, or detached: plans are acted upon only in between. */
void td_plans_attached(unsigned slot, bool attached);

/* Does what can be done now about a closed gate, before all else: others wait for it. */
void td_plans_close(uint64_t now_ns);

/* Does what can be done now. Returns when to be called again at the latest (monotonic ns). */
uint64_t td_plans_step(uint64_t now_ns);

enum td_closing td_plans_closing(void);

/*
 * Was the gate shut by a daemon that is gone now while nothing of ours was running, or could run?
 */
bool td_plans_was_waiting(uint32_t word);

/*
 * Without a daemon: brings everything back as far as the devices have room. True: all is
 * accessible.
 */
bool td_plans_fill_alone(void);

/* Gives back what is kept for small allocations and is not used. Called once a second. */
void td_plans_trim_idle(void);

/* Tells the daemon every slot's totals now. */
void td_plans_report(void);

void td_plans_exiting(void);
