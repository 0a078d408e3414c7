/* The scheduler: a brain, an engine and a state; see scheduler.h. */
#include "cluster/sched/scheduler.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bounds.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/time.h"
#include "cluster/sched/sched_metrics.h"
#include "cluster/sched/status.h"

#define ORDERS     32u         /* of one turn, so that the lease is kept alive between them */
#define SLOW_NS    TD_NS_PER_S /* an engine that needs so long for an order gets no more now */
#define EXPLAINED  64u         /* explanations given in one turn */
#define EXPLAIN_NS TD_NS_PER_S
#define STATUS_NS  (2 * TD_NS_PER_S)
#define SWEEP_NS   (60 * TD_NS_PER_S)
#define VALUE_MAX  (256u + TD_NAME_MAX + TD_GANG_MAX * (TD_NAME_MAX + 32u))

struct td_scheduler {
	struct td_scheduler_options options;
	struct td_engine *engine;
	struct td_state *state;
	struct td_leader *leader;
	struct td_brain *brain; /* NULL: it does not lead */
	bool is_told;           /* the engine has told the brain all */
	bool has_more;          /* the brain has more orders than one turn carries out */
	uint64_t *said;         /* a hash of each job's explanation */
	uint32_t explain_at;
	uint64_t asked_ns, explained_ns, swept_ns, shown_ns, measured_ns;
	uint64_t shown; /* a hash of the status that the state has */
	bool status_failed, metrics_failed;
	struct td_sched_counts counts;
	char value[VALUE_MAX];
};

