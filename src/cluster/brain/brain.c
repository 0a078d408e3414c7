/* The brain of a cluster; see brain.h. */
#include "cluster/brain/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"

#define ACTIONS 64u

const struct td_brain_params td_brain_default = {
	.policy = &td_brain_tandem,
	.shape = {.nodes_max = 1024, .node_gpus_max = 16, .jobs_max = 16384, .kinds_max = 256},
	.tenants = {{"", UINT32_MAX / 2}},
	.tenant_count = 1,
	.start_ns = 120 * TD_NS_PER_S,
	.repeat_ns = 10 * TD_NS_PER_S,
	.silent_ns = 30 * TD_NS_PER_S,
};

/* --- life --- */

static int allocate(struct td_brain *b)
{
	const struct td_brain_shape *shape = &b->params.shape;
	size_t gpus = (size_t)shape->nodes_max * shape->node_gpus_max;
	size_t bytes = (b->policy->bytes(shape) + 63) & ~(size_t)63;

	b->state = aligned_alloc(64, bytes);
	b->node = calloc(shape->nodes_max, sizeof(*b->node));
	b->job = calloc(shape->jobs_max, sizeof(*b->job));
	b->kind_jobs = calloc(shape->kinds_max, sizeof(*b->kind_jobs));
	b->unsaid = calloc(shape->jobs_max, sizeof(*b->unsaid));
	b->is_up = calloc(gpus, sizeof(*b->is_up));
	b->verdict = calloc(gpus, sizeof(*b->verdict));
	b->barred = calloc(gpus, sizeof(*b->barred));
	b->gpu_kind = malloc(gpus);
	if (!b->state || !b->node || !b->job || !b->kind_jobs || !b->unsaid || !b->is_up ||
		!b->verdict || !b->barred || !b->gpu_kind ||
		td_name_table_init(&b->nodes, shape->nodes_max, 1) ||
		td_name_table_init(&b->jobs, shape->jobs_max, 0) ||
		td_name_table_init(&b->kinds, shape->kinds_max, 0) ||
		td_name_table_init(&b->gpu_kinds, TD_BRAIN_STRANGE_GPU, 0))
		return -ENOMEM;
	memset(b->state, 0, bytes);
	memset(b->gpu_kind, TD_BRAIN_STRANGE_GPU, gpus);
	b->kind_gpus[TD_BRAIN_STRANGE_GPU] = (uint32_t)gpus;
	return 0;
}

struct td_brain *td_brain_new(const struct td_brain_params *params)
{
	struct td_brain *b = NULL;
	int r = -EINVAL;

	if (!params->policy || !params->tenant_count || params->tenant_count > TD_TENANTS_MAX ||
		!params->shape.nodes_max || !params->shape.node_gpus_max ||
		!params->shape.jobs_max || !params->shape.kinds_max)
		goto err;
	r = -ENOMEM;
	b = calloc(1, sizeof(*b));
	if (!b)
		goto err;
	b->params = *params;
	b->policy = params->policy;
	b->params.shape.tenants = params->tenant_count;
	for (uint32_t t = 0; t < params->tenant_count; t++)
		b->params.shape.quotas[t] = params->tenants[t].quota;
	r = allocate(b);
	if (!r)
		r = b->policy->init(b->state, &b->params.shape);
	if (!r)
		return b;
err:
	td_brain_free(b);
	errno = -r;
	return NULL;
}

void td_brain_free(struct td_brain *b)
{
	if (!b)
		return;
	td_name_table_deinit(&b->nodes);
	td_name_table_deinit(&b->jobs);
	td_name_table_deinit(&b->kinds);
	td_name_table_deinit(&b->gpu_kinds);
	free(b->state);
	free(b->node);
	free(b->job);
	free(b->kind_jobs);
	free(b->unsaid);
	free(b->is_up);
	free(b->verdict);
	free(b->barred);
	free(b->gpu_kind);
	free(b);
}

const struct td_brain_params *td_brain_params_of(const struct td_brain *b)
{
	return &b->params;
}

uint32_t td_brain_quota_used(const struct td_brain *b, uint32_t tenant)
{
	return b->params.shape.quotas[tenant] - b->policy->quota_left(b->state, tenant);
}

void td_brain_lead(struct td_brain *b, uint64_t revision)
{
	b->revision = revision;
}

/* --- orders that are not confirmed --- */

static void add_unsaid(struct td_brain *b, uint32_t at)
{
	struct td_brain_job *job = &b->job[at];

	if (job->unsaid != TD_NO_NAME)
		return;
	job->unsaid = b->unsaid_count;
	b->unsaid[b->unsaid_count++] = at;
}

