/* tandem's scheduler of a cluster; see tandem_cluster.h. */
#include "policy/cluster/tandem_cluster.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NONE       UINT32_MAX
#define LOOK_ALL   256u /* a cluster of no more GPUs is looked at as a whole */
#define GANG_USUAL 16u  /* GPUs of a job, for which candidates are looked for at once */
#define FAILURES                                                                                   \
	16u /* jobs that find no place until the rest of the queue has to wait for the next step */
#define ACTIONS    64u  /* of antman_cluster.h, per step */
#define MOVES_MAX  32u  /* per step */
#define SLOW       0.25 /* who is slower moves first */
#define UNPAID_MAX 8u   /* doublings: from 10 min to 43 h */

const struct td_tandem_cluster_params td_tandem_cluster_default = {
	.antman = {.load_limit_ppm = 800000, .patience_ns = 600000000000ull},
	.gain_min = 0,
	.held_min = 0.1,
	.move_gain_min = 0.15,
	.together = 3,
	.settle_ns = 300000000000ull,
	.patience_ns = 1800000000000ull,
	.move_ns = 60000000000ull,
	.window_ns = 600000000000ull,
};

struct td_tandem_cluster_params td_tandem_cluster_params_of(uint64_t move_ns)
{
	struct td_tandem_cluster_params params = td_tandem_cluster_default;

	params.move_ns = move_ns;
	params.settle_ns = 5 * move_ns;
	params.window_ns = 10 * move_ns;
	return params;
}

