/*
 * The life of a supervised program as a state machine. Pure: events and the time go in, actions
 * come out. supervise.c carries them out.
 *
 *                 STARTED            ORDERED
 *   +-> STARTING ---------> RUNNING ---------> STOPPING   SIGTERM, and SIGKILL after that
 *   |      |                   |                  |
 *   |      | UNSTARTED         | ENDED            | ENDED
 *   |      v                   v                  v
 *   |   is it started again? -------- yes ---> CLEARING   what the program left is ended, too
 *   |      | no                                   | CLEARED
 *   |      v                                      v
 *   |    OVER <------- the order was to stop -----+----- the order was to queue ---> QUEUED
 *   |                                             |                                     |
 *   |                 time                        v                                     |
 *   +------------------------------------- BACKING_OFF                         ADMITTED |
 *   +-----------------------------------------------------------------------------------+
 *
 *  INTERRUPTED: the user ends the job. A program that runs got the signal too, and its end is the
 *  job's end. Where no program runs, the job is OVER at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/supervise/restart.h"

/*
 * The first delay before a restart. Each restart doubles the delay, up to the maximum. A run of at
 * least TD_LIFE_HEALTHY_NS resets it. docker uses the same figures.
 */
#define TD_LIFE_DELAY_NS     (100ull * 1000 * 1000)
#define TD_LIFE_DELAY_MAX_NS (60ull * 1000 * 1000 * 1000)
#define TD_LIFE_HEALTHY_NS   (10ull * 1000 * 1000 * 1000)
/* The first delay for a job that was evicted: the reason for the eviction needs a while to pass. */
#define TD_LIFE_QUEUE_NS (1000ull * 1000 * 1000)
/* How long processes that a program left behind may take to end after SIGTERM. */
#define TD_LIFE_GRACE_NS (10ull * 1000 * 1000 * 1000)

enum td_life_state {
	TD_LIFE_STARTING,
	TD_LIFE_RUNNING,
	TD_LIFE_STOPPING,
	TD_LIFE_CLEARING,
	TD_LIFE_BACKING_OFF,
	TD_LIFE_QUEUED,
	TD_LIFE_OVER,
	TD_LIFE_STATE_N,
};

/* The daemon's orders. */
enum td_life_order {
	TD_LIFE_ORDER_NONE,
	TD_LIFE_ORDER_STOP,    /* end it */
	TD_LIFE_ORDER_RESTART, /* end it and start it again */
	/* End the program, and start it again once the daemon admits the job. */
	TD_LIFE_ORDER_REQUEUE,
	TD_LIFE_ORDER_N,
};

enum td_life_event {
	TD_LIFE_STARTED,     /* the program was executed */
	TD_LIFE_UNSTARTED,   /* the program could not be executed; `end` has 126 or 127 */
	TD_LIFE_ENDED,       /* the program has ended; `end` says how */
	TD_LIFE_CLEARED,     /* no process of the job is left */
	TD_LIFE_INTERRUPTED, /* the user's signal `end.code` says that the job is to end */
	TD_LIFE_ORDERED,     /* an order has come; a repeated one may shorten its times */
	TD_LIFE_ADMITTED,    /* a queued job may start */
	TD_LIFE_TIME,        /* wake_ns has come */
	TD_LIFE_EVENT_N,
};

enum td_life_action {
	TD_LIFE_NOTHING,
	TD_LIFE_START,     /* start the program; then STARTED, or UNSTARTED */
	TD_LIFE_TERMINATE, /* SIGTERM to all processes of the job */
	TD_LIFE_KILL,      /* SIGKILL to all processes of the job; repeated at each wake_ns */
	TD_LIFE_ASK,       /* ask the daemon for admission; ADMITTED follows if it agrees */
	TD_LIFE_END,       /* tandem ends as `end` says */
	TD_LIFE_ACTION_N,
};

/* How a program ended: by a signal, or by exiting. */
struct td_life_end {
	bool by_signal;
	int code; /* the signal, or the exit status */
};

struct td_life_input {
	enum td_life_event event;
	struct td_life_end end;
	enum td_life_order order;
	uint64_t leave_ns; /* ORDERED: the time before SIGTERM */
	uint64_t kill_ns;  /* ORDERED: the time between SIGTERM and SIGKILL */
};

struct td_life {
	struct td_restart restart;
	bool may_queue; /* --requeue */

	enum td_life_state state;
	enum td_life_order order; /* the order for the instance that runs */
	bool is_told;             /* the job's processes got SIGTERM */
	bool is_interrupted;
	bool gave_up;        /* the bound on restarts was reached */
	uint32_t starts;     /* starts of the program, including the present one */
	uint32_t failures;   /* restarts that followed an end by itself */
	uint64_t started_ns; /* when the program began to run; 0: it never did */
	uint64_t wake_ns;    /* when TIME is due; UINT64_MAX: never */
	uint64_t kill_ns;    /* the time between SIGTERM and SIGKILL */
	uint64_t delay_ns;   /* the last back-off; 0: there was none */
	uint64_t ready_ns;   /* when that back-off ends */
	struct td_life_end end;
	uint64_t times_ns[TD_RESTARTS_MAX]; /* a ring with the times of the last restarts */
};

/* Initialises the life. Returns the first action, which is START. */
enum td_life_action td_life_begin(
	struct td_life *life, const struct td_restart *restart, bool may_queue);
/* Takes an event. Returns the action that it asks for. */
enum td_life_action td_life_step(
	struct td_life *life, const struct td_life_input *input, uint64_t now_ns);
/* Returns whether a process of the program exists. */
bool td_life_has_program(const struct td_life *life);
