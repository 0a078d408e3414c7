/*
 * One GPU's engines in time: which operation is served when, and when it ends.
 *
 * Purpose. A GPU without MPS gives its contexts turns, and copies beside the kernels: this alone
 * causes the queueing, the hand-over and the switching in which nvshare and the driver's own
 * time-sharing differ. Source: slices and switch cost per gpu_spec.c.
 *
 * Compute serves contexts in turns of slice_ns while several have work, without slices while one
 * has; handing it to another context costs switch_ns. Each copy direction is an engine of its own
 * and does the same without a switch cost. Within a context, the operations of one engine are
 * served one at a time in the order in which they began: begin an operation when all that it waits
 * for (its stream's predecessor, events) is done.
 *
 * The timeline stands at one instant, td_timeline_now(). All calls but td_timeline_advance() take
 * effect at that instant, so advance first, then report what happened:
 *
 *	while (td_timeline_advance(&tl, now_ns, &done))
 *		...done.op ended at done.end_ns, where the timeline now stands: begin its
 *		successors before advancing further and they start without a gap...
 *	td_timeline_begin(&tl, &ctx, &op, TD_ENGINE_COMPUTE);
 *
 * Side by side (MPS). A context may be a member of a group, which has one leader. The leader has
 * the turns, and in each of them the first operations of all members are served at the same time,
 * each at the speed that spatial.h gives it. Only compute is shared in this way: copies of members
 * take turns like those of others.
 *
 * However late the caller is, ends are exact. Operations and contexts are structs of the caller,
 * which stay where they are until done, cancelled or removed; zero-initialise them.
 *
 * Invariants (those of the engines' insides are in timeline.c)
 * - time only goes on, and stops at each end;
 * - an engine serves one operation at a time (compute: one of each member of a group), those of a
 *   context in the order in which they began;
 * - a newcomer waits for one slice of each context before it at most; a context alone is never
 *   interrupted;
 * - an operation is reported once, after exactly its length and its stalls of service, or not at
 *   all if cancelled;
 * - same calls, same instants.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

#define TD_NEVER_NS UINT64_MAX

struct td_gpu_spec;
struct td_op;

enum td_engine { TD_ENGINE_COMPUTE, TD_ENGINE_HTOD, TD_ENGINE_DTOH, TD_ENGINE_N };

/*
 * Called when an operation's progress reaches the point named by the last call (0 at first) and all
 * stalls so far are served. Returns the ns by which the operation is held up there. *ret_next_ns is
 * the progress at which to call it next; TD_NEVER_NS: never. A point that is already reached means:
 * call again once this stall is served. Such a call must stall or end the series, or time would
 * stand still.
 */
typedef uint64_t (*td_op_stall_fn)(void *arg, uint64_t progress_ns, uint64_t *ret_next_ns);

struct td_op {
	struct td_list link;                 /* in its context's queue, or in td_timeline.late */
	struct td_timeline_context *context; /* NULL: not in a timeline */
	enum td_engine engine;
	bool started;
	uint64_t begin_ns, start_ns; /* start_ns: first instant of service; valid when started */
	uint64_t length_ns;          /* service needed without stalls; TD_NEVER_NS: not known yet */
	/* Served so far without stalls; at most length_ns once that is known. */
	uint64_t progress_ns;
	uint64_t stall_ns;    /* stall still to be served before progress goes on */
	uint64_t stalled_ns;  /* sum of all stalls so far */
	uint64_t credit_ns;   /* service beyond length_ns before length_ns was known */
	uint64_t behind_ns;   /* idle time before begin_ns in which it could have been served */
	uint64_t idle_ns;     /* the part of behind_ns in which the engine served nobody */
	uint64_t stall_at_ns; /* progress at which stall() is due */
	/* The fields of struct td_spatial_user (spatial.h), used only for members of a group. */
	double need, bandwidth;
	/* rest_ppm: the fraction of a ns of progress that is not counted yet. */
	uint32_t speed_ppm, rest_ppm;
	td_op_stall_fn stall;
	void *stall_arg;
};

struct td_timeline_context {
	struct {
		struct td_list
			/* In td_timeline_engine.ready while it waits for its turn or has it. */
			ready;
		struct td_list ops; /* the first one is served */
		uint64_t busy_ns, worked_until_ns;
	} on[TD_ENGINE_N];
	/* The leader of the context's group; NULL: the context has turns of its own. */
	struct td_timeline_context *leader;
	/* Members of this leader's group that have compute work. */
	struct td_list members;
	double cap; /* share of the SMs that a member of a group may use */
};