static size_t aligned(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

size_t td_tandem_cluster_bytes(uint32_t nodes, uint32_t gpus, uint32_t jobs_max, uint32_t kinds)
{
	return aligned(td_antman_bytes(nodes, gpus, jobs_max)) +
	       aligned(jobs_max * sizeof(struct td_tandem_job)) +
	       aligned((size_t)gpus * TD_GUESTS * sizeof(struct td_antman_place)) +
	       aligned((size_t)gpus * TD_GUESTS * sizeof(uint32_t)) +
	       aligned(gpus * sizeof(uint64_t)) + aligned(gpus * sizeof(uint32_t)) +
	       aligned(gpus * sizeof(struct td_tandem_room)) +
	       aligned(gpus * sizeof(struct td_tandem_choice)) + aligned(kinds * sizeof(double)) +
	       2 * aligned((size_t)kinds * kinds * sizeof(float));
}

static void *carve(char **at, size_t bytes)
{
	void *here = *at;

	*at += aligned(bytes);
	memset(here, 0, bytes);
	return here;
}

int td_tandem_cluster_init(struct td_tandem_cluster *c, void *memory, size_t bytes,
	const struct td_tandem_cluster_params *params, const uint32_t *node_gpus, uint32_t nodes,
	uint64_t gpu_bytes, const uint32_t *quotas, uint32_t tenants, uint32_t jobs_max,
	const double *demands, uint32_t kinds)
{
	char *at = memory;
	uint32_t gpus = 0;
	size_t antman;
	int r;

	for (uint32_t n = 0; n < nodes; n++)
		gpus += node_gpus[n];
	if (!kinds || params->together > TD_GUESTS)
		return -EINVAL;
	if (bytes < td_tandem_cluster_bytes(nodes, gpus, jobs_max, kinds))
		return -ENOMEM;
	*c = (struct td_tandem_cluster){.params = *params,
		.kinds = kinds,
		.jobs_max = jobs_max,
		.gpu_bytes = gpu_bytes,
		.head = NONE,
		.tail = NONE};
	antman = aligned(td_antman_bytes(nodes, gpus, jobs_max));
	r = td_antman_init(&c->antman, at, antman, &params->antman, node_gpus, nodes, quotas,
		tenants, jobs_max);
	if (r)
		return r;
	at += antman;
	c->jobs = carve(&at, jobs_max * sizeof(*c->jobs));
	c->places = carve(&at, (size_t)gpus * TD_GUESTS * sizeof(*c->places));
	c->running = carve(&at, (size_t)gpus * TD_GUESTS * sizeof(*c->running));
	c->service_bytes = carve(&at, gpus * sizeof(*c->service_bytes));
	c->service_kind = carve(&at, gpus * sizeof(*c->service_kind));
	c->rooms = carve(&at, gpus * sizeof(*c->rooms));
	c->choices = carve(&at, gpus * sizeof(*c->choices));
	c->demands = carve(&at, kinds * sizeof(*c->demands));
	c->beside = carve(&at, (size_t)kinds * kinds * sizeof(*c->beside));
	c->guarded = carve(&at, (size_t)kinds * kinds * sizeof(*c->guarded));
	memcpy(c->demands, demands, kinds * sizeof(*demands));
	for (uint32_t g = 0; g < gpus; g++)
		c->rooms[g] = (struct td_tandem_room){1, 1, 0, TD_TANDEM_NEVER};
	for (uint32_t p = 0; p < gpus * TD_GUESTS; p++)
		c->places[p].next = p + 1 < gpus * TD_GUESTS ? p + 1 : NONE;
	return 0;
}

/* --- prediction --- */

/*
 * The company of a guest: the cost of the pairs that were seen, and the demand of the others and of
 * the guest itself, where 1 is a GPU.
 */
struct crowd {
	double cost, asked;
};

static void count_in(
	const struct td_tandem_cluster *c, uint32_t kind, uint32_t other, struct crowd *crowd)
{
	float seen = c->beside[(size_t)kind * c->kinds + other];

	if (seen > 0)
		crowd->cost += 1 / (double)seen - 1;
	else
		crowd->asked += c->demands[other];
}

/* Returns the speed of a kind as the only guest of a holder: it has what the holder leaves. */
static double held_speed(const struct td_tandem_cluster *c, uint32_t kind, uint32_t holder)
{
	float seen = c->guarded[(size_t)kind * c->kinds + holder];

	if (seen > 0)
		return (double)seen;
	return fmin(1, fmax(0.02, (1 - c->demands[holder]) / c->demands[kind]));
}

/* Returns the mean room over the window, weighted by age. */
static double mean_room(const struct td_tandem_cluster *c, uint32_t gpu)
{
	const struct td_tandem_room *room = &c->rooms[gpu];
	double passed = (double)(c->now_ns - room->since_ns);

	if (room->since_ns == TD_TANDEM_NEVER)
		return room->now;
	return room->now + (room->mean - room->now) * exp(-passed / (double)c->params.window_ns);
}

struct company {
	uint32_t kinds[TD_GUESTS], count, holder; /* holder: its kind, or NONE */
	uint64_t bytes;
	double room;
};

/* The integral of a room up to now. */
static double sum_of(const struct td_tandem_cluster *c, uint32_t gpu)
{
	const struct td_tandem_room *room = &c->rooms[gpu];

	if (room->since_ns == TD_TANDEM_NEVER)
		return 0;
	return room->sum + room->now * (double)(c->now_ns - room->since_ns);
}

/*
 * The figure that judges a room: a job that starts has nothing to lose, a job that moves needs a
 * room that lasts.
 */
enum judge { BY_NOW, BY_MEAN };

/* Returns the jobs on a GPU except one. */
static struct company company_on(
	const struct td_tandem_cluster *c, uint32_t gpu, uint32_t but, enum judge judge)
{
	const struct td_inventory *v = &c->antman.gpus;
	struct company here = {.holder = NONE, .room = 1};

	if (v->holder[gpu] == TD_CLUSTER_SERVICE) {
		here.holder = c->service_kind[gpu];
		here.bytes = c->service_bytes[gpu];
		here.room = judge == BY_MEAN ? mean_room(c, gpu) : c->rooms[gpu].now;
	} else if (v->holder[gpu] != TD_NO_JOB) {
		here.holder = c->jobs[v->holder[gpu]].kind;
		here.bytes = c->jobs[v->holder[gpu]].bytes;
	}
	for (uint32_t k = 0; k < v->guest_count[gpu]; k++) {
		uint32_t job = v->guest[(size_t)gpu * TD_GUESTS + k];

		if (job == but)
			continue;
		here.kinds[here.count++] = c->jobs[job].kind;
		here.bytes += c->jobs[job].bytes;
	}
	return here;
}

/*
 * Returns the speed of a guest among `here` and, unless NONE, one more kind. `self` is its own
 * index in the company, or NONE.
 */
static double speed_among(const struct td_tandem_cluster *c, const struct company *here,
	uint32_t kind, uint32_t self, uint32_t more)
{
	uint32_t guests = here->count + (self == NONE) + (more != NONE);
	struct crowd crowd = {0, c->demands[kind]};

	if (here->holder != NONE)
		return fmin(1, here->room * held_speed(c, kind, here->holder)) / guests;
	for (uint32_t k = 0; k < here->count; k++)
		if (k != self)
			count_in(c, kind, here->kinds[k], &crowd);
	if (more != NONE)
		count_in(c, kind, more, &crowd);
	return 1 / (fmax(1, crowd.asked) + crowd.cost);
}

/* Speed of a guest that joins, and what all gain by it. False: it may not, or there is no room. */
static bool weigh(const struct td_tandem_cluster *c, uint32_t gpu, uint32_t id, enum judge judge,
	struct td_tandem_choice *ret)
{
	const struct td_tandem_job *job = &c->jobs[id];
	struct company here = company_on(c, gpu, id, judge);
	double own, loss = 0;

	if (here.count >= c->params.together)
		return false;
	if (c->gpu_bytes && here.bytes + job->bytes > c->gpu_bytes &&
		(here.count || here.holder != NONE))
		return false;
	own = speed_among(c, &here, job->kind, NONE, NONE);
	if (here.holder != NONE && own < c->params.held_min)
		return false;
	for (uint32_t k = 0; k < here.count; k++)
		loss += speed_among(c, &here, here.kinds[k], k, NONE) -
			speed_among(c, &here, here.kinds[k], k, job->kind);
	*ret = (struct td_tandem_choice){.score = own - loss, .own = own, .gpu = gpu};
	return true;
}

static bool is_idle(const struct td_inventory *v, uint32_t gpu)
{
	return v->holder[gpu] == TD_NO_JOB && !v->guest_count[gpu];
}

/*
 * Among equals, avoids GPUs that are reserved, and prefers nodes with few free GPUs, so that gangs
 * find whole ones.
 */
static double tie_break(const struct td_inventory *v, uint32_t gpu)
{
	return 0.001 * v->free_count[v->node[gpu]] + (v->reserved[gpu] != TD_NO_JOB ? 0.05 : 0);
}

/* --- places --- */

static void note_load(struct td_tandem_cluster *c, uint32_t gpu)
{
	struct company here = company_on(c, gpu, NONE, BY_NOW);
	double load = here.holder == NONE ? 0 : c->demands[here.holder] + 1 - here.room;

	for (uint32_t k = 0; k < here.count; k++)
		load += c->demands[here.kinds[k]];
	td_inventory_set_load(&c->antman.gpus, gpu, (uint32_t)(fmin(load, 10) * 1e6));
}

/*
 * Finds the least loaded GPUs, TD_TANDEM_CANDIDATES and `wanted` more, or as many as there are.
 * Searches again only after some load has changed.
 */
static uint32_t find_candidates(struct td_tandem_cluster *c, uint32_t wanted)
{
	struct td_inventory *v = &c->antman.gpus;
	uint32_t count = TD_TANDEM_CANDIDATES + wanted;

	if (c->found.changes != v->changes || c->found.asked < count) {
		c->found.asked = wanted < GANG_USUAL ? TD_TANDEM_CANDIDATES + GANG_USUAL : count;
		c->found.count =
			td_inventory_find_least_loaded(v, c->found.asked, 10000000u, c->found.gpus);
		c->found.changes = v->changes;
	}
	return count < c->found.count ? count : c->found.count;
}

/*
 * Puts the best `wanted` candidates first in c->choices, by falling score. Returns how many there
 * are.
 */
static uint32_t choose(
	struct td_tandem_cluster *c, uint32_t id, bool idle_too, enum judge judge, double floor)
{
	const struct td_inventory *v = &c->antman.gpus;
	uint32_t wanted = c->jobs[id].gpus, n = 0;
	bool all = v->gpu_count <= LOOK_ALL;
	uint32_t count = all ? v->gpu_count : find_candidates(c, wanted);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t gpu = all ? i : c->found.gpus[i], at;
		struct td_tandem_choice choice;

		if ((!idle_too && is_idle(v, gpu)) || !weigh(c, gpu, id, judge, &choice) ||
			choice.score < floor)
			continue;
		choice.score -= tie_break(v, gpu);
		if (n == wanted && !(choice.score > c->choices[n - 1].score))
			continue;
		for (at = n < wanted ? n++ : n - 1; at && choice.score > c->choices[at - 1].score;
			at--)
			c->choices[at] = c->choices[at - 1];
		c->choices[at] = choice;
	}
	return n;
}

