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

	/* persistent */
	uint64_t ticket;       /* place in the queue; 0: not waiting */
	uint64_t idle_from_ns; /* start of its present idle period; 0: busy */
	uint64_t last_idle_ns; /* length of its last finished idle period; 0: none seen */
	struct td_cycle cycle;
	uint64_t resident_bytes, filled_ns; /* on its GPUs; when that changed last */
	struct td_use use;

	/* gathered from the view at each step */
	bool seen, wants, paused, movable, pages_itself;
	enum td_class class;         /* of its clients the most protected */
	uint32_t weight;             /* of its clients the greatest */
	uint32_t lightest, heaviest; /* weights on its GPUs, its own among them */
	bool holding;                /* some client is not CLOSED */
	bool draining;               /* some client is DRAINING */
	bool filling;                /* some client is FILLING */
	uint64_t gpus;               /* bit per GPU */
	uint32_t first_client;
	uint64_t wants_since_ns, idle_since_ns;
	uint64_t opened_ns; /* when its last client opened; while filling: when that began */
	uint64_t demand_bytes[TD_GPU_MAX];
	uint64_t left_bytes[TD_GPU_MAX];  /* of it, what is there although the group is closed */
	uint64_t least_bytes[TD_GPU_MAX]; /* of that, what nobody can make leave */

	/* decided */
	bool open;      /* the plan opens it or keeps it open */
	bool closing;   /* the plan closes it, or it is draining */
	bool contended; /* somebody waits for one of its GPUs */
	struct td_turn_bounds bounds;
	struct td_turn turn; /* of a holder, while contended by one that may end it; else 0 */

	/* scratch: for the group at the head of the queue */
	bool closable, chosen;
	uint64_t
		/* The least use of the group and of those of its class behind it (scratch). */
		pressing_ns;
};

/* A place in the queue: the lower the key, the earlier. */
struct td_lock_place {
	uint64_t key;
	uint16_t group;
};

struct td_lock {
	uint64_t next_ticket;
	uint64_t stepped_ns;          /* the last time; 0: never */
	uint64_t owed_ns[TD_GPU_MAX]; /* use that hand-overs have not been paid with yet */
	uint32_t count;
	struct td_lock_group groups[TD_CLIENT_MAX];
	/* scratch of one step */
	uint16_t group_of[TD_CLIENT_MAX];  /* client index -> group index */
	uint16_t index[2 * TD_CLIENT_MAX]; /* hash of group id -> group index + 1 */
	uint16_t queue[TD_CLIENT_MAX];     /* waiting groups, first come first */
	struct td_lock_place places[TD_CLIENT_MAX], merged[TD_CLIENT_MAX];
	uint32_t queue_count;
	uint64_t reserved_gpus;          /* GPUs that an earlier waiting group needs */
	uint64_t urgent_gpus;            /* GPUs that an online group waits for */
	uint64_t used_bytes[TD_GPU_MAX]; /* by those admitted, and what cannot leave the device */
	uint32_t holders[TD_GPU_MAX];
};

struct td_lock_rules {
	bool exclusive; /* one group per GPU, whatever it demands */
	bool enforce;   /* off: everyone who pages itself or fits is open */
	bool by_class;  /* the more protected go first */
	uint64_t
		/* bound of a holder's work in flight while an online group waits for it; 0: none */
		window_ns;
	/*
	 * Returns the bounds of the turns of a contended holder, by use (turns.h) unless both are
	 * the same, and how long, in ns, an idle holder is waited for on behalf of the head of the
	 * queue.
	 */
	struct td_turn_bounds (*turns)(const struct td_lock_group *group,
		const struct td_view *view, const struct td_policy_options *options);
	uint64_t (*patience_ns)(const struct td_lock_group *group, const struct td_lock_group *head,
		const struct td_view *view, const struct td_policy_options *options);
};

/*
 * Decides open, closing and contended of every group in the view. Returns the time at which to
 * decide again, or TD_NEVER.
 */
uint64_t td_lock_step(struct td_lock *lock, const struct td_lock_rules *rules,
	const struct td_policy_options *options, const struct td_view *view, uint64_t now_ns);

/* The group of the view's client c, after a step. */
const struct td_lock_group *td_lock_group_of(const struct td_lock *lock, uint32_t c);
