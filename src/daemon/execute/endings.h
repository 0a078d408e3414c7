/*
 * Ends or restarts a job, or starts a shadow (a second instance) of it. These acts need a
 * supervisor, or end processes.
 *
 *   EVICT, RESTART    ORDER to the supervisor, if there is one --RUNNING--> LEAVE to each process
 *                     that uses a GPU --half of evict.deadline--> SIGTERM --all of it--> SIGKILL
 *                     --no process is left--> ORDER again, to hurry --DONE-->
 *   START_SHADOW      ORDER --RUNNING--> --DONE-->
 *
 * A process that answers LEAVE by saying that SIGTERM ends it has its gate closed first, so that
 * none of its work runs on the GPU when it ends. A process with a SIGTERM handler of its own keeps
 * its turns: it may want to save data from the GPU.
 *
 * A process that joins a supervised job later is left to the supervisor, which may have started it
 * anew. An order is for one supervisor. Another one that comes later for a job of the same name
 * does not get it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct td_act;
struct td_msg_leaving;
struct td_msg_ordered;
struct td_node;
struct td_process;
struct td_supervisor;

/* The progress of the order to the supervisor. */
enum td_order_stage {
	TD_ORDER_NONE, /* there is no supervisor, or the act does not wait for it any more */
	TD_ORDER_SENT,
	TD_ORDER_LOST, /* its connection has ended, but it may connect again */
	TD_ORDER_RUNS,
	TD_ORDER_ENDED,
};

struct td_ending {
	const struct td_supervisor *supervisor; /* NULL: there is none, or its connection is lost */
	/* the process id of the supervisor that got the order */
	pid_t pid;
	enum td_order_stage order;
	uint64_t order_until_ns; /* in SENT and LOST: the time at which to stop waiting */
	uint32_t epoch;          /* the supervisor's epoch that the order is for */
	uint32_t last_id;        /* if told: processes up to this id are to end; 0: all */
	bool told;               /* processes were told to leave */
	bool hurried;            /* the order was repeated, since no process is left */
	/* The times of SIGTERM, of SIGKILL, and of giving the act up. */
	uint64_t term_ns, kill_ns, end_ns;
};

/* Starts an act that was just made. It may end within this call. */
void td_ending_begin(struct td_node *node, struct td_act *act, uint64_t now_ns);
void td_ending_step(struct td_node *node, struct td_act *act, uint64_t now_ns);
/* Returns the next time, after now_ns, at which td_ending_step() is due, or TD_NEVER. */
uint64_t td_ending_wakeup(const struct td_act *act, uint64_t now_ns);

void td_ending_ordered(struct td_node *node, struct td_act *act, const struct td_msg_ordered *msg,
	uint64_t now_ns);
void td_ending_supervisor_gone(struct td_act *act, uint64_t now_ns);