struct td_timeline_engine {
	struct td_list ready; /* contexts in the order of their turns; the first is served */
	/* The last context that was served; NULL: none yet, or removed. */
	struct td_timeline_context *owner;
	uint64_t slice_ns, switch_cost_ns; /* slice_ns 0: turns change only between operations */
	uint64_t slice_left_ns, switch_left_ns;
	uint64_t worked_until_ns; /* last instant of service or of a switch */
	uint64_t busy_ns, switching_ns, switches;
};

struct td_timeline {
	uint64_t now_ns;
	struct td_timeline_engine engines[TD_ENGINE_N];
	struct td_list late; /* operations that were over already when their length came */
	bool settled;        /* nothing has changed since advance() last returned 0 */
};

struct td_done {
	struct td_op *op;
	uint64_t start_ns, end_ns;
	uint64_t served_ns; /* length and stalls: the cost of the operation to its context */
	/* the time by which its service exceeded served_ns, because its length came late */
	uint64_t lag_ns;
};

void td_timeline_init(struct td_timeline *tl, const struct td_gpu_spec *spec, uint64_t now_ns);
void td_timeline_context_add(struct td_timeline *tl, struct td_timeline_context *ctx);

/*
 * Makes ctx, which has no operations, a member of leader's group. leader is a context that was
 * added and begins no operations itself. NULL: ctx has turns of its own again.
 */
void td_timeline_join(struct td_timeline *tl, struct td_timeline_context *ctx,
	struct td_timeline_context *leader, double cap);

/*
 * Removes ctx and all its operations, which are not reported as done. The next context gets its
 * turn.
 */
void td_timeline_context_remove(struct td_timeline *tl, struct td_timeline_context *ctx);

static inline uint64_t td_timeline_now(const struct td_timeline *tl)
{
	return tl->now_ns;
}

/* Puts op, of unknown length, at the end of ctx's queue on engine. */
void td_timeline_begin(struct td_timeline *tl, struct td_timeline_context *ctx, struct td_op *op,
	enum td_engine engine);

/*
 * As td_timeline_begin(), for an operation that has been ctx's next one since since_ns, of which
 * the caller hears late. Once the length is known, idle time of the engine since then counts as
 * service if ctx had the engine last: up to the length, and up to most_ns.
 */
void td_timeline_begin_queued(struct td_timeline *tl, struct td_timeline_context *ctx,
	struct td_op *op, enum td_engine engine, uint64_t since_ns, uint64_t most_ns);

/*
 * Sets what a kernel uses of the SMs and of the memory bandwidth when alone. Before, it counts as
 * using all SMs and no bandwidth. May be called again when more is known.
 */
void td_timeline_set_load(struct td_timeline *tl, struct td_op *op, double need, double bandwidth);

/*
 * Sets how long op takes when served alone. May be called once, any time after begin. Earlier
 * service counts: if it is as much or more, op is done at this instant, whether it has the turn or
 * not, and the excess is its lag.
 */
void td_timeline_set_length(struct td_timeline *tl, struct td_op *op, uint64_t length_ns);

/*
 * Sets the length of an operation with stalls (kernel_paging.h), as td_timeline_set_length() does.
 * Stalls that fall due within earlier service are made up for in op's next turns; excess service
 * pays for them.
 */
void td_timeline_set_length_stalling(struct td_timeline *tl, struct td_op *op, uint64_t length_ns,
	td_op_stall_fn stall, void *arg);

/*
 * Takes op out, whether it has been served or not. It is not reported. Does nothing if op is not
 * in.
 */
void td_timeline_cancel(struct td_timeline *tl, struct td_op *op);

/*
 * Moves on to now_ns but stops at the first operation that is done. An earlier now_ns than the
 * timeline's instant moves nothing. Returns 1 with *ret_done (the op is the caller's again), or 0
 * when it stands at now_ns. Operations that are done at the same instant come in the order of enum
 * td_engine.
 */
int td_timeline_advance(struct td_timeline *tl, uint64_t now_ns, struct td_done *ret_done);

/*
 * Returns the next instant at which the timeline must be advanced: the end of an operation, turn or
 * stall. It is td_timeline_now() if something has changed since advance() returned 0, and
 * TD_NEVER_NS if nothing will happen by itself.
 */
uint64_t td_timeline_next_event(const struct td_timeline *tl);

/* Returns the service that op got so far, with stalls. */
uint64_t td_timeline_served_ns(const struct td_op *op);

/* Tells whether the engine serves ctx at this instant. For displays of who has the GPU. */
bool td_timeline_is_running(
	const struct td_timeline *tl, const struct td_timeline_context *ctx, enum td_engine engine);
