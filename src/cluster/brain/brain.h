/*
 * The brain of a cluster: events in, orders out.
 *
 * Purpose. It knows the nodes and the jobs, asks a cluster policy (policies.h) who runs where, and
 * turns the answers into orders that an engine (engine.h) can carry out late, twice or not at all.
 * It has no clock and does no I/O: time and events come from the caller, so tests use a fake clock.
 *
 * A placement has a number, the job's epoch, which only rises. It says which placement an order or
 * a report is about:
 *
 *            submit                 PLACE e             ran e
 *   (absent) ------> WAITING ---------------> PLACED ----------> RUNNING
 *                       ^                       |                   |
 *                       |  PREEMPT, lost, node gone, not in time:   |
 *                       +------- REQUEUE e; the next one is e+1 ----+      ended, cancelled: absent
 *
 * - An order repeated is the same order: an engine that has carried out (job, epoch) does nothing.
 * - An order is repeated every repeat_ns until a report confirms it.
 * - What runs under an earlier epoch than the job's is of a placement that is over: the answer is
 *   REQUEUE of that epoch, or STOP where the brain does not know the job.
 * - Orders carry the revision of the leader that gave them; without a revision there are none. A
 *   store that has seen a higher revision refuses them.
 * - A brain that starts anew is told first what runs (td_brain_adopt) and what waits
 *   (td_brain_submit), then its revision. What runs is not ordered again.
 *
 * A node that has said nothing for silent_ns is gone, and its jobs wait again. Its GPUs can be told
 * to be closed (drained): what runs there may end, and nothing starts, also beside it.
 *
 * The same events give the same orders. All memory is allocated by td_brain_new().
 */
#pragma once

#include "cluster/brain/name_table.h"
#include "cluster/brain/policies.h"

enum td_brain_why {
#define WHY(name, sentence) TD_WHY_##name,
#include "cluster/brain/why.def"
#undef WHY
	TD_BRAIN_WHY_N,
};

const char *td_brain_sentence(enum td_brain_why why);

struct td_brain_tenant {
	char name[TD_NAME_MAX];
	uint32_t quota; /* in GPUs */
};

struct td_brain_params {
	const struct td_brain_policy *policy;
	/* shape.tenants and shape.quotas are filled from these; the first is everybody else's. */
	struct td_brain_shape shape;
	struct td_brain_tenant tenants[TD_TENANTS_MAX];
	uint32_t tenant_count;
	uint64_t start_ns;  /* a placed job that does not run after this waits again; 0: never */
	uint64_t repeat_ns; /* an order that nothing has confirmed is given again */
	uint64_t silent_ns; /* a node that has said nothing for this is gone; 0: never */
};

extern const struct td_brain_params td_brain_default;

/* A job, as its user asks for it. */
struct td_brain_request {
	char id[TD_NAME_MAX], tenant[TD_NAME_MAX];
	char kind[TD_NAME_MAX];    /* jobs of a kind behave alike; "": nothing is known of it */
	char program[TD_NAME_MAX]; /* the name in its profile; "": it has none */
	uint32_t uid;              /* its user, as its node knows him */
	uint32_t gpus,
		share_ppm; /* share_ppm: of each GPU, as the user declares it; 0: all of it */
	bool guaranteed, automatic, same_node;
	bool stays;           /* nobody could start it again, so it is not stopped for others */
	uint32_t pool;        /* it may run on the nodes of this pool; TD_ANYWHERE: on all */
	uint64_t bytes;       /* memory on each GPU; 0: unknown */
	uint64_t epoch;       /* of its last placement, as a store or an engine knows it; 0: none */
	uint64_t attained_ns; /* GPU time that it has had, if known */
};

enum td_brain_phase { TD_BRAIN_WAITING, TD_BRAIN_PLACED, TD_BRAIN_RUNNING, TD_BRAIN_PHASE_N };