/* The job's GPUs are the first of c->choices. */
static void settle(struct td_tandem_cluster *c, uint32_t id, uint64_t now_ns)
{
	struct td_tandem_job *job = &c->jobs[id];

	job->place = NONE;
	for (uint32_t k = job->gpus; k--;) {
		uint32_t p = c->free_place, gpu = c->choices[k].gpu;

		c->free_place = c->places[p].next;
		c->places[p] = (struct td_antman_place){gpu, job->place};
		job->place = p;
		td_inventory_add_guest(&c->antman.gpus, gpu, id);
		note_load(c, gpu);
	}
	job->since_ns = now_ns;
}

static void vacate(struct td_tandem_cluster *c, uint32_t id)
{
	struct td_tandem_job *job = &c->jobs[id];

	for (uint32_t p = job->place, next; p != NONE; p = next) {
		uint32_t gpu = c->places[p].gpu;

		next = c->places[p].next;
		td_inventory_remove_guest(&c->antman.gpus, gpu, id);
		note_load(c, gpu);
		c->places[p].next = c->free_place;
		c->free_place = p;
	}
	job->place = NONE;
}

static bool is_running_guest(const struct td_tandem_job *job)
{
	return job->guest && !job->queued;
}

uint32_t td_tandem_cluster_gpus(const struct td_tandem_cluster *c, uint32_t id, uint32_t *ret_gpus)
{
	uint32_t n = 0;

	if (id >= c->jobs_max || !c->jobs[id].gpus)
		return 0;
	if (!c->jobs[id].guest)
		return td_antman_gpus(&c->antman, id, ret_gpus);
	if (!is_running_guest(&c->jobs[id]))
		return 0;
	for (uint32_t p = c->jobs[id].place; p != NONE; p = c->places[p].next)
		ret_gpus[n++] = c->places[p].gpu;
	return n;
}

