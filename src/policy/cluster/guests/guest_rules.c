/* The rules of guest_cluster.h: on which GPUs guests begin. */
#include <math.h>
#include <string.h>

#include "policy/cluster/baselines.h"
#include "policy/cluster/guests/guest_cluster.h"

#define NONE UINT32_MAX

/* --- GPUs --- */

static uint64_t bytes_on(const struct td_guest_cluster *c, uint32_t gpu)
{
	const struct td_inventory *v = &c->gpus;
	uint64_t bytes = v->holder[gpu] < c->jobs_max ? c->jobs[v->holder[gpu]].is.bytes : 0;

	for (uint32_t k = 0; k < v->guest_count[gpu]; k++)
		bytes += c->jobs[v->guest[(size_t)gpu * TD_GUESTS + k]].is.bytes;
	return bytes;
}

static bool is_held(const struct td_guest_cluster *c, uint32_t gpu)
{
	return c->gpus.holder[gpu] != TD_NO_JOB;
}

static bool is_open(const struct td_guest_cluster *c, uint32_t gpu)
{
	uint32_t most = c->params.rule == TD_GUEST_DCUDA ? TD_GUESTS : 1;

	return c->gpus.holder[gpu] != TD_CLUSTER_ABSENT && c->gpus.barred[gpu] == TD_BAR_NOTHING &&
	       c->gpus.guest_count[gpu] < most;
}

static double part_of(const struct td_guest_cluster *c, uint64_t bytes)
{
	return c->gpu_bytes ? (double)bytes / (double)c->gpu_bytes : 0;
}

static double demand_of(const struct td_guest_cluster *c, uint32_t job)
{
	return c->demands[c->jobs[job].is.kind];
}

static double core_of(const struct td_guest_cluster *c, uint32_t gpu)
{
	const struct td_inventory *v = &c->gpus;
	double core = v->holder[gpu] < c->jobs_max ? demand_of(c, v->holder[gpu]) : 0;

	for (uint32_t k = 0; k < v->guest_count[gpu]; k++)
		core += demand_of(c, v->guest[(size_t)gpu * TD_GUESTS + k]);
	return core;
}

static void touch_device(struct td_guest_cluster *c, uint32_t gpu)
{
	struct td_selector_device *device = &c->devices[gpu];
	uint64_t bytes = c->bytes[gpu];

	c->open_of[device->service] -= device->accepts;
	*device = (struct td_selector_device){.service = td_guest_pair(c, gpu),
		.tasks = c->gpus.guest_count[gpu],
		.accepts = c->is_open[gpu],
		.free_bytes = !c->gpu_bytes          ? UINT64_MAX
			      : bytes < c->gpu_bytes ? c->gpu_bytes - bytes
						     : 0};
	c->open_of[device->service] += device->accepts;
}

void td_guest_touch(struct td_guest_cluster *c, uint32_t gpu)
{
	uint64_t bytes = bytes_on(c, gpu);

	c->open_count -= c->is_open[gpu];
	c->is_open[gpu] = is_open(c, gpu);
	c->open_count += c->is_open[gpu];
	c->bytes[gpu] = bytes;
	if (c->core) {
		c->core[gpu] = c->is_open[gpu] ? core_of(c, gpu) : INFINITY;
		c->memory[gpu] = part_of(c, bytes);
	}
	if (c->devices)
		touch_device(c, gpu);
}

bool td_guest_may_use(
	const struct td_guest_cluster *c, const struct td_guest_job *job, uint32_t gpu)
{
	return td_inventory_is_in(&c->gpus, gpu, job->is.pool) &&
	       (!c->gpu_bytes || c->bytes[gpu] + job->is.bytes <= c->gpu_bytes);
}

