/*
 * Hashes of all decisions, one a line: tools/check-decisions builds this with several compilers and
 * optimisations and compares. Random numbers are drawn one a statement, because within an
 * expression their order is the compiler's. Every policy of a node runs on the same random views;
 * the cluster's modules and the learners run on random inputs; decisions_sim.c has the models and
 * the simulator. Only results that leave a module are hashed, field by field, doubles by their
 * bits.
 *
 * usage: decisions
 */
#include <stdlib.h>
#include <string.h>

#ifdef WITH_LEARN
#include "learn/learn.h"
#endif
#include "decisions.h"
#include "match/match.h"
#include "policy/algo/control/balance.h"
#include "policy/algo/control/fair_groups.h"
#include "policy/algo/fit/batch_tuner.h"
#include "policy/algo/fit/curve.h"
#include "policy/algo/fit/slo_split.h"
#include "policy/cluster/antman_cluster.h"
#include "policy/cluster/baselines.h"
#include "policy/cluster/tandem_cluster.h"
#include "policy/node/profile.h"
#include "policy/policy.h"
#include "policy/system/muxflow.h"
#include "unit/policy_random.h"

#define GPUS    4
#define CLIENTS 48
#define MS      1000000ull
#define GIB     (1ull << 30)

static uint64_t state;

static void begin(void)
{
	hash_begin();
	state = 88172645463325252ull;
}

static void *allocate(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	if (!memory)
		exit(1);
	memset(memory, 0, bytes);
	return memory;
}

/* Curves of a service, linear in layers and batch. */
static double zeros[TD_PREDICT_INPUTS_MAX], ones[TD_PREDICT_INPUTS_MAX],
	coefficients[4][TD_MUDI_INPUTS + 1];
static struct td_predictor lines[4];
static const struct td_mudi_service service = {&lines[0], &lines[1], &lines[2], &lines[3]};
static struct td_profile profile = {.alone_step_ns = 40 * MS, .service = &service};

static void make_service(void)
{
	static const double bias[] = {-0.09, -0.003, 0.35, 0.021},
			    batch[] = {-1e-3, -1e-5, 0.013, 1.3e-3};

	for (uint32_t i = 0; i < TD_PREDICT_INPUTS_MAX; i++)
		ones[i] = 1;
	for (uint32_t k = 0; k < 4; k++) {
		coefficients[k][0] = bias[k] / 50;
		coefficients[k][TD_MUDI_LAYERS] = batch[k];
		coefficients[k][TD_MUDI_INPUTS] = bias[k];
		lines[k] = (struct td_predictor){.form = TD_PREDICTOR_LINEAR,
			.inputs = TD_MUDI_INPUTS,
			.shift = zeros,
			.scale = ones,
			.target_scale = 1,
			.coefficients = coefficients[k],
			.coefficient_count = TD_MUDI_INPUTS + 1};
	}
	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		profile.layers[k] = k % 4;
}

struct world {
	struct td_gpu_view gpus[GPUS];
	struct td_client_view clients[CLIENTS];
	struct td_grant grants[CLIENTS];
	struct td_action actions[CLIENTS];
	uint64_t now;
};

static struct world w;

static void populate(void)
{
	memset(&w, 0, sizeof(w));
	w.now = 1000 * MS;
	for (uint32_t g = 0; g < GPUS; g++)
		w.gpus[g] = (struct td_gpu_view){.capacity_bytes = 32 * GIB,
			.handover_ns = g * 3 * MS,
			.known = TD_HAS_ALL,
			.sm_clock_max_mhz = 1980};
	for (uint32_t c = 0; c < CLIENTS; c++) {
		struct td_client_view *client = &w.clients[c];

		*client = (struct td_client_view){
			.id = c + 1, .profile = &profile, .objective_ns = 180 * MS};
		client->gpu = random_below(&state, GPUS);
		client->group = 1 + random_below(&state, CLIENTS * 2 / 3);
		client->class = TD_CLASS_BESTEFFORT;
		if (c < GPUS) { /* one protected job on each GPU */
			client->gpu = c;
			client->group = 1000 + c;
			client->class = c % 2 ? TD_CLASS_GUARANTEED : TD_CLASS_ONLINE;
		}
		client->weight = 1 + random_below(&state, 3);
		client->movable = client->migrates = random_below(&state, 5) > 0;
		client->pages_itself = random_below(&state, 5) == 0;
		client->core_ppm = random_below(&state, 400000);
		client->sm_activity_ppm = random_below(&state, 400000);
		client->demanded_bytes = random_below(&state, 8000) * (GIB >> 10);
	}
	td_view_unite_classes(w.clients, CLIENTS);
}

