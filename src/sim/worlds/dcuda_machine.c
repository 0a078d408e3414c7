/* Steps four GPUs and their applications every 100 ms; see dcuda_machine.h. */
#include "sim/worlds/dcuda_machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policy/cluster/baselines.h"
#include "policy/cluster/tandem_cluster.h"
#include "policy/system/dcuda.h"

#define STEP_S      0.1
#define MIGRATION_S 0.1 /* the paper: "less than 100 ms" */
#define THRASH      5.2 /* from Fig. 3: 1.5 times as long at 112 % */
/* Maximum number of applications for an exact search; more would take too long. */
#define EXACT_APPS 12
#define NOWHERE    UINT32_MAX /* GPU of an application that waits */

struct machine {
	struct td_dcuda_how how;
	struct td_contention contention;
	double gpu_gib; /* 0: memory is not limited */
	struct td_dcuda_machine_app *apps;
	uint32_t count, arrived;
	double now_s;
	struct td_dcuda_outcome *out;
	uint32_t live[TD_DCUDA_MACHINE_APPS], live_count;
	/* The GPUs of the last placement by the truth. */
	uint32_t placed[TD_DCUDA_MACHINE_APPS], placed_count;
	struct td_tandem_cluster *cluster; /* used by the system tandem */
};

static double core_on(const struct machine *m, uint32_t gpu)
{
	double sum = 0;

	for (uint32_t i = 0; i < m->live_count; i++)
		sum += m->apps[m->live[i]].gpu == gpu ? m->apps[m->live[i]].core : 0;
	return sum;
}

static uint32_t count_on(const struct machine *m, uint32_t gpu)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < m->live_count; i++)
		count += m->apps[m->live[i]].gpu == gpu;
	return count;
}

static double memory_on(const struct machine *m, uint32_t gpu)
{
	double sum = 0;

	for (uint32_t i = 0; i < m->live_count; i++)
		sum += m->apps[m->live[i]].gpu == gpu ? m->apps[m->live[i]].memory_gib : 0;
	return m->gpu_gib > 0 ? sum / m->gpu_gib : 0;
}

/*
 * Returns by which factor all applications on a GPU become slower when they use this part of its
 * memory in total.
 */
static double thrash_of(const struct machine *m, double memory)
{
	return td_thrash_slowdown((uint64_t)(memory * 1e9),
		m->gpu_gib > 0 ? 1000000000 : UINT64_MAX,
		m->how.worst_thrash > 0 ? m->how.worst_thrash : THRASH);
}

/*
 * Returns the factor for the running applications. running: memory of those that run in this slice;
 * all: of all on the GPU; both as parts of the GPU's.
 */
static double thrash_among(const struct machine *m, double running, double all)
{
	if (m->how.in_place)
		return thrash_of(m, running);
	if (m->how.own_pages && all > 0)
		return 1 + (thrash_of(m, all) - 1) * running / all;
	return thrash_of(m, all);
}

static struct td_dcuda_params params_of(const struct machine *m)
{
	struct td_dcuda_params params = td_dcuda_default;

	params.balance.memory_aware = m->how.memory;
	params.compact = m->how.compact;
	if (m->how.group_slack > 0)
		params.group_slack = m->how.group_slack;
	return params;
}

/* Computes the speeds of applications that run on one GPU at once. */
static void speeds_together(const struct machine *m, const struct td_contender *contenders,
	uint32_t count, double *ret_speeds)
{
	double core = 0;

	td_contention_speeds(&m->contention, contenders, count, ret_speeds);
	for (uint32_t i = 0; i < count; i++)
		core += contenders[i].demand;
	for (uint32_t i = 0; m->how.fit_is_free && core <= 1 && i < count; i++)
		ret_speeds[i] = 1;
}

/* Returns the sum of the speeds of a group's applications, where 1 is one alone. */
static double done_by_group(const struct machine *m, const struct td_contender *contenders,
	const struct td_fair_member *members, uint32_t count, uint32_t group)
{
	struct td_contender together[TD_DCUDA_MACHINE_APPS];
	double speeds[TD_DCUDA_MACHINE_APPS], sum = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++)
		if (members[i].group == group)
			together[n++] = contenders[i];
	if (!n)
		return 0;
	speeds_together(m, together, n, speeds);
	for (uint32_t i = 0; i < n; i++)
		sum += speeds[i];
	return sum;
}