bool td_guest_could_start(const struct td_guest_cluster *c, const struct td_guest_job *job)
{
	const struct td_inventory *v = &c->gpus;
	/* Holders with more GPUs than a node can have get whole nodes (inventory.h). */
	bool same_node = job->is.same_node && !(job->is.holds && job->is.gpus > v->node_gpus_max);
	uint32_t there = 0, here = 0;

	if (c->gpu_bytes && job->is.bytes > c->gpu_bytes)
		return false;
	for (uint32_t g = 0; g < v->gpu_count && there < job->is.gpus; g++) {
		if (!g || v->node[g] != v->node[g - 1])
			here = 0;
		if (v->holder[g] == TD_CLUSTER_ABSENT || !td_inventory_is_in(v, g, job->is.pool))
			continue;
		here++;
		there = same_node ? here : there + 1;
	}
	return there >= job->is.gpus;
}

/* Tells whether one GPU is enough, on any node. */
static bool is_plain(const struct td_guest_job *job)
{
	return job->is.gpus == 1 && job->is.pool == TD_ANYWHERE;
}

/*
 * Lists the GPUs for one more part of a job, of which `found` have a GPU. All parts of a job of one
 * node are on a node that has enough. Returns their number, in c->open.
 */
static uint32_t list_open(
	struct td_guest_cluster *c, const struct td_guest_job *job, uint32_t found)
{
	const struct td_inventory *v = &c->gpus;
	uint32_t n = 0, kept = 0;

	memset(c->open_on, 0, v->node_count * sizeof(*c->open_on));
	for (uint32_t g = 0; g < v->gpu_count; g++) {
		bool is_taken = false;

		for (uint32_t k = 0; k < found; k++)
			is_taken |= c->found[k] == g;
		if (is_taken || !c->is_open[g] || !td_guest_may_use(c, job, g))
			continue;
		c->open[n++] = g;
		c->open_on[v->node[g]]++;
	}
	if (!job->is.same_node)
		return n;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t node = v->node[c->open[k]];

		if (found ? node == v->node[c->found[0]] : c->open_on[node] >= job->is.gpus)
			c->open[kept++] = c->open[k];
	}
	return kept;
}

/* Returns which of the first n GPUs of c->open a job gets; NONE: none. */
typedef uint32_t choose_fn(struct td_guest_cluster *c, const struct td_guest_job *job, uint32_t n);

/* Starts a job on GPUs that are chosen one after the other. Returns false if it has to wait. */
static bool place(struct td_guest_cluster *c, uint32_t id, choose_fn *choose)
{
	const struct td_guest_job *job = &c->jobs[id];

	if (!c->open_count)
		return false;
	for (uint32_t k = 0; k < job->is.gpus; k++) {
		uint32_t n = list_open(c, job, k), at = n ? choose(c, job, n) : NONE;

		if (at == NONE)
			return false;
		c->found[k] = c->open[at];
	}
	td_guest_start(c, id);
	return true;
}

/* --- what is known --- */

uint32_t td_guest_pair(const struct td_guest_cluster *c, uint32_t gpu)
{
	uint32_t holder = c->gpus.holder[gpu];

	return c->gpu_kind[gpu] * (c->kinds + 1) +
	       (holder < c->jobs_max ? c->jobs[holder].is.kind : c->kinds);
}

static const struct td_guest_known *known_of(
	const struct td_guest_cluster *c, uint32_t gpu_kind, uint32_t kind)
{
	return &c->known[(size_t)gpu_kind * c->kinds + kind];
}

/* Returns what is known of the holder of a pair; NULL: nobody holds it. */
static const struct td_guest_known *holder_of(const struct td_guest_cluster *c, uint32_t pair)
{
	uint32_t kind = pair % (c->kinds + 1);

	return kind == c->kinds ? NULL : known_of(c, pair / (c->kinds + 1), kind);
}

static bool is_known_on(const struct td_guest_cluster *c, uint32_t gpu_kind, uint32_t kind)
{
	const struct td_guest_known *known = known_of(c, gpu_kind, kind);

	return c->params.rule == TD_GUEST_MUXFLOW ? known->speeds && known->is_measured
						  : known->has_layers;
}

