/*
 * The scheduler: a brain, an engine and a state, turned by one loop.
 *
 *   state --leader, fence--> scheduler --orders--> engine (Slurm)
 *         <----assign/ID----  (brain)  <--events--
 *
 * One of several schedulers leads (cluster/state/leader.h). Whoever begins to lead makes a new
 * brain, lets the engine tell it all nodes and jobs, and only then orders. Before an engine is
 * given a placement, the state has it under assign/ID, in a commit that the leader's fence guards.
 * Before any other order, a commit that changes nothing asks the same. A leader of the past fails
 * there and gives no more orders. Without a state nothing is placed or sent back, and what runs
 * runs on.
 */
#pragma once

#include "cluster/engine/engine.h"
#include "cluster/state/leader.h"

#define TD_SCHED_PREFIX "/tandem/v1/"
#define TD_SCHED_STATUS TD_SCHED_PREFIX "status" /* the rows of status.h */

/*
 * assign/ID has the assignment as JSON: epoch, revision, guest, guaranteed (what the job asked
 * for), job (its name on the node, such as slurm.12), uid and places. It changes when a guest is
 * upgraded.
 */
struct td_scheduler;

struct td_scheduler_options {
	struct td_brain_params brain;
	const char *name; /* of this one among the candidates */
	uint32_t lease_s;
	uint64_t period_ns;            /* how often the engine is asked */
	void (*log)(const char *line); /* NULL: no decision log */
	const char *status;            /* a file for the rows of status.h; NULL: none */
	const char *metrics;           /* a file for the text of sched_metrics.h; NULL: none */
	/* Called before orders, to tell the brain more than the engine does; NULL: nobody. */
	void (*look)(void *arg, struct td_brain *brain, uint64_t now_ns);
	void *arg;
};

/* The engine and the state must live longer. Returns NULL with errno. */
struct td_scheduler *td_scheduler_new(const struct td_scheduler_options *options,
	struct td_engine *engine, struct td_state *state);
void td_scheduler_free(struct td_scheduler *scheduler);
/* Gives the leadership back. */
void td_scheduler_resign(struct td_scheduler *scheduler, uint64_t now_ns);

/* Does what is to be done now. Returns when to call it again at the latest. */
uint64_t td_scheduler_turn(struct td_scheduler *scheduler, uint64_t now_ns);

/* Returns the brain, or NULL while it does not lead. */
const struct td_brain *td_scheduler_brain(const struct td_scheduler *scheduler);