/* Returns the sum of the speeds of the applications on a GPU, with slices by group in turn. */
static double done_on(const struct machine *m, uint32_t gpu)
{
	struct td_contender contenders[TD_DCUDA_MACHINE_APPS];
	struct td_fair_member members[TD_DCUDA_MACHINE_APPS];
	uint32_t order[TD_DCUDA_MACHINE_APPS], n = 0, groups = 1;
	double sum = 0;

	for (uint32_t i = 0; i < m->live_count; i++) {
		const struct td_dcuda_machine_app *app = &m->apps[m->live[i]];

		if (app->gpu != gpu)
			continue;
		members[n] = (struct td_fair_member){.core = app->core,
			.memory = m->gpu_gib > 0 ? app->memory_gib / m->gpu_gib : 0};
		contenders[n++] = app->contender;
	}
	if (m->how.slices && n)
		groups = td_fair_groups(members, n, params_of(m).group_slack, order);
	for (uint32_t group = 0; group < groups; group++)
		sum += done_by_group(m, contenders, members, n, group) / groups;
	return sum / thrash_of(m, memory_on(m, gpu));
}

/*
 * Computes the sum of speeds of each set of live applications on one GPU. ret has 1 << live_count
 * entries.
 */
static void value_sets(struct machine *m, float *ret)
{
	uint32_t before[TD_DCUDA_MACHINE_APPS];

	for (uint32_t i = 0; i < m->live_count; i++)
		before[i] = m->apps[m->live[i]].gpu;
	for (uint32_t set = 0; set < 1u << m->live_count; set++) {
		for (uint32_t i = 0; i < m->live_count; i++)
			m->apps[m->live[i]].gpu = set >> i & 1 ? 0 : NOWHERE;
		ret[set] = (float)done_on(m, 0);
	}
	for (uint32_t i = 0; i < m->live_count; i++)
		m->apps[m->live[i]].gpu = before[i];
}

/*
 * Finds the best assignment. For each set it computes the best joint speed on so many GPUs, and the
 * subset on the last of them. The application with the lowest number is on the last GPU, so that no
 * assignment is tried twice.
 */
static void place_exactly(struct machine *m)
{
	static float alone[1 << EXACT_APPS], most[TD_DCUDA_MACHINE_GPUS][1 << EXACT_APPS];
	static uint16_t last[TD_DCUDA_MACHINE_GPUS][1 << EXACT_APPS];
	uint32_t all = (1u << m->live_count) - 1, left = all;

	value_sets(m, alone);
	for (uint32_t set = 0; set <= all; set++) {
		most[0][set] = alone[set];
		last[0][set] = (uint16_t)set;
	}
	for (uint32_t g = 1; g < TD_DCUDA_MACHINE_GPUS; g++) {
		most[g][0] = 0;
		last[g][0] = 0;
		for (uint32_t set = 1; set <= all; set++) {
			uint32_t lowest = set & -set, others = set ^ lowest;

			most[g][set] = -1;
			for (uint32_t some = others;; some = (some - 1) & others) {
				float sum = alone[some | lowest] + most[g - 1][others ^ some];

				if (sum > most[g][set]) {
					most[g][set] = sum;
					last[g][set] = (uint16_t)(some | lowest);
				}
				if (!some)
					break;
			}
		}
	}
	for (uint32_t g = TD_DCUDA_MACHINE_GPUS; g--;) {
		for (uint32_t i = 0; i < m->live_count; i++)
			if (last[g][left] >> i & 1)
				m->apps[m->live[i]].gpu = g;
		left ^= last[g][left];
	}
}

