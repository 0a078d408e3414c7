/*
 * The promises of the lock, under random jobs on a virtual clock: exclusivity, first come first
 * served, a bounded wait, no hand-over without need. The executor is a small one: drains and fills
 * take a while, and jobs compute, pause and come back.
 */
#include "test.h"

#include "policy/node/plans.h"
#include "policy_random.h"

#define MS       1000000ull
#define GIB      (1ull << 30)
#define CAPACITY (16 * GIB)
#define GPUS     3
#define GROUPS   12
#define QUANTUM  (100 * MS)
#define SLOW     (5 * MS) /* a drain, or a fill, at most */

struct job {
	struct td_client_view *clients[2];
	uint32_t count, gpus; /* clients; bit per GPU */
	uint64_t ends_ns[2];  /* of the drain or fill under way */
	uint64_t work_ns;     /* of the present busy period, that is left */
	uint64_t next_ns;     /* while idle: when it wants again */
	uint64_t queued_ns;   /* when it was first seen to wait; 0: it does not */
	uint64_t bound_ns;    /* when it must have been let in at the latest */
	uint64_t used_ns;     /* what it has worked lately, less what it was idle */
	bool was_open;
};

struct world {
	const struct td_policy *policy;
	void *state;
	struct td_policy_options options;
	struct td_gpu_view gpus[GPUS];
	struct td_client_view clients[2 * GROUPS];
	struct td_grant grants[2 * GROUPS];
	struct td_view view;
	struct td_plan plan;
	struct job jobs[GROUPS];
	uint64_t now, random, handovers;
	uint64_t acknowledged_ns;
	bool exclusive, classes;
	bool fixed; /* the memory of some of them cannot leave the device */
};

static struct world w;

static void begin(const char *policy, bool classes, bool fixed, uint64_t seed)
{
	free(w.state);
	memset(&w, 0, sizeof(w));
	w.fixed = fixed;
	w.policy = td_policy_find(policy);
	w.state = calloc(1, w.policy->state_bytes);
	w.options = (struct td_policy_options){.enabled = true,
		.quantum_ns = QUANTUM,
		.quantum_min_ns = 20 * MS,
		.swap_share_ppm = 100000,
		.window_ns = 2 * MS,
		.swap_share_long_ppm = 10000,
		.quantum_long_ns = 5 * QUANTUM};
	w.exclusive = !strcmp(policy, "nvshare");
	w.classes = classes;
	w.random = seed * 0x9e3779b97f4a7c15ull + 1;
	w.now = 1000 * MS;
	w.view = (struct td_view){.gpus = w.gpus, .clients = w.clients, .gpu_count = GPUS};
	w.plan.grants = w.grants;
	for (uint32_t g = 0; g < GPUS; g++)
		w.gpus[g] = (struct td_gpu_view){.capacity_bytes = CAPACITY,
			.handover_ns = random_below(&w.random, 10) * MS};
	for (uint32_t j = 0; j < GROUPS; j++) {
		struct job *job = &w.jobs[j];
		uint32_t gpu = random_below(&w.random, GPUS);
		enum td_class class = classes ? (enum td_class)random_below(&w.random, TD_CLASS_N)
					      : TD_CLASS_BESTEFFORT;

		job->count = 1 + (random_below(&w.random, 4) == 0);
		job->next_ns = w.now + random_below(&w.random, 100) * MS;
		for (uint32_t k = 0; k < job->count; k++) {
			struct td_client_view *c = &w.clients[w.view.client_count++];

			*c = (struct td_client_view){.id = w.view.client_count,
				.gpu = (gpu + k) % GPUS,
				.group = j + 1,
				.class = class,
				.weight = 1 + random_below(&w.random, 3),
				.movable = !fixed || random_below(&w.random, 3),
				.demanded_bytes = (2 + random_below(&w.random, 14)) * GIB};
			if (!c->movable)
				c->demanded_bytes = c->resident_bytes =
					(1 + random_below(&w.random, 3)) * GIB;
			job->clients[k] = c;
			job->gpus |= 1u << c->gpu;
		}
	}
}

static bool is_granted(const struct job *job)
{
	return w.grants[job->clients[0] - w.clients].gate != TD_GATE_CLOSED;
}

static bool is_in(const struct job *job, enum td_phase phase)
{
	for (uint32_t k = 0; k < job->count; k++)
		if (job->clients[k]->phase != phase)
			return false;
	return true;
}

static bool waits(const struct job *job)
{
	return job->clients[0]->wants && is_in(job, TD_PHASE_CLOSED);
}

static void set_wants(struct job *job, bool wants)
{
	for (uint32_t k = 0; k < job->count; k++) {
		struct td_client_view *c = job->clients[k];

		c->wants = wants;
		*(wants ? &c->wants_since_ns : &c->idle_since_ns) = w.now;
	}
}