static void remove_unsaid(struct td_brain *b, uint32_t at)
{
	struct td_brain_job *job = &b->job[at];
	uint32_t last;

	if (job->unsaid == TD_NO_NAME)
		return;
	last = b->unsaid[--b->unsaid_count];
	b->unsaid[job->unsaid] = last;
	b->job[last].unsaid = job->unsaid;
	job->unsaid = TD_NO_NAME;
}

/* One that finds no room comes again with the next report of what must be stopped. */
static void add_stop(struct td_brain *b, const char *id, uint64_t epoch)
{
	for (uint32_t k = 0; k < b->stop_count; k++)
		if (b->stops[k].epoch == epoch && !strcmp(b->stops[k].id, id))
			return;
	if (b->stop_count == TD_BRAIN_STOPS || strlen(id) >= TD_NAME_MAX)
		return;
	strcpy(b->stops[b->stop_count].id, id);
	b->stops[b->stop_count++].epoch = epoch;
}

/* --- jobs --- */

uint32_t td_brain_find(const struct td_brain *b, const char *id)
{
	return td_name_table_find(&b->jobs, id);
}

uint32_t td_brain_jobs_max(const struct td_brain *b)
{
	return b->jobs.max;
}

const struct td_brain_job *td_brain_job(const struct td_brain *b, uint32_t at)
{
	return at < b->jobs.max && *b->jobs.name[at] ? &b->job[at] : NULL;
}

static uint32_t tenant_of(const struct td_brain *b, const char *name)
{
	for (uint32_t t = 1; t < b->params.tenant_count; t++)
		if (!strcmp(b->params.tenants[t].name, name))
			return t;
	return 0;
}

/*
 * Frees the number of a program that no job has any more: users choose the names of programs, and
 * what is known of one comes with its name. What a policy learns of kinds is kept.
 */
static void free_kind(struct td_brain *b)
{
	uint32_t k = 0;

	if (!b->policy->by_program)
		return;
	while (k < b->kinds.max && (!*b->kinds.name[k] || b->kind_jobs[k]))
		k++;
	if (k < b->kinds.max)
		td_name_table_remove(&b->kinds, k);
}

/*
 * Returns the number of a kind. The last number is that of all kinds that find no room, which may
 * use a whole GPU.
 */
static uint32_t kind_of(struct td_brain *b, const struct td_brain_request *request)
{
	const char *name = b->policy->by_program ? request->program : request->kind;
	uint32_t kind = td_name_table_find(&b->kinds, name);

	if (kind != TD_NO_NAME)
		return kind;
	if (b->kinds.count + 1 == b->kinds.max)
		free_kind(b);
	if (b->kinds.count + 1 < b->kinds.max)
		kind = td_name_table_add(&b->kinds, name);
	if (kind == TD_NO_NAME)
		return b->kinds.max - 1;
	b->policy->demand(
		b->state, kind, request->share_ppm ? (double)request->share_ppm / 1e6 : 1);
	td_brain_know_kind(b, kind);
	return kind;
}

static struct td_brain_ask ask_of(const struct td_brain_job *job)
{
	const struct td_brain_request *request = &job->request;

	return (struct td_brain_ask){.tenant = job->tenant,
		.gpus = request->gpus,
		.kind = job->kind,
		.guaranteed = request->guaranteed,
		.automatic = request->automatic,
		.same_node = request->same_node,
		.bytes = request->bytes,
		.pool = request->pool,
		.stays = request->stays};
}

static void submit_known(struct td_brain *b, uint32_t at, uint64_t now_ns)
{
	const struct td_brain_ask ask = ask_of(&b->job[at]);

	b->job[at].known = !b->policy->submit(b->state, at, &ask, now_ns);
}

static int add_job(struct td_brain *b, const struct td_brain_request *request, uint64_t now_ns,
	uint32_t *ret_at)
{
	uint32_t at;

	if (!request->gpus || request->gpus > TD_GANG_MAX || !*request->id ||
		!memchr(request->id, 0, sizeof(request->id)))
		return -EINVAL;
	at = td_name_table_add(&b->jobs, request->id);
	if (at == TD_NO_NAME)
		return -ENOSPC;
	b->job[at] = (struct td_brain_job){.request = *request,
		.epoch = request->epoch,
		.tenant = tenant_of(b, request->tenant),
		.kind = kind_of(b, request),
		.submit_ns = now_ns,
		.since_ns = now_ns,
		.back = TD_WHY_NEW,
		.unsaid = TD_NO_NAME};
	b->kind_jobs[b->job[at].kind]++;
	*ret_at = at;
	return 0;
}