/* Moves one application to the GPU where all together are fastest. Returns true if it has moved. */
static bool improve(struct machine *m, struct td_dcuda_machine_app *app)
{
	uint32_t before = app->gpu, best = NOWHERE;
	double most = 0;

	for (uint32_t g = 0; g < TD_DCUDA_MACHINE_GPUS; g++) {
		double with, without;

		app->gpu = g;
		with = done_on(m, g);
		app->gpu = NOWHERE;
		without = done_on(m, g);
		with -= without;
		if (g == before)
			with += 1e-9; /* an application moves only if that gains */
		if (best != NOWHERE && !(with > most))
			continue;
		most = with;
		best = g;
	}
	app->gpu = best;
	return best != before;
}

/*
 * Finds the best assignment exactly if the applications are few. For more it finds one that no
 * single move improves. Each move is an improvement, so this ends; the limit of rounds is there for
 * rounding errors.
 */
static void place_by_truth(struct machine *m)
{
	bool moved = true;

	if (m->placed_count == m->live_count &&
		!memcmp(m->placed, m->live, m->live_count * sizeof(m->live[0])))
		return;
	memcpy(m->placed, m->live, m->live_count * sizeof(m->live[0]));
	m->placed_count = m->live_count;
	if (m->live_count <= EXACT_APPS) {
		place_exactly(m);
		return;
	}
	for (uint32_t round = 0; moved && round < 20; round++) {
		moved = false;
		for (uint32_t i = 0; i < m->live_count; i++)
			moved |= improve(m, &m->apps[m->live[i]]);
	}
}

static void view(const struct machine *m, struct td_balance_app *apps)
{
	for (uint32_t i = 0; i < m->live_count; i++) {
		const struct td_dcuda_machine_app *app = &m->apps[m->live[i]];

		apps[i] = (struct td_balance_app){app->gpu, app->core,
			m->gpu_gib > 0 ? app->memory_gib / m->gpu_gib : 0, true};
	}
}

/*
 * Returns the GPU with the most memory in use. *ret_room: some GPU has this much left, within
 * DCUDA's watermark.
 */
static uint32_t fullest(const struct machine *m, double memory, bool *ret_room)
{
	double limit = params_of(m).balance.memory;
	uint32_t best = 0;

	*ret_room = false;
	for (uint32_t g = 0; g < TD_DCUDA_MACHINE_GPUS; g++) {
		if (memory_on(m, g) > memory_on(m, best))
			best = g;
		*ret_room |= memory_on(m, g) + memory <= limit;
	}
	return best;
}

static void start(struct machine *m)
{
	struct td_dcuda_machine_app *app = &m->apps[m->arrived];
	bool room;
	uint32_t stack = fullest(m, m->gpu_gib > 0 ? app->memory_gib / m->gpu_gib : 0, &room);

	m->out->without_room += !room;

	if (m->how.tandem) {
		const struct td_tandem_request request = {.gpus = 1,
			.kind = m->arrived,
			.bytes = (uint64_t)(app->memory_gib * 0x1p30)};

		app->gpu = NOWHERE;
		(void)td_tandem_cluster_submit(
			m->cluster, m->arrived, &request, (uint64_t)(m->now_s * 1e9));
	} else if (m->how.truth) {
		app->gpu = NOWHERE;
	} else if (!m->how.dcuda) {
		struct td_pack_gpu gpus[TD_DCUDA_MACHINE_GPUS];

		for (uint32_t g = 0; g < TD_DCUDA_MACHINE_GPUS; g++)
			gpus[g] = (struct td_pack_gpu){
				m->how.by_count ? (double)count_on(m, g) : core_on(m, g),
				UINT64_MAX};
		app->gpu = td_least_loaded(gpus, TD_DCUDA_MACHINE_GPUS);
	} else {
		struct td_dcuda_params params = params_of(m);
		struct td_balance_app apps[TD_DCUDA_MACHINE_APPS];

		view(m, apps);
		app->gpu = td_balance_start(&params.balance, apps, m->live_count,
			TD_DCUDA_MACHINE_GPUS,
			m->how.memory && m->gpu_gib > 0 ? app->memory_gib / m->gpu_gib : 0);
		if (m->how.stack && !room)
			app->gpu = stack;
	}
	app->left_s = app->work_s;
	app->paused_until_s = 0;
	m->live[m->live_count++] = m->arrived++;
}