struct td_brain_job {
	struct td_brain_request request;
	enum td_brain_phase phase;
	bool guest, upgraded;
	bool due;   /* its order is given at the next step */
	bool known; /* the policy has it; not: it cannot run, or runs where it may not */
	enum td_brain_why back; /* why it waits again; TD_WHY_NEW: it has not run yet */
	uint32_t tenant, kind;
	uint64_t epoch;
	uint64_t submit_ns, since_ns, said_ns; /* since: of this phase; said: of the last order */
	uint32_t unsaid; /* its index among the jobs whose order is not confirmed; TD_NO_NAME */
};

enum td_brain_order_verb {
	TD_ORDER_PLACE,   /* start it on its places */
	TD_ORDER_UPGRADE, /* it runs with guaranteed resources from now on */
	TD_ORDER_REQUEUE, /* the job saves its state and leaves; it may be placed again at once */
	TD_ORDER_STOP,    /* the job may not run under this epoch any more, so it is ended */
	TD_ORDER_VERB_N,
};

struct td_brain_order {
	enum td_brain_order_verb verb;
	char id[TD_NAME_MAX];
	uint32_t job; /* its number, for td_brain_places(); TD_NO_NAME with STOP */
	uint64_t epoch, revision;
	bool guest;
	bool is_repeated;      /* it was given before */
	enum td_brain_why why; /* with REQUEUE */
};

/* A GPU of a placement. */
struct td_brain_place {
	const char *node;
	uint32_t gpu; /* its index on the node */
};

#define TD_BRAIN_LOAD_UNKNOWN UINT32_MAX

struct td_brain_node {
	char name[TD_NAME_MAX];
	uint32_t gpus;
	bool closed;              /* what runs may end there, and nothing starts */
	uint32_t not_in;          /* the pools that it is not in, as bits */
	const uint32_t *load_ppm; /* of each GPU over the last ten seconds; NULL: not known */
};

struct td_brain_verdict {
	bool accepts;      /* more guests may come */
	bool broken;       /* nothing may come */
	uint32_t load_ppm; /* as above; TD_BRAIN_LOAD_UNKNOWN */
};

struct td_brain;

/* Returns NULL with errno: EINVAL (sizes, tenants) or ENOMEM. */
struct td_brain *td_brain_new(const struct td_brain_params *params);
void td_brain_free(struct td_brain *brain);

/* --- events --- */

/* The brain leads from now on, under this revision; 0: no longer. */
void td_brain_lead(struct td_brain *brain, uint64_t revision);

/*
 * A node has joined or reports again. Returns 0; -EINVAL: no GPUs, too many, or a bad name;
 * -ENOSPC: the brain has as many nodes as it can keep.
 */
int td_brain_node_seen(struct td_brain *brain, const struct td_brain_node *node, uint64_t now_ns);
/*
 * The node's own daemon judges its GPUs so, in their order. A GPU that does not accept gets no
 * more guests; one that is broken, that the daemon does not list, or whose daemon does not answer,
 * gets no more jobs. What runs there runs on. gpus NULL: nobody says anything (any more), and all
 * GPUs are open.
 */
void td_brain_node_judged(struct td_brain *brain, const char *name, bool answers,
	const struct td_brain_verdict *gpus, uint32_t count);
/* The node is gone. Its jobs wait again. */
void td_brain_node_left(struct td_brain *brain, const char *name, uint64_t now_ns);

/*
 * A job waits. One that is known already stays as it is. Returns 0; -EINVAL: no GPUs or a bad name;
 * -ENOSPC. A job that can never run is kept, and td_brain_why() says the reason.
 */
int td_brain_submit(
	struct td_brain *brain, const struct td_brain_request *request, uint64_t now_ns);

/*
 * A job runs already, as placement request->epoch, on as many places as it has GPUs. Returns 0;
 * 1: it runs where the policy would not have put it, so its places count as free; -ENOENT: a node
 * that the brain does not know (td_brain_submit() and td_brain_ran() then have it sent back); and
 * the errors of td_brain_submit().
 */
int td_brain_adopt(struct td_brain *brain, const struct td_brain_request *request, bool guest,
	const struct td_brain_place *places, uint64_t now_ns);