static void enter(struct td_client_view *c, enum td_phase phase)
{
	c->phase = phase;
	c->phase_since_ns = w.now;
}

/* Everything that happens by itself up to now. */
static void progress(struct job *job)
{
	for (uint32_t k = 0; k < job->count; k++) {
		struct td_client_view *c = job->clients[k];

		if (c->phase == TD_PHASE_DRAINING && job->ends_ns[k] <= w.now)
			enter(c, TD_PHASE_CLOSED);
		else if (c->phase == TD_PHASE_FILLING && job->ends_ns[k] <= w.now)
			enter(c, TD_PHASE_OPEN);
	}
	if (!job->clients[0]->wants && job->next_ns <= w.now) {
		set_wants(job, true);
		job->work_ns = (1 + random_below(&w.random, 300)) * MS;
	} else if (job->clients[0]->wants && !job->work_ns && is_in(job, TD_PHASE_OPEN)) {
		set_wants(job, false);
		job->next_ns = w.now + random_below(&w.random, 200) * MS;
	}
}

static void carry_out(struct job *job)
{
	for (uint32_t k = 0; k < job->count; k++) {
		struct td_client_view *c = job->clients[k];
		bool closed = w.grants[c - w.clients].gate == TD_GATE_CLOSED;

		job->ends_ns[k] = c->phase == TD_PHASE_DRAINING || c->phase == TD_PHASE_FILLING
					  ? job->ends_ns[k]
					  : w.now + 1 + random_below(&w.random, SLOW);
		if (closed && c->phase == TD_PHASE_OPEN)
			enter(c, TD_PHASE_DRAINING);
		else if (closed && c->phase == TD_PHASE_FILLING) {
			enter(c, TD_PHASE_CLOSED);
			w.acknowledged_ns = w.now + 1; /* that it is closed: the node steps again */
		} else if (!closed && c->phase == TD_PHASE_CLOSED)
			enter(c, TD_PHASE_FILLING);
	}
}

static uint64_t next_event(void)
{
	uint64_t at = w.plan.next_wakeup_ns;

	if (w.acknowledged_ns > w.now && w.acknowledged_ns < at)
		at = w.acknowledged_ns;

	for (uint32_t j = 0; j < GROUPS; j++) {
		const struct job *job = &w.jobs[j];
		uint64_t mine = UINT64_MAX;

		for (uint32_t k = 0; k < job->count; k++)
			if (job->clients[k]->phase == TD_PHASE_DRAINING ||
				job->clients[k]->phase == TD_PHASE_FILLING)
				mine = job->ends_ns[k] < mine ? job->ends_ns[k] : mine;
		if (!job->clients[0]->wants)
			mine = job->next_ns < mine ? job->next_ns : mine;
		else if (is_in(job, TD_PHASE_OPEN) && w.now + job->work_ns < mine)
			mine = w.now + job->work_ns;
		at = mine < at ? mine : at;
	}
	return at;
}

/* At least as much as the policy makes of it. */
static void note_use(struct job *job, uint64_t passed_ns)
{
	bool holds = false;

	for (uint32_t k = 0; k < job->count; k++)
		holds |= job->clients[k]->phase == TD_PHASE_OPEN ||
			 job->clients[k]->phase == TD_PHASE_DRAINING;
	if (holds)
		job->used_ns += passed_ns;
	else if (!job->clients[0]->wants)
		job->used_ns -= passed_ns < job->used_ns ? passed_ns : job->used_ns;
	job->used_ns = job->used_ns < 5 * QUANTUM ? job->used_ns : 5 * QUANTUM;
}

static void pass_until(uint64_t at)
{
	for (uint32_t j = 0; j < GROUPS; j++) {
		struct job *job = &w.jobs[j];

		note_use(job, at - w.now);
		if (job->clients[0]->wants && is_in(job, TD_PHASE_OPEN))
			job->work_ns -= at - w.now < job->work_ns ? at - w.now : job->work_ns;
	}
	w.now = at;
}

/* Nobody is on a GPU with whom there is no room: also while it drains or fills. */
static void check_exclusive(void)
{
	for (uint32_t g = 0; g < GPUS; g++) {
		uint64_t bytes = 0;
		uint32_t holders = 0;

		for (uint32_t c = 0; c < w.view.client_count; c++) {
			const struct td_client_view *client = &w.clients[c];

			if (client->gpu != g || (client->phase == TD_PHASE_CLOSED &&
							w.grants[c].gate == TD_GATE_CLOSED))
				continue;
			bytes += client->demanded_bytes;
			holders++;
		}
		CHECK(holders <= 1 || (!w.exclusive && bytes <= CAPACITY));
	}
}

