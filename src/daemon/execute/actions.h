/*
 * Carries out the actions that plans and users ask for beyond gates and limits (enum
 * td_action_kind). Pure over the node and td_node_io, like the rest of the node: the time is a
 * parameter.
 *
 *   asked --> ASKED --somebody acts--> RUNNING --it has its effect--> DONE
 *               |                         |
 *               +-- is not possible ------+---> REFUSED      remembered for TD_REFUSAL_NS
 *               +-- takes too long -------+---> TIMED_OUT    remembered for TD_REFUSAL_NS
 *
 * There is at most one act of a kind for a job (MAKE_ROOM, MIGRATE and SHARE: for a client;
 * CHECKPOINT and RESTORE: for a process). A second request joins the act that is under way. A plan
 * may name an action in each step; while a refusal is remembered, that does nothing. A request by
 * hand is tried anew. Each change of an act's state is an event.
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
#include "daemon/record/identity.h"
#include "proto/words.h"

struct td_err;
struct td_msg_ordered;
struct td_node;
struct td_plan;
struct td_process;
struct td_supervisor;

/* A plan's request is refused at once for this long after a refusal of the same action. */
#define TD_REFUSAL_NS 60000000000ull
/* A plan's move is refused for a shorter time, since most reasons against a move soon pass. */
#define TD_MOVE_REFUSAL_NS 10000000000ull
/* A request by hand may concern at most this many jobs. */
#define TD_ACTS_MAX 64

struct td_act {
	struct td_list of_node;
	uint64_t number; /* also the number of its order to a supervisor */
	enum td_action_kind kind;
	enum td_action_state state;
	/*
	 * The td_job.group; for MAKE_ROOM, MIGRATE and SHARE the td_client.id, for CHECKPOINT and
	 * RESTORE the td_process.id. 0: that is gone.
	 */
	uint32_t id;
	struct td_identity who; /* the job's user */
	char job[64], name[64]; /* copies, since the act may outlive the job */
	bool by_hand;
	bool is_named; /* the present plan names it */
	uint64_t since_ns, changed_ns;
	struct td_ending ending;
	struct td_migration migration;
	uint32_t sm_share_ppm; /* SHARE, START_SHADOW: the share that is wanted */
	char reason[192];      /* why it was refused or is late; empty if there is no reason */
};

static inline bool td_act_has_ended(const struct td_act *act)
{
	return act->state >= TD_ACTION_DONE;
}

/* Names for people: td_action_name() gives "evict", td_action_state_name() gives "asked". */
const char *td_action_name(enum td_action_kind kind);
const char *td_action_state_name(enum td_action_state state);

/* Sets the act's state and records that as an event. reason is a part of a sentence, or NULL. */
void td_act_enter(struct td_node *node, struct td_act *act, enum td_action_state state,
	const char *reason, uint64_t now_ns);

/*
 * A SHARE becomes a START_SHADOW of the process's job, or joins that which is under way.
 */
void td_actions_shadow_instead(struct td_node *node, struct td_act *act,
	const struct td_process *process, uint64_t now_ns);

/*
 * A user asks for EVICT, RESTART, MIGRATE (`to` a GPU), PAUSE, RESUME, SHARE or START_SHADOW (`to`
 * a share of the SMs) of all of his jobs of that name; root may ask for everybody's. Returns 0 and
 * the acts; ret_acts has room for TD_ACTS_MAX. The pointers are valid until the next step, and some
 * acts may have ended already. Returns -ENOENT, -E2BIG, -EINVAL or -ENOMEM with a sentence in err.
 */
int td_actions_order(struct td_node *node, struct td_identity who, const char *job,
	enum td_action_kind kind, const char *to, uint64_t now_ns, struct td_act **ret_acts,
	uint32_t *ret_count, struct td_err *err);

/* Evicts the process's job if it is of the class besteffort. */
void td_actions_evict(struct td_node *node, const struct td_process *process, uint64_t now_ns);

/* Has the driver restore a program that an earlier daemon may have left in a checkpoint. */
void td_actions_restore(struct td_node *node, const struct td_process *process, uint64_t now_ns);

/*
 * Restarts the jobs on the GPU, since its MPS server is about to be started anew. Online jobs come
 * first. A job that no supervisor can restart is left out.
 */
void td_actions_restart_on(struct td_node *node, uint32_t gpu, uint64_t now_ns);

/*
 * Takes a supervisor's answer. An unknown number belongs to an order of an earlier daemon and is
 * ignored.
 */
void td_actions_ordered(struct td_node *node, const struct td_supervisor *supervisor,
	const struct td_msg_ordered *msg, uint64_t now_ns);
/* The caller is about to forget the supervisor; acts that waited for it must do without. */
void td_actions_supervisor_gone(
	struct td_node *node, const struct td_supervisor *supervisor, uint64_t now_ns);

/* Lets acts progress. The caller fills the policy's view afterwards. */
void td_actions_step(struct td_node *node, uint64_t now_ns);
/* Begins the actions that the plan names. The policy has just made the plan. */
void td_actions_plan(struct td_node *node, const struct td_plan *plan, uint64_t now_ns);
/*
 * Returns the time, after now_ns, at which td_actions_step() is due even if nothing happens, or
 * TD_NEVER.
 */
uint64_t td_actions_wakeup(const struct td_node *node, uint64_t now_ns);

/*
 * Returns the latest act on the process's job, or on one of its clients, that is under way. With
 * `refused`, returns the latest act that was refused or timed out. Returns NULL if there is none.
 */
const struct td_act *td_actions_shown(
	const struct td_node *node, const struct td_process *process, bool refused);

/* Returns the act of that kind on the process's job, or on one of its clients; or NULL. */
const struct td_act *td_actions_of(
	const struct td_node *node, const struct td_process *process, enum td_action_kind kind);
