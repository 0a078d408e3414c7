/*
 * dcuda and dcuda-memory: four GPUs of one node, twenty applications, least-loaded placement against DCUDA's balancing.
 *
 * Profiles are not public. Demands for cores are drawn and scaled by one factor so that LEAST-LOADED ALONE is imbalanced as often as the paper's Fig. 2 says; power is fitted to Least-Loaded's three totals;
 * thrashing to Fig. 3. None of these sees DCUDA. The node is stepped every 100 ms, DCUDA's own slice. Contention is shown twice: proportional (demands beyond 1 share the time), and
 * the fitted model, where an application has the numbers of the P100 job at the same place in the order of demands. Nothing is capped here, so that doubled and halved pressure under caps are the same run.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/baselines.h"
#include "policy/dcuda.h"
#include "policy/tandem_cluster.h"
#include "sim/experiment.h"
#include "sim/random.h"

#define GPUS        4u
#define APPS_MAX    40u
#define ORDERS      50u
#define STEP_S      0.1
#define MIGRATION_S 0.1 /* "less than 100 ms" */
#define THRASH      5.2 /* Fig. 3: 1.5 x at 112 % */
#define IDLE_W      15.
#define NOWHERE     UINT32_MAX /* the GPU of an application that waits */

struct app {
	double arrive_s, work_s, core, memory_gib;
	struct td_contender contender;
	/* of the run */
	uint32_t gpu;
	double left_s, end_s, paused_until_s;
};

/* Least-loaded: by demands, or by the number of applications; or DCUDA with some of its parts. */
struct how {
	bool dcuda, memory, compact, slices, by_count;
	bool tandem; /* tandem_cluster.h places, and an application may wait */
};

static const struct how dcuda_whole = {true, true, true, true, false, false};
static const struct how dcuda_balance = {true, true, false, false, false, false};
static const struct how tandem = {.tandem = true};

struct outcome {
	double overloaded[GPUS], memory_overloaded[GPUS], imbalance; /* parts of the time */
	double slowdown, jain, utilisation, total_s, qos;
	double active_s, busy_s,
		idle_s; /* GPU-seconds: with an application, of utilisation, without */
	uint32_t migrations;
};

struct machine {
	struct how how;
	struct td_contention contention;
	double gpu_gib; /* 0: memory does not matter */
	struct app *apps;
	uint32_t count, arrived;
	double now_s;
	struct outcome *out;
	uint32_t live[APPS_MAX], live_count;
	struct td_tandem_cluster *cluster; /* tandem's */
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

static struct td_dcuda_params params_of(const struct machine *m)
{
	struct td_dcuda_params params = td_dcuda_default;