/* Would the other have to go first? */
static bool goes_first(const struct job *other, const struct job *job)
{
	enum td_class theirs = other->clients[0]->class, ours = job->clients[0]->class;

	if (w.policy != td_policy_find("nvshare") && theirs != ours)
		return theirs < ours;
	return other->queued_ns < job->queued_ns;
}

static void check_opening(const struct job *job)
{
	for (uint32_t j = 0; j < GROUPS; j++) {
		const struct job *other = &w.jobs[j];

		CHECK(w.fixed || other == job || !other->queued_ns || is_granted(other) ||
			!(other->gpus & job->gpus) || !goes_first(other, job));
	}
	CHECK(w.classes || w.fixed || w.now <= job->bound_ns);
}

static void check_closing(const struct job *job)
{
	bool wanted = false;

	w.handovers++;
	for (uint32_t j = 0; j < GROUPS; j++)
		wanted |= w.jobs[j].queued_ns && w.jobs[j].gpus & job->gpus;
	CHECK(wanted);
}

/*
 * No turn before its own is longer: short turns are at most QUANTUM, others as long as it has used
 * GPUs itself, times the weight.
 */
static uint64_t longest_turn_ns(const struct job *job)
{
	uint64_t ns = w.exclusive ? 0 : 3 * job->used_ns;

	ns = ns < 5 * QUANTUM ? ns : 5 * QUANTUM;
	return ns > QUANTUM ? ns : QUANTUM;
}

/*
 * Notes the queue when a job begins to wait: all before it may have a turn and its hand-over, and
 * so may the present holders.
 */
static void note_queue(void)
{
	for (uint32_t j = 0; j < GROUPS; j++) {
		struct job *job = &w.jobs[j];
		uint32_t before = 1;

		if (!waits(job)) {
			job->queued_ns = 0;
			continue;
		}
		if (job->queued_ns)
			continue;
		job->queued_ns = w.now;
		for (uint32_t k = 0; k < GROUPS; k++)
			before += w.jobs[k].queued_ns || !is_in(&w.jobs[k], TD_PHASE_CLOSED);
		job->bound_ns = w.now + before * (longest_turn_ns(job) + 2 * SLOW + 10 * MS);
	}
}

static void step(void)
{
	note_queue();
	w.policy->step(w.state, &w.options, &w.view, w.now, &w.plan);
	CHECK(w.plan.next_wakeup_ns > w.now);
	check_exclusive();
	for (uint32_t j = 0; j < GROUPS; j++) {
		struct job *job = &w.jobs[j];

		if (is_granted(job) && is_in(job, TD_PHASE_CLOSED) && job->queued_ns)
			check_opening(job);
		if (!is_granted(job) && job->was_open)
			check_closing(job);
	}
	for (uint32_t j = 0; j < GROUPS; j++) {
		w.jobs[j].was_open = is_granted(&w.jobs[j]);
		carry_out(&w.jobs[j]);
	}
}

static void live(const char *policy, bool classes, bool fixed)
{
	uint64_t handovers = 0;

	for (uint64_t seed = 1; seed <= 60; seed++) {
		begin(policy, classes, fixed, seed);
		for (uint32_t events = 0; events < 2000; events++) {
			uint64_t at;

			step();
			at = next_event();
			CHECK(at < TD_NEVER); /* somebody always works or waits with a reason */
			pass_until(at > w.now ? at : w.now + 1);
			for (uint32_t j = 0; j < GROUPS; j++)
				progress(&w.jobs[j]);
		}
		handovers += w.handovers;
	}
	CHECK(handovers > 1000);
}

TEST(nvshare_is_exclusive_and_nobody_is_overtaken_or_waits_too_long)
{
	live("nvshare", false, false);
}

TEST(tandem_never_exceeds_the_memory_and_nobody_is_overtaken_or_waits_too_long)
{
	live("tandem", false, false);
}

TEST(by_class_nobody_goes_before_the_more_protected)
{
	live("tandem", true, false);
}

/*
 * The one that came first may not fit beside their memory, and they would wait behind it: live()
 * detects a standstill.
 */
TEST(who_has_memory_that_stays_is_not_kept_from_ending)
{
	live("tandem", false, true);
	live("nvshare", false, true);
	live("tandem", true, true);
}

/*
 * Many small jobs hold a GPU together; each is only a small part of the room that one large job
 * needs.
 */