int td_brain_submit(struct td_brain *b, const struct td_brain_request *request, uint64_t now_ns)
{
	uint32_t at;
	int r;

	if (td_brain_find(b, request->id) != TD_NO_NAME)
		return 0;
	r = add_job(b, request, now_ns, &at);
	if (!r)
		submit_known(b, at, now_ns);
	return r;
}

static int gpus_of_places(const struct td_brain *b, const struct td_brain_place *places,
	uint32_t count, uint32_t *ret_gpus)
{
	for (uint32_t k = 0; k < count; k++) {
		uint32_t node = td_name_table_find(&b->nodes, places[k].node);

		if (node == TD_NO_NAME || places[k].gpu >= b->node[node].gpus)
			return -ENOENT;
		ret_gpus[k] = node * b->params.shape.node_gpus_max + places[k].gpu;
	}
	return 0;
}

int td_brain_adopt(struct td_brain *b, const struct td_brain_request *request, bool guest,
	const struct td_brain_place *places, uint64_t now_ns)
{
	uint32_t gpus[TD_GANG_MAX], at;
	struct td_brain_ask ask;
	int r;

	if (!request->gpus || request->gpus > TD_GANG_MAX)
		return -EINVAL;
	if (td_brain_find(b, request->id) != TD_NO_NAME)
		return 0;
	r = gpus_of_places(b, places, request->gpus, gpus);
	if (!r)
		r = add_job(b, request, now_ns, &at);
	if (r)
		return r;
	ask = ask_of(&b->job[at]);
	b->job[at].phase = TD_BRAIN_RUNNING;
	b->job[at].guest = guest;
	b->job[at].known =
		!b->policy->adopt(b->state, at, &ask, gpus, guest, request->attained_ns, now_ns);
	return !b->job[at].known;
}

static void forget(struct td_brain *b, uint32_t at, uint64_t now_ns)
{
	remove_unsaid(b, at);
	if (b->job[at].known)
		b->policy->finish(b->state, at, now_ns);
	b->kind_jobs[b->job[at].kind]--;
	td_name_table_remove(&b->jobs, at);
}

void td_brain_ended(struct td_brain *b, const char *id, uint64_t now_ns)
{
	uint32_t at = td_brain_find(b, id);

	if (at != TD_NO_NAME)
		forget(b, at, now_ns);
}

void td_brain_cancelled(struct td_brain *b, const char *id, uint64_t now_ns)
{
	uint32_t at = td_brain_find(b, id);

	if (at == TD_NO_NAME)
		return;
	if (b->job[at].phase != TD_BRAIN_WAITING)
		add_stop(b, id, b->job[at].epoch);
	forget(b, at, now_ns);
}

/* The placement is over; the policy knows it already. An order says so to the engine. */
static void wait_again(struct td_brain *b, uint32_t at, enum td_brain_why why, uint64_t now_ns)
{
	struct td_brain_job *job = &b->job[at];

	job->phase = TD_BRAIN_WAITING;
	job->upgraded = job->guest = false;
	job->back = why;
	job->since_ns = now_ns;
	job->due = true;
	add_unsaid(b, at);
}

void td_brain_lose(struct td_brain *b, uint32_t at, enum td_brain_why why, uint64_t now_ns)
{
	if (b->job[at].known)
		b->policy->requeue(b->state, at, now_ns);
	else
		submit_known(b, at, now_ns);
	wait_again(b, at, why, now_ns);
}

/* The job runs under another epoch (placement) than the brain gave it. */
static void ran_otherwise(struct td_brain *b, uint32_t at, uint64_t epoch, uint64_t now_ns)
{
	struct td_brain_job *job = &b->job[at];

	if (epoch < job->epoch) {
		add_stop(b, job->request.id, epoch);
		return;
	}
	/* An earlier leader has placed the job, and this brain did not know. */
	job->epoch = epoch;
	if (job->phase == TD_BRAIN_WAITING)
		wait_again(b, at, job->back, now_ns);
	else
		td_brain_lose(b, at, TD_WHY_OTHER_LEADER, now_ns);
}

void td_brain_ran(struct td_brain *b, const char *id, uint64_t epoch, uint64_t now_ns)
{
	uint32_t at = td_brain_find(b, id);
	struct td_brain_job *job;

	if (at == TD_NO_NAME) {
		add_stop(b, id, epoch);
		return;
	}
	job = &b->job[at];
	if (job->epoch != epoch) {
		ran_otherwise(b, at, epoch, now_ns);
		return;
	}
	if (job->phase == TD_BRAIN_WAITING && job->unsaid == TD_NO_NAME) {
		job->due = true; /* it still runs: say again that it must not */
		if (job->back == TD_WHY_NEW)
			job->back = TD_WHY_NODE_LOST;
		add_unsaid(b, at);
	}
	if (job->phase != TD_BRAIN_PLACED)
		return;
	job->phase = TD_BRAIN_RUNNING;
	job->since_ns = now_ns;
	if (!job->upgraded)
		remove_unsaid(b, at);
}

