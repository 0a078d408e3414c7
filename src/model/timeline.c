/*
 * The timeline: three engines that serve contexts' operations, moved from event to event.
 *
 * An engine is in one of three conditions, which its fields say:
 *
 *	idle       no context in `ready` has an operation
 *	switching  switch_left_ns > 0; the first of `ready` gets it then
 *	serving    the first of `ready` is `owner`, its first operation is served
 *
 * Invariants, while advance() is not running:
 *   - A context that has operations on an engine is in the engine's `ready`. One without may be
 *     there only as its first: so a successor that begins at the instant at which the context's
 *     only operation ended keeps the turn.
 *   - slice_left_ns goes down only while others wait, so a context alone is never cut, and a
 *     newcomer waits one slice at most.
 *   - now_ns is the sum of all steps; busy_ns of an engine is the sum over its contexts (those
 *     removed included) and over the service of its operations.
 *
 * An operation's service is progress (towards length_ns) and stalls. Unknown length: all service
 * is progress; when the length comes, progress beyond it becomes credit, which pays for stalls
 * first and what is left is reported as lag.
 */
#include "model/timeline.h"

#include <assert.h>
#include <stddef.h>

#include "base/bounds.h"
#include "model/gpu_spec.h"
#include "model/spatial.h"

#define PPM 1000000u

static struct td_timeline_context *first_ready(
	const struct td_timeline_engine *engine, enum td_engine e)
{
	return td_container_of(engine->ready.next, struct td_timeline_context, on[e].ready);
}

static struct td_op *first_op(const struct td_timeline_context *ctx, enum td_engine e)
{
	return td_container_of(ctx->on[e].ops.next, struct td_op, link);
}

/* Tells whether ctx, or the group that it leads, has an operation on the engine. */
static bool has_work(const struct td_timeline_context *ctx, enum td_engine e)
{
	return !td_list_empty(&ctx->on[e].ops) ||
	       (e == TD_ENGINE_COMPUTE && !td_list_empty(&ctx->members));
}

/* Returns the context in whose turns the operations of ctx are served. */
static struct td_timeline_context *turn_of(struct td_timeline_context *ctx, enum td_engine e)
{
	return ctx->leader && e == TD_ENGINE_COMPUTE ? ctx->leader : ctx;
}

static struct td_timeline_context *member_at(struct td_list *it)
{
	return td_container_of(it, struct td_timeline_context, on[TD_ENGINE_COMPUTE].ready);
}

void td_timeline_init(struct td_timeline *tl, const struct td_gpu_spec *spec, uint64_t now_ns)
{
	*tl = (struct td_timeline){.now_ns = now_ns, .settled = true};
	td_list_init(&tl->late);
	for (int e = 0; e < TD_ENGINE_N; e++) {
		td_list_init(&tl->engines[e].ready);
		tl->engines[e].slice_ns = spec->slice_ns;
	}
	tl->engines[TD_ENGINE_COMPUTE].switch_cost_ns = spec->switch_ns;
}

void td_timeline_context_add(struct td_timeline *tl, struct td_timeline_context *ctx)
{
	(void)tl;
	*ctx = (struct td_timeline_context){0};
	for (int e = 0; e < TD_ENGINE_N; e++) {
		td_list_init(&ctx->on[e].ready);
		td_list_init(&ctx->on[e].ops);
	}
	td_list_init(&ctx->members);
	ctx->cap = 1;
}

void td_timeline_join(struct td_timeline *tl, struct td_timeline_context *ctx,
	struct td_timeline_context *leader, double cap)
{
	assert(td_list_empty(&ctx->on[TD_ENGINE_COMPUTE].ops) && (!leader || !leader->leader));
	td_list_remove(&ctx->on[TD_ENGINE_COMPUTE].ready);
	if (tl->engines[TD_ENGINE_COMPUTE].owner == ctx)
		tl->engines[TD_ENGINE_COMPUTE].owner = NULL;
	ctx->leader = leader;
	ctx->cap = cap;
	tl->settled = false;
}

static void forget_op(struct td_op *op)
{
	td_list_remove(&op->link);
	op->context = NULL;
}

static void forget_ops(struct td_list *ops, const struct td_timeline_context *ctx)
{
	struct td_list *it, *next;

	td_list_for_each_safe (it, next, ops) {
		struct td_op *op = td_container_of(it, struct td_op, link);

		if (op->context == ctx)
			forget_op(op);
	}
}

