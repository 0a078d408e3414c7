/*
 * The interface of all policies: a view (the state) -> step(now) -> a plan (the decisions).
 * docs/decisions/0001.
 *
 * Purpose. Five published systems (nvshare, AntMan, MuxFlow, Mudi, DCUDA) and their baselines
 * decide by the same words, so that each can run in the daemon and in the simulator, be compared
 * with the others, and be replaced while jobs run.
 *
 * A policy is pure: no clock, I/O, allocation after init or globals; same view and state, same
 * plan. The daemon fills the view from clients and GPUs and carries the plan out; the simulator
 * does both on virtual time with the same code.
 *
 * The executor, not the policy, guarantees:
 * - a gate set OPEN or ARMED opens only after every byte of the client is back where the limit lets
 *   it be;
 * - a memory limit is raised only by what is free: the sum of all clients' limits never exceeds
 *   the capacity, so a plan may name the final limits at once and need not sequence them;
 * - a gate set CLOSED is closed exactly: the client drains and acknowledges (phase CLOSED). Past
 *   its deadline it is reported as stuck and, if it says so itself, reopened.
 *
 * An unknown figure is 0 in the view, and no bound is 0 in a grant. A figure of a GPU that may
 * really be 0 has a bit in td_gpu_view.known. td_view.has lists what the node can show and carry
 * out, and td_policy.needs what a policy cannot work without. A runner refuses a policy that needs
 * more than there is (td_policy_lacks), with a sentence (td_ability_at): so no decision rests on
 * figures that nobody measures, and no plan on actions that nobody carries out. A policy uses
 * abilities beyond its needs where they exist.
 *
 * Invariants of every policy, which tests/fuzz/fuzz_policy.c and tests/unit/test_policy_nodes.c
 * hold each of them to
 * - a plan has a grant for each client, and names none that is not in the view;
 * - the clients of a group are open together or closed together; a client that is paused by its
 *   owner is closed;
 * - memory limits of a GPU sum up to at most its capacity, unless one group alone, or what cannot
 *   move, has more already;
 * - duties of clients at work, and SM shares, sum up to at most the whole GPU; only besteffort work
 *   has a duty, is evicted or paused;
 * - next_wakeup_ns is later than now_ns;
 * - same state, view and time: same plan, whatever the compiler (tools/check-decisions).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/words.h"

/*
 * The abilities of a node, one bit each: ABILITY(id, text, why). "This node cannot ", text, ": "
 * and why make the sentence that explains why a policy is refused.
 */
#define TD_ABILITIES(ABILITY)                                                                      \
	/* to see: GPUs */                                                                         \
	ABILITY(UTILISATION, "see the utilisation of a GPU", "NVML does not report it")            \
	ABILITY(SM_ACTIVITY, "see the activity of the SMs", "the meter is off")                    \
	ABILITY(CLOCK, "see the SM clock", "NVML does not report it")                              \
	ABILITY(HEALTH, "see Xid errors and the state of MPS", "nothing watches them here")        \
	/* to see: clients */                                                                      \
	ABILITY(STEPS, "see the steps of a job", "no job reports them")                            \
	ABILITY(CORES, "see what share of the cores a job demands", "the meter is off")            \
	ABILITY(SERVICE, "see the request rate and the latency of a service",                      \
		"no service reports them")                                                         \
	ABILITY(PROFILES, "look up the profile of a service",                                      \
		"the option profiles names no directory that has one")                             \
	/* to carry out */                                                                         \
	ABILITY(DUTY, "hold a job to a share of the GPU's time", "no job can be held to it")       \
	ABILITY(SM_SHARE, "hold a job to a share of the SMs", "nothing sets it here")              \
	ABILITY(PRIORITY, "prefer one job's kernels to another's", "nothing sets it here")         \
	ABILITY(BATCH, "set the batch of a service", "no service lets it be set")                  \
	ABILITY(HOST_MEMORY, "run a job with a part of its memory on the host",                    \
		"no driver here maps the host's memory for its GPU")                               \
	ABILITY(MIGRATION, "move a running job to another GPU", "it has one GPU")                  \
	ABILITY(EVICTION, "end a job and queue it again", "nothing ends it here")                  \
	ABILITY(RESTART, "restart a job after an error", "nothing restarts it here")               \
	ABILITY(SHADOW, "change the share of the SMs of a service", "nothing does that here")