TEST(a_job_that_needs_a_hundred_to_go_is_let_in)
{
	static struct td_client_view clients[101];
	static struct td_grant grants[101];
	struct td_gpu_view gpu = {.capacity_bytes = CAPACITY, .handover_ns = MS};
	struct td_view view = {&gpu, clients, 1, 101, 0};
	struct td_plan plan = {.grants = grants};
	struct td_policy_options options = {.enabled = true,
		.quantum_ns = QUANTUM,
		.quantum_min_ns = 20 * MS,
		.swap_share_ppm = 100000,
		.window_ns = 2 * MS};
	const struct td_policy *policy = td_policy_find("tandem");
	void *state = calloc(1, policy->state_bytes);

	for (uint32_t c = 0; c < 101; c++)
		clients[c] = (struct td_client_view){.id = c + 1,
			.group = c + 1,
			.class = TD_CLASS_BESTEFFORT,
			.weight = 1,
			.movable = true,
			.wants = true,
			.wants_since_ns = 1 + c,
			.phase = c < 100 ? TD_PHASE_OPEN : TD_PHASE_CLOSED,
			.phase_since_ns = 1,
			.demanded_bytes = c < 100 ? CAPACITY / 100 : CAPACITY};
	policy->step(state, &options, &view, 10 * QUANTUM, &plan);
	for (uint32_t c = 0; c < 100; c++) {
		CHECK_EQ(grants[c].gate, TD_GATE_CLOSED);
		clients[c].phase = TD_PHASE_CLOSED;
	}
	policy->step(state, &options, &view, 10 * QUANTUM + MS, &plan);
	CHECK_EQ(grants[100].gate, TD_GATE_OPEN);
	free(state);
}

/*
 * One job's memory cannot leave, and it waits for a turn. The other is being filled, and has room
 * beside that. If it were closed for the first, it would come before it again, and so on without
 * end, with a message to each of its processes every time.
 */
TEST(who_is_being_filled_beside_memory_that_stays_is_not_sent_away_for_it)
{
	static struct td_client_view clients[2];
	static struct td_grant grants[2];
	struct td_gpu_view gpu = {.capacity_bytes = CAPACITY, .handover_ns = MS};
	struct td_view view = {&gpu, clients, 1, 2, 0};
	struct td_plan plan = {.grants = grants};
	struct td_policy_options options = {.enabled = true,
		.quantum_ns = QUANTUM,
		.quantum_min_ns = 20 * MS,
		.swap_share_ppm = 100000};
	const struct td_policy *policy = td_policy_find("tandem");
	void *state = calloc(1, policy->state_bytes);

	for (uint32_t c = 0; c < 2; c++)
		clients[c] = (struct td_client_view){.id = c + 1,
			.group = c + 1,
			.class = c ? TD_CLASS_BESTEFFORT : TD_CLASS_ONLINE,
			.weight = 1,
			.wants = true,
			.wants_since_ns = 1 + c,
			.phase = c ? TD_PHASE_CLOSED : TD_PHASE_FILLING,
			.phase_since_ns = 1,
			.movable = !c,
			.resident_bytes = c ? 4 * GIB : 0,
			.demanded_bytes = c ? 6 * GIB : 11 * GIB};
	policy->step(state, &options, &view, MS, &plan);
	CHECK_EQ(grants[0].gate, TD_GATE_OPEN);
	/* Only one that it can never be filled beside goes on before it. */
	clients[0].demanded_bytes = 13 * GIB;
	policy->step(state, &options, &view, 2 * MS, &plan);
	CHECK_EQ(grants[0].gate, TD_GATE_CLOSED);
	free(state);
}

/*
 * The holder's turn is not over, so nobody is closed for the one that waits, and it pays for no
 * hand-over if the holder ends by itself.
 */
TEST(a_job_that_waits_for_the_end_of_a_turn_displaces_nobody)
{
	static struct td_client_view clients[2];
	static struct td_grant grants[2];
	struct td_gpu_view gpu = {.capacity_bytes = CAPACITY, .handover_ns = MS};
	struct td_view view = {&gpu, clients, 1, 2, 0};
	struct td_plan plan = {.grants = grants};
	struct td_policy_options options = {.enabled = true,
		.quantum_ns = QUANTUM,
		.quantum_min_ns = 20 * MS,
		.swap_share_ppm = 100000};
	const struct td_policy *policy = td_policy_find("nvshare");
	struct td_lock_plan *state = calloc(1, policy->state_bytes);

	for (uint32_t c = 0; c < 2; c++)
		clients[c] = (struct td_client_view){.id = c + 1,
			.group = c + 1,
			.class = TD_CLASS_BESTEFFORT,
			.weight = 1,
			.movable = true,
			.wants = true,
			.wants_since_ns = 1 + c,
			.phase = c ? TD_PHASE_OPEN : TD_PHASE_CLOSED,
			.phase_since_ns = QUANTUM,
			.resident_bytes = GIB,
			.demanded_bytes = GIB};
	policy->step(state, &options, &view, QUANTUM + MS, &plan);
	CHECK_EQ(grants[0].gate, TD_GATE_CLOSED);
	CHECK_EQ(grants[1].gate, TD_GATE_OPEN);
	CHECK(!state->lock.groups[state->lock.group_of[0]].use.displaces);
	free(state);
}