/* Something happens to somebody, and to a GPU. */
static void happen(void)
{
	struct td_client_view *c = &w.clients[random_below(&state, CLIENTS)];
	struct td_gpu_view *g = &w.gpus[random_below(&state, GPUS)];

	w.now += 1 + random_below(&state, 60) * MS;
	g->utilisation_ppm = random_below(&state, TD_PPM);
	g->sm_activity_ppm = random_below(&state, 950000);
	g->sm_clock_mhz = 900 + random_below(&state, 1080);
	c->wants = random_below(&state, 4) > 0;
	*(c->wants ? &c->wants_since_ns : &c->idle_since_ns) = w.now;
	c->paused = random_below(&state, 20) == 0;
	c->steps++;
	c->step_ns = (60 + random_below(&state, 5)) * MS;
	c->step_began_ns = w.now;
	c->rate_per_s = 300 + 400 * random_unit(&state);
	c->p99_ns = (uint64_t)((100 + 100 * random_unit(&state)) * MS);
}

static void carry_out(const struct td_plan *plan)
{
	for (uint32_t c = 0; c < CLIENTS; c++) {
		struct td_client_view *client = &w.clients[c];
		const struct td_grant *grant = &plan->grants[c];
		enum td_phase phase =
			grant->gate == TD_GATE_CLOSED ? TD_PHASE_CLOSED : TD_PHASE_OPEN;

		PUT(grant->gate);
		PUT(grant->window_ns);
		PUT(grant->limit_bytes);
		PUT(grant->others_wait);
		PUT(grant->duty_ppm);
		PUT(grant->sm_share_ppm);
		PUT(grant->priority);
		PUT(grant->batch);
		if (phase != client->phase)
			client->phase_since_ns = w.now;
		client->phase = phase;
		client->resident_bytes = grant->limit_bytes < client->demanded_bytes
						 ? grant->limit_bytes
						 : client->demanded_bytes;
		client->sm_share_ppm = grant->sm_share_ppm;
	}
	for (uint32_t k = 0; k < plan->action_count; k++) {
		PUT(plan->actions[k].kind);
		PUT(plan->actions[k].client);
		PUT(plan->actions[k].gpu);
		PUT(plan->actions[k].bytes);
	}
	PUT(plan->next_wakeup_ns);
}

static void run_policy(const struct td_policy *policy)
{
	const struct td_policy_options options = {.enabled = true,
		.quantum_ns = 300 * MS,
		.quantum_min_ns = 20 * MS,
		.swap_share_ppm = 100000,
		.window_ns = 2 * MS,
		.swap_share_long_ppm = 10000,
		.quantum_long_ns = 3000 * MS};
	void *memory = allocate(policy->state_bytes);

	begin();
	populate();
	for (int round = 0; round < 3000; round++) {
		const struct td_view view = {w.gpus, w.clients, GPUS, CLIENTS, TD_HAS_ALL};
		struct td_plan plan = {
			.grants = w.grants, .actions = w.actions, .action_max = CLIENTS};

		happen();
		policy->step(memory, &options, &view, w.now, &plan);
		carry_out(&plan);
	}
	end(policy->name);
	free(memory);
}

static void run_match(void)
{
	enum { N = 500 };
	static float weights[N * N];
	static uint32_t column[N];
	size_t bytes = td_match_bytes(N, N, N);
	void *memory = allocate(bytes);

	begin();
	for (int family = 0; family < 3; family++) {
		struct td_match_problem problem = {weights, N, N, N, NULL, NULL};
		struct td_match_result result;
		struct td_match *match;
		float a[N], b[N];

		for (uint32_t i = 0; i < N; i++) {
			a[i] = (float)random_unit(&state);
			b[i] = (float)random_unit(&state);
		}
		for (uint32_t k = 0; k < N * N; k++)
			weights[k] = family == 0 ? (float)random_unit(&state)
				     : family == 1
					     ? a[k / N] * b[k % N]
					     : (float)((k / N * 37 % 11 + k % N * 53 % 7) % 10);
		PUT(td_match_solve(
			&problem, &td_match_default, memory, bytes, column, &result, &match));
		put(column, sizeof(column));
		PUT(result.weight);
		PUT(result.bound);
	}
	end("match");
	free(memory);
}