enum td_ability_bit {
#define ABILITY(id, text, why) TD_ABILITY_BIT_##id,
	TD_ABILITIES(ABILITY)
#undef ABILITY
		TD_ABILITY_N,
};

#define TD_HAS(id) (1u << TD_ABILITY_BIT_##id)
#define TD_HAS_ALL ((1u << TD_ABILITY_N) - 1)

enum td_mps {
	TD_MPS_UNKNOWN,
	TD_MPS_OFF,
	TD_MPS_ON,
	TD_MPS_FAILED, /* the MPS server has died or rejects clients */
	TD_MPS_N,
};

struct td_predictor;

struct td_gpu_view {
	uint64_t capacity_bytes; /* device memory that all clients together may have */
	/*
	 * Mean cost of a hand-over that moved memory, from end of drain to open gate; 0: unknown.
	 */
	uint64_t handover_ns;
	/*
	 * TD_HAS bits of UTILISATION, SM_ACTIVITY, CLOCK and HEALTH: which figures below are known.
	 */
	uint32_t known;
	uint32_t utilisation_ppm, sm_activity_ppm, sm_clock_mhz;
	uint32_t sm_clock_max_mhz; /* highest SM clock of the GPU; 0: unknown */
	uint32_t xid;              /* the last Xid error; 0: none */
	uint64_t xid_ns;           /* when the last Xid error came */
	uint8_t xid_of;            /* enum td_xid_of of health.h: whose it is */
	enum td_mps mps;
	uint64_t mps_started_ns; /* when the present MPS server was started; 0 unknown */
	bool hangs;              /* work is in flight, and none has ended for the detector's time */
	uint32_t power_mw, temperature_celsius; /* 0: unknown */
	/* Device memory in use by all processes of the machine; 0: unknown. */
	uint64_t used_bytes;
	/* The memory of the device, whatever others take there; 0: unknown. */
	uint64_t total_bytes;
	bool shut; /* no job may be moved to it */
	/*
	 * Predicts the speed of pairs of programs on its kind of GPU (cluster/muxflow_cluster.h);
	 * GPUs of one kind have the same. NULL: unknown.
	 */
	const struct td_predictor *speeds;
};

/* Knowledge about a job before it runs; see profile.h. */
struct td_profile;

struct td_client_view {
	uint32_t id;         /* grows in order of arrival; a daemon never reuses an id */
	uint32_t gpu;        /* index in td_view.gpus */
	uint32_t group;      /* clients with the same group are opened and closed together */
	enum td_class class; /* all clients of a group have the same: td_view_unite_classes() */
	uint32_t weight;     /* 1 or more; a larger weight gets a larger share */
	enum td_phase phase;
	uint32_t has; /* TD_HAS bits: those abilities of the node that apply to it */
	bool wants;   /* has work to submit or in flight */
	bool paused;  /* its owner has paused it, so it must not be opened */
	bool movable; /* its memory can leave the device (backends swap and managed) */
	/*
	 * Its memory leaves only to make room for open clients. Moving it for turns would help
	 * nobody.
	 */
	bool last_resort;
	/* It runs with less on the device than it demands, but slowly (backend managed). */
	bool pages_itself;
	bool whole;              /* it runs only with all that it demands on the device */
	uint32_t drain_overruns; /* number of drains that were given up at their deadline */
	uint64_t wants_since_ns; /* when `wants` became true */
	uint64_t idle_since_ns;  /* while !wants: when its last work ended, as it reported */
	uint64_t phase_since_ns; /* when `phase` was entered */
	uint64_t
		/*
		 * Bytes allocated on this GPU, and the bytes of an allocation that waits for an
		 * answer (ASK).
		 */
		demanded_bytes;
	uint64_t resident_bytes; /* part of demanded_bytes that is on the device */
	uint64_t
		/*
		 * The part of resident_bytes that stays even if the client is movable: pools and
		 * arrays.
		 */
		fixed_bytes;
	uint64_t limit_bytes; /* the memory limit in force */
	uint64_t held_ns;     /* total time with an open gate so far */

