/*
 * The cost of decisions on one core: placements in a cluster, Mudi's selector, the Gaussian
 * process, predictions.
 *
 * placement: AntMan's cluster of GPUS GPUs in nodes of 8, about 60 % held; each sample is one job's
 * submission and the step that decides it. selector: Mudi's assignment of one task among 1,000 GPUs
 * of 6 services, all 6 x 6 x 2 predictions (forests) included. Times are of the thread's CPU clock,
 * so that other work on the processor does not count; the P99 of the wall clock is beside them.
 *
 * usage: policy [GPUS]
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "learn/learn.h"
#include "policy/algo/fit/batch_tuner.h"
#include "policy/cluster/antman_cluster.h"
#include "policy/system/mudi.h"
#include "row.h"

#define JOBS    60000u
#define SAMPLES 20000

static uint64_t state = 88172645463325252ull;
static double samples[SAMPLES], walls[SAMPLES];

struct watch {
	uint64_t cpu_ns, wall_ns;
};

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) * n >> 32);
}

static double unit(void)
{
	return below(1u << 30) / 1073741824.;
}

static struct watch watch(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (struct watch){
		(uint64_t)t.tv_sec * TD_NS_PER_S + (uint64_t)t.tv_nsec, td_time_now_ns()};
}

/* The k-th sample. */
static void stop(struct watch from, size_t k)
{
	struct watch now = watch();

	samples[k] = (double)(now.cpu_ns - from.cpu_ns) * 1e-3;
	walls[k] = (double)(now.wall_ns - from.wall_ns) * 1e-3;
}

static void *allocate(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	if (!memory)
		exit(1);
	memset(memory, 0, bytes);
	return memory;
}

static double p99_of(double *sorted, size_t n)
{
	return sorted[n - 1 - n / 100];
}

/* The median is in the row; the P99 is what is promised. */
static void put_us(const char *figure, size_t n)
{
	char name[96];
	double p99;

	bench_row(figure, "us", samples, n);
	p99 = p99_of(samples, n); /* they are sorted now */
	snprintf(name, sizeof(name), "%s, P99", figure);
	bench_row(name, "us", &p99, 1);
	qsort(walls, n, sizeof(*walls), bench_compare);
	p99 = p99_of(walls, n);
	snprintf(name, sizeof(name), "%s, P99, wall", figure);
	bench_row(name, "us", &p99, 1);
}

static struct td_antman_request any_job(enum td_job_kind kind)
{
	static const uint32_t sizes[] = {1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 16};

	return (struct td_antman_request){0, sizes[below(12)], kind, true, TD_ANYWHERE};
}

static void bench_placement(uint32_t gpus)
{
	static struct td_antman_cluster cluster;
	uint32_t nodes = gpus / 8, *node_gpus = allocate(nodes * sizeof(*node_gpus)), quota = gpus;
	size_t bytes = td_antman_bytes(nodes, gpus, JOBS);
	void *memory = allocate(bytes);
	struct td_antman_action actions[8];
	uint64_t now = 1;
	uint32_t next = 0, oldest = 0;
	char figure[80];

	for (uint32_t n = 0; n < nodes; n++)
		node_gpus[n] = 8;
	if (td_antman_init(
		    &cluster, memory, bytes, &td_antman_default, node_gpus, nodes, &quota, 1, JOBS))
		exit(1);
	while (cluster.tenants[0].used < gpus / 10 * 6 && next < JOBS) {
		struct td_antman_request job = any_job(TD_JOB_GUARANTEED);

		(void)td_antman_submit(&cluster, next++, &job, now);
		(void)td_antman_step(&cluster, now, actions, 8);
	}
	fprintf(stderr, "# %u of %u GPUs held by %u jobs\n", cluster.tenants[0].used, gpus, next);
	for (int kind = TD_JOB_GUARANTEED; kind <= TD_JOB_OPPORTUNISTIC; kind++) {
		uint32_t started = 0;

		for (size_t k = 0; k < SAMPLES; k++) {
			struct td_antman_request job = any_job((enum td_job_kind)kind);
			struct watch start;

			td_antman_finish(&cluster, oldest++ % JOBS, now += 1000);
			td_antman_set_load(&cluster, below(gpus), below(1000001));
			start = watch();
			(void)td_antman_submit(&cluster, next++ % JOBS, &job, now);
			started += td_antman_step(&cluster, now, actions, 8);
			stop(start, k);
		}
		snprintf(figure, sizeof(figure), "placement, %s, %u GPUs",
			kind == TD_JOB_GUARANTEED ? "guaranteed" : "opportunistic", gpus);
		put_us(figure, SAMPLES);
		fprintf(stderr, "# %u of %u started at once\n", started, SAMPLES);
	}
	fprintf(stderr, "# placement: %zu bytes for %u GPUs and %u jobs\n", bytes, gpus, JOBS);
	free(memory);
	free(node_gpus);
}

