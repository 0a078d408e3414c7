/*
 * The life of a shadow: a second instance of a supervised program, which takes the first one's
 * place when it is ready (proto/orders.h, SHADOW). Pure: events and the time go in, actions come
 * out. supervise.c carries them out.
 *
 *         ORDERED              READY: HAND_OVER
 *   NONE ---------> STARTING -------------------> DRAINING   SIGTERM to the first instance, and
 *    ^  ^              | | |                          |      SIGKILL after kill_ns
 *    |  |  ENDED       | | |  time or CANCELLED       |
 *    |  +--------------+ | +----------> ENDING        | ENDED
 *    |  |  FIRST_ENDED   |                 | ENDED    |
 *    |  +--------------+-+                 v          |
 *    +-------------------------------------+----------+
 *
 * "The other" is the process beside the child of life.h: the shadow in STARTING and ENDING, and the
 * first instance in DRAINING. FIRST_ENDED: the first instance has ended by itself, and the shadow
 * is its heir (TAKE_OVER).
 *
 * Invariant: before HAND_OVER or TAKE_OVER nothing is done to the first instance.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum td_shadow_state {
	TD_SHADOW_NONE,
	TD_SHADOW_STARTING,
	TD_SHADOW_DRAINING,
	TD_SHADOW_ENDING,
	TD_SHADOW_STATE_N,
};

enum td_shadow_event {
	TD_SHADOW_ORDERED,     /* the daemon asks for a shadow */
	TD_SHADOW_READY,       /* the shadow can answer requests */
	TD_SHADOW_ENDED,       /* the other has ended; the reason says how */
	TD_SHADOW_FIRST_ENDED, /* the first instance has ended, and nobody wanted it to */
	TD_SHADOW_CANCELLED,   /* the job is to end, or another order has come: see the reason */
	TD_SHADOW_TIME,        /* wake_ns has come */
	TD_SHADOW_EVENT_N,
};

enum td_shadow_action {
	TD_SHADOW_NOTHING,
	TD_SHADOW_START,     /* start the shadow */
	TD_SHADOW_HAND_OVER, /* the shadow is the child now; SIGTERM to the first instance */
	TD_SHADOW_TAKE_OVER, /* the shadow is the child now */
	TD_SHADOW_TERMINATE, /* SIGTERM to the other */
	TD_SHADOW_KILL,      /* SIGKILL to the other; repeated at each wake_ns */
	TD_SHADOW_ACTION_N,
};

struct td_shadow_input {
	enum td_shadow_event event;
	uint64_t ready_ns; /* ORDERED: how long it may take until it is ready */
	uint64_t kill_ns;  /* ORDERED: the time between SIGTERM and SIGKILL */
	const char *reason;
};

struct td_shadow {
	enum td_shadow_state state;
	uint64_t wake_ns; /* when TIME is due; UINT64_MAX: never */
	uint64_t kill_ns;
	bool is_done;     /* the last one has taken over */
	char reason[160]; /* why the last one has not; kept until the next one */
};

#define TD_SHADOW_INIT                                                                             \
	{                                                                                          \
		.wake_ns = UINT64_MAX                                                              \
	}

enum td_shadow_action td_shadow_step(
	struct td_shadow *shadow, const struct td_shadow_input *input, uint64_t now_ns);
