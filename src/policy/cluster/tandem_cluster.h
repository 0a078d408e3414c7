/*
 * tandem's scheduler of a cluster: queues by attained service, with sharing inside.
 *
 * - Order: who has had the least GPU time goes first (las.h), because nobody knows how long a job
 *   will run. A job's rank is twice its level, and `handicap` more without a guarantee. Whoever
 *   finds no place takes those of running jobs of higher ranks: they save their state, leave and
 *   wait again. That happens in rounds, and to nobody who has run for less than run_ns.
 * - Guarantees: a guaranteed job has whole GPUs within its tenant's quota, and guests beside it
 *   only under the node's guard (guard.h). While the guaranteed jobs of a tenant fit its quota, and
 *   those of all tenants the cluster, they go before everybody else and are not stopped. A tenant
 *   that asks for more has jobs that wait in any case. They stop each other, and a job without a
 *   guarantee that has just come goes before a guaranteed one of that tenant that has run for long.
 *   Where that is not wanted, the handicap is TD_TANDEM_STRICT.
 * - Services hold their GPUs and are never stopped. Guests run beside them, as in MuxFlow and Mudi.
 * - Besteffort jobs are guests everywhere. They start wherever that gains: on an idle GPU, beside
 *   others, or beside a holder. The gain of a GPU is the newcomer's predicted speed less the loss
 *   of the others there: MuxFlow's weight less the losses. Memory has to suffice, because nvshare's
 *   turns are for one node and a cluster has other GPUs.
 * - Moves: as in DCUDA, a guest goes where it gains, with hysteresis, and is considered at most
 *   once per settle_ns.
 *
 * Prediction. Nothing is known of a pair that has never run but what each uses of a GPU alone: jobs
 * that use more than a whole GPU share it in proportion, however many they are. Once a pair has
 * run, its observed speeds count (td_tandem_cluster_observe), and those of several pairs add up:
 * 1/s = max(1, the use of the job and of those never seen beside it) + sum (1/s_pair - 1).
 *
 * Room. The scheduler is told the room beside a service: the part of the GPU that the service would
 * leave to jobs never observed. Speeds beside the service are relative to this room. It does not
 * depend on the present guests, or GPUs with guests would always look worse than empty ones. What a
 * service leaves changes with its load, so the best GPU of this minute may not be that of the next.
 * A job that starts has nothing to lose and goes by the room of now. A job that moves goes by the
 * room's mean over window_ns, weighted by age. So a load curve with a period of at most half the
 * window moves nobody by itself, however much it swings.
 *
 * Price. A move costs a guest move_ns of work, and all times here are multiples of it: a guest
 * stays for five move_ns at least, and GPUs are compared over ten. A move has to gain its price
 * within window_ns, for which the mean may be expected to last. A guest that has moved does not
 * move again until that move has paid for itself,
 *     time since x (promised gain - shortfall of the room here against its mean
 *                   - excess of the room that was left over its mean) >= move_ns,
 * or until window_ns is over. The wait doubles for each move that has not paid; one that has paid
 * cancels one that has not. So moves that do not pay are no more than those that do and a few per
 * guest and day, for any rooms and speeds (docs/decisions/0014).
 *
 * Patience. A job that does not fit is overtaken by smaller ones, but only for patience_ns; after
 * that those behind it get no idle GPU.
 *
 * Cost. A step looks at sixteen jobs that find no place at most, a job at TD_TANDEM_CANDIDATES GPUs
 * and some tens of running jobs, and a round of moves at the guests whose turn it is.
 *
 * Invariants
 * - a gang starts, moves and stops whole, onto distinct GPUs, where the memory that it is known to
 *   need is free;
 * - a GPU has one holder at most; a tenant's guaranteed jobs hold no more GPUs than its quota;
 * - nobody is stopped for a job of the same or a higher rank, so two jobs never stop each other by
 *   turns within a level;
 * - a move gains by prediction, and has paid before the next; a job that has just started or moved
 *   stays;
 * - same calls, same decisions. The caller provides all memory.
 */
#pragma once

#include "policy/cluster/antman_cluster.h"
#include "policy/cluster/las.h"

/*
 * In a large cluster a job is offered only this many of the least loaded GPUs, and as many more as
 * it needs.
 */
#define TD_TANDEM_CANDIDATES 64u
/*
 * The maximum number of actions of one step before they are returned. One job causes at most GUESTS
 * x GANG + 1.
 */
#define TD_TANDEM_ACTIONS  8192u
#define TD_TANDEM_STRICT   (2 * TD_LAS_LEVELS + 1)
#define TD_CLUSTER_SERVICE (UINT32_MAX - 1) /* marks a GPU that a service holds */