void td_timeline_context_remove(struct td_timeline *tl, struct td_timeline_context *ctx)
{
	for (int e = 0; e < TD_ENGINE_N; e++) {
		struct td_timeline_engine *engine = &tl->engines[e];

		if (engine->owner == ctx) {
			engine->owner = NULL;
			engine->switch_left_ns = 0;
		}
		forget_ops(&ctx->on[e].ops, ctx);
		td_list_remove(&ctx->on[e].ready);
	}
	forget_ops(&tl->late, ctx);
	tl->settled = false;
}

void td_timeline_begin(struct td_timeline *tl, struct td_timeline_context *ctx, struct td_op *op,
	enum td_engine engine)
{
	struct td_timeline_context *turn = turn_of(ctx, engine);

	*op = (struct td_op){
		.context = ctx,
		.engine = engine,
		.begin_ns = tl->now_ns,
		.length_ns = TD_NEVER_NS,
		.stall_at_ns = TD_NEVER_NS,
		.need = 1,
		.speed_ppm = PPM,
	};
	td_list_append(&ctx->on[engine].ops, &op->link);
	if (turn != ctx && td_list_empty(&ctx->on[engine].ready))
		td_list_append(&turn->members, &ctx->on[engine].ready);
	if (td_list_empty(&turn->on[engine].ready))
		td_list_append(&tl->engines[engine].ready, &turn->on[engine].ready);
	tl->settled = false;
}

/*
 * Lists the kernels that run now in the leader's group (MPS), except the one of context `but`.
 * Returns their number.
 */
static uint32_t list_users(struct td_timeline_context *leader,
	const struct td_timeline_context *but, struct td_spatial_user *ret_users)
{
	struct td_list *it;
	uint32_t count = 0;

	td_list_for_each (it, &leader->members) {
		const struct td_timeline_context *ctx = member_at(it);
		const struct td_op *op = first_op(ctx, TD_ENGINE_COMPUTE);

		assert(count < TD_SPATIAL_MAX);
		if (ctx != but)
			ret_users[count++] =
				(struct td_spatial_user){op->need, ctx->cap, op->bandwidth};
	}
	return count;
}

/* Returns how much of op's delay of ns it could have run on SMs that no other kernel used. */
static uint64_t spare_of(const struct td_op *op, uint64_t ns)
{
	const struct td_timeline_context *ctx = op->context;
	const struct td_spatial_user own = {op->need, ctx->cap, op->bandwidth};
	struct td_spatial_user others[TD_SPATIAL_MAX];
	uint32_t count;

	if (op->engine != TD_ENGINE_COMPUTE || !ctx->leader)
		return ns;
	count = list_users(ctx->leader, ctx, others);
	return (uint64_t)((double)ns * td_spatial_spare_speed(others, count, &own));
}

void td_timeline_set_load(struct td_timeline *tl, struct td_op *op, double need, double bandwidth)
{
	assert(need >= 0 && need <= 1 && bandwidth >= 0 && bandwidth <= 1);
	op->need = need;
	op->bandwidth = bandwidth;
	tl->settled = false;
}

void td_timeline_begin_queued(struct td_timeline *tl, struct td_timeline_context *ctx,
	struct td_op *op, enum td_engine engine, uint64_t since_ns, uint64_t most_ns)
{
	struct td_timeline_engine *e = &tl->engines[engine];
	struct td_timeline_context *turn = turn_of(ctx, engine);
	uint64_t worked_ns = turn == ctx ? e->worked_until_ns : ctx->on[engine].worked_until_ns;
	uint64_t from_ns = since_ns > worked_ns ? since_ns : worked_ns;

	td_timeline_begin(tl, ctx, op, engine);
	if (e->owner != turn || e->switch_left_ns || first_ready(e, engine) != turn ||
		first_op(ctx, engine) != op || from_ns >= tl->now_ns)
		return;
	op->behind_ns = td_min_u64(tl->now_ns - from_ns, most_ns);
	op->idle_ns = e->worked_until_ns < tl->now_ns ? tl->now_ns - e->worked_until_ns : 0;
}

/* Counts the idle time before op began as service, as far as op could have run in it. */
static void catch_up(struct td_timeline *tl, struct td_op *op)
{
	uint64_t ns = td_min_u64(spare_of(op, op->behind_ns), op->length_ns - op->progress_ns);

	if (!ns)
		return;
	if (!op->started)
		op->start_ns = op->begin_ns;
	op->started = true;
	op->start_ns -= ns;
	op->progress_ns += ns;
	tl->engines[op->engine].busy_ns += td_min_u64(ns, op->idle_ns);
	op->context->on[op->engine].busy_ns += ns;
}

