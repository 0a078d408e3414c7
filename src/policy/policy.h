/*
 * The one contract: view (what is so) -> policy step(now) -> plan (what may be).
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
 * The abilities of a node, a bit each: ABILITY(id, what a node without it cannot do, why not).
 * "This node cannot ", the second column, ": " and the third one make a sentence.
 */
#define TD_ABILITIES(ABILITY)                                                                      \
	/* to see: GPUs */                                                                         \
	ABILITY(UTILISATION, "see the utilisation of a GPU", "NVML does not tell it")              \
	ABILITY(SM_ACTIVITY, "see the activity of the SMs", "the meter is off")                    \
	ABILITY(CLOCK, "see the SM clock", "NVML does not tell it")                                \
	ABILITY(HEALTH, "see Xid errors and the state of MPS", "nothing watches them here")        \
	/* to see: clients */                                                                      \
	ABILITY(STEPS, "see the steps of a job", "no job tells them")                              \
	ABILITY(CORES, "see what share of the cores a job demands", "the meter is off")            \
	ABILITY(SERVICE, "see the request rate and the latency of a service",                      \
		"no service tells them")                                                           \
	ABILITY(PROFILES, "look up the profile of a service",                                      \
		"the option profiles names no directory that has one")                             \
	/* to carry out */                                                                         \
	ABILITY(DUTY, "hold a job to a share of the GPU's time", "no job can be held to it")       \
	ABILITY(SM_SHARE, "hold a job to a share of the SMs", "nothing sets it here")              \
	ABILITY(PRIORITY, "prefer one job's kernels to another's", "nothing sets it here")         \
	ABILITY(BATCH, "set the batch of a service", "no service takes it")                        \
	ABILITY(HOST_MEMORY, "run a job with a part of its memory on the host",                    \
		"no driver here maps the host's memory for its GPU")                               \
	ABILITY(MIGRATION, "move a running job to another GPU", "nothing moves it here")           \
	ABILITY(EVICTION, "end a job and queue it again", "nothing ends it here")                  \
	ABILITY(RESTART, "restart a job after an error", "nothing restarts it here")               \
	ABILITY(SHADOW, "start a shadow instance of a service", "nothing starts one here")

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
	TD_MPS_FAILED, /* its server has died or rejects clients */
	TD_MPS_N,
};

struct td_gpu_view {
	uint64_t capacity_bytes; /* what clients may have on the device together, after reserves */
	/* Smoothed cost of a hand-over that moved memory, drain end to gate open; 0 unknown. */
	uint64_t handover_ns;
	uint32_t known; /* TD_HAS(UTILISATION, SM_ACTIVITY, CLOCK, HEALTH): which of these are */
	uint32_t utilisation_ppm, sm_activity_ppm, sm_clock_mhz;
	uint32_t sm_clock_max_mhz; /* the highest that it can have; 0 unknown */
	uint32_t xid;              /* the last Xid error; 0 none */
	uint64_t xid_ns;           /* when it came */
	enum td_mps mps;
	uint64_t mps_started_ns; /* when the present MPS server was started; 0 unknown */
	bool hangs; /* work is in flight, and nothing of it has ended for the detector's time */
	uint32_t power_mw, temperature_celsius; /* 0 unknown */
	uint64_t used_bytes;                    /* of the device, by whomever; 0 unknown */
};

/* Figures of a job that are known before it runs; see profile.h. */
struct td_profile;

struct td_client_view {
	uint32_t id;         /* never reused within the life of a daemon; order of arrival */
	uint32_t gpu;        /* index into td_view.gpus */
	uint32_t group;      /* clients with the same group are opened and closed together */
	enum td_class class; /* alike within a group: td_view_unite_classes() */
	uint32_t weight;     /* 1 and more; share among equals */
	enum td_phase phase;
	uint32_t has; /* TD_HAS bits: the node's abilities that apply to it */
	bool wants;   /* has work to submit or in flight */
	bool paused;  /* by its owner: never opened */
	bool movable; /* its memory can leave the device (backends swap and managed) */
	/*
	 * Its memory moves only to make room for open clients, never for turns, which would help
	 * nobody.
	 */
	bool last_resort;
	bool pages_itself; /* it runs, slowly, with less on the device than it demands (backend
			      managed) */
	bool whole;        /* it runs only with all that it demands on the device */
	uint32_t drain_overruns; /* drains given up past their deadline */
	uint64_t wants_since_ns; /* when `wants` became true */
	uint64_t idle_since_ns;  /* while !wants: end of its last work, as it reported */
	uint64_t phase_since_ns; /* when `phase` was entered */
	uint64_t
		/* Bytes allocated on this GPU, with those of an allocation in progress (ASK). */
		demanded_bytes;
	uint64_t resident_bytes; /* of it, on the device */
	uint64_t
		/*
		 * The part of resident_bytes that stays although the client is movable: pools,
		 * arrays.
		 */
		fixed_bytes;
	uint64_t limit_bytes; /* the memory limit in force */
	uint64_t held_ns;     /* total time with the gate open, up to now */