struct td_tandem_cluster_params {
	struct td_las_params las;
	bool preempts;     /* stops running jobs for jobs that have had less service */
	uint64_t round_ns; /* minimum time between two rounds of preemption */
	uint64_t run_ns;   /* a job that has run for less is not preempted */
	/*
	 * Added to the rank without a guarantee; odd, so that the two kinds of jobs never have
	 * equal ranks.
	 */
	uint32_t handicap;
	double gain_min;      /* a start has to raise the sum of all jobs' speeds by this */
	double share_min;     /* the same for a start beside guests on a GPU without a holder */
	double held_min;      /* a guest beside a holder has to reach this speed */
	double move_gain_min; /* a move has to raise the sum of speeds by this */
	uint32_t together;    /* maximum number of guests on a GPU; at most TD_GUESTS */
	uint64_t settle_ns, patience_ns;
	uint64_t move_ns;   /* the cost of a move, in time of the guest's work */
	uint64_t window_ns; /* see Room and Price above */
};

extern const struct td_tandem_cluster_params td_tandem_cluster_default;
/*
 * Returns the parameters for another cost of moves and stops, above 0. All times are multiples of
 * it.
 */
struct td_tandem_cluster_params td_tandem_cluster_params_of(uint64_t move_ns);

struct td_tandem_job {
	uint32_t kind, gpus, tenant, place, index; /* index: in `running`, for guests */
	bool guest, same_node, stays;
	uint32_t pool;
	/* looked_ns: when a better GPU was last looked for. */
	uint64_t bytes, submit_ns, since_ns, looked_ns;
	/* The last move. */
	bool moved;
	uint32_t unpaid; /* number of moves, less those that have paid */
	double promised;
	struct td_tandem_stay {
		uint32_t gpu;
		double room, ratio,
			/*
			 * room: expected at the move; ratio: speed / room; sum: td_tandem_room.sum
			 * at the move.
			 */
			sum;
	} here, left;
};

/* The room that a service leaves: `now` since since_ns, and its mean before that. */
struct td_tandem_room {
	double now, mean, sum; /* sum: integral over time until since_ns, in ns */
	uint64_t since_ns;     /* TD_TANDEM_NEVER: no room was told yet */
};
#define TD_TANDEM_NEVER UINT64_MAX

enum td_tandem_verb {
	TD_TANDEM_START,
	TD_TANDEM_START_GUEST,
	TD_TANDEM_MOVE,    /* moves a guest to the GPUs that it has now */
	TD_TANDEM_PREEMPT, /* the job saves its state, leaves its GPUs and waits again */
	TD_TANDEM_VERB_N,
};

struct td_tandem_action {
	enum td_tandem_verb verb;
	uint32_t job;
};

struct td_tandem_cluster {
	struct td_tandem_cluster_params params;
	struct td_inventory gpus; /* has all services and jobs */
	struct td_las las;        /* a queue per tenant, and a last one for all other jobs */
	uint32_t quota[TD_TENANTS_MAX], used[TD_TENANTS_MAX], tenant_count;
	uint32_t unheld;                /* number of GPUs without a holder */
	uint32_t asked[TD_TENANTS_MAX]; /* GPUs of running and waiting guaranteed jobs */
	uint32_t asked_in_all;          /* sum of asked[], each up to its quota */
	uint32_t to_hold;               /* number of GPUs without a service */
	uint32_t kinds, jobs_max;
	uint64_t gpu_bytes; /* memory of each GPU; 0: memory is not limited */
	bool is_hard;       /* no memory moves: a new holder, too, has to fit beside the guests */
	struct td_tandem_job *jobs;
	struct td_antman_place *places;
	uint32_t free_place;
	/* The guests; cursor: the next one to consider for a move. */
	uint32_t *running, running_count, cursor;
	uint32_t *service_kind; /* kind of each GPU's service, if it has one */
	uint64_t *service_bytes;
	double *demands;              /* use of a GPU by each kind alone */
	struct td_tandem_room *rooms; /* what each GPU's service leaves */
	float *beside,
		/*
		 * kinds x kinds: the speed of the row's kind as a guest of the column's kind. 0:
		 * never seen.
		 */
		*guarded;
	struct td_tandem_choice {
		double score, own;
		uint32_t gpu;
	} * choices; /* scratch, one entry per GPU */
	struct {
		uint32_t gpus[TD_TANDEM_CANDIDATES + TD_GANG_MAX], count, asked;
		uint32_t pool;
		uint64_t changes; /* td_inventory.changes when these were found */
	} found;                  /* the least loaded GPUs, least first */
	uint64_t freed,
		/* Number of times that GPUs came free; its value when guests were last tried. */
		tried_freed;
	/* The first guest that has come since tried_freed was set; TD_LAS_NONE. */
	uint32_t arrived;
	uint32_t *marks, mark;            /* scratch: a GPU is chosen if its mark is `mark` */
	struct td_tandem_action *actions; /* decided and not returned yet */
	uint32_t action_count, action_next;
	uint64_t moved_ns, round_ns, now_ns; /* now_ns: the time of the last call that had one */
};

size_t td_tandem_cluster_bytes(uint32_t nodes, uint32_t gpus, uint32_t jobs_max, uint32_t kinds);

/*
 * Makes an empty cluster. demands[k] is the part of a GPU that kind k uses alone; without demands
 * it is 1. The other parameters and the errors are those of td_antman_init().
 */