	/*
	 * A bit for each GPU on which its job may be started again, if somebody can do that and the
	 * job uses only one; else 0. Shown to policies that exchange jobs.
	 */
	uint64_t restarts_on;
	bool migrates; /* the program says that it can be moved to another GPU */
	bool moves;    /* it is on its way to the GPU moves_to */
	uint32_t moves_to;
	/* Its last move: when it was over, and how long the program stood still. 0: none yet. */
	uint64_t moved_ns, move_pause_ns;
	bool reshares; /* its share of the SMs can change while it runs */
	/* When that share last changed, and how long the program stood still. 0: never yet. */
	uint64_t reshared_ns, reshare_pause_ns;

	/* In the fields from here on 0 means unknown. */
	uint64_t gpu_time_ns;   /* GPU time so far, by the meter under a duty; 1: none yet */
	uint64_t in_flight_ns;  /* work submitted and not finished, as time */
	uint32_t fresh;         /* TD_FRESH_* bits: new work that waits or is in flight */
	uint32_t tries;         /* number of pieces of new work submitted so far */
	uint64_t host_bytes;    /* part of demanded_bytes that is not on the device */
	uint64_t peak_bytes;    /* the most that it ever demanded */
	uint64_t minimal_bytes; /* the least on the device with which it runs */
	uint64_t launches;
	uint64_t steps;         /* number of mini-batches finished so far */
	uint64_t step_ns;       /* time of the last mini-batch */
	uint64_t step_began_ns; /* when the present mini-batch began */
	uint32_t
		/*
		 * Steps of one unit are of the same kind of work, such as training or validation.
		 */
		step_unit;
	uint32_t
		/*
		 * The part by which its steps may become longer than alone; 0: the policy decides.
		 */
		slack_ppm;
	uint32_t busy_ppm; /* of the time with work in flight; others' turns count in it, too */
	uint32_t core_ppm; /* share of a GPU's cores that it demands (DCUDA); may exceed 1 */
	uint32_t sm_activity_ppm; /* SM activity of this client alone, measured or profiled */
	uint32_t sm_need_ppm;     /* mean share of the SMs that are active while its kernels run */
	uint32_t sm_share_ppm;    /* share of the SMs that its process has */
	/*
	 * Another instance of its job answers the requests: it is a shadow that is not ready yet,
	 * or the instance that a shadow has replaced.
	 */
	bool stands_by;
	/* Figures of a service over the last window. */
	double rate_per_s;                /* requests that arrive per second */
	uint32_t waiting;                 /* number of requests in its queue */
	uint64_t p50_ns;                  /* median latency from arrival to answer */
	uint64_t p99_ns;                  /* 99th percentile of the same latency */
	uint64_t objective_ns;            /* the objective of p99_ns */
	uint32_t batch;                   /* the batch that it runs with */
	uint32_t batch_max;               /* the largest batch that it can run with */
	const struct td_profile *profile; /* NULL: there is none */
};

struct td_view {
	const struct td_gpu_view *gpus;
	const struct td_client_view *clients; /* sorted by id */
	uint32_t gpu_count, client_count;
	uint32_t has; /* TD_HAS bits: the abilities of this node */
};

/* The reason for the length of a turn; it is shown to people. */
enum td_turn_reason {
	TD_TURN_NONE,  /* no turn: nobody who could end it waits */
	TD_TURN_FIXED, /* the policy uses turns of fixed length */
	TD_TURN_SHORT, /* a waiting group has used the GPU little lately */
	TD_TURN_NEW,   /* the holder itself has used the GPU little lately */
	/* The turn is as long as the holder or a waiting group has used the GPU lately. */
	TD_TURN_GROWS,
	TD_TURN_LONG,  /* the longest turn: all are always busy, so hand-overs cost little */
	TD_TURN_AHEAD, /* shorter: the holder has had more time than the next group */
	TD_TURN_N,
};