static void place(struct machine *m)
{
	struct td_tandem_action actions[TD_DCUDA_MACHINE_APPS];
	uint32_t count = td_tandem_cluster_step(
		m->cluster, (uint64_t)(m->now_s * 1e9), actions, TD_DCUDA_MACHINE_APPS);

	for (uint32_t a = 0; a < count; a++) {
		struct td_dcuda_machine_app *app = &m->apps[actions[a].job];
		uint32_t gpus[TD_GANG_MAX];

		(void)td_tandem_cluster_gpus(m->cluster, actions[a].job, gpus);
		app->gpu = gpus[0];
		if (actions[a].verb != TD_TANDEM_MOVE)
			continue;
		app->paused_until_s = m->now_s + MIGRATION_S;
		m->out->migrations++;
	}
}

/* Decides which applications run in this slice. */
static void choose_running(struct machine *m, bool *runs)
{
	struct td_dcuda_params params = params_of(m);
	struct td_balance_app apps[TD_DCUDA_MACHINE_APPS];
	static struct td_dcuda_plan plan;

	for (uint32_t i = 0; i < m->live_count; i++)
		runs[i] = true;
	if (m->how.tandem)
		place(m);
	if (m->how.truth)
		place_by_truth(m);
	if ((!m->how.dcuda && !(m->how.truth && m->how.slices)) || !m->live_count)
		return;
	view(m, apps);
	for (uint32_t i = 0; i < m->live_count; i++)
		apps[i].movable = m->how.dcuda;
	if (td_dcuda_step(&params, apps, m->live_count, TD_DCUDA_MACHINE_GPUS,
		    (uint64_t)(m->now_s * 1e9 + 0.5), &plan))
		return;
	for (uint32_t i = 0; i < m->live_count; i++) {
		struct td_dcuda_machine_app *app = &m->apps[m->live[i]];

		runs[i] = !m->how.slices || plan.runs[i];
		if (apps[i].gpu == app->gpu)
			continue;
		app->gpu = apps[i].gpu;
		app->paused_until_s = m->now_s + MIGRATION_S;
		m->out->migrations++;
	}
}

/*
 * Returns the part of a GPU that the running applications use in this slice. Waiting ones use
 * nothing.
 */
static double used_of(const struct machine *m, uint32_t gpu, const bool *runs)
{
	double sum = 0;

	for (uint32_t i = 0; i < m->live_count; i++) {
		const struct td_dcuda_machine_app *app = &m->apps[m->live[i]];

		if (app->gpu == gpu && runs[i] && app->paused_until_s <= m->now_s)
			sum += app->core;
	}
	return fmin(1, sum);
}

static void measure(struct machine *m, const bool *runs)
{
	bool over = false, under = false;

	for (uint32_t g = 0; g < TD_DCUDA_MACHINE_GPUS; g++) {
		double core = core_on(m, g);

		m->out->overloaded[g] += core > 1 ? STEP_S : 0;
		m->out->memory_overloaded[g] += memory_on(m, g) > 1 ? STEP_S : 0;
		*(core > 0 ? &m->out->active_s : &m->out->idle_s) += STEP_S;
		m->out->busy_s += used_of(m, g, runs) * STEP_S;
		over |= core > 1;
		under |= core < 0.5;
	}
	m->out->imbalance += over && under ? STEP_S : 0;
	m->out->total_s += STEP_S;
}

static void progress_gpu(struct machine *m, uint32_t gpu, const bool *runs)
{
	struct td_contender contenders[TD_DCUDA_MACHINE_APPS];
	uint32_t who[TD_DCUDA_MACHINE_APPS], n = 0;
	double speeds[TD_DCUDA_MACHINE_APPS], thrash, running = 0;

	for (uint32_t i = 0; i < m->live_count; i++) {
		const struct td_dcuda_machine_app *app = &m->apps[m->live[i]];

		if (app->gpu != gpu || !runs[i] || app->paused_until_s > m->now_s)
			continue;
		running += m->gpu_gib > 0 ? app->memory_gib / m->gpu_gib : 0;
		contenders[n] = app->contender;
		who[n++] = m->live[i];
	}
	if (!n)
		return;
	speeds_together(m, contenders, n, speeds);
	if (m->how.tandem && n == 2)
		for (int k = 0; k < 2; k++)
			td_tandem_cluster_observe(m->cluster, who[k], who[!k], false, speeds[k]);
	thrash = thrash_among(m, running, memory_on(m, gpu));
	for (uint32_t k = 0; k < n; k++) {
		struct td_dcuda_machine_app *app = &m->apps[who[k]];
		double speed = speeds[k] / thrash;

		if (app->left_s <= speed * STEP_S)
			app->end_s = m->now_s + app->left_s / speed;
		app->left_s -= speed * STEP_S;
	}
}

