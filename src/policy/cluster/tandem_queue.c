/*
 * Starts waiting jobs and stops running ones for them; see tandem_cluster.h.
 *
 * All queues are served in one order, by rank: a job's level (las.h), plus a handicap for jobs
 * without a guarantee. A job that finds no GPUs takes those of running jobs of a higher rank. That
 * happens in rounds only, so that a burst of arrivals does not stop a job for each of them.
 * Guaranteed jobs stop guests at once.
 */
#include "policy/cluster/tandem_places.h"

#define NONE UINT32_MAX
#define KEPT (2 * TD_LAS_LEVELS) /* ranks below are of jobs whose guarantee is kept */
/* After this many jobs that found no GPUs, the rest of the queue waits for the next step. */
#define FAILURES 16u
#define TRIES    32u /* victims considered beyond the number of GPUs of the job */
/* The maximum number of actions that one job causes. */
#define ACTIONS_OF_ONE (TD_GANG_MAX * (TD_GUESTS + 1))

static bool is_full(const struct td_tandem_cluster *c)
{
	return c->action_count + 2 * ACTIONS_OF_ONE > TD_TANDEM_ACTIONS;
}

/* Tells whether a tenant asks for more guaranteed GPUs than it can have at once. */
static bool is_over(const struct td_tandem_cluster *c, uint32_t tenant)
{
	return c->asked[tenant] > c->quota[tenant] || c->asked_in_all > c->to_hold;
}

/* Returns the rank of a job; lower ranks go first. */
static uint32_t rank_of(const struct td_tandem_cluster *c, uint32_t id)
{
	const struct td_tandem_job *job = &c->jobs[id];
	uint32_t rank = 2 * c->las.jobs[id].level;

	if (job->guest)
		return KEPT + rank + c->params.handicap;
	return is_over(c, job->tenant) ? KEPT + rank : rank;
}

static bool is_marked(const struct td_tandem_cluster *c, uint32_t gpu)
{
	return c->marks[gpu] == c->mark;
}

/* --- victims --- */

/* The search of one job for GPUs, with the running jobs that would have to leave them. */
struct search {
	uint32_t id, rank, wanted, found, victim_count, tries;
	bool round;
	uint64_t now_ns;
	uint32_t victims[TD_GANG_MAX * TD_GUESTS];
};

static bool may_stop(const struct td_tandem_cluster *c, const struct search *s, uint32_t id)
{
	const struct td_tandem_job *job = &c->jobs[id];

	if (job->stays || rank_of(c, id) <= s->rank)
		return false;
	if (job->guest && !c->jobs[s->id].guest)
		return true;
	return s->round && s->now_ns - job->since_ns >= c->params.run_ns;
}

/* Whether the memory of a guest has to go for the new holder's, where no memory moves. */
static bool overflows(const struct td_tandem_cluster *c, uint64_t bytes)
{
	return c->is_hard && c->gpu_bytes && bytes > c->gpu_bytes;
}

/* Returns the memory of a GPU's guests and of its new holder. */
static uint64_t bytes_with(const struct td_tandem_cluster *c, uint32_t gpu, uint32_t holder)
{
	const struct td_inventory *v = &c->gpus;
	uint64_t bytes = c->jobs[holder].bytes;

	for (uint32_t k = 0; k < v->guest_count[gpu]; k++)
		bytes += c->jobs[v->guest[(size_t)gpu * TD_GUESTS + k]].bytes;
	return bytes;
}

/*
 * Adds the guests that would hardly run beside the new holder, or whose memory it needs, to the
 * victims. Returns false if one of these guests may not be stopped yet. One that stays for good
 * holds no guaranteed job up, unless by its memory.
 */
static bool clear_guests(const struct td_tandem_cluster *c, struct search *s, uint32_t gpu)
{
	uint32_t kept = s->victim_count;
	uint64_t bytes = bytes_with(c, gpu, s->id);
	const struct td_inventory *v = &c->gpus;

	for (uint32_t k = 0; k < v->guest_count[gpu]; k++) {
		uint32_t id = v->guest[(size_t)gpu * TD_GUESTS + k];
		struct td_tandem_company here = td_tandem_company(c, gpu, id, TD_BY_NOW);
		bool is_slow;

		here.holder = c->jobs[s->id].kind;
		is_slow = td_tandem_speed(c, &here, c->jobs[id].kind, NONE, NONE) <
			  c->params.held_min;
		if (c->jobs[id].stays || (!is_slow && !overflows(c, bytes)))
			continue;
		if (!may_stop(c, s, id)) {
			s->victim_count = kept;
			return false;
		}
		s->victims[s->victim_count++] = id;
		bytes -= c->jobs[id].bytes;
	}
	if (overflows(c, bytes))
		s->victim_count = kept;
	return !overflows(c, bytes);
}

/* Adds a GPU to the search if nobody holds it, or if its holder is `victim` and leaves. */
static void try_holding(
	struct td_tandem_cluster *c, struct search *s, uint32_t gpu, uint32_t victim)
{
	uint32_t holder = c->gpus.holder[gpu];