bool td_guest_is_known(const struct td_guest_cluster *c, uint32_t kind)
{
	for (uint32_t g = 0; g < TD_GUEST_GPU_KINDS; g++)
		if (is_known_on(c, g, kind))
			return true;
	return false;
}

/* --- DCUDA --- */

static uint32_t choose_least_loaded(
	struct td_guest_cluster *c, const struct td_guest_job *job, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		c->listed_core[k] = c->core[c->open[k]];
		c->listed_memory[k] = c->memory[c->open[k]];
	}
	return td_balance_choose(&td_balance_default, c->listed_core, c->listed_memory, n,
		part_of(c, job->is.bytes));
}

/*
 * Looks at all GPUs, without a list of those that are open: most jobs need no more. Returns NONE if
 * the choice is not among the open ones, or lacks the memory.
 */
static uint32_t choose_quickly(const struct td_guest_cluster *c, const struct td_guest_job *job)
{
	uint32_t gpu = td_balance_choose(&td_balance_default, c->core, c->memory, c->gpus.gpu_count,
		part_of(c, job->is.bytes));

	return c->is_open[gpu] && td_guest_may_use(c, job, gpu) ? gpu : NONE;
}

static bool place_by_load(struct td_guest_cluster *c, uint32_t id)
{
	const struct td_guest_job *job = &c->jobs[id];
	uint32_t gpu = c->open_count && is_plain(job) ? choose_quickly(c, job) : NONE;

	if (gpu == NONE)
		return place(c, id, choose_least_loaded);
	c->found[0] = gpu;
	td_guest_start(c, id);
	return true;
}

static void start_dcuda(struct td_guest_cluster *c)
{
	bool waits = false;

	for (uint32_t id = c->guests.first, next; id != NONE && !waits; id = next) {
		next = c->jobs[id].next;
		waits = !place_by_load(c, id) && td_guest_could_start(c, &c->jobs[id]);
	}
}

/* --- Mudi --- */

/*
 * Computes the scores of a kind of guests beside services on a kind of GPU, if known. Services
 * without an open GPU are left out: a model may take microseconds for each.
 */
static void score(struct td_guest_cluster *c, uint32_t gpu_kind, uint32_t kind, double *scores)
{
	const struct td_guest_known *guest = known_of(c, gpu_kind, kind);
	const uint32_t *open = c->open_of + (size_t)gpu_kind * (c->kinds + 1);

	scores[c->kinds] = 0; /* nobody holds the GPU */
	for (uint32_t k = 0; guest->has_layers && k < c->kinds; k++) {
		const struct td_guest_known *holder = known_of(c, gpu_kind, k);

		if (open[k] && isnan(scores[k]) && holder->has_curves)
			scores[k] = td_mudi_score(&holder->curves, guest->layers);
	}
}

/* Returns the scores of a kind of guests for each open pair; NAN: not known. */
static const double *scores_of(struct td_guest_cluster *c, uint32_t kind)
{
	double *scores = c->scores + (size_t)kind * TD_GUEST_PAIRS(c->kinds);

	for (uint32_t g = 0; g < TD_GUEST_GPU_KINDS; g++)
		score(c, g, kind, scores + (size_t)g * (c->kinds + 1));
	return scores;
}

static uint32_t choose_flattest(
	struct td_guest_cluster *c, const struct td_guest_job *job, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		c->listed_devices[k] = c->devices[c->open[k]];
	return td_selector_choose(c->listed_devices, n, scores_of(c, job->is.kind), job->is.bytes,
		TD_SELECTOR_TASKS_MAX);
}