	params.balance.memory_aware = m->how.memory;
	params.compact = m->how.compact;
	return params;
}

static void view(const struct machine *m, struct td_balance_app *apps)
{
	for (uint32_t i = 0; i < m->live_count; i++) {
		const struct app *app = &m->apps[m->live[i]];

		apps[i] = (struct td_balance_app){app->gpu, app->core,
			m->gpu_gib > 0 ? app->memory_gib / m->gpu_gib : 0, true};
	}
}

static void start(struct machine *m)
{
	struct app *app = &m->apps[m->arrived];

	if (m->how.tandem) {
		const struct td_tandem_request request = {.gpus = 1,
			.kind = m->arrived,
			.bytes = (uint64_t)(app->memory_gib * 0x1p30)};

		app->gpu = NOWHERE;
		(void)td_tandem_cluster_submit(
			m->cluster, m->arrived, &request, (uint64_t)(m->now_s * 1e9));
	} else if (!m->how.dcuda) {
		struct td_pack_gpu gpus[GPUS];

		for (uint32_t g = 0; g < GPUS; g++)
			gpus[g] = (struct td_pack_gpu){
				m->how.by_count ? (double)count_on(m, g) : core_on(m, g),
				UINT64_MAX};
		app->gpu = td_least_loaded(gpus, GPUS);
	} else {
		struct td_dcuda_params params = params_of(m);
		struct td_balance_app apps[APPS_MAX];

		view(m, apps);
		app->gpu = td_balance_start(&params.balance, apps, m->live_count, GPUS,
			m->how.memory && m->gpu_gib > 0 ? app->memory_gib / m->gpu_gib : 0);
	}
	app->left_s = app->work_s;
	app->paused_until_s = 0;
	m->live[m->live_count++] = m->arrived++;
}

static void place(struct machine *m)
{
	struct td_tandem_action actions[APPS_MAX];
	uint32_t count =
		td_tandem_cluster_step(m->cluster, (uint64_t)(m->now_s * 1e9), actions, APPS_MAX);

	for (uint32_t a = 0; a < count; a++) {
		struct app *app = &m->apps[actions[a].job];
		uint32_t gpus[TD_GANG_MAX];

		(void)td_tandem_cluster_gpus(m->cluster, actions[a].job, gpus);
		app->gpu = gpus[0];
		if (actions[a].verb != TD_TANDEM_MOVE)
			continue;
		app->paused_until_s = m->now_s + MIGRATION_S;
		m->out->migrations++;
	}
}

/* Which applications run in this slice. */
static void decide(struct machine *m, bool *runs)
{
	struct td_dcuda_params params = params_of(m);
	struct td_balance_app apps[APPS_MAX];
	static struct td_dcuda_plan plan;

	for (uint32_t i = 0; i < m->live_count; i++)
		runs[i] = true;
	if (m->how.tandem)
		place(m);
	if (!m->how.dcuda || !m->live_count)
		return;
	view(m, apps);
	if (td_dcuda_step(
		    &params, apps, m->live_count, GPUS, (uint64_t)(m->now_s * 1e9 + 0.5), &plan))
		return;
	for (uint32_t i = 0; i < m->live_count; i++) {
		struct app *app = &m->apps[m->live[i]];

		runs[i] = !m->how.slices || plan.runs[i];
		if (apps[i].gpu == app->gpu)
			continue;
		app->gpu = apps[i].gpu;
		app->paused_until_s = m->now_s + MIGRATION_S;
		m->out->migrations++;
	}
}

static void measure(struct machine *m)
{
	bool over = false, under = false;

	for (uint32_t g = 0; g < GPUS; g++) {
		double core = core_on(m, g);

		m->out->overloaded[g] += core > 1 ? STEP_S : 0;
		m->out->memory_overloaded[g] += memory_on(m, g) > 1 ? STEP_S : 0;
		*(core > 0 ? &m->out->active_s : &m->out->idle_s) += STEP_S;
		m->out->busy_s += fmin(1, core) * STEP_S;
		over |= core > 1;
		under |= core < 0.5;
	}
	m->out->imbalance += over && under ? STEP_S : 0;
	m->out->total_s += STEP_S;
}

static void progress_gpu(struct machine *m, uint32_t gpu, const bool *runs)
{
	struct td_contender contenders[APPS_MAX];
	uint32_t who[APPS_MAX], n = 0;
	double speeds[APPS_MAX], thrash;

	for (uint32_t i = 0; i < m->live_count; i++) {
		const struct app *app = &m->apps[m->live[i]];

		if (app->gpu != gpu || !runs[i] || app->paused_until_s > m->now_s)
			continue;
		contenders[n] = app->contender;
		who[n++] = m->live[i];
	}
	if (!n)
		return;
	td_contention_speeds(&m->contention, contenders, n, speeds);
	if (m->how.tandem && n == 2)
		for (int k = 0; k < 2; k++)
			td_tandem_cluster_observe(m->cluster, who[k], who[!k], false, speeds[k]);
	thrash = td_thrash_slowdown((uint64_t)(memory_on(m, gpu) * 1e9),
		m->gpu_gib > 0 ? 1000000000 : UINT64_MAX, THRASH);
	for (uint32_t k = 0; k < n; k++) {
		struct app *app = &m->apps[who[k]];
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
		const struct app *app = &m->apps[i];
		double slowdown = (app->end_s - app->arrive_s) / app->work_s;

		m->out->slowdown += slowdown / m->count;
		m->out->qos += slowdown < 1.2 ? 1. / m->count : 0;
		sum += 1 / slowdown;
		squares += 1 / (slowdown * slowdown);
	}
	m->out->jain = sum * sum / (m->count * squares);
	m->out->utilisation = m->out->busy_s / (GPUS * m->out->total_s);
	m->out->imbalance /= m->out->total_s;
	for (uint32_t g = 0; g < GPUS; g++) {
		m->out->overloaded[g] /= m->out->total_s;
		m->out->memory_overloaded[g] /= m->out->total_s;
	}
}

/* Everybody is a kind of its own: nothing is known of an application but its demands. */
static void begin_tandem(struct machine *m)
{
	static _Alignas(64) char memory[1 << 17];
	static struct td_tandem_cluster cluster;
	static const uint32_t nodes[] = {GPUS}, quotas[] = {GPUS};
	double demands[APPS_MAX];

	for (uint32_t i = 0; i < m->count; i++)
		demands[i] = m->apps[i].core;
	m->cluster = &cluster;
	if (td_tandem_cluster_init(&cluster, memory, sizeof(memory), &td_tandem_cluster_default,
		    nodes, 1, (uint64_t)(m->gpu_gib * 0x1p30), quotas, 1, m->count, demands,
		    m->count))
		abort(); /* the memory is too small: a bug of ours */
}

static struct outcome simulate(struct how how, const struct td_contention *contention,
	double gpu_gib, struct app *apps, uint32_t count)
{
	struct outcome out = {0};
	struct machine m = {.how = how,
		.contention = *contention,
		.gpu_gib = gpu_gib,
		.apps = apps,
		.count = count,
		.out = &out};
	bool runs[APPS_MAX];

	if (how.tandem)
		begin_tandem(&m);
	while ((m.arrived < count || m.live_count) && m.now_s < 36000) {
		while (m.arrived < count && apps[m.arrived].arrive_s <= m.now_s + 1e-9)
			start(&m);
		decide(&m, runs);
		measure(&m);
		for (uint32_t g = 0; g < GPUS; g++)
			progress_gpu(&m, g, runs);
		m.now_s += STEP_S;
		reap(&m);
	}
	summarise(&m);
	return out;
}

/* The fitted numbers of the P100 job that is as far up in the order of demands as this application. */
static struct td_contender kind_of(const struct td_profiles *profiles, double part, double core)
{
	uint32_t order[TD_PROFILES_MAX], n = profiles->count;
	struct td_contender kind;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i;