	if (is_marked(c, gpu) || (holder != TD_NO_JOB && holder != victim) ||
		c->gpus.barred[gpu] == TD_BAR_ALL ||
		!td_inventory_is_in(&c->gpus, gpu, c->jobs[s->id].pool))
		return;
	if (s->victim_count + TD_GUESTS + 1 > TD_GANG_MAX * TD_GUESTS || !clear_guests(c, s, gpu))
		return;
	if (holder != TD_NO_JOB)
		s->victims[s->victim_count++] = victim;
	c->marks[gpu] = c->mark;
	c->choices[s->found++].gpu = gpu;
}

static void try_joining(
	struct td_tandem_cluster *c, struct search *s, uint32_t gpu, uint32_t victim)
{
	struct td_tandem_choice *choice = &c->choices[s->found];

	if (is_marked(c, gpu) || !td_tandem_weigh(c, gpu, s->id, victim, TD_BY_NOW, choice) ||
		choice->score < c->params.gain_min)
		return;
	c->marks[gpu] = c->mark;
	s->victims[s->victim_count++] = victim;
	s->found++;
}

static void try_victim(struct td_tandem_cluster *c, struct search *s, uint32_t victim)
{
	bool guest = c->jobs[s->id].guest;

	s->tries--;
	if (!may_stop(c, s, victim))
		return;
	for (uint32_t p = c->jobs[victim].place; p != NONE && s->found < s->wanted;
		p = c->places[p].next)
		(guest ? try_joining : try_holding)(c, s, c->places[p].gpu, victim);
}

/* Considers the running jobs of a queue and level, the longest-running first. */
static void try_level(struct td_tandem_cluster *c, struct search *s, uint32_t queue, uint32_t level)
{
	for (uint32_t v = c->las.queues[queue].running[level].first;
		v != NONE && s->found < s->wanted && s->tries; v = c->las.jobs[v].next)
		try_victim(c, s, v);
}

/* Considers running jobs of higher ranks as victims, the highest rank first. */
static void try_victims(struct td_tandem_cluster *c, struct search *s)
{
	uint32_t guests = KEPT + c->params.handicap;

	for (uint32_t r = guests + 2 * TD_LAS_LEVELS; r-- > s->rank + 1;) {
		bool kept = r < KEPT;
		uint32_t level = (kept ? r : r - KEPT) / 2;

		if (r >= guests && (r - guests) % 2 == 0)
			try_level(c, s, c->tenant_count, (r - guests) / 2);
		if (r % 2 || level >= TD_LAS_LEVELS || !s->round)
			continue;
		for (uint32_t t = 0; t < c->tenant_count; t++)
			if (kept == !is_over(c, t))
				try_level(c, s, t, level);
	}
}

/* Stops the victims, which wait again. */
static void stop_victims(struct td_tandem_cluster *c, const struct search *s)
{
	for (uint32_t v = 0; v < s->victim_count; v++) {
		uint32_t id = s->victims[v];

		if (!c->las.jobs[id].runs)
			continue;
		td_tandem_stop(c, id);
		td_las_stop(&c->las, id, s->now_ns);
		td_tandem_act(c, TD_TANDEM_PREEMPT, id);
	}
}

static struct search search_for(
	struct td_tandem_cluster *c, uint32_t id, bool round, uint64_t now_ns)
{
	c->mark++;
	return (struct search){.id = id,
		.rank = rank_of(c, id),
		.wanted = c->jobs[id].gpus,
		.tries = TRIES + c->jobs[id].gpus,
		.round = round,
		.now_ns = now_ns};
}

/* --- guaranteed jobs --- */

/* Frees quota by stopping the tenant's own jobs that have had more service. */
static bool free_quota(struct td_tandem_cluster *c, uint32_t id, bool round, uint64_t now_ns)
{
	const struct td_tandem_job *job = &c->jobs[id];
	struct search s = search_for(c, id, round, now_ns);
	uint32_t used = c->used[job->tenant] + job->gpus;

	for (uint32_t k = TD_LAS_LEVELS; k-- > c->las.jobs[id].level + 1;)
		for (uint32_t v = c->las.queues[job->tenant].running[k].first;
			v != NONE && used > c->quota[job->tenant]; v = c->las.jobs[v].next)
			if (may_stop(c, &s, v)) {
				s.victims[s.victim_count++] = v;
				used -= c->jobs[v].gpus;
			}
	if (used > c->quota[job->tenant])
		return false;
	stop_victims(c, &s);
	return true;
}

enum result { STARTED, NO_QUOTA, NO_PLACE };

static enum result start_holder(
	struct td_tandem_cluster *c, uint32_t id, bool round, uint64_t now_ns)
{
	struct td_tandem_job *job = &c->jobs[id];
	uint32_t free_gpus[TD_GANG_MAX], count;
	struct search s;