/* The bounds of one client. A grant of zeros is an open gate and no bound except for memory. */
struct td_grant {
	enum td_gate gate;
	uint64_t window_ns;   /* bound of its own work in flight while others wait; 0: none */
	uint64_t limit_bytes; /* device memory; the executor does not go below what is pinned */
	bool others_wait;     /* another group wants this GPU: tell at once when work has ended */
	/* Share of the GPU's time; 0: no bound (a closed gate gives no time). */
	uint32_t duty_ppm;
	/*
	 * The duty does not count work that ends before this time or that fits window_ns; 0: it
	 * counts all work. `sharers` programs use the same pause.
	 */
	uint64_t pause_until_ns;
	uint32_t sharers;
	/* Do not submit new work, because another program's new work is being tried. */
	bool hold_new;
	/*
	 * The duty admits work longer than long_ns at most once in long_every_ns; 0: as its budget
	 * allows.
	 */
	uint64_t long_ns, long_every_ns;
	/*
	 * A share of the SMs; 0: no bound. A running process keeps the share that it has, unless
	 * it is changed by SHARE or START_SHADOW.
	 */
	uint32_t sm_share_ppm;
	/* Order among the clients of a GPU: 1 goes before 2, 2 before 3, and 0 is last. */
	uint32_t priority;
	uint32_t batch; /* the batch that a service is to use; 0: its own choice */
	/* Report the end of each step at once, and detect steps if the program reports none. */
	bool steps;
	uint64_t
		/*
		 * How long it may run while others wait, from when its memory is there; 0: no
		 * turns.
		 */
		turn_ns;
	enum td_turn_reason turn_reason;
};

/*
 * An action beyond gates and limits. Plans name it until the view shows its effect; RESUME is named
 * once. The executor ignores an action that is already under way.
 */
struct td_action {
	enum td_action_kind kind;
	uint32_t client; /* the client's id */
	/*
	 * An index in td_view.gpus for MIGRATE, and for a RESTART whose `why` is TD_MOVE_PAIRED:
	 * the job is started again on that GPU.
	 */
	uint32_t gpu;
	uint64_t bytes; /* for MAKE_ROOM */
	enum td_move_reason why;
	/*
	 * For such a RESTART: the predicted speed now and on that GPU, in ppm of the speed that the
	 * program has alone. from_ppm 0: the job waits now.
	 */
	uint32_t from_ppm, to_ppm;
	uint32_t sm_share_ppm; /* for SHARE and START_SHADOW: the share that it is to have */
};

#define TD_ACTION_MAX TD_CLIENT_MAX /* enough for every policy */

/*
 * Tells people and schedulers how fit a GPU is for work beside a protected job. sm_share_ppm is
 * valid even if `known` is false.
 */
struct td_gpu_verdict {
	bool known;            /* the policy judges GPUs */
	bool accepts;          /* more besteffort work may be placed here */
	bool resets;           /* the MPS server has to be restarted */
	uint8_t state;         /* enum td_sysmonitor_state */
	uint8_t health;        /* enum td_health_state */
	uint32_t load_ppm;     /* U_GPU, MuxFlow's Equation 1 */
	uint32_t duty_ppm;     /* share of the GPU's time for besteffort work */
	uint64_t until_ns;     /* earliest end of `state`; 0: it depends on the figures */
	uint32_t sm_share_ppm; /* SMs for besteffort work that starts now; 0: no bound */
	/* The duty that the service's latency curves allow, and their error; 0: not known. */
	uint32_t forecast_ppm;
	uint64_t forecast_error_ns;
};

struct td_plan {
	/* gpu_count entries, written by the step; NULL: not wanted. */
	struct td_gpu_verdict *verdicts;
	struct td_grant *grants; /* client_count entries in the view's order, written by the step */
	/*
	 * action_max entries, written by the step. Actions without room are named in a later plan.
	 */
	struct td_action *actions;
	uint32_t action_max, action_count;
	/* Time of the next step if nothing changes before; TD_NEVER: none. */
	uint64_t next_wakeup_ns;
};

/*
 * The thresholds of a level of SysMonitor (sysmonitor.h). The clock's is relative to the highest
 * clock.
 */
struct td_monitor_level {
	uint32_t utilisation_ppm, sm_activity_ppm, memory_ppm, clock_ppm;
};