		for (; at && profiles->profiles[order[at - 1]].contender.demand >
				     profiles->profiles[i].contender.demand;
			at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
	kind = profiles->profiles[order[(uint32_t)(part * (n - 1) + 0.5)]].contender;
	kind.demand = core;
	return kind;
}

struct demands {
	double scale, power; /* core = scale x (0.1 + 0.9 u^power), at most 1 */
};

/* The same twenty applications for every order. */
static void make_apps(const struct td_profiles *profiles, const struct demands *demands,
	double gap_s, uint32_t order, struct app *apps, uint32_t count)
{
	uint64_t state = 20, shuffle = 1000 + order;
	uint32_t at[APPS_MAX];

	for (uint32_t i = 0; i < count; i++)
		at[i] = i;
	td_random_shuffle(&shuffle, at, count);
	for (uint32_t i = 0; i < count; i++) {
		double work = 20 + 20 * td_random_unit(&state), part = td_random_unit(&state);
		double core = fmin(1, demands->scale * (0.1 + 0.9 * pow(part, demands->power)));

		apps[at[i]] = (struct app){.arrive_s = gap_s * at[i],
			.work_s = work,
			.core = core,
			.contender = kind_of(profiles, part, core)};
	}
}

/*
 * By Least-Loaded alone: the demands, and which of the two readings of "least loaded", under which it is imbalanced in 41.7 % of the time at the medium load, or as near to
 * it as there is.
 */
static struct demands calibrate(const struct td_profiles *profiles, struct how *ret_least_loaded)
{
	struct td_contention fluid = {.proportional = true, .capped_pressure = 1};
	struct demands best = {1, 1};
	double least = INFINITY;