int td_tandem_cluster_init(struct td_tandem_cluster *cluster, void *memory, size_t bytes,
	const struct td_tandem_cluster_params *params, const uint32_t *node_gpus, uint32_t nodes,
	uint64_t gpu_bytes, const uint32_t *quotas, uint32_t tenants, uint32_t jobs_max,
	const double *demands, uint32_t kinds);

/* Gives the GPU to a service for good. */
void td_tandem_cluster_serve(
	struct td_tandem_cluster *cluster, uint32_t gpu, uint32_t kind, uint64_t bytes);

/*
 * Tells what part of a GPU its service leaves now, beside jobs that were never observed. The room
 * is 1 before the first call.
 */
void td_tandem_cluster_room(
	struct td_tandem_cluster *cluster, uint32_t gpu, double room, uint64_t now_ns);

struct td_tandem_request {
	uint32_t tenant, gpus, kind;
	bool guaranteed;
	/*
	 * All GPUs have to be on one node. Nobody is stopped for such a job of several GPUs: it
	 * waits for a node with room, and after patience_ns nobody overtakes it.
	 */
	bool same_node;
	uint64_t bytes; /* memory needed on each GPU; 0: unknown */
	/*
	 * The nodes where it may run (inventory.h). A job that may not run anywhere holds nobody
	 * up by its patience.
	 */
	uint32_t pool;
	/* It is never stopped or moved, since nobody could start it again. */
	bool stays;
};

/*
 * Queues a job. Returns 0; -EINVAL: job in use or out of range, no such tenant or kind, or no GPUs,
 * more than TD_GANG_MAX or more than the cluster has; -EDQUOT: a guaranteed job of more GPUs than
 * its tenant's quota.
 */
int td_tandem_cluster_submit(struct td_tandem_cluster *cluster, uint32_t job,
	const struct td_tandem_request *request, uint64_t now_ns);
void td_tandem_cluster_finish(struct td_tandem_cluster *cluster, uint32_t job, uint64_t now_ns);

/*
 * A node is up at first. When it goes down, its jobs wait again: the next steps return them as
 * TD_TANDEM_PREEMPT. Services keep their GPUs. Returns 0; -EINVAL: there is no such node; -EAGAIN:
 * td_tandem_cluster_step() has to return its actions first.
 */
int td_tandem_cluster_node_down(struct td_tandem_cluster *cluster, uint32_t node, uint64_t now_ns);
int td_tandem_cluster_node_up(struct td_tandem_cluster *cluster, uint32_t node);

/*
 * Takes one GPU down, or up again. td_tandem_cluster_requeue() makes the jobs on it wait first.
 * Nothing happens to a GPU that a service holds, or that is up or down already. Returns 0; -EINVAL:
 * there is no such GPU; -EBUSY: a job is on it.
 */
int td_tandem_cluster_gpu_down(struct td_tandem_cluster *cluster, uint32_t gpu);
int td_tandem_cluster_gpu_up(struct td_tandem_cluster *cluster, uint32_t gpu);
/* Bars jobs from a GPU; those that are there stay, but for guests that move to a better place. */
void td_tandem_cluster_bar(
	struct td_tandem_cluster *cluster, uint32_t gpu, enum td_inventory_bar bar);

/* Makes a running job wait again, with the GPU time that it has had. No action is returned. */
void td_tandem_cluster_requeue(struct td_tandem_cluster *cluster, uint32_t job, uint64_t now_ns);

/* Sets the part of a GPU that a kind uses alone, before the first job of that kind comes. */
void td_tandem_cluster_demand(struct td_tandem_cluster *cluster, uint32_t kind, double demand);

/*
 * Takes over a job that already runs on these request->gpus GPUs and has had attained_ns of GPU
 * time. No action is returned for it. The errors are those of td_tandem_cluster_submit(); -EBUSY: a
 * GPU is named twice, is down, or has a job beside which this one may not run.
 */
int td_tandem_cluster_adopt(struct td_tandem_cluster *cluster, uint32_t job,
	const struct td_tandem_request *request, const uint32_t *gpus, uint64_t attained_ns,
	uint64_t now_ns);

/*
 * Tells the observed speed of a guest beside one other job on its GPU: a guest or, if `held`, the
 * holder. 1 is the speed alone. Beside a service the speed is relative to the room that was told,
 * so it may exceed 1, up to TD_TANDEM_OVER.
 */
#define TD_TANDEM_OVER 4.
void td_tandem_cluster_observe(
	struct td_tandem_cluster *cluster, uint32_t kind, uint32_t other, bool held, double speed);

/*
 * Makes decisions as td_antman_step() does: at most `room` actions, which are in force on return.
 * Call it again while it returns `room` actions.
 */
uint32_t td_tandem_cluster_step(struct td_tandem_cluster *cluster, uint64_t now_ns,
	struct td_tandem_action *ret_actions, uint32_t room);

/*
 * Writes the job's GPUs to ret_gpus, which has TD_GANG_MAX entries. Returns their number, 0 unless
 * the job runs.
 */
uint32_t td_tandem_cluster_gpus(
	const struct td_tandem_cluster *cluster, uint32_t job, uint32_t *ret_gpus);