/* Options of the policy muxflow. The paper calls their values "empirically selected". */
struct td_muxflow_options {
	struct td_monitor_level healthy, unhealthy, overlimit;
	/* Base of the overlimit period; how long an entry counts for it. */
	uint64_t period_ns, window_ns;
	uint32_t load_ppm;  /* the load U_GPU to hold */
	uint32_t clock_ppm; /* threshold T of the clock, relative to the highest clock */
	/* Share of the memory for besteffort work beside an online job. */
	uint32_t memory_ppm;
	/* How often jobs may be exchanged between GPUs (0: never); what a restart costs them. */
	uint64_t exchange_ns, exchange_cost_ns;
};

/* Options that policies read; the daemon's option table sets them live. */
struct td_policy_options {
	const struct td_muxflow_options *muxflow; /* NULL: the defaults of muxflow_node.c */
	bool enabled;            /* false: every gate is open (nvshare's anti-thrash off) */
	uint64_t quantum_ns;     /* nvshare: fixed quantum. tandem: upper bound of a short turn */
	uint64_t quantum_min_ns; /* tandem: lower bound of a short turn */
	uint32_t swap_share_ppm; /* tandem: largest share of the time that hand-overs may take */
	/* Bound of the work in flight while a job with a latency objective waits. */
	uint64_t window_ns;
	/*
	 * tandem, where all jobs are always busy: the share that hand-overs may take, and the
	 * longest turn; 0: the same as for other jobs. No turn exceeds quantum_long_ns.
	 */
	uint32_t swap_share_long_ppm;
	uint64_t quantum_long_ns;
	bool stays; /* tandem: no job is moved to another GPU */
};

struct td_policy {
	const char *name;
	const char *summary; /* one line for --help */
	uint32_t needs;      /* TD_HAS bits: abilities without which it cannot decide */
	uint32_t uses;       /* the same: abilities that it makes use of where they are there */
	bool by_class;       /* more protected classes go first */
	bool exchanges;      /* it restarts jobs on other GPUs, by predicted speeds */
	/*
	 * Between two events its steps depend only on activity, held_ns and the time. Then most of
	 * the daemon's step is left out (td_node_step_on()).
	 */
	bool by_activity;
	size_t state_bytes; /* the caller provides this much, zeroed, aligned to 16 */
	void (*step)(void *state, const struct td_policy_options *options,
		const struct td_view *view, uint64_t now_ns, struct td_plan *plan);
	/*
	 * Tells the policy that an index of td_view.gpus now means another GPU. NULL: the policy
	 * keeps no state of a GPU.
	 */
	void (*forget_gpu)(void *state, uint32_t gpu);
};

/* All policies, NULL-terminated. The first is the default. */
extern const struct td_policy *const td_policies[];

/* Returns the policy of that name; NULL if there is none. */
const struct td_policy *td_policy_find(const char *name);

/* Returns the abilities (TD_HAS bits) that the policy needs and that `has` lacks; 0: it can run. */
uint32_t td_policy_lacks(const struct td_policy *policy, uint32_t has);

/* Returns the bytes that a client leaves on its device when it is closed. */
static inline uint64_t td_view_left_bytes(const struct td_client_view *client)
{
	if (!client->movable || client->fixed_bytes > client->resident_bytes)
		return client->resident_bytes;
	return client->fixed_bytes;
}

/* Returns the bytes that a closed client keeps on its device even if all that can move has left. */
static inline uint64_t td_view_least_bytes(const struct td_client_view *client)
{
	if (client->last_resort && client->fixed_bytes < client->resident_bytes)
		return client->fixed_bytes;
	return td_view_left_bytes(client);
}

/*
 * Gives every client the most protected class of its group. Call it after all clients are filled
 * in.
 */
void td_view_unite_classes(struct td_client_view *clients, uint32_t count);

struct td_ability {
	const char *id;   /* such as "DUTY" */
	const char *text; /* such as "hold a job to a share of the GPU's time" */
	const char *why;  /* why a node may lack it */
};

/* Returns the ability of a bit number, which is below TD_ABILITY_N. */
const struct td_ability *td_ability_at(uint32_t bit);