	/* In the fields from here on 0 means unknown. */
	uint64_t
		gpu_time_ns; /* used so far, by the meter, which counts under a duty; 1: none yet */
	uint64_t in_flight_ns; /* submitted and not done */
	uint32_t fresh;        /* TD_FRESH_* */
	uint32_t tries; /* pieces of such work submitted so far; a later one is another number */
	uint64_t host_bytes;    /* of what it demands, not on the device */
	uint64_t peak_bytes;    /* most that it ever demanded */
	uint64_t minimal_bytes; /* with less on the device it does not run */
	uint64_t launches;
	uint64_t steps;         /* mini-batches finished, in all */
	uint64_t step_ns;       /* the time of the last one */
	uint64_t step_began_ns; /* when the present one began */
	uint32_t
		/*
		 * Steps of one unit are of the same kind of work, such as training or validation.
		 */
		step_unit;
	uint32_t
		/* How much longer its steps may become than alone; 0: the policy decides. */
		slack_ppm;
	uint32_t core_ppm;        /* of a GPU's cores, demanded (DCUDA); may be more than one GPU */
	uint32_t sm_activity_ppm; /* its own, measured or profiled */
	uint32_t sm_need_ppm;     /* the SMs that are active while it runs, on average */
	uint32_t sm_share_ppm;    /* that it was started with */
	/* of a service, over the last window */
	double rate_per_s;                /* of requests that arrive */
	uint32_t waiting;                 /* requests in its queue */
	uint64_t p50_ns;                  /* latency, arrival to answer */
	uint64_t p99_ns;                  /* likewise */
	uint64_t objective_ns;            /* for the P99 */
	uint32_t batch;                   /* that it runs with */
	const struct td_profile *profile; /* NULL: none */
};

struct td_view {
	const struct td_gpu_view *gpus;
	const struct td_client_view *clients; /* ascending id */
	uint32_t gpu_count, client_count;
	uint32_t has; /* TD_HAS bits: what this node can show and carry out */
};

/* The bound that determined a turn's length, for display. */
enum td_turn_reason {
	TD_TURN_NONE,  /* nobody waits that could end it */
	TD_TURN_FIXED, /* so the policy has it */
	TD_TURN_SHORT, /* one that waits has used the GPU little lately */
	TD_TURN_NEW,   /* it has done so itself */
	TD_TURN_GROWS, /* it, or one that waits, has used it for that long lately */
	TD_TURN_LONG,  /* all of them are always busy: hand-overs hardly cost anything */
	TD_TURN_AHEAD, /* it has had more than the next one */
	TD_TURN_N,
};

/* A grant of zeros: open, no bound on anything but memory. */
struct td_grant {
	enum td_gate gate;
	uint64_t window_ns;   /* own work that may be in flight while others wait; 0: no bound */
	uint64_t limit_bytes; /* on the device; never below 0 of what is pinned, enforced by the
				 executor */
	bool others_wait;     /* report idleness at once: somebody wants this GPU */
	uint32_t duty_ppm;    /* of the GPU's time; 0: no bound. No time at all is a closed gate. */
	/*
	 * The duty does not count work that is over by then, or that fits window_ns; 0: it counts
	 * all. `sharers` programs use the pause at once.
	 */
	uint64_t pause_until_ns;
	uint32_t sharers;
	/* Do not submit work never done before, because another program's is being tried. */
	bool hold_new;
	/*
	 * The duty admits work longer than long_ns at most once in long_every_ns; 0: as often as
	 * its budget allows.
	 */
	uint64_t long_ns, long_every_ns;
	/*
	 * A share of the SMs; 0: no bound. A process keeps the share that it was started with: see
	 * START_SHADOW.
	 */
	uint32_t sm_share_ppm;
	/* Among those on its GPU: 1 goes before 2, 2 before 3, all of them before 0. */
	uint32_t priority;
	uint32_t batch; /* of a service; 0: as it likes */
	bool steps; /* the ends of its steps are to be known at once, found if it does not tell */
	uint64_t
		/*
		 * How long it may go on while others wait, once its memory is there; 0: no turns.
		 */
		turn_ns;
	enum td_turn_reason turn_reason;
};

/*
 * An action beyond gates and limits. Plans name it until the view shows its effect, and RESUME
 * once. The executor ignores an action that is already under way.
 */
struct td_action {
	enum td_action_kind kind;
	uint32_t client; /* id */
	uint32_t gpu;    /* MIGRATE: index into td_view.gpus */
	uint64_t bytes;  /* MAKE_ROOM */
};

#define TD_ACTION_MAX TD_CLIENT_MAX /* enough for every policy */

/*
 * How fit a GPU is for work beside a protected job; for people and for schedulers. sm_share_ppm
 * holds where `known` does not, too.
 */