/* --- jobs --- */

void td_tandem_cluster_serve(
	struct td_tandem_cluster *c, uint32_t gpu, uint32_t kind, uint64_t bytes)
{
	td_inventory_hold(&c->antman.gpus, gpu, TD_CLUSTER_SERVICE);
	c->service_kind[gpu] = kind;
	c->service_bytes[gpu] = bytes;
	note_load(c, gpu);
}

void td_tandem_cluster_room(struct td_tandem_cluster *c, uint32_t gpu, double room, uint64_t now_ns)
{
	struct td_tandem_room *at = &c->rooms[gpu];

	room = fmin(fmax(room, 0), 1);
	c->now_ns = now_ns;
	at->sum = sum_of(c, gpu);
	at->mean = at->since_ns == TD_TANDEM_NEVER ? room : mean_room(c, gpu);
	at->now = room;
	at->since_ns = now_ns;
	note_load(c, gpu);
}

int td_tandem_cluster_submit(struct td_tandem_cluster *c, uint32_t id,
	const struct td_tandem_request *request, uint64_t now_ns)
{
	if (id >= c->jobs_max || c->jobs[id].gpus || request->kind >= c->kinds || !request->gpus ||
		request->gpus > TD_GANG_MAX || request->gpus > c->antman.gpus.gpu_count)
		return -EINVAL;
	if (request->guaranteed) {
		const struct td_antman_request inner = {.tenant = request->tenant,
			.gpus = request->gpus,
			.kind = TD_JOB_GUARANTEED};
		int r = td_antman_submit(&c->antman, id, &inner, now_ns);

		if (r)
			return r;
	}
	c->jobs[id] = (struct td_tandem_job){.kind = request->kind,
		.gpus = request->gpus,
		.place = NONE,
		.next = NONE,
		.guest = !request->guaranteed,
		.queued = !request->guaranteed,
		.bytes = request->bytes,
		.submit_ns = now_ns,
		.looked_ns = now_ns};
	if (request->guaranteed)
		return 0;
	*(c->tail == NONE ? &c->head : &c->jobs[c->tail].next) = id;
	c->tail = id;
	return 0;
}

static void dequeue(struct td_tandem_cluster *c, uint32_t id)
{
	uint32_t before = NONE;

	for (uint32_t j = c->head; j != id; j = c->jobs[j].next)
		before = j;
	*(before == NONE ? &c->head : &c->jobs[before].next) = c->jobs[id].next;
	if (c->tail == id)
		c->tail = before;
	c->jobs[id].queued = false;
}