void td_brain_lost(
	struct td_brain *b, const char *id, uint64_t epoch, enum td_brain_why why, uint64_t now_ns)
{
	uint32_t at = td_brain_find(b, id);

	if (at != TD_NO_NAME && b->job[at].epoch == epoch && b->job[at].phase != TD_BRAIN_WAITING)
		td_brain_lose(b, at, why, now_ns);
}

void td_brain_done(struct td_brain *b, const struct td_brain_order *order)
{
	uint32_t at = td_brain_find(b, order->id);
	struct td_brain_job *job;

	if (at == TD_NO_NAME || b->job[at].epoch != order->epoch)
		return;
	job = &b->job[at];
	if (order->verb == TD_ORDER_REQUEUE && job->phase == TD_BRAIN_WAITING)
		remove_unsaid(b, at);
	if (order->verb == TD_ORDER_UPGRADE && job->phase == TD_BRAIN_RUNNING) {
		job->upgraded = false;
		remove_unsaid(b, at);
	}
}

void td_brain_refused(struct td_brain *b, const struct td_brain_order *order, uint64_t now_ns)
{
	uint32_t at = td_brain_find(b, order->id);
	struct td_brain_job *job;

	if (at == TD_NO_NAME || order->verb != TD_ORDER_REQUEUE)
		return;
	job = &b->job[at];
	remove_unsaid(b, at);
	if (job->known)
		b->policy->finish(b->state, at, now_ns);
	job->known = false;
	job->phase = TD_BRAIN_RUNNING;
	job->epoch = order->epoch;
	job->since_ns = now_ns;
}

void td_brain_speed(struct td_brain *b, const char *id, const char *beside, bool held, double speed)
{
	uint32_t at = td_brain_find(b, id), other = td_brain_find(b, beside);

	if (at != TD_NO_NAME && other != TD_NO_NAME)
		b->policy->speed(b->state, b->job[at].kind, b->job[other].kind, held, speed);
}

/* --- orders --- */

static struct td_brain_order order_of(
	struct td_brain *b, uint32_t at, enum td_brain_order_verb verb, uint64_t now_ns)
{
	struct td_brain_job *job = &b->job[at];
	struct td_brain_order order = {.verb = verb,
		.job = at,
		.epoch = job->epoch,
		.revision = b->revision,
		.guest = job->guest,
		.why = job->back};

	job->said_ns = now_ns;
	job->due = false;
	strcpy(order.id, job->request.id);
	return order;
}

static enum td_brain_order_verb verb_of(const struct td_brain_job *job)
{
	if (job->phase == TD_BRAIN_WAITING)
		return TD_ORDER_REQUEUE;
	return job->phase == TD_BRAIN_PLACED ? TD_ORDER_PLACE : TD_ORDER_UPGRADE;
}

/* Gives the orders again that nothing has confirmed, and gives up on jobs that do not start. */
static uint32_t repeat(
	struct td_brain *b, uint64_t now_ns, struct td_brain_order *ret, uint32_t room)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < b->unsaid_count && n < room; k++) {
		uint32_t at = b->unsaid[k];
		struct td_brain_job *job = &b->job[at];
		bool repeated;

		if (job->phase == TD_BRAIN_PLACED && b->params.start_ns &&
			now_ns - job->since_ns >= b->params.start_ns)
			td_brain_lose(b, at, TD_WHY_NOT_STARTED, now_ns);
		if (!job->due && now_ns - job->said_ns < b->params.repeat_ns)
			continue;
		repeated = !job->due;
		ret[n] = order_of(b, at, verb_of(job), now_ns);
		ret[n++].is_repeated = repeated;
	}
	return n;
}

/* A job that is known goes back into its engine's queue; another one is ended. */
static struct td_brain_order stop_order(const struct td_brain *b, const char *id, uint64_t epoch)
{
	uint32_t at = td_brain_find(b, id);
	struct td_brain_order order = {.verb = at == TD_NO_NAME ? TD_ORDER_STOP : TD_ORDER_REQUEUE,
		.job = at,
		.epoch = epoch,
		.revision = b->revision,
		.why = TD_WHY_MOVED};