static struct td_model train(enum td_predictor_form form, uint32_t inputs, uint32_t count)
{
	double *x = allocate((size_t)count * inputs * sizeof(*x)),
	       *y = allocate(count * sizeof(*y));
	struct td_dataset data = {x, y, count, inputs};
	struct td_model model;

	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < inputs; k++)
			x[i * inputs + k] = unit();
		y[i] = -x[i * inputs] - x[i * inputs + 1] * x[i * inputs + 2] - 0.1;
	}
	if (td_learn(form, &data, &td_learn_default, &model))
		exit(1);
	free(x);
	free(y);
	return model;
}

static void bench_selector(void)
{
	struct td_model model = train(TD_PREDICTOR_FOREST, TD_MUDI_INPUTS, 270);
	static struct td_selector_device devices[1000];
	struct td_mudi_service services[6];
	double scores[6], layers[TD_MUDI_LAYERS];

	for (int s = 0; s < 6; s++)
		services[s] = (struct td_mudi_service){&model.predictor, &model.predictor,
			&model.predictor, &model.predictor, 0, 0, 0, NULL, 0};
	for (int d = 0; d < 1000; d++)
		devices[d] = (struct td_selector_device){below(6), below(4), true, below(1000)};
	for (size_t k = 0; k < 2000; k++) {
		struct watch start;

		for (int l = 0; l < TD_MUDI_LAYERS; l++)
			layers[l] = unit();
		start = watch();
		(void)td_mudi_assign(services, 6, devices, 1000, layers, 500, scores);
		stop(start, k);
	}
	put_us("selector, 1000 GPUs, 6 services, forests", 2000);
	td_model_deinit(&model);
}

/* One round of the search: a sample added, the length chosen, the bound of 497 batches. */
static void bench_gp(void)
{
	static struct td_batch_tuner tuner;
	uint32_t batches[497];
	size_t n = 0;

	for (uint32_t i = 0; i < 497; i++)
		batches[i] = 16 + i;
	while (n < 500) {
		uint32_t tried = 0;

		(void)td_batch_tuner_init(&tuner, batches, 497, 0.5, 25);
		while (!tuner.converged && n < 500 && tried++ < 25) {
			struct watch start = watch();
			uint32_t batch = td_batch_tuner_propose(&tuner);

			td_batch_tuner_observe(&tuner, 0.3 + 0.1 * sin(batch) + 1. / batch);
			stop(start, n++);
		}
	}
	put_us("GP-LCB, one round, 497 batches", n);
}

static void bench_mlp(void)
{
	struct td_model model = {0};
	double x[8], sum = 0, train_ms[5];

	for (int k = 0; k < 5; k++) {
		struct watch start = watch();

		td_model_deinit(&model);
		model = train(TD_PREDICTOR_MLP, 8, 2000);
		stop(start, 0);
		train_ms[k] = samples[0] * 1e-3;
	}
	bench_row("MLP 8-64-64-1, training, 2000 samples, 300 epochs", "ms", train_ms, 5);
	for (size_t k = 0; k < 2000; k++) {
		struct watch start;

		for (int i = 0; i < 8; i++)
			x[i] = unit();
		start = watch();
		for (int i = 0; i < 10; i++) {
			x[0] += 0.01;
			sum += td_predict(&model.predictor, x);
		}
		stop(start, k);
		samples[k] /= 10;
		walls[k] /= 10;
	}
	put_us("MLP 8-64-64-1, one prediction", 2000);
	fprintf(stderr, "# sum of predictions %g\n", sum);
	td_model_deinit(&model);
}

int main(int argc, char **argv)
{
	long gpus = argc > 1 ? atol(argv[1]) : 20000;

	if (gpus < 80 || gpus > 30000 || argc > 2) {
		fputs("usage: policy [GPUS]\n", stderr);
		return 2;
	}
	bench_placement((uint32_t)gpus / 8 * 8);
	bench_selector();
	bench_gp();
	bench_mlp();
	return 0;
}