/*
 * Takes op out of its queue. Its context leaves the turns if it has no more operations, unless it
 * is the first one.
 */
static void take_op(struct td_timeline *tl, struct td_op *op)
{
	struct td_timeline_context *ctx = op->context, *turn = turn_of(ctx, op->engine);
	struct td_list *ready = &turn->on[op->engine].ready;

	td_list_remove(&op->link);
	if (turn != ctx && td_list_empty(&ctx->on[op->engine].ops))
		td_list_remove(&ctx->on[op->engine].ready);
	if (!has_work(turn, op->engine) && tl->engines[op->engine].ready.next != ready)
		td_list_remove(ready);
}

void td_timeline_set_length_stalling(struct td_timeline *tl, struct td_op *op, uint64_t length_ns,
	td_op_stall_fn stall, void *arg)
{
	assert(op->context && op->length_ns == TD_NEVER_NS && length_ns != TD_NEVER_NS);
	op->length_ns = length_ns;
	if (op->progress_ns > length_ns) {
		op->credit_ns = op->progress_ns - length_ns;
		op->progress_ns = length_ns;
	}
	catch_up(tl, op);
	op->stall = stall;
	op->stall_arg = arg;
	op->stall_at_ns = stall ? 0 : TD_NEVER_NS;
	if (op->started && !stall && op->progress_ns == length_ns) {
		take_op(tl, op);
		td_list_append(&tl->late, &op->link);
	}
	tl->settled = false;
}

void td_timeline_set_length(struct td_timeline *tl, struct td_op *op, uint64_t length_ns)
{
	td_timeline_set_length_stalling(tl, op, length_ns, NULL, NULL);
}

void td_timeline_cancel(struct td_timeline *tl, struct td_op *op)
{
	if (!op->context)
		return;
	take_op(tl, op);
	op->context = NULL;
	tl->settled = false;
}

/*
 * Hands the turn to the first context that has work. Returns it; NULL: there is none, or the switch
 * still goes on.
 */
static struct td_timeline_context *choose(struct td_timeline_engine *engine, enum td_engine e)
{
	struct td_timeline_context *ctx;

	if (engine->switch_left_ns)
		return NULL;
	for (;;) {
		if (td_list_empty(&engine->ready))
			return NULL;
		ctx = first_ready(engine, e);
		if (has_work(ctx, e))
			break;
		td_list_remove(&ctx->on[e].ready);
	}
	if (ctx != engine->owner) {
		if (engine->owner) {
			engine->switches++;
			engine->switch_left_ns = engine->switch_cost_ns;
		}
		engine->owner = ctx;
		engine->slice_left_ns = engine->slice_ns;
	}
	return engine->switch_left_ns ? NULL : ctx;
}

static bool contended(const struct td_timeline_engine *engine)
{
	return engine->ready.next != engine->ready.prev;
}

static void rotate(struct td_timeline_engine *engine)
{
	struct td_list *turn = engine->ready.next;

	td_list_remove(turn);
	td_list_append(&engine->ready, turn);
}

/* Asks for the stalls that op's progress has reached. After that op stalls or can progress. */
static void meet_stalls(struct td_op *op)
{
	while (!op->stall_ns && op->progress_ns >= op->stall_at_ns) {
		uint64_t next_ns = TD_NEVER_NS, stall_ns, paid_ns;

		stall_ns = op->stall(op->stall_arg, op->progress_ns, &next_ns);
		paid_ns = td_min_u64(stall_ns, op->credit_ns);
		op->credit_ns -= paid_ns;
		op->stalled_ns += stall_ns;
		op->stall_ns = stall_ns - paid_ns;
		op->stall_at_ns = next_ns;
	}
}

static bool is_over(const struct td_op *op)
{
	return op->started && !op->stall_ns && op->progress_ns == op->length_ns &&
	       op->stall_at_ns > op->progress_ns;
}

/*
 * Starts the first operation of a context, unless it runs already. Returns the operation if it has
 * ended, and NULL if it goes on.
 */
static struct td_op *settle_op(
	struct td_timeline *tl, const struct td_timeline_context *ctx, enum td_engine e)
{
	struct td_op *op = first_op(ctx, e);

	if (is_over(op))
		return op;
	if (!op->started) {
		op->started = true;
		op->start_ns = tl->now_ns;
	}
	meet_stalls(op);
	return is_over(op) ? op : NULL;
}

static uint32_t ppm_of(double speed)
{
	return (uint32_t)(speed * PPM + 0.5);
}