void td_tandem_cluster_finish(struct td_tandem_cluster *c, uint32_t id, uint64_t now_ns)
{
	uint32_t gpus[TD_GANG_MAX], count;

	if (id >= c->jobs_max || !c->jobs[id].gpus)
		return;
	count = td_tandem_cluster_gpus(c, id, gpus);
	if (c->jobs[id].queued) {
		dequeue(c, id);
	} else if (c->jobs[id].guest) {
		uint32_t last = c->running[--c->running_count];

		vacate(c, id);
		c->running[c->jobs[id].index] = last;
		c->jobs[last].index = c->jobs[id].index;
	} else {
		td_antman_finish(&c->antman, id, now_ns);
	}
	c->now_ns = now_ns;
	c->jobs[id].gpus = 0;
	for (uint32_t k = 0; k < count; k++)
		note_load(c, gpus[k]);
}

void td_tandem_cluster_observe(
	struct td_tandem_cluster *c, uint32_t kind, uint32_t other, bool held, double speed)
{
	float *seen;

	if (kind >= c->kinds || other >= c->kinds ||
		!(speed >= 0 && speed <= (held ? TD_TANDEM_OVER : 1)))
		return;
	seen = (held ? c->guarded : c->beside) + (size_t)kind * c->kinds + other;
	speed = fmax(speed, 0.001);
	*seen = (float)(*seen > 0 ? (*seen + speed) / 2 : speed);
}

/* --- decisions --- */

static uint32_t start_holders(struct td_tandem_cluster *c, uint64_t now_ns,
	struct td_tandem_action *actions, uint32_t room)
{
	struct td_antman_action inner[ACTIONS];
	uint32_t gpus[TD_GANG_MAX];
	uint32_t n = td_antman_step(&c->antman, now_ns, inner, room < ACTIONS ? room : ACTIONS);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t count = td_antman_gpus(&c->antman, inner[i].job, gpus);

		for (uint32_t k = 0; k < count; k++)
			note_load(c, gpus[k]);
		actions[i] = (struct td_tandem_action){TD_TANDEM_START, inner[i].job};
	}
	return n;
}

static bool start_guest(struct td_tandem_cluster *c, uint32_t id, bool idle_too, uint64_t now_ns)
{
	if (choose(c, id, idle_too, BY_NOW, c->params.gain_min) < c->jobs[id].gpus)
		return false;
	dequeue(c, id);
	settle(c, id, now_ns);
	c->jobs[id].index = c->running_count;
	c->running[c->running_count++] = id;
	return true;
}

/* Wherever this one would start the other one would, too. */
static bool asks_as_much(const struct td_tandem_job *job, const struct td_tandem_job *other)
{
	return job->kind == other->kind && job->gpus >= other->gpus && job->bytes >= other->bytes;
}

static uint32_t start_guests(struct td_tandem_cluster *c, uint64_t now_ns,
	struct td_tandem_action *actions, uint32_t room)
{
	uint32_t n = 0, failures = 0, failed = NONE; /* since the last start */
	bool idle_too = true;

	for (uint32_t id = c->head, next; id != NONE && n < room && failures < FAILURES;
		id = next) {
		bool in_vain = failed != NONE && asks_as_much(&c->jobs[id], &c->jobs[failed]);

		next = c->jobs[id].next;
		if (!in_vain && start_guest(c, id, idle_too, now_ns)) {
			actions[n++] = (struct td_tandem_action){TD_TANDEM_START_GUEST, id};
			failed = NONE;
			continue;
		}
		failures++;
		if (!in_vain)
			failed = id;
		idle_too &= now_ns - c->jobs[id].submit_ns < c->params.patience_ns;
	}
	return n;
}

/*
 * Returns the job's speed, which is that on the slowest of its GPUs. *ret_relief is the gain of the
 * others, per GPU, if it left all of them.
 */
static double speed_now(const struct td_tandem_cluster *c, uint32_t id, double *ret_relief)
{
	const struct td_tandem_job *job = &c->jobs[id];
	double speed = 1;

	*ret_relief = 0;
	for (uint32_t p = job->place; p != NONE; p = c->places[p].next) {
		struct company here = company_on(c, c->places[p].gpu, id, BY_MEAN);

		speed = fmin(speed, speed_among(c, &here, job->kind, NONE, NONE));
		for (uint32_t k = 0; k < here.count; k++)
			*ret_relief += (speed_among(c, &here, here.kinds[k], k, NONE) -
					       speed_among(c, &here, here.kinds[k], k, job->kind)) /
				       job->gpus;
	}
	return speed;
}