static void reap(struct machine *m)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < m->live_count; i++) {
		if (m->apps[m->live[i]].left_s > 0)
			m->live[kept++] = m->live[i];
		else if (m->how.tandem)
			td_tandem_cluster_finish(
				m->cluster, m->live[i], (uint64_t)(m->now_s * 1e9));
	}
	m->live_count = kept;
}

static void summarise(struct machine *m)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < m->count; i++) {
		const struct td_dcuda_machine_app *app = &m->apps[i];
		double slowdown = (app->end_s - app->arrive_s) / app->work_s;

		m->out->slowdown += slowdown / m->count;
		m->out->qos += slowdown < 1.2 ? 1. / m->count : 0;
		sum += 1 / slowdown;
		squares += 1 / (slowdown * slowdown);
	}
	m->out->jain = sum * sum / (m->count * squares);
	m->out->utilisation = m->out->busy_s / (TD_DCUDA_MACHINE_GPUS * m->out->total_s);
	m->out->imbalance /= m->out->total_s;
	for (uint32_t g = 0; g < TD_DCUDA_MACHINE_GPUS; g++) {
		m->out->overloaded[g] /= m->out->total_s;
		m->out->memory_overloaded[g] /= m->out->total_s;
	}
}

/*
 * Prepares tandem's scheduler. Each application is a kind of its own, because only its demands are
 * known.
 */
static void begin_tandem(struct machine *m)
{
	static _Alignas(64) char memory[1 << 17];
	static struct td_tandem_cluster cluster;
	static const uint32_t nodes[] = {TD_DCUDA_MACHINE_GPUS}, quotas[] = {TD_DCUDA_MACHINE_GPUS};
	double demands[TD_DCUDA_MACHINE_APPS];
	struct td_tandem_cluster_params params =
		td_tandem_cluster_params_of((uint64_t)(MIGRATION_S * 1e9));

	for (uint32_t i = 0; i < m->count; i++)
		demands[i] = m->apps[i].core;
	/*
	 * An application of this model cannot save its state and leave, so the others wait until it
	 * ends.
	 */
	params.preempts = false;
	params.share_min = 0;
	m->cluster = &cluster;
	if (td_tandem_cluster_init(&cluster, memory, sizeof(memory), &params, nodes, 1,
		    (uint64_t)(m->gpu_gib * 0x1p30), quotas, 1, m->count, demands, m->count))
		abort(); /* the memory is too small, which is our own bug */
}

struct td_dcuda_outcome td_dcuda_simulate(struct td_dcuda_how how,
	const struct td_contention *contention, double gpu_gib, struct td_dcuda_machine_app *apps,
	uint32_t count)
{
	struct td_dcuda_outcome out = {0};
	struct machine m = {.how = how,
		.contention = *contention,
		.gpu_gib = gpu_gib,
		.apps = apps,
		.count = count,
		.out = &out};
	bool runs[TD_DCUDA_MACHINE_APPS];

	if (how.tandem)
		begin_tandem(&m);
	while ((m.arrived < count || m.live_count) && m.now_s < 36000) {
		while (m.arrived < count && apps[m.arrived].arrive_s <= m.now_s + 1e-9)
			start(&m);
		choose_running(&m, runs);
		measure(&m, runs);
		for (uint32_t g = 0; g < TD_DCUDA_MACHINE_GPUS; g++)
			progress_gpu(&m, g, runs);
		m.now_s += STEP_S;
		reap(&m);
	}
	summarise(&m);
	return out;
}