static bool place_by_slope(struct td_guest_cluster *c, uint32_t id)
{
	const struct td_guest_job *job = &c->jobs[id];

	if (!c->open_count || !is_plain(job))
		return place(c, id, choose_flattest);
	c->found[0] = td_selector_choose(c->devices, c->gpus.gpu_count, scores_of(c, job->is.kind),
		job->is.bytes, TD_SELECTOR_TASKS_MAX);
	if (c->found[0] == NONE)
		return false;
	td_guest_start(c, id);
	return true;
}

static void start_mudi(struct td_guest_cluster *c)
{
	memset(c->failed, 0, c->kinds * sizeof(*c->failed));
	for (uint32_t id = c->guests.first, next; id != NONE && c->open_count; id = next) {
		uint32_t kind = c->jobs[id].is.kind;
		bool is_any = is_plain(&c->jobs[id]) && !(c->gpu_bytes && c->jobs[id].is.bytes);

		next = c->jobs[id].next;
		if (!c->failed[kind] && !place_by_slope(c, id))
			c->failed[kind] |= is_any;
	}
}

/* --- MuxFlow --- */

static uint32_t choose_any(struct td_guest_cluster *c, const struct td_guest_job *job, uint32_t n)
{
	(void)job;
	return td_random_gpu(&c->random, n);
}

/* One of those that nobody holds. */
static uint32_t choose_unheld(
	struct td_guest_cluster *c, const struct td_guest_job *job, uint32_t n)
{
	uint32_t unheld = 0, chosen;

	(void)job;
	for (uint32_t k = 0; k < n; k++)
		unheld += !is_held(c, c->open[k]);
	chosen = unheld ? td_random_gpu(&c->random, unheld) : NONE;
	for (uint32_t k = 0; unheld && k < n; k++)
		if (!is_held(c, c->open[k]) && !chosen--)
			return k;
	return NONE;
}

float td_guest_weight(const struct td_guest_cluster *c, uint32_t pair, uint32_t kind)
{
	static const struct td_muxflow_profile nobody = {0};
	uint32_t gpu_kind = pair / (c->kinds + 1);
	const struct td_guest_known *holder = holder_of(c, pair);

	if (!is_known_on(c, gpu_kind, kind) || (holder && !holder->is_measured))
		return 0;
	return td_muxflow_weight(known_of(c, gpu_kind, kind)->speeds, &td_dynamic_sm_default,
		holder ? &holder->alone : &nobody, &known_of(c, gpu_kind, kind)->alone);
}

/* The weights are those of the matching before: what is open now was so then. */
static uint32_t choose_fastest(
	struct td_guest_cluster *c, const struct td_guest_job *job, uint32_t n)
{
	uint32_t best = NONE, column = 0;
	float most = 0;

	while (column < c->column_count && c->columns[column] != job->is.kind)
		column++;
	for (uint32_t k = 0; column < c->column_count && k < n; k++) {
		uint32_t row = c->row_of[c->open[k]];
		float weight = c->weights[(size_t)row * c->column_count + column];

		if (weight > most) {
			most = weight;
			best = k;
		}
	}
	return best;
}

/* Lists the pairs of the open GPUs. Returns their number. */
static uint32_t list_rows(struct td_guest_cluster *c)
{
	uint32_t rows = 0;

	for (uint32_t g = 0; g < c->gpus.gpu_count; g++) {
		uint32_t pair = td_guest_pair(c, g), row = 0;

		c->row_of[g] = NONE;
		if (!c->is_open[g])
			continue;
		while (row < rows && c->row_pair[row] != pair)
			row++;
		if (row == rows) {
			c->row_pair[rows] = pair;
			c->row_counts[rows++] = 0;
		}
		c->row_of[g] = row;
		c->row_counts[row]++;
	}
	return rows;
}