static void run_antman_cluster(void)
{
	static struct td_antman_cluster cluster;
	static const uint32_t nodes[] = {8, 8, 8, 8, 4, 4, 2, 16}, quotas[] = {24, 16, 8};
	size_t bytes = td_antman_bytes(8, 58, 512);
	void *memory = allocate(bytes);
	uint64_t now = 1;

	begin();
	PUT(td_antman_init(&cluster, memory, bytes, &td_antman_default, nodes, 8, quotas, 3, 512));
	for (int round = 0; round < 20000; round++) {
		struct td_antman_request job = {.tenant = random_below(&state, 3)};
		struct td_antman_action actions[16];
		uint32_t gpus[TD_GANG_MAX], gpu = random_below(&state, 58), count;

		job.gpus = 1 + random_below(&state, 6);
		job.kind = (enum td_job_kind)random_below(&state, TD_JOB_KIND_N);
		job.same_node = random_below(&state, 2);
		now += random_below(&state, 60) * 1000 * MS;
		td_antman_set_load(&cluster, gpu, random_below(&state, TD_PPM));
		if (random_below(&state, 2))
			td_antman_finish(&cluster, random_below(&state, 512), now);
		PUT(td_antman_submit(&cluster, random_below(&state, 512), &job, now));
		count = td_antman_step(&cluster, now, actions, 16);
		for (uint32_t k = 0; k < count; k++) {
			PUT(actions[k].verb);
			PUT(actions[k].job);
			put(gpus, td_antman_gpus(&cluster, actions[k].job, gpus) * sizeof(gpus[0]));
		}
	}
	end("antman_cluster");
	free(memory);
}

static void run_tandem_cluster(void)
{
	static struct td_tandem_cluster cluster;
	static const uint32_t nodes[] = {8, 8, 4, 2}, quotas[] = {12, 8};
	double demands[6];
	size_t bytes = td_tandem_cluster_bytes(4, 22, 256, 6);
	void *memory = allocate(bytes);
	uint64_t now = 1;

	begin();
	for (int k = 0; k < 6; k++)
		demands[k] = 0.1 + 0.15 * k;
	PUT(td_tandem_cluster_init(&cluster, memory, bytes, &td_tandem_cluster_default, nodes, 4,
		40, quotas, 2, 256, demands, 6));
	td_tandem_cluster_serve(&cluster, 5, 3, 8);
	for (int round = 0; round < 20000; round++) {
		struct td_tandem_request job = {.tenant = random_below(&state, 2)};
		struct td_tandem_action actions[16];
		uint32_t gpus[TD_GANG_MAX], count, drawn[3];

		job.gpus = 1 + random_below(&state, 4);
		job.kind = random_below(&state, 6);
		job.guaranteed = random_below(&state, 3) == 0;
		job.bytes = random_below(&state, 30);
		now += random_below(&state, 60) * 1000 * MS;
		if (random_below(&state, 2))
			td_tandem_cluster_finish(&cluster, random_below(&state, 256), now);
		PUT(td_tandem_cluster_submit(&cluster, random_below(&state, 256), &job, now));
		/* One number after the other: arguments are evaluated in any order. */
		now += MS;
		td_tandem_cluster_room(&cluster, 5, random_below(&state, 100) / 100., now);
		for (int k = 0; k < 3; k++)
			drawn[k] = random_below(&state, k < 2 ? 6 : 1000);
		td_tandem_cluster_observe(
			&cluster, drawn[0], drawn[1], random_below(&state, 2), drawn[2] / 1000.);
		count = td_tandem_cluster_step(&cluster, now, actions, 16);
		for (uint32_t k = 0; k < count; k++) {
			PUT(actions[k].verb);
			PUT(actions[k].job);
			put(gpus, td_tandem_cluster_gpus(&cluster, actions[k].job, gpus) *
					  sizeof(gpus[0]));
		}
	}
	end("tandem_cluster");
	free(memory);
}