/*
 * Starts the operations of a group. Returns the first one that is done already; else sets speeds.
 */
static struct td_op *settle_group(struct td_timeline *tl, struct td_timeline_context *leader)
{
	struct td_spatial_user users[TD_SPATIAL_MAX];
	double speeds[TD_SPATIAL_MAX];
	struct td_list *it;
	uint32_t i = 0;

	td_list_for_each (it, &leader->members) {
		struct td_op *op = settle_op(tl, member_at(it), TD_ENGINE_COMPUTE);

		if (op)
			return op;
	}
	td_spatial_speeds(users, list_users(leader, NULL, users), speeds);
	td_list_for_each (it, &leader->members)
		first_op(member_at(it), TD_ENGINE_COMPUTE)->speed_ppm = ppm_of(speeds[i++]);
	return NULL;
}

static bool leads(const struct td_timeline_context *ctx, enum td_engine e)
{
	return e == TD_ENGINE_COMPUTE && !td_list_empty(&ctx->members);
}

/*
 * Tells whether an operation that ctx serves is over. It has to be reported before the turn
 * changes.
 */
static bool has_finished(const struct td_timeline_context *ctx, enum td_engine e)
{
	struct td_list *it;

	if (!leads(ctx, e))
		return is_over(first_op(ctx, e));
	td_list_for_each (it, &ctx->members)
		if (is_over(first_op(member_at(it), e)))
			return true;
	return false;
}

/*
 * Brings an engine up to the present instant. Returns an operation that is done, or NULL. A turn
 * that is over changes before its operation can start or touch anything more.
 */
static struct td_op *settle(struct td_timeline *tl, enum td_engine e)
{
	struct td_timeline_engine *engine = &tl->engines[e];

	for (;;) {
		struct td_timeline_context *ctx = choose(engine, e);

		if (!ctx)
			return NULL;
		if (engine->slice_ns && !engine->slice_left_ns && contended(engine) &&
			!has_finished(ctx, e)) {
			rotate(engine);
			continue;
		}
		return leads(ctx, e) ? settle_group(tl, ctx) : settle_op(tl, ctx, e);
	}
}

/* Returns the time of service that this much progress takes. */
static uint64_t time_of(const struct td_op *op, uint64_t progress_ns)
{
	unsigned __int128 left = (unsigned __int128)progress_ns * PPM;

	if (!progress_ns)
		return 0;
	if (!op->speed_ppm)
		return TD_NEVER_NS;
	left = (left - op->rest_ppm + op->speed_ppm - 1) / op->speed_ppm;
	return left < TD_NEVER_NS ? (uint64_t)left : TD_NEVER_NS;
}

/* Returns the time until op ends or stalls, or its stall ends. */
static uint64_t op_horizon_ns(const struct td_op *op)
{
	if (op->stall_ns)
		return op->stall_ns;
	if (op->length_ns == TD_NEVER_NS)
		return TD_NEVER_NS;
	return time_of(op, td_min_u64(op->stall_at_ns, op->length_ns) - op->progress_ns);
}

/* Returns the time until the engine must be settled again, if nothing changes from outside. */
static uint64_t horizon_ns(const struct td_timeline_engine *engine, enum td_engine e)
{
	const struct td_timeline_context *ctx;
	uint64_t ns = TD_NEVER_NS;
	struct td_list *it;

	if (engine->switch_left_ns)
		return engine->switch_left_ns;
	if (td_list_empty(&engine->ready))
		return TD_NEVER_NS;
	ctx = first_ready(engine, e);
	if (leads(ctx, e)) {
		td_list_for_each (it, &ctx->members)
			ns = td_min_u64(ns, op_horizon_ns(first_op(member_at(it), e)));
	} else {
		ns = op_horizon_ns(first_op(ctx, e));
	}
	return engine->slice_ns && contended(engine) ? td_min_u64(ns, engine->slice_left_ns) : ns;
}

/* Serves the first operation of ctx for ns, within which it does not end. */
static void serve_op(
	struct td_timeline_context *ctx, enum td_engine e, uint64_t ns, uint64_t now_ns)
{
	struct td_op *op = first_op(ctx, e);

	if (op->stall_ns) {
		op->stall_ns -= ns;
	} else {
		unsigned __int128 done = (unsigned __int128)ns * op->speed_ppm + op->rest_ppm;

		op->progress_ns +=
			td_min_u64((uint64_t)(done / PPM), op->length_ns - op->progress_ns);
		op->rest_ppm = (uint32_t)(done % PPM);
	}
	ctx->on[e].busy_ns += ns;
	ctx->on[e].worked_until_ns = now_ns + ns;
}