/* The job runs as this placement. */
void td_brain_ran(struct td_brain *brain, const char *id, uint64_t epoch, uint64_t now_ns);
/* The job has ended or was cancelled by its engine. */
void td_brain_ended(struct td_brain *brain, const char *id, uint64_t now_ns);
/* Somebody cancels the job: STOP follows if it was placed. */
void td_brain_cancelled(struct td_brain *brain, const char *id, uint64_t now_ns);
/* This placement is over, and the job is not done: it waits again. */
void td_brain_lost(struct td_brain *brain, const char *id, uint64_t epoch, enum td_brain_why why,
	uint64_t now_ns);
/* The engine has carried out this order. A PLACE is repeated until td_brain_ran() all the same. */
void td_brain_done(struct td_brain *brain, const struct td_brain_order *order);
/*
 * The engine cannot send this job back, so it runs on where it is. Its places count as free from
 * now on.
 */
void td_brain_refused(struct td_brain *brain, const struct td_brain_order *order, uint64_t now_ns);
/* The speed of a job beside another one; see td_tandem_cluster_observe(). */
void td_brain_speed(
	struct td_brain *brain, const char *id, const char *beside, bool held, double speed);

/*
 * Profiles: what is known of a program on a kind of GPU. look() fills *ret, which is zeroed. What
 * it points to lives until the next td_brain_know().
 */
struct td_brain_knowledge {
	void (*look)(void *arg, const char *gpu, const char *program, struct td_guest_known *ret);
	void *arg;
};
/* The profiles are these from now on; NULL: there are none. */
void td_brain_know(struct td_brain *brain, const struct td_brain_knowledge *knowledge);
/* Returns the `arg` of what it knows; NULL: it knows nothing yet. */
const void *td_brain_knows(const struct td_brain *brain);
/* The GPU of this index on a node is of a kind with this name. */
void td_brain_gpu_is(struct td_brain *brain, const char *node, uint32_t gpu, const char *name);

/* --- orders --- */

/*
 * Decides what is possible now and returns at most `room` orders, which is 2 at least. Call it
 * after events, again while it fills the room, and once a second.
 */
uint32_t td_brain_step(
	struct td_brain *brain, uint64_t now_ns, struct td_brain_order *ret, uint32_t room);

/* --- what is so --- */

/* Returns the number of a job, or TD_NO_NAME; and the job of a number, NULL if there is none. */
uint32_t td_brain_find(const struct td_brain *brain, const char *id);
const struct td_brain_job *td_brain_job(const struct td_brain *brain, uint32_t job);
/* Returns the GPU time that a job has had, as far as the policy counts it. */
uint64_t td_brain_attained_ns(const struct td_brain *brain, uint32_t job, uint64_t now_ns);
/* The largest number of a job, and one more. */
uint32_t td_brain_jobs_max(const struct td_brain *brain);
/* Writes the places of a job that is placed or runs, up to TD_GANG_MAX. Returns their number. */
uint32_t td_brain_places(
	const struct td_brain *brain, uint32_t job, struct td_brain_place *ret_places);
/* Returns why a waiting job waits now; TD_WHY_NOTHING: it does not wait. */
enum td_brain_why td_brain_why(const struct td_brain *brain, uint32_t job);
/* Writes the same as a sentence, with what sent it back. Returns ret. */
char *td_brain_explain(const struct td_brain *brain, uint32_t job, char *ret, size_t len);
uint32_t td_brain_gpus_up(const struct td_brain *brain);
const struct td_brain_params *td_brain_params_of(const struct td_brain *brain);
/* Returns how many GPUs the guaranteed jobs of a tenant hold, by its number in the parameters. */
uint32_t td_brain_quota_used(const struct td_brain *brain, uint32_t tenant);

struct td_brain_node_state {
	const char *name;
	uint32_t gpus;
	bool closed;         /* as td_brain_node_seen() was last told for this node */
	uint32_t full, shut; /* GPUs that get no guests; that get no jobs */
};

/* Writes the state of the node with a number below shape.nodes_max. Returns false: none has it. */
bool td_brain_node_at(const struct td_brain *brain, uint32_t at, struct td_brain_node_state *ret);
bool td_brain_knows_node(const struct td_brain *brain, const char *name);