static void run_slo_split(void)
{
	static const struct td_curve curves[] = {
		{.form = TD_CURVE_HYPERBOLA, .a = 0.002, .b = 0.008},
		{.form = TD_CURVE_HYPERBOLA, .a = 0.007, .b = 0.021}};
	static const uint32_t batches[] = {16, 64};

	begin();
	for (int round = 0; round < 5000; round++) {
		struct td_slo_split split;
		double rate = 50 + random_below(&state, 2000);

		td_slo_split_begin(&split, curves, batches, 2, 0.1, rate,
			1 + random_below(&state, 300) / 100.);
		for (bool more = true; more;) {
			double p99_s = random_below(&state, 200) / 1000.;
			double busy = random_below(&state, 1000) / 1000.;

			more = td_slo_split_observe(&split, p99_s, busy);
			PUT(split.share);
			PUT(split.duty);
			PUT(split.guest_share);
		}
		PUT(split.batch);
		PUT(split.factor);
	}
	end("slo_split");
}

static void run_balance(void)
{
	begin();
	for (int round = 0; round < 2000; round++) {
		struct td_balance_app apps[40];
		struct td_balance_move moves[40];
		uint32_t order[40], n;

		for (uint32_t i = 0; i < 40; i++) {
			apps[i].gpu = random_below(&state, 6);
			apps[i].core = random_unit(&state) * 0.4;
			apps[i].memory = random_unit(&state) * 0.3;
			apps[i].movable = random_below(&state, 4) > 0;
		}
		n = td_balance(&td_balance_default, apps, 40, 6, order, moves);
		n += td_balance_compact(&td_balance_default, apps, 40, 6, moves + n);
		for (uint32_t k = 0; k < n; k++) {
			PUT(moves[k].app);
			PUT(moves[k].to);
		}
	}
	end("balance");
}

static void run_tuning(void)
{
	static struct td_batch_tuner tuner;
	uint32_t batches[497];

	begin();
	for (uint32_t i = 0; i < 497; i++)
		batches[i] = 16 + i;
	for (int round = 0; round < 40; round++) {
		PUT(td_batch_tuner_init(&tuner, batches, 497, random_unit(&state), 25));
		while (!tuner.converged) {
			uint32_t batch = td_batch_tuner_propose(&tuner);

			PUT(batch);
			td_batch_tuner_observe(&tuner,
				0.3 + 20. / batch + 1e-4 * batch + 0.01 * random_unit(&state));
		}
		PUT(td_batch_tuner_propose(&tuner));
	}
	end("batch_tuner");
}

static void run_curves(void)
{
	begin();
	for (int round = 0; round < 2000; round++) {
		double x[7], y[7];
		struct td_curve curve;

		for (uint32_t k = 0; k < 7; k++) {
			x[k] = (k + 1) / 7.;
			y[k] = 0.01 + 0.02 * random_unit(&state) / x[k];
		}
		PUT(td_curve_fit_piecewise(x, y, 7, &curve));
		PUT(td_curve_mean_slope(&curve));
		PUT(td_curve_smallest_share(&curve, 0.03, 0.01));
		PUT(td_curve_fit_hyperbola(x, y, 7, &curve));
		PUT(td_curve_smallest_share(&curve, 0.03, 0.01));
	}
	end("curve");
}

#ifdef WITH_LEARN
static void run_learners(void)
{
	static const char *const names[TD_PREDICTOR_N] = {"linear", "mlp", "forest", "svr"};
	enum { COUNT = 120, INPUTS = 5 };
	static double x[COUNT * INPUTS], y[COUNT];
	struct td_dataset data = {x, y, COUNT, INPUTS};
	struct td_learn_options options = td_learn_default;

	options.epochs = 20;
	options.trees = 10;
	state = 1;
	for (uint32_t i = 0; i < COUNT; i++) {
		for (uint32_t k = 0; k < INPUTS; k++)
			x[i * INPUTS + k] = random_unit(&state);
		y[i] = x[i * INPUTS] * x[i * INPUTS + 1] - x[i * INPUTS + 2];
	}
	for (enum td_predictor_form form = 0; form < TD_PREDICTOR_N; form++) {
		struct td_model model;
		int r = td_learn(form, &data, &options, &model);

		begin();
		PUT(r);
		for (uint32_t i = 0; !r && i < COUNT; i++)
			PUT(td_predict(&model.predictor, x + i * INPUTS));
		if (!r)
			td_model_deinit(&model);
		end(names[form]);
	}
}
#endif

int main(void)
{
	make_service();
	for (const struct td_policy *const *p = td_policies; *p; p++)
		run_policy(*p);
	run_match();
	run_antman_cluster();
	run_tandem_cluster();
	run_slo_split();
	run_balance();
	run_tuning();
	run_curves();
	decide_simulations();
#ifdef WITH_LEARN
	run_learners();
#endif
	return 0;
}