	for (int n = 0; n < 2 * 5 * 26; n++) {
		struct how how = {.by_count = n % 2};
		struct demands demands = {0.4 + 0.1 * (n / 10), 0.5 * (1 << n / 2 % 5)};
		double imbalance = 0;

		for (uint32_t o = 0; o < ORDERS; o += 5) {
			struct app apps[APPS_MAX];

			make_apps(profiles, &demands, 5, o, apps, 20);
			imbalance += simulate(how, &fluid, 0, apps, 20).imbalance / 10;
		}
		if (fabs(imbalance - 0.417) < least) {
			least = fabs(imbalance - 0.417);
			best = demands;
			*ret_least_loaded = how;
		}
	}
	return best;
}

struct study {
	double overloaded[2], slowdown[2], jain[2], utilisation[2], active[2], busy[2], idle[2];
	double least_overloaded, most_overloaded, imbalance, migrations;
	double best;     /* largest reduction of the execution time over the orders */
	uint32_t better; /* orders in which DCUDA is */
};

static double mean4(const double *values)
{
	return (values[0] + values[1] + values[2] + values[3]) / 4;
}

static void run_orders(const struct td_profiles *profiles, const struct td_contention *contention,
	const struct how *hows, const struct demands *demands, double gap_s, uint32_t orders,
	struct study *s)
{
	*s = (struct study){.least_overloaded = 1};
	for (uint32_t o = 0; o < orders; o++) {
		struct outcome out[2];
		double change;

		for (int k = 0; k < 2; k++) {
			struct app apps[APPS_MAX];

			make_apps(profiles, demands, gap_s, o, apps, 20);
			out[k] = simulate(hows[k], contention, 0, apps, 20);
			s->overloaded[k] += mean4(out[k].overloaded) / orders;
			s->slowdown[k] += out[k].slowdown / orders;
			s->jain[k] += out[k].jain / orders;
			s->utilisation[k] += out[k].utilisation / orders;
			s->active[k] += out[k].active_s / orders;
			s->busy[k] += out[k].busy_s / orders;
			s->idle[k] += out[k].idle_s / orders;
		}
		for (uint32_t g = 0; g < GPUS; g++) {
			s->least_overloaded = fmin(s->least_overloaded, out[0].overloaded[g]);
			s->most_overloaded = fmax(s->most_overloaded, out[0].overloaded[g]);
		}
		s->imbalance += out[0].imbalance / orders;
		s->migrations += (double)out[1].migrations / orders;
		change = out[1].slowdown / out[0].slowdown - 1;
		s->better += change < 0;
		s->best = fmin(s->best, change);
	}
}

static double change(const double values[2])
{
	return (values[1] / values[0] - 1) * 100;
}

static void put_medium(
	struct td_experiment_run *run, const char *how, const struct study *s, uint32_t orders)
{
	char metric[96], note[96];

	snprintf(note, sizeof(note), "%.0f migrations for 20 applications", s->migrations);
	snprintf(metric, sizeof(metric), "overloaded time (Fig. 14b), %s", how);
	td_row_put(run, change(s->overloaded) <= -50 ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric,
		"-78.3 %", "", note, "%+.1f %%", change(s->overloaded));
	snprintf(metric, sizeof(metric), "execution time (Fig. 15), %s", how);
	snprintf(note, sizeof(note), "shorter in %u of %u orders; best order %.1f %%", s->better,
		orders, 100 * s->best);
	td_row_put(run, s->better * 50 >= 45 * orders ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric,
		"to -42.1 %", "", note, "mean %+.1f %%", change(s->slowdown));
	snprintf(metric, sizeof(metric), "Jain's index (Fig. 16b), %s", how);
	td_row_put(run, change(s->jain) > 0 ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric, "+12.1 %",
		"", "", "%+.1f %%", change(s->jain));
	snprintf(metric, sizeof(metric), "utilisation (Fig. 14a), %s", how);
	td_row_put(run, change(s->utilisation) > 0 ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric,
		"+14.6 %", "", "", "%+.1f %%", change(s->utilisation));
}

/* The main measure, execution time, while its guard, Jain's index, is no worse than DCUDA's. */
static void put_tandem(
	struct td_experiment_run *run, const char *how, const struct study *s, uint32_t orders)
{
	char metric[96], note[128];