static struct td_tandem_stay note_stay(
	const struct td_tandem_cluster *c, uint32_t gpu, double speed)
{
	double room = mean_room(c, gpu);
	bool served = c->antman.gpus.holder[gpu] == TD_CLUSTER_SERVICE && room > 0;

	return (struct td_tandem_stay){gpu, room, served ? speed / room : 0, sum_of(c, gpu)};
}

/* Returns how far the room at a GPU was above its expectation since then. */
static double excess_of(
	const struct td_tandem_cluster *c, const struct td_tandem_stay *stay, double passed)
{
	return stay->ratio * ((sum_of(c, stay->gpu) - stay->sum) / passed - stay->room);
}

/* The last move has brought what it cost. Of a gang nothing but the promise is known. */
static bool has_paid(const struct td_tandem_cluster *c, const struct td_tandem_job *job)
{
	double passed = (double)(c->now_ns - job->since_ns), gain = job->promised;

	if (!job->moved)
		return true;
	if (job->gpus == 1 && passed > 0)
		gain += fmin(0, excess_of(c, &job->here, passed)) -
			fmax(0, excess_of(c, &job->left, passed));
	return passed * gain >= (double)c->params.move_ns;
}

/* Tells whether the last move is too long ago to count. */
static bool is_forgiven(const struct td_tandem_cluster *c, const struct td_tandem_job *job)
{
	return c->now_ns - job->since_ns >= c->params.window_ns << job->unpaid;
}

static bool try_move(struct td_tandem_cluster *c, uint32_t id, double below, uint64_t now_ns)
{
	struct td_tandem_job *job = &c->jobs[id];
	double relief, speed, own = 1, gain = 0;
	bool paid;

	if (now_ns - job->since_ns < c->params.settle_ns ||
		now_ns - job->looked_ns < c->params.settle_ns)
		return false;
	speed = speed_now(c, id, &relief);
	paid = has_paid(c, job);
	if (speed > below || !(paid || is_forgiven(c, job)))
		return false;
	job->looked_ns = now_ns;
	if (choose(c, id, true, BY_MEAN, speed - relief) < job->gpus)
		return false;
	for (uint32_t k = 0; k < job->gpus; k++) {
		own = fmin(own, c->choices[k].own);
		gain += (c->choices[k].score - c->choices[k].own) / job->gpus;
	}
	gain += own - speed + relief;
	if (gain < c->params.move_gain_min ||
		gain * (double)c->params.window_ns < (double)c->params.move_ns)
		return false;
	job->left = note_stay(c, c->places[job->place].gpu, speed);
	vacate(c, id);
	settle(c, id, now_ns);
	job->here = note_stay(c, c->places[job->place].gpu, own);
	job->moved = true;
	if (paid)
		job->unpaid -= job->unpaid > 0;
	else
		job->unpaid += job->unpaid < UNPAID_MAX;
	job->promised = gain;
	return true;
}

static uint32_t move_guests(struct td_tandem_cluster *c, uint64_t now_ns,
	struct td_tandem_action *actions, uint32_t room)
{
	uint32_t n = 0;

	if (now_ns - c->moved_ns < c->params.move_ns / 2)
		return 0;
	c->moved_ns = now_ns;
	if (room > MOVES_MAX)
		room = MOVES_MAX;
	for (int all = 0; all < 2; all++)
		for (uint32_t i = 0; i < c->running_count && n < room; i++)
			if (try_move(c, c->running[i], all ? 0.999 : SLOW, now_ns))
				actions[n++] =
					(struct td_tandem_action){TD_TANDEM_MOVE, c->running[i]};
	return n;
}

uint32_t td_tandem_cluster_step(struct td_tandem_cluster *c, uint64_t now_ns,
	struct td_tandem_action *ret_actions, uint32_t room)
{
	uint32_t n;

	c->now_ns = now_ns;
	n = start_holders(c, now_ns, ret_actions, room);
	n += start_guests(c, now_ns, ret_actions + n, room - n);
	return n + move_guests(c, now_ns, ret_actions + n, room - n);
}
