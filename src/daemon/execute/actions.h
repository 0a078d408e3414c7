/*
 * Carries out what is asked for beyond gates and limits, by plans and by hand: enum td_action_kind.
 * Pure over the node and td_node_io, like the rest of the node: the time is a parameter.
 *
 *   asked --> ASKED --somebody acts--> RUNNING --it is so--> DONE
 *               |                         |
 *               +------ cannot be --------+---> REFUSED      remembered for TD_REFUSAL_NS
 *               +------ too late ---------+---> TIMED_OUT    remembered for TD_REFUSAL_NS
 *
 * There is at most one act of a kind for a job (MAKE_ROOM and MIGRATE: for a client). Whoever asks
 * again joins the act that is under way. A plan may name an action in each step: while a refusal is
 * remembered that does nothing. By hand it is tried anew. Each change of a state is an event.
 *
 * EVICT, RESTART and START_SHADOW are carried out by endings.c, with the help of supervisors
 * (proto/orders.h) and of the programs' own libraries.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "daemon/execute/endings.h"
#include "daemon/execute/moves.h"
#include "proto/words.h"

struct td_err;
struct td_msg_ordered;
struct td_node;
struct td_plan;
struct td_process;
struct td_supervisor;

/* How long a refusal is remembered. */
#define TD_REFUSAL_NS 60000000000ull
/* That of a move: most reasons are of the moment. */
#define TD_MOVE_REFUSAL_NS 10000000000ull
/* One name means at most so many jobs. */
#define TD_ACTS_MAX 64

struct td_act {
	struct td_list of_node;
	uint64_t number; /* also of its order to a supervisor */
	enum td_action_kind kind;
	enum td_action_state state;
	/* td_job.group; for MAKE_ROOM and MIGRATE td_client.id; 0: the job or client is gone. */
	uint32_t id;
	uid_t uid;              /* of the job's user */
	char job[64], name[64]; /* they outlive the job */
	bool by_hand;
	bool is_named; /* by the present plan */
	uint64_t since_ns, changed_ns;
	struct td_ending ending;
	struct td_migration migration;
	char reason[192]; /* why it was refused or is late; empty: there is none */
};

static inline bool td_act_has_ended(const struct td_act *act)
{
	return act->state >= TD_ACTION_DONE;
}

/* "evict", "asked" */
const char *td_action_name(enum td_action_kind kind);
const char *td_action_state_name(enum td_action_state state);

/* The act enters the state, which is an event. reason: a part of a sentence, or NULL. */
void td_act_enter(struct td_node *node, struct td_act *act, enum td_action_state state,
	const char *reason, uint64_t now_ns);

/*
 * A user asks for EVICT, RESTART, MIGRATE (to that GPU), PAUSE or RESUME of all of his jobs of that
 * name (root: of everybody's). 0, with the acts (room: TD_ACTS_MAX), which are valid until the next
 * step; some may have ended already. -ENOENT, -E2BIG, -EINVAL or -ENOMEM with a sentence.
 */
int td_actions_order(struct td_node *node, uid_t uid, const char *job, enum td_action_kind kind,
	const char *gpu, uint64_t now_ns, struct td_act **ret_acts, uint32_t *ret_count,
	struct td_err *err);

/* The process's job is evicted, if it is a besteffort one. */
void td_actions_evict(struct td_node *node, const struct td_process *process, uint64_t now_ns);

/*
 * The MPS server of the GPU is about to be started anew: its clients' jobs are restarted, online
 * ones first, where somebody can do that.
 */
void td_actions_restart_on(struct td_node *node, uint32_t gpu, uint64_t now_ns);

/* A supervisor answers. A number that is not known is one of an earlier daemon's. */
void td_actions_ordered(struct td_node *node, const struct td_supervisor *supervisor,
	const struct td_msg_ordered *msg, uint64_t now_ns);
/* It is about to be forgotten. */
void td_actions_supervisor_gone(
	struct td_node *node, const struct td_supervisor *supervisor, uint64_t now_ns);

/* Before the view is filled: acts go on. */
void td_actions_step(struct td_node *node, uint64_t now_ns);
/* After the policy's step: what it plans is begun. */
void td_actions_plan(struct td_node *node, const struct td_plan *plan, uint64_t now_ns);
/* When td_actions_step() has something to do by the time alone, after now_ns; or TD_NEVER. */
uint64_t td_actions_wakeup(const struct td_node *node, uint64_t now_ns);

/*
 * Returns the latest act on the process's job, or on one of its clients, that is under way; with
 * `refused` the latest that was refused or came too late. NULL: none.
 */
const struct td_act *td_actions_shown(
	const struct td_node *node, const struct td_process *process, bool refused);

/* The act on the process's job, or on one of its clients, of that kind. NULL: none. */
const struct td_act *td_actions_of(
	const struct td_node *node, const struct td_process *process, enum td_action_kind kind);