	if (c->used[job->tenant] + job->gpus > c->quota[job->tenant] &&
		!(round && free_quota(c, id, round, now_ns)))
		return NO_QUOTA;
	s = search_for(c, id, round, now_ns);
	count = c->unheld ? td_inventory_find_free_in(
				    &c->gpus, id, job->gpus, job->same_node, job->pool, free_gpus)
			  : 0;
	for (uint32_t k = 0; k < count; k++)
		try_holding(c, &s, free_gpus[k], NONE);
	if (s.found < s.wanted && !job->same_node)
		try_victims(c, &s);
	if (s.found < s.wanted)
		return NO_PLACE;
	stop_victims(c, &s);
	td_tandem_place(c, id, now_ns);
	td_tandem_act(c, TD_TANDEM_START, id);
	return STARTED;
}

/* --- all other jobs --- */

static enum result start_guest(
	struct td_tandem_cluster *c, uint32_t id, bool idle_too, bool round, uint64_t now_ns)
{
	struct search s = search_for(c, id, round, now_ns);

	s.found = td_tandem_choose(c, id, idle_too, TD_BY_NOW, c->params.gain_min);
	for (uint32_t k = 0; k < s.found; k++)
		c->marks[c->choices[k].gpu] = c->mark;
	if (s.found < s.wanted && round && !c->jobs[id].same_node)
		try_victims(c, &s);
	if (s.found < s.wanted)
		return NO_PLACE;
	stop_victims(c, &s);
	td_tandem_place(c, id, now_ns);
	td_tandem_act(c, TD_TANDEM_START_GUEST, id);
	return STARTED;
}

/* Tells whether `other` could start wherever `job` could. */
static bool asks_as_much(const struct td_tandem_job *job, const struct td_tandem_job *other)
{
	return job->kind == other->kind && job->gpus >= other->gpus && job->bytes >= other->bytes &&
	       job->same_node >= other->same_node;
}

/* --- the queue --- */

/* The jobs that found no GPUs in this step. */
struct failures {
	uint32_t count, holder_gpus, guest, guest_rank;
	bool guests_get_no_idle, holders_get_none;
};

/* Returns the queue whose next job goes first; NONE: no job waits. */
static uint32_t first_queue(const struct td_tandem_cluster *c, const uint32_t *next)
{
	uint32_t best = NONE;

	for (uint32_t q = 0; q <= c->tenant_count; q++) {
		uint32_t mine, its;

		if (next[q] == NONE)
			continue;
		mine = rank_of(c, next[q]);
		its = best == NONE ? 0 : rank_of(c, next[best]);
		if (best == NONE || mine < its ||
			(mine == its && td_las_before(&c->las, next[q], next[best])))
			best = q;
	}
	return best;
}

static bool is_in_vain(
	const struct td_tandem_cluster *c, uint32_t id, bool round, const struct failures *f)
{
	const struct td_tandem_job *job = &c->jobs[id];

	if (!job->guest)
		return f->holders_get_none || job->gpus >= f->holder_gpus;
	return f->guest != NONE && asks_as_much(job, &c->jobs[f->guest]) &&
	       (!round || rank_of(c, id) >= f->guest_rank);
}

static void note_failure(
	struct td_tandem_cluster *c, uint32_t id, bool in_vain, uint64_t now_ns, struct failures *f)
{
	const struct td_tandem_job *job = &c->jobs[id];
	bool patient = now_ns - job->submit_ns < c->params.patience_ns;

	f->count++;
	if (job->pool != TD_ANYWHERE)
		return; /* others may find GPUs elsewhere */
	f->guests_get_no_idle |= !patient;
	if (!job->guest) {
		f->holders_get_none |= !patient;
		if (!job->same_node && job->gpus < f->holder_gpus)
			f->holder_gpus = job->gpus;
	} else if (!in_vain) {
		f->guest = id;
		f->guest_rank = rank_of(c, id);
	}
}

void td_tandem_start(struct td_tandem_cluster *c, uint64_t now_ns)
{
	bool round = c->params.preempts && now_ns - c->round_ns >= c->params.round_ns;
	bool again = round || c->freed != c->tried_freed;
	struct failures f = {.holder_gpus = NONE, .guest = NONE};
	uint32_t next[TD_TENANTS_MAX + 1], queue;

	if (!c->las.waiting)
		return;
	if (round)
		c->round_ns = now_ns;
	for (uint32_t q = 0; q < c->tenant_count; q++)
		next[q] = td_las_first(&c->las, q);
	next[c->tenant_count] = again ? td_las_first(&c->las, c->tenant_count) : c->arrived;
	while (f.count < FAILURES && !is_full(c) && (queue = first_queue(c, next)) != NONE) {
		uint32_t id = next[queue];
		bool in_vain = is_in_vain(c, id, round, &f);
		enum result result = NO_PLACE;

		next[queue] = td_las_next(&c->las, id);
		if (!in_vain)
			result = c->jobs[id].guest
					 ? start_guest(c, id, !f.guests_get_no_idle, round, now_ns)
					 : start_holder(c, id, round, now_ns);
		/* No job of the tenant overtakes one that waits for quota. */
		if (result == NO_QUOTA)
			next[queue] = NONE;
		else if (result == NO_PLACE)
			note_failure(c, id, in_vain, now_ns, &f);
		else
			f.guest = NONE;
	}
	c->tried_freed = c->freed;
	c->arrived = NONE;
}