	strcpy(order.id, id);
	return order;
}

static uint32_t say_stops(struct td_brain *b, struct td_brain_order *ret, uint32_t room)
{
	uint32_t n = 0;

	while (n < room && b->stop_count) {
		b->stop_count--;
		ret[n] = stop_order(b, b->stops[b->stop_count].id, b->stops[b->stop_count].epoch);
		n++;
	}
	return n;
}

static struct td_brain_order place(struct td_brain *b, uint32_t at, bool guest, uint64_t now_ns)
{
	struct td_brain_job *job = &b->job[at];

	job->phase = TD_BRAIN_PLACED;
	job->guest = guest;
	job->epoch++;
	job->since_ns = now_ns;
	add_unsaid(b, at);
	return order_of(b, at, TD_ORDER_PLACE, now_ns);
}

/* Turns an action of the policy into one or two orders. Returns their number. */
static uint32_t carry_out(struct td_brain *b, const struct td_brain_action *action, uint64_t now_ns,
	struct td_brain_order *ret)
{
	struct td_brain_job *job = &b->job[action->job];
	bool guest = job->guest,
	     starts = action->verb == TD_BRAIN_START || action->verb == TD_BRAIN_START_GUEST;
	uint32_t gpus[TD_GANG_MAX];

	/* An event may have come between the policy's decision and this. */
	if (!td_brain_job(b, action->job) || starts != (job->phase == TD_BRAIN_WAITING) ||
		(starts && !b->policy->gpus(b->state, action->job, gpus)))
		return 0;
	switch (action->verb) {
	case TD_BRAIN_START:
	case TD_BRAIN_START_GUEST:
		ret[0] = place(b, action->job, action->verb == TD_BRAIN_START_GUEST, now_ns);
		return 1;
	case TD_BRAIN_UPGRADE:
		job->guest = false;
		if (job->phase == TD_BRAIN_PLACED) { /* the same placement, given again */
			ret[0] = order_of(b, action->job, TD_ORDER_PLACE, now_ns);
			return 1;
		}
		job->upgraded = true;
		add_unsaid(b, action->job);
		ret[0] = order_of(b, action->job, TD_ORDER_UPGRADE, now_ns);
		return 1;
	case TD_BRAIN_MOVE:
	case TD_BRAIN_PREEMPT:
	case TD_BRAIN_VERB_N: break;
	}
	wait_again(b, action->job, action->verb == TD_BRAIN_MOVE ? TD_WHY_MOVED : TD_WHY_PREEMPTED,
		now_ns);
	ret[0] = order_of(b, action->job, TD_ORDER_REQUEUE, now_ns);
	if (action->verb != TD_BRAIN_MOVE)
		return 1;
	ret[1] = place(b, action->job, guest, now_ns);
	return 2;
}

uint32_t td_brain_step(
	struct td_brain *b, uint64_t now_ns, struct td_brain_order *ret, uint32_t room)
{
	struct td_brain_action actions[ACTIONS];
	uint32_t n, count, wanted;

	td_brain_look_at_nodes(b, now_ns);
	if (!b->revision)
		return 0;
	n = say_stops(b, ret, room);
	n += repeat(b, now_ns, ret + n, room - n);
	do {
		wanted = (room - n) / 2 < ACTIONS ? (room - n) / 2 : ACTIONS;
		count = wanted ? b->policy->step(b->state, now_ns, actions, wanted) : 0;
		for (uint32_t a = 0; a < count; a++)
			n += carry_out(b, &actions[a], now_ns, ret + n);
	} while (count && count == wanted);
	return n;
}

uint64_t td_brain_attained_ns(const struct td_brain *b, uint32_t at, uint64_t now_ns)
{
	const struct td_brain_job *job = &b->job[at];
	uint64_t attained_ns = job->known ? b->policy->attained_ns(b->state, at) : 0;

	return job->phase == TD_BRAIN_RUNNING
		       ? attained_ns + (now_ns - job->since_ns) * job->request.gpus
		       : attained_ns;
}

uint32_t td_brain_places(const struct td_brain *b, uint32_t at, struct td_brain_place *ret)
{
	uint32_t most = b->params.shape.node_gpus_max, gpus[TD_GANG_MAX], count;

	if (!td_brain_job(b, at) || !b->job[at].known || b->job[at].phase == TD_BRAIN_WAITING)
		return 0;
	count = b->policy->gpus(b->state, at, gpus);
	for (uint32_t k = 0; k < count; k++)
		ret[k] = (struct td_brain_place){
			.node = b->nodes.name[gpus[k] / most], .gpu = gpus[k] % most};
	return count;
}