static void say(const struct td_scheduler *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(const struct td_scheduler *s, const char *format, ...)
{
	char line[512];
	va_list arguments;

	if (!s->options.log)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	s->options.log(line);
}

/* --- life --- */

struct td_scheduler *td_scheduler_new(const struct td_scheduler_options *options,
	struct td_engine *engine, struct td_state *state)
{
	struct td_scheduler *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->options = *options;
	s->engine = engine;
	s->state = state;
	s->said = calloc(options->brain.shape.jobs_max, sizeof(*s->said));
	s->leader = td_leader_new(state, TD_SCHED_PREFIX "leader", options->name, options->lease_s);
	if (!s->said || !s->leader) {
		td_scheduler_free(s);
		errno = ENOMEM;
		return NULL;
	}
	return s;
}

void td_scheduler_free(struct td_scheduler *s)
{
	if (!s)
		return;
	td_brain_free(s->brain);
	td_leader_free(s->leader);
	free(s->said);
	free(s);
}

void td_scheduler_resign(struct td_scheduler *s, uint64_t now_ns)
{
	if (s->brain)
		td_leader_resign(s->leader, now_ns);
}

const struct td_brain *td_scheduler_brain(const struct td_scheduler *s)
{
	return s->brain;
}

static void step_down(struct td_scheduler *s, const char *why)
{
	say(s, "leads no longer: %s", why);
	td_brain_free(s->brain);
	s->brain = NULL;
}

/* Begins to lead with a brain that knows nothing. Returns whether it leads. */
static bool take_the_lead(struct td_scheduler *s)
{
	s->brain = td_brain_new(&s->options.brain);
	if (!s->brain) {
		say(s, "cannot lead: %s", strerror(errno));
		return false;
	}
	say(s, "leads as %s, revision %llu", s->options.name,
		(unsigned long long)td_leader_fence(s->leader).expected);
	s->is_told = s->has_more = false;
	s->shown = s->shown_ns = 0;
	memset(s->said, 0, s->options.brain.shape.jobs_max * sizeof(*s->said));
	return true;
}

/* --- the state --- */

/* Names come from people, and the value is JSON. */
static bool is_plain(const char *name)
{
	for (const char *c = name; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\\' || *c == '/')
			return false;
	return *name;
}

/* Writes the assignment as JSON. Returns its length, 0 if it does not fit. */
static size_t write_value(struct td_scheduler *s, const struct td_placement *placement,
	const struct td_brain_request *request)
{
	int used = snprintf(s->value, VALUE_MAX,
		"{\"epoch\": %llu, \"revision\": %llu, \"guest\": %s, \"places\": [",
		(unsigned long long)placement->epoch, (unsigned long long)placement->revision,
		placement->guest ? "true" : "false");

	for (uint32_t k = 0; k < placement->count && used < (int)VALUE_MAX; k++) {
		if (!is_plain(placement->places[k].node))
			return 0;
		used += snprintf(s->value + used, VALUE_MAX - (size_t)used,
			"%s{\"node\": \"%s\", \"gpu\": %u}", k ? ", " : "",
			placement->places[k].node, placement->places[k].gpu);
	}
	if (used < (int)VALUE_MAX)
		used += snprintf(s->value + used, VALUE_MAX - (size_t)used,
			"], \"guaranteed\": %s, \"job\": \"%s.%s\", \"uid\": %u}",
			request->guaranteed ? "true" : "false", s->engine->kind->name,
			placement->id, request->uid);
	return used < (int)VALUE_MAX ? (size_t)used : 0;
}

/* Puts or, with length 0, deletes assign/ID under the leader's fence. */
static int commit(struct td_scheduler *s, const char *id, size_t length)
{
	struct td_state_compare fence = td_leader_fence(s->leader);
	char key[sizeof(TD_SCHED_PREFIX) + 8 + TD_NAME_MAX];
	const struct td_state_write write = {
		.key = key, .value = length ? s->value : NULL, .length = length};
	const struct td_state_commit all = {
		.compare = &fence, .write = &write, .compares = 1, .writes = 1};

	snprintf(key, sizeof(key), TD_SCHED_PREFIX "assign/%s", id);
	return td_state_commit(s->state, &all, NULL);
}

/* Deletes the assignments of jobs that are not there any more. */
static void sweep(struct td_scheduler *s)
{
	const char *prefix = TD_SCHED_PREFIX "assign/";
	struct td_state_list list = {0};

	if (td_state_list(s->state, prefix, &list))
		return;
	for (size_t k = 0; k < list.count; k++) {
		const char *id = list.item[k].key + strlen(prefix);

		if (td_brain_find(s->brain, id) == TD_NO_NAME && strlen(id) < TD_NAME_MAX)
			(void)commit(s, id, 0);
	}
	td_state_list_deinit(&list);
}

/* --- orders --- */

/* Writes the assignment into the state. Returns 0, -EINVAL, -ESTALE or -EAGAIN. */
static int assign(struct td_scheduler *s, const struct td_brain_job *job,
	const struct td_placement *placement)
{
	size_t length = write_value(s, placement, &job->request);
	int r;

	if (!length || !is_plain(placement->id))
		return -EINVAL;
	r = commit(s, placement->id, length);
	if (r == TD_STATE_CONFLICT)
		return -ESTALE;
	return r ? -EAGAIN : 0;
}

static int place(struct td_scheduler *s, const struct td_brain_order *order)
{
	struct td_brain_place places[TD_GANG_MAX];
	struct td_placement placement = {.id = order->id,
		.epoch = order->epoch,
		.revision = order->revision,
		.guest = order->guest,
		.places = places};
	const struct td_brain_job *job = td_brain_job(s->brain, order->job);
	int r;

	/* An order of the same step may have changed it. */
	if (!job || job->epoch != order->epoch || job->phase != TD_BRAIN_PLACED)
		return 0;
	placement.count = td_brain_places(s->brain, order->job, places);
	r = assign(s, job, &placement);
	if (r)
		return r;
	r = s->engine->kind->place(s->engine, &placement);
	if (!r && !order->is_repeated)
		say(s, "job=%s epoch=%llu place=%s:%u%s guest=%d", order->id,
			(unsigned long long)order->epoch, places[0].node, places[0].gpu,
			placement.count > 1 ? ",..." : "", order->guest);
	return r;
}

/* The node's agent reads the assignment, and changes the job's class there. */
static int upgrade(struct td_scheduler *s, const struct td_brain_order *order)
{
	struct td_brain_place places[TD_GANG_MAX];
	struct td_placement placement = {.id = order->id,
		.epoch = order->epoch,
		.revision = order->revision,
		.places = places};
	const struct td_brain_job *job = td_brain_job(s->brain, order->job);
	int r;

	if (!job || job->epoch != order->epoch || job->phase != TD_BRAIN_RUNNING)
		return 0;
	placement.count = td_brain_places(s->brain, order->job, places);
	r = assign(s, job, &placement);
	if (r)
		return r;
	say(s, "job=%s epoch=%llu upgraded", order->id, (unsigned long long)order->epoch);
	return s->engine->kind->upgrade(s->engine, order->id, order->epoch);
}

static int requeue(struct td_scheduler *s, const struct td_brain_order *order)
{
	int r = s->engine->kind->requeue(
		s->engine, order->id, order->epoch, td_brain_sentence(order->why));

	if (!r)
		say(s, "job=%s epoch=%llu requeued: %s", order->id,
			(unsigned long long)order->epoch, td_brain_sentence(order->why));
	return r;
}

/*
 * Asks the state whether this one still leads, by a commit that deletes a key which nobody makes:
 * it changes nothing, but the fence decides it as it decides a placement.
 */
static int check_lead(struct td_scheduler *s)
{
	struct td_state_compare fence = td_leader_fence(s->leader);
	const struct td_state_write write = {.key = TD_SCHED_PREFIX "fence"};
	const struct td_state_commit all = {
		.compare = &fence, .write = &write, .compares = 1, .writes = 1};
	int r = td_state_commit(s->state, &all, NULL);

	if (!r)
		return 0;
	return r == TD_STATE_CONFLICT ? -ESTALE : -EAGAIN;
}

static int carry_out(struct td_scheduler *s, const struct td_brain_order *order)
{
	int r = order->verb == TD_ORDER_PLACE ? 0 : check_lead(s);

	if (r)
		return r;
	switch (order->verb) {
	case TD_ORDER_PLACE: return place(s, order);
	case TD_ORDER_REQUEUE: return requeue(s, order);
	case TD_ORDER_UPGRADE: return upgrade(s, order);
	case TD_ORDER_STOP:
	case TD_ORDER_VERB_N: break;
	}
	say(s, "job=%s epoch=%llu stopped: it is not known", order->id,
		(unsigned long long)order->epoch);
	return s->engine->kind->stop(s->engine, order->id, order->epoch);
}

static void note_result(
	struct td_scheduler *s, const struct td_brain_order *order, int r, uint64_t now_ns)
{
	if (!r)
		td_brain_done(s->brain, order);
	else if (r == -EOPNOTSUPP)
		td_brain_refused(s->brain, order, now_ns);
	if (r && r != -EAGAIN)
		say(s, "job=%s epoch=%llu: %s %s", order->id, (unsigned long long)order->epoch,
			strerror(-r), s->engine->kind->why(s->engine));
}

static void order_some(struct td_scheduler *s, uint64_t now_ns)
{
	struct td_brain_order orders[ORDERS];
	uint64_t begun_ns = td_time_now_ns();
	uint32_t count = td_brain_step(s->brain, now_ns, orders, ORDERS);

	s->counts.steps++;
	s->counts.step_ns += td_time_now_ns() - begun_ns;
	for (uint32_t k = 0; k < count; k++)
		s->counts.orders[orders[k].verb] += !orders[k].is_repeated;
	s->has_more = count + 1 >= ORDERS;
	for (uint32_t k = 0; k < count; k++) {
		int r;

		begun_ns = td_time_now_ns();
		r = carry_out(s, &orders[k]);
		if (r == -ESTALE) {
			step_down(s, "another one leads");
			return;
		}
		note_result(s, &orders[k], r, now_ns);
		if (td_time_now_ns() - begun_ns > SLOW_NS) {
			s->has_more = false; /* those that were not carried out are repeated */
			return;
		}
	}
}

/* Tells the engine why jobs wait, where that has changed, some in each turn. */
static void explain(struct td_scheduler *s)
{
	uint32_t max = td_brain_jobs_max(s->brain), told = 0;

	for (uint32_t k = 0; k < max && told < EXPLAINED; k++) {
		uint32_t at = s->explain_at;
		const struct td_brain_job *job = td_brain_job(s->brain, at);
		char text[256];
		uint64_t hash;

		s->explain_at = (at + 1) % max;
		if (!job || job->phase != TD_BRAIN_WAITING) {
			s->said[at] = 0;
			continue;
		}
		(void)td_brain_explain(s->brain, at, text, sizeof(text));
		hash = td_hash_str(text) ^ td_hash_str(job->request.id) ^ job->epoch;
		if (hash == s->said[at])
			continue;
		told++;
		if (!s->engine->kind->explain(s->engine, job->request.id, text))
			s->said[at] = hash;
	}
}

/* Puts the text into a file, and says once that it cannot. */
static void save(
	struct td_scheduler *s, const char *path, const struct td_text *text, bool *has_failed)
{
	int r = path ? td_status_save(path, text) : 0;

	if (r && !*has_failed)
		say(s, "%s: %s", path, strerror(-r));
	*has_failed = r;
}

/* Writes the status into its file, and into the state if it has changed. */
static void show(struct td_scheduler *s)
{
	struct td_state_compare fence = td_leader_fence(s->leader);
	struct td_text text = {0};
	uint64_t hash;

	td_status_write(s->brain, s->options.name, fence.expected, &text);
	save(s, s->options.status, &text, &s->status_failed);
	hash = text.failed ? s->shown : td_hash_str(text.text);
	if (hash != s->shown && text.length <= TD_STATE_VALUE_MAX) {
		const struct td_state_write write = {
			.key = TD_SCHED_STATUS, .value = text.text, .length = text.length};
		const struct td_state_commit all = {
			.compare = &fence, .write = &write, .compares = 1, .writes = 1};

		if (!td_state_commit(s->state, &all, NULL))
			s->shown = hash;
	}
	td_text_deinit(&text);
}

static bool is_due(uint64_t *last_ns, uint64_t every_ns, uint64_t now_ns)
{
	if (now_ns - *last_ns < every_ns)
		return false;
	*last_ns = now_ns;
	return true;
}

static void lead(struct td_scheduler *s, uint64_t now_ns)
{
	int r = s->engine->kind->submitted(s->engine, s->brain, now_ns);

	if (r && r != -EAGAIN)
		say(s, "engine=%s: %s %s", s->engine->kind->name, strerror(-r),
			s->engine->kind->why(s->engine));
	s->is_told |= !r;
	if (r || !s->is_told)
		return; /* orders follow what is known to be so */
	td_brain_lead(s->brain, td_leader_fence(s->leader).expected);
	if (s->options.look)
		s->options.look(s->options.arg, s->brain, now_ns);
	order_some(s, now_ns);
	if (s->brain && is_due(&s->explained_ns, EXPLAIN_NS, now_ns))
		explain(s);
	if (s->brain && is_due(&s->shown_ns, STATUS_NS, now_ns))
		show(s);
	if (s->brain && is_due(&s->swept_ns, SWEEP_NS, now_ns))
		sweep(s);
}

static uint64_t turn(struct td_scheduler *s, uint64_t now_ns)
{
	uint64_t next = td_state_turn(s->state, now_ns), lease = td_leader_turn(s->leader, now_ns);
	bool leads = td_leader_leads(s->leader, now_ns);

	next = lease < next ? lease : next;
	if (s->brain && !leads)
		step_down(s, "the lease has ended");
	if (!leads || (!s->brain && !take_the_lead(s)))
		return next;
	if (s->has_more && s->is_told) {
		order_some(s, now_ns);
		return s->has_more ? now_ns : next;
	}
	if (s->is_told && now_ns - s->asked_ns < s->options.period_ns)
		return next < s->asked_ns + s->options.period_ns
			       ? next
			       : s->asked_ns + s->options.period_ns;
	s->asked_ns = now_ns;
	lead(s, now_ns);
	if (s->has_more)
		return now_ns;
	return next < now_ns + s->options.period_ns ? next : now_ns + s->options.period_ns;
}

static void measure(struct td_scheduler *s)
{
	struct td_text text = {0};

	td_sched_metrics_write(&s->counts, s->brain, &text);
	save(s, s->options.metrics, &text, &s->metrics_failed);
	td_text_deinit(&text);
}

uint64_t td_scheduler_turn(struct td_scheduler *s, uint64_t now_ns)
{
	uint64_t next = turn(s, now_ns);

	if (!s->options.metrics)
		return next;
	if (is_due(&s->measured_ns, STATUS_NS, now_ns))
		measure(s);
	return td_min_u64(next, s->measured_ns + STATUS_NS);
}