/* Lists the kinds of jobs of one GPU that wait. Returns their number. */
static uint32_t list_columns(struct td_guest_cluster *c)
{
	uint32_t *wanted = c->column_counts, columns = 0;

	memset(wanted, 0, c->kinds * sizeof(*wanted));
	for (uint32_t id = c->guests.first; id != NONE; id = c->jobs[id].next)
		wanted[c->jobs[id].is.kind] += c->jobs[id].is.gpus == 1;
	for (uint32_t k = 0; k < c->kinds; k++) {
		if (!wanted[k] || !td_guest_is_known(c, k))
			continue;
		c->columns[columns] = k;
		wanted[columns++] = wanted[k] < c->gpus.gpu_count ? wanted[k] : c->gpus.gpu_count;
	}
	return columns;
}

/* Starts the first waiting job of a kind that may use the GPU. */
static void start_one(struct td_guest_cluster *c, uint32_t kind, uint32_t gpu)
{
	for (uint32_t id = c->guests.first; id != NONE; id = c->jobs[id].next) {
		const struct td_guest_job *job = &c->jobs[id];

		if (job->is.gpus != 1 || job->is.kind != kind || !td_guest_may_use(c, job, gpu))
			continue;
		c->found[0] = gpu;
		td_guest_start(c, id);
		return;
	}
}

static void match(struct td_guest_cluster *c)
{
	uint32_t rows = list_rows(c), columns = list_columns(c), at = 0;
	const struct td_match_problem problem = {.weights = c->weights,
		.stride = columns,
		.rows = rows,
		.columns = columns,
		.row_counts = c->row_counts,
		.column_counts = c->column_counts};
	struct td_match_result result;
	struct td_match *solved;

	c->column_count = columns;
	for (uint32_t r = 0; r < rows; r++)
		for (uint32_t k = 0; k < columns; k++)
			c->weights[(size_t)r * columns + k] =
				td_guest_weight(c, c->row_pair[r], c->columns[k]);
	if (!rows || !columns ||
		td_match_solve(&problem, &td_match_default, c->match_memory, c->match_bytes,
			c->matched, &result, &solved) < 0)
		return;
	for (uint32_t r = 0; r < rows; r++) { /* where the copies of a row begin */
		uint32_t count = c->row_counts[r];

		c->row_counts[r] = at;
		at += count;
	}
	for (uint32_t g = 0; g < c->gpus.gpu_count; g++) {
		uint32_t column = c->row_of[g] == NONE ? TD_MATCH_NONE
						       : c->matched[c->row_counts[c->row_of[g]]++];

		if (column != TD_MATCH_NONE)
			start_one(c, c->columns[column], g);
	}
}

static void start_muxflow(struct td_guest_cluster *c)
{
	bool waits = false;

	td_guest_exchange_guests(c);
	for (uint32_t id = c->guests.first, next; id != NONE && !waits; id = next) {
		next = c->jobs[id].next;
		waits = c->jobs[id].is.gpus > 1 && !place(c, id, choose_any) &&
			td_guest_could_start(c, &c->jobs[id]);
	}
	match(c);
	for (uint32_t id = c->guests.first, next; id != NONE && c->open_count; id = next) {
		const struct td_guest_request is = c->jobs[id].is;

		next = c->jobs[id].next;
		if (is.gpus > 1)
			continue;
		if (!td_guest_is_known(c, is.kind))
			(void)place(c, id, choose_unheld);
		else if (is.pool != TD_ANYWHERE || (c->gpu_bytes && is.bytes))
			(void)place(c, id, choose_fastest);
	}
}

void td_guest_start_guests(struct td_guest_cluster *c, uint64_t now_ns)
{
	switch (c->params.rule) {
	case TD_GUEST_DCUDA:
		if (c->changed)
			start_dcuda(c);
		return;
	case TD_GUEST_MUDI:
		if (c->changed)
			start_mudi(c);
		return;
	case TD_GUEST_MUXFLOW: break;
	}
	if (c->has_matched && now_ns - c->matched_ns < c->params.match_ns)
		return;
	c->has_matched = true;
	c->matched_ns = now_ns;
	start_muxflow(c);
}
