/*
 * The GPU lock of groups: who may hold which GPUs together, first come first served.
 *
 * Purpose. nvshare (section 3) gives one application the GPU for a time quantum. Here the lock is
 * per node and per group: a group (processes of one job, a process on several GPUs) is admitted to
 * all its GPUs or to none, so that collectives never meet a half-closed job. Two modes: exclusive
 * (one holder per GPU: nvshare) and by memory (holders run side by side as long as what they demand
 * fits; the lock is felt only when it does not: tandem).
 *
 * By class (tandem): online goes before guaranteed, guaranteed before besteffort, each first come
 * first served. A more protected group closes a less protected one at once, and is closed for it
 * only when idle; quanta apply among equals.
 *
 * Invariants
 * - strictly first come first served per GPU (by class: within a class, and classes in their
 *   order): nobody overtakes a waiting group that needs a GPU in common, unless memory that cannot
 *   leave the device keeps that group from fitting;
 * - nobody waits for room, or is closed for it, where all holders keep all of their memory on the
 *   device;
 * - no hand-over while nobody waits;
 * - exclusive: at most one group per GPU is not CLOSED and not being closed;
 * - by memory: the demand of the admitted groups never exceeds the capacity. Exceptions are a
 *   single group that exceeds it alone (the executor refuses its allocations) and memory that stays
 *   on the device of closed groups;
 * - a holder is closed only for the group at the head of the queue, and only when that makes the
 *   head fit. Its turn must be over (turns.h), or it must have been idle for its patience, or the
 *   head must be more protected;
 * - a group whose memory is being filled is closed only after a quantum in which nothing was
 *   filled: its turn begins when all of it is there;
 * - a group in the queue waits at most (groups before it) x (turn + drain + hand-over); by class,
 *   this holds while no more protected group works. Turns are short while a group waits that has
 *   used the GPU little lately.
 *
 * Pure: no clock, I/O, allocation or globals. The caller owns the zeroed struct td_lock.
 */
#pragma once

#include "policy/algo/control/cycle.h"
#include "policy/node/turns.h"
#include "policy/policy.h"

struct td_lock_group {
	uint32_t id;

	/* Kept between steps. */
	uint64_t ticket;       /* position in the queue; 0: not waiting */
	uint64_t idle_from_ns; /* when its present idle period began; 0: busy */
	uint64_t last_idle_ns; /* length of its last finished idle period; 0: none yet */
	struct td_cycle cycle;
	uint64_t resident_bytes, filled_ns; /* bytes on its GPUs; when they last changed */
	struct td_use use;

	/* Gathered from the view at each step. */
	uint64_t round; /* the last round of gathering that has found it in the view */
	bool wants, paused, movable, pages_itself;
	enum td_class class;         /* the most protected class of its clients */
	uint32_t weight;             /* the greatest weight of its clients */
	uint32_t lightest, heaviest; /* smallest and greatest weight of the groups on its GPUs */
	bool holding;                /* some client is not CLOSED */
	bool draining;               /* some client is DRAINING */
	bool filling;                /* some client is FILLING */
	uint64_t gpus;               /* one bit per GPU */
	uint64_t present_bytes;      /* on its GPUs now */
	uint32_t first_client;
	uint64_t wants_since_ns, idle_since_ns;
	uint64_t opened_ns; /* when its last client opened; while filling: when that began */

	/* Decided by td_lock_step(). */
	bool open;      /* the plan opens it or keeps it open */
	bool closing;   /* the plan closes it, or it is draining */
	bool contended; /* another group waits for one of its GPUs */
	struct td_turn_bounds bounds;
	struct td_turn turn; /* a contended holder's turn, if a waiting group may end it; else 0 */

	/* Scratch, while the lock serves the head of the queue. */
	bool closable, chosen;
	uint64_t
		/* Scratch: the least use of this group and of those of its class behind it. */
		pressing_ns;

	/* Gathered, too; for each GPU. It is last, so that the other fields lie close together. */
	struct {
		uint64_t demand_bytes;
		uint64_t left_bytes;  /* the part that stays there while the group is closed */
		uint64_t least_bytes; /* the part of left_bytes that nothing can move away */
	} on[TD_GPU_MAX];
};

/* An entry of the queue; lower keys come first. */
struct td_lock_place {
	uint64_t key;
	uint16_t group;
};

struct td_lock {
	uint64_t next_ticket;
	uint64_t stepped_ns;          /* time of the last step; 0: none yet */
	uint64_t owed_ns[TD_GPU_MAX]; /* use by which the hand-overs are still to be paid for */
	uint32_t count;
	struct td_lock_group groups[TD_CLIENT_MAX];
	uint64_t round;                   /* counts the passes that gather from the view */
	uint32_t client_count;            /* of the last step */
	uint16_t group_of[TD_CLIENT_MAX]; /* client index -> group index */
	/* Scratch of one step. */
	uint16_t index[2 * TD_CLIENT_MAX]; /* hash of group id -> group index + 1 */
	uint16_t queue[TD_CLIENT_MAX];     /* waiting groups, the first to be served first */
	struct td_lock_place places[TD_CLIENT_MAX], merged[TD_CLIENT_MAX];
	uint32_t queue_count;
	uint64_t reserved_gpus;          /* GPUs that an earlier waiting group needs */
	uint64_t urgent_gpus;            /* GPUs that an online group waits for */
	uint16_t holding[TD_CLIENT_MAX]; /* the groups that hold, in rising order */
	uint32_t holding_count;
	uint64_t left_bytes[TD_GPU_MAX]; /* the sums of all groups' left_bytes */
	/* memory of admitted groups, and memory that cannot leave the device */
	uint64_t used_bytes[TD_GPU_MAX];
	uint32_t holders[TD_GPU_MAX];
};

struct td_lock_rules {
	bool exclusive; /* one group per GPU, whatever it demands */
	bool enforce;   /* false: every group that fits or pages itself is open */
	bool by_class;  /* more protected classes go first */
	uint64_t
		/*
		 * Bound of a holder's work in flight while an online group waits for it; 0: none.
		 */
		window_ns;
	/*
	 * turns() returns the bounds of a contended holder's turns; by use (turns.h) unless both
	 * are equal. patience_ns() returns how long in ns an idle holder stays open while the head
	 * of the queue waits.
	 */
	struct td_turn_bounds (*turns)(const struct td_lock_group *group,
		const struct td_view *view, const struct td_policy_options *options);
	uint64_t (*patience_ns)(const struct td_lock_group *group, const struct td_lock_group *head,
		const struct td_view *view, const struct td_policy_options *options);
};

/*
 * Decides which groups are open, closing and contended. Returns the time of the next step, or
 * TD_NEVER.
 */
uint64_t td_lock_step(struct td_lock *lock, const struct td_lock_rules *rules,
	const struct td_policy_options *options, const struct td_view *view, uint64_t now_ns);

/* Returns the group of the view's client c, as the last step left it. */
const struct td_lock_group *td_lock_group_of(const struct td_lock *lock, uint32_t c);