	snprintf(metric, sizeof(metric), "tandem: execution time, DCUDA / tandem, %s", how);
	snprintf(note, sizeof(note), "Jain %+.1f %%%s; shorter in %u of %u orders, %.0f migrations",
		change(s->jain), s->jain[1] >= s->jain[0] ? "" : ": the guard does not hold",
		s->better, orders, s->migrations);
	td_row_put(run,
		s->slowdown[1] <= s->slowdown[0] && s->jain[1] >= s->jain[0] ? TD_AT_LEAST
									     : TD_LOSS,
		metric, "", "", note, "%.2fx", s->slowdown[0] / s->slowdown[1]);
}

/* P = base while an application is there, plus slope times utilisation, 15 W without: least squares on Least-Loaded's totals. */
static void fit_power(const struct study *s, double *ret_base, double *ret_slope)
{
	static const double totals[] = {81201, 74935, 70611};
	double aa = 0, ab = 0, bb = 0, ay = 0, by = 0, determinant;

	for (int l = 0; l < 3; l++) {
		double a = s[l].active[0], b = s[l].busy[0], y = totals[l] - IDLE_W * s[l].idle[0];

		aa += a * a;
		ab += a * b;
		bb += b * b;
		ay += a * y;
		by += b * y;
	}
	determinant = aa * bb - ab * ab;
	*ret_base = fmax(0, (ay * bb - by * ab) / determinant);
	*ret_slope = fmax(0, (by * aa - ay * ab) / determinant);
}

static void put_loads(struct td_experiment_run *run, const char *how, const struct study *s)
{
	double gains[3], energy[3], base, slope;
	char metric[96];

	fit_power(s, &base, &slope);
	for (int l = 0; l < 3; l++) {
		double joules[2];

		for (int k = 0; k < 2; k++)
			joules[k] = base * s[l].active[k] + slope * s[l].busy[k] +
				    IDLE_W * s[l].idle[k];
		energy[l] = change(joules);
		gains[l] = change(s[l].slowdown);
	}
	snprintf(metric, sizeof(metric), "best load (Fig. 17), %s", how);
	td_row_put(run,
		gains[1] < gains[0] && gains[1] < gains[2] ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		metric, "medium", "", "execution time at gaps of 7, 5, 3 s",
		"%+.1f / %+.1f / %+.1f %%", gains[0], gains[1], gains[2]);
	snprintf(metric, sizeof(metric), "energy, light / medium / heavy (Table III), %s", how);
	td_row_put(run,
		energy[0] < energy[1] && energy[1] < energy[2] && energy[2] < 0 ? TD_REPRODUCED
										: TD_NOT_REPRODUCED,
		metric, "-13.3 / -5.4 / -2.6 %", "", "power fitted to Least-Loaded's totals",
		"%+.1f / %+.1f / %+.1f %%", energy[0], energy[1], energy[2]);
}

int td_exp_dcuda(struct td_experiment_run *run, struct td_err *err)
{
	static const double gaps[] = {7, 5, 3};
	td_auto_free struct td_profiles *profiles = calloc(1, sizeof(*profiles));
	uint32_t orders = run->quick ? 10 : ORDERS;
	struct how whole[2] = {{0}, dcuda_whole}, balance[2] = {{0}, dcuda_balance};
	struct how best[2] = {dcuda_whole, tandem};
	struct demands demands;
	char metric[96];
	int r;

	if (!profiles)
		return td_err_set(err, -ENOMEM, "out of memory");
	r = td_profiles_fit(run->data, "p100", profiles, err);
	if (r)
		return r;
	demands = calibrate(profiles, &whole[0]);
	balance[0] = whole[0];
	for (int fitted = 0; fitted < 2; fitted++) {
		struct td_contention contention = {.proportional = !fitted, .capped_pressure = 1};
		const char *how = fitted ? "fitted" : "proportional";
		struct study s[3];

		for (int l = 0; l < 3; l++)
			run_orders(profiles, &contention, whole, &demands, gaps[l], orders, &s[l]);
		if (!fitted) {
			td_row_put(run, TD_CALIBRATED, "Least-Loaded: imbalanced time (Fig. 2)",
				"41.7 %", "", "demands chosen by this alone", "%.1f %%",
				100 * s[1].imbalance);
			td_row_put(run, TD_CALIBRATED, "Least-Loaded: overloaded time (Fig. 13a)",
				"14-51 %", "", "any GPU, any order", "%.0f-%.0f %%",
				100 * s[1].least_overloaded, 100 * s[1].most_overloaded);
		}
		put_medium(run, how, &s[1], orders);
		put_loads(run, how, s);
		run_orders(profiles, &contention, balance, &demands, gaps[1], orders, &s[1]);
		snprintf(metric, sizeof(metric),
			"balancing alone, without slices and compaction, %s", how);
		td_row_put(run, TD_SHOWN, metric, "", "", "execution, overloaded, Jain",
			"%+.1f, %+.1f, %+.1f %%", change(s[1].slowdown), change(s[1].overloaded),
			change(s[1].jain));
		run_orders(profiles, &contention, best, &demands, gaps[1], orders, &s[1]);
		put_tandem(run, how, &s[1], orders);
	}
	fprintf(run->report,
		"Calibrated on Least-Loaded: cores = %.1f (0.1 + 0.9 u^%.1f), at most 1; least "
		"loaded by %s.\n",
		demands.scale, demands.power,
		whole[0].by_count ? "number of applications" : "demands");
	fputs("An application's demand is all that the balancer sees. Under the fitted model "
	      "slowing down does not depend on demands beyond 1, so balancing by demand gains "
	      "less.\n",
		run->report);
	return 0;
}

/* --- memory --- */

static void make_memory_apps(uint32_t order, double core, struct app *apps)
{
	static const struct {
		uint32_t count;
		double gib;
	} kinds[] = {{12, 6}, {15, 7}, {8, 5}};
	uint64_t shuffle = 5000 + order;
	uint32_t at[APPS_MAX], n = 0;

	for (uint32_t i = 0; i < 35; i++)
		at[i] = i;
	td_random_shuffle(&shuffle, at, 35);
	for (int k = 0; k < 3; k++) {
		for (uint32_t i = 0; i < kinds[k].count; i++, n++) {
			struct td_contender contender = td_contender_neutral;

			contender.demand = core;
			apps[at[n]] = (struct app){.arrive_s = 4. * at[n],
				.work_s = 30,
				.core = core,
				.memory_gib = kinds[k].gib,
				.contender = contender};
		}
	}
}

static void run_memory(struct td_experiment_run *run, double core, uint32_t orders)
{
	struct td_contention fluid = {.proportional = true, .capped_pressure = 1};
	static const struct how hows[5] = {{.by_count = true},
		{true, true, true, true, false, false}, {true, false, true, true, false, false},
		{true, true, false, false, false, false}, {.tandem = true}};
	double changes[20], alone = 0, over[5] = {0}, least = INFINITY, most = -INFINITY;
	double gains[20], jain[2] = {0};
	char metric[96], spread[64], note[128];

	for (uint32_t o = 0; o < orders; o++) {
		double slowdown[5] = {0};

		for (int how = 0; how < 5; how++) {
			struct app apps[APPS_MAX];
			struct outcome out;

			make_memory_apps(o, core, apps);
			out = simulate(hows[how], &fluid, 12, apps, 35);
			slowdown[how] = out.slowdown;
			over[how] += 100 * mean4(out.memory_overloaded) / orders;
			jain[0] += how == 1 ? out.jain / orders : 0;
			jain[1] += how == 4 ? out.jain / orders : 0;
		}
		gains[o] = slowdown[1] / slowdown[4];
		changes[o] = (slowdown[1] / slowdown[0] - 1) * 100;
		alone += (slowdown[3] / slowdown[0] - 1) * 100 / orders;
		least = fmin(least, changes[o]);
		most = fmax(most, changes[o]);
	}
	snprintf(metric, sizeof(metric),
		"memory overloaded, without / with memory scheduling (Fig. 18), cores %g", core);
	td_row_put(run, over[1] < over[2] - 0.5 ? TD_REPRODUCED : TD_NOT_REPRODUCED, metric,
		"> 40 % -> < 20 %", "", "mean of the GPUs", "%.0f %% -> %.0f %%", over[2], over[1]);
	snprintf(
		metric, sizeof(metric), "execution against Least-Loaded (Fig. 19), cores %g", core);
	td_spread(changes, orders, spread);
	td_row_put(run, least <= -30 && most >= -67 && most < 0 ? TD_REPRODUCED : TD_NOT_REPRODUCED,
		metric, "-30 to -67 %", spread, "thrashing from Fig. 3", "median %+.0f %%",
		td_median(changes, orders));
	snprintf(metric, sizeof(metric), "balancing alone, without slices and compaction, cores %g",
		core);
	td_row_put(run, TD_SHOWN, metric, "", "", "memory overloaded, execution",
		"%.0f -> %.0f %%, %+.0f %%", over[0], over[3], alone);
	snprintf(metric, sizeof(metric), "tandem: execution, DCUDA / tandem, cores %g", core);
	td_spread(gains, orders, spread);
	snprintf(note, sizeof(note), "memory overloaded %.0f %%; Jain %.2f, DCUDA %.2f%s", over[4],
		jain[1], jain[0], jain[1] >= jain[0] ? "" : ": the guard does not hold");
	td_row_put(run, td_median(gains, orders) >= 1 && jain[1] >= jain[0] ? TD_AT_LEAST : TD_LOSS,
		metric, "", spread, note, "%.2fx", td_median(gains, orders));
}

int td_exp_dcuda_memory(struct td_experiment_run *run, struct td_err *err)
{
	static const double cores[] = {0.2, 0.4, 0.8};

	(void)err;
	for (int c = 0; c < 3; c++)
		run_memory(run, cores[c], run->quick ? 5 : 20);
	fputs("Thrashing is calibrated on Fig. 3 (1.5 x serial time at 112 % of the memory). What "
	      "the applications demand of the cores is not in the paper: swept.\n",
		run->report);
	return 0;
}