/* Lets ns pass on a settled engine; ns is at most horizon_ns(). */
static void serve_engine(
	struct td_timeline_engine *engine, enum td_engine e, uint64_t ns, uint64_t now_ns)
{
	struct td_timeline_context *ctx;
	struct td_list *it;

	if (engine->switch_left_ns || !td_list_empty(&engine->ready))
		engine->worked_until_ns = now_ns + ns;
	if (engine->switch_left_ns) {
		engine->switch_left_ns -= ns;
		engine->switching_ns += ns;
		return;
	}
	if (td_list_empty(&engine->ready))
		return;
	ctx = first_ready(engine, e);
	if (leads(ctx, e)) {
		td_list_for_each (it, &ctx->members)
			serve_op(member_at(it), e, ns, now_ns);
	} else {
		serve_op(ctx, e, ns, now_ns);
	}
	engine->busy_ns += ns;
	if (contended(engine))
		engine->slice_left_ns -= td_min_u64(ns, engine->slice_left_ns);
	else
		engine->slice_left_ns = engine->slice_ns;
}

static int report(struct td_timeline *tl, struct td_op *op, struct td_done *ret_done)
{
	op->context = NULL;
	tl->settled = false;
	*ret_done = (struct td_done){
		.op = op,
		.start_ns = op->start_ns,
		.end_ns = tl->now_ns,
		.served_ns = op->length_ns + op->stalled_ns,
		.lag_ns = op->credit_ns,
	};
	return 1;
}

static int report_done(struct td_timeline *tl, struct td_op *op, struct td_done *ret_done)
{
	struct td_timeline_engine *engine = &tl->engines[op->engine];
	struct td_timeline_context *turn = turn_of(op->context, op->engine);
	struct td_list *ready = &turn->on[op->engine].ready;

	take_op(tl, op);
	if (!engine->slice_ns) {
		bool more = has_work(turn, op->engine);

		td_list_remove(ready);
		if (more)
			td_list_append(&engine->ready, ready);
	}
	return report(tl, op, ret_done);
}

static int report_late(struct td_timeline *tl, struct td_done *ret_done)
{
	struct td_op *op = td_container_of(tl->late.next, struct td_op, link);

	td_list_remove(&op->link);
	return report(tl, op, ret_done);
}

static uint64_t next_step_ns(const struct td_timeline *tl)
{
	uint64_t step_ns = TD_NEVER_NS;

	for (int e = 0; e < TD_ENGINE_N; e++)
		step_ns = td_min_u64(step_ns, horizon_ns(&tl->engines[e], e));
	return step_ns;
}

int td_timeline_advance(struct td_timeline *tl, uint64_t now_ns, struct td_done *ret_done)
{
	for (;;) {
		uint64_t step_ns;

		if (!td_list_empty(&tl->late))
			return report_late(tl, ret_done);
		for (int e = 0; e < TD_ENGINE_N; e++) {
			struct td_op *op = settle(tl, e);

			if (op)
				return report_done(tl, op, ret_done);
		}
		if (now_ns <= tl->now_ns)
			break;
		step_ns = td_min_u64(next_step_ns(tl), now_ns - tl->now_ns);
		for (int e = 0; e < TD_ENGINE_N; e++)
			serve_engine(&tl->engines[e], e, step_ns, tl->now_ns);
		tl->now_ns += step_ns;
	}
	tl->settled = true;
	return 0;
}

uint64_t td_timeline_next_event(const struct td_timeline *tl)
{
	uint64_t step_ns;

	if (!tl->settled)
		return tl->now_ns;
	step_ns = next_step_ns(tl);
	return step_ns > TD_NEVER_NS - tl->now_ns ? TD_NEVER_NS : tl->now_ns + step_ns;
}

uint64_t td_timeline_served_ns(const struct td_op *op)
{
	return op->progress_ns + op->credit_ns + op->stalled_ns - op->stall_ns;
}

bool td_timeline_is_running(
	const struct td_timeline *tl, const struct td_timeline_context *ctx, enum td_engine engine)
{
	const struct td_timeline_engine *e = &tl->engines[engine];
	const struct td_timeline_context *turn =
		ctx->leader && engine == TD_ENGINE_COMPUTE ? ctx->leader : ctx;

	return e->owner == turn && !e->switch_left_ns && e->ready.next == &turn->on[engine].ready &&
	       !td_list_empty(&ctx->on[engine].ops);
}