struct td_gpu_verdict {
	bool known;            /* the policy judges GPUs */
	bool accepts;          /* more besteffort work may be placed here */
	bool resets;           /* the MPS server is to be ended and started anew */
	uint8_t state;         /* enum td_sysmonitor_state */
	uint8_t health;        /* enum td_health_state */
	uint32_t load_ppm;     /* U_GPU, MuxFlow's Equation 1 */
	uint32_t duty_ppm;     /* of the GPU's time, for besteffort work */
	uint64_t until_ns;     /* when `state` ends at the earliest; 0: when the figures change */
	uint32_t sm_share_ppm; /* of the SMs, for besteffort work that starts now; 0: no bound */
};

struct td_plan {
	/* gpu_count entries, filled by the step; NULL: nobody asks. */
	struct td_gpu_verdict *verdicts;
	struct td_grant *grants; /* client_count entries, in the view's order, filled by the step */
	/* Room for action_max, filled by the step; what finds no room is named in a later plan. */
	struct td_action *actions;
	uint32_t action_max, action_count;
	uint64_t next_wakeup_ns; /* step again at this time even if nothing changes; TD_NEVER: only
				    on change */
};

/* Bounds of a level of SysMonitor (sysmonitor.h); the clock's is a part of the highest clock. */
struct td_monitor_level {
	uint32_t utilisation_ppm, sm_activity_ppm, memory_ppm, clock_ppm;
};

/* Options of muxflow, which its paper calls "empirically selected". */
struct td_muxflow_options {
	struct td_monitor_level healthy, unhealthy, overlimit;
	uint64_t period_ns, window_ns; /* of an eviction: the first period; what counts as recent */
	uint32_t load_ppm;             /* U_GPU to hold */
	uint32_t clock_ppm;            /* T, as a part of the highest clock */
	uint32_t memory_ppm;           /* of the GPU, for besteffort work beside an online job */
};

/* Options that policies read; the daemon's option table sets them live. */
struct td_policy_options {
	const struct td_muxflow_options *muxflow; /* NULL: muxflow_node.c's defaults */
	bool enabled;            /* off: every gate is open (nvshare's anti-thrash off) */
	uint64_t quantum_ns;     /* nvshare: fixed quantum. tandem: upper bound of a short turn */
	uint64_t quantum_min_ns; /* tandem: lower bound */
	uint32_t swap_share_ppm; /* tandem: hand-overs may cost at most this share of the time */
	uint64_t window_ns;      /* in-flight bound while a job with a latency objective waits */
	/*
	 * tandem, among jobs that are always busy: the share, and the longest turn; 0: as among any
	 * jobs. No turn is longer than quantum_long_ns.
	 */
	uint32_t swap_share_long_ppm;
	uint64_t quantum_long_ns;
};

struct td_policy {
	const char *name;
	const char *summary; /* one line for --help */
	uint32_t needs;      /* TD_HAS bits: without these it would pretend */
	bool by_class;       /* of those that wait the more protected class goes first */
	size_t state_bytes;  /* the caller provides this much, zeroed, aligned to 16 */
	void (*step)(void *state, const struct td_policy_options *options,
		const struct td_view *view, uint64_t now_ns, struct td_plan *plan);
	/*
	 * An index of td_view.gpus now stands for another GPU. NULL: the policy keeps nothing about
	 * a GPU.
	 */
	void (*forget_gpu)(void *state, uint32_t gpu);
};

/* NULL-terminated table of every policy; the default is the first. */
extern const struct td_policy *const td_policies[];

/* NULL if there is none of that name. */
const struct td_policy *td_policy_find(const char *name);

/* TD_HAS bits that the policy needs and a node with `has` does not have; 0: it can run there. */
uint32_t td_policy_lacks(const struct td_policy *policy, uint32_t has);

/* Returns the bytes that a client leaves on its device when it is closed. */
static inline uint64_t td_view_left_bytes(const struct td_client_view *client)
{
	if (!client->movable || client->fixed_bytes > client->resident_bytes)
		return client->resident_bytes;
	return client->fixed_bytes;
}

/* Returns the least that a closed client can be brought to keep on its device. */
static inline uint64_t td_view_least_bytes(const struct td_client_view *client)
{
	if (client->last_resort && client->fixed_bytes < client->resident_bytes)
		return client->fixed_bytes;
	return td_view_left_bytes(client);
}

/* Gives every client the most protected class of its group. Whoever fills a view calls it last. */
void td_view_unite_classes(struct td_client_view *clients, uint32_t count);

struct td_ability {
	const char *id;   /* "DUTY" */
	const char *text; /* "hold a job to a share of the GPU's time" */
	const char *why;  /* why a node without it cannot */
};

/* The ability of that bit, which is less than TD_ABILITY_N. */
const struct td_ability *td_ability_at(uint32_t bit);
