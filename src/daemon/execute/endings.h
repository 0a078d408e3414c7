/*
 * A job ends, is restarted or gets a shadow: the acts that need a supervisor or end processes.
 *
 *   EVICT, RESTART    ORDER to the supervisor, if there is one --RUNNING--> LEAVE to each process
 *                     that uses a GPU --half of evict.deadline--> SIGTERM --all of it--> SIGKILL
 *                     --no process is left--> ORDER again, to hurry --DONE-->
 *   START_SHADOW      ORDER --RUNNING--> --DONE-->
 *
 * A process that says that it ends by SIGTERM has its gate closed before that, so that nothing of
 * it runs on the GPU when it ends. One with a handler of its own keeps its turns: it may want to
 * save what it has on the GPU.
 *
 * Processes that come to a supervised job later are the supervisor's to end: they may be those that
 * it has started anew. An order is for one supervisor: another process that supervises a job of the
 * same name later is not told of it.
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

/* How far the order to the supervisor has come. */
enum td_order_stage {
	TD_ORDER_NONE, /* there is no supervisor, or nobody waits for it any more */
	TD_ORDER_SENT,
	TD_ORDER_LOST, /* its connection has ended: it may come again */
	TD_ORDER_RUNS,
	TD_ORDER_ENDED,
};

struct td_ending {
	const struct td_supervisor *supervisor; /* NULL: none, or lost */
	pid_t pid;                              /* of the supervisor that has got the order */
	enum td_order_stage order;
	uint64_t order_until_ns; /* SENT and LOST: how long that is waited for */
	uint32_t epoch;          /* that the order is about */
	uint32_t last_id;        /* told: the processes up to this id are to end; 0: all */
	bool told;               /* processes were told to leave */
	bool hurried;            /* the order was repeated, as no process is left */
	/* SIGTERM, SIGKILL, and giving up. */
	uint64_t term_ns, kill_ns, end_ns;
};

/* The act has been made. It may end at once. */
void td_ending_begin(struct td_node *node, struct td_act *act, uint64_t now_ns);
void td_ending_step(struct td_node *node, struct td_act *act, uint64_t now_ns);
/* When it has something to do by the time alone, after now_ns. */
uint64_t td_ending_wakeup(const struct td_act *act, uint64_t now_ns);

void td_ending_ordered(struct td_node *node, struct td_act *act, const struct td_msg_ordered *msg,
	uint64_t now_ns);
void td_ending_supervisor_gone(struct td_act *act, uint64_t now_ns);
