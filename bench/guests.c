/*
 * The time of a placement by the rules that go by what is known of jobs, with 2,500 nodes of 8
 * GPUs and a service on each GPU. Rows: one job by dcuda and by mudi, median and P99; and a whole
 * matching by muxflow, its predictions included, of 10,000 jobs of 200 kinds beside services of 50
 * kinds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "bench/row.h"
#include "cluster/brain/brain.h"

#define NODES    2500u
#define GPUS     8u
#define ALL      (NODES * GPUS)
#define WAITING  10000u
#define SERVICES 50u
#define KINDS    200u
#define TIMES    2000u
#define ROUNDS   5u
#define ORDERS   512u
#define WIDTH    64u

static struct td_brain_order orders[ORDERS];
static double zeros[16], ones[16], weights[8 * WIDTH + WIDTH + WIDTH * WIDTH + WIDTH + WIDTH + 1];
static struct td_predictor speeds, line;
static uint64_t seed = 1, now_ns = TD_NS_PER_S;
static uint32_t next_id;

static uint32_t draw(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

/* The form of MuxFlow's predictor; its numbers are of no matter for the time. */
static void make_models(void)
{
	for (uint32_t k = 0; k < 16; k++)
		ones[k] = 1;
	for (size_t k = 0; k < sizeof(weights) / sizeof(*weights); k++)
		weights[k] = (draw(2000) - 1000.) / 8000;
	speeds = (struct td_predictor){.form = TD_PREDICTOR_MLP,
		.inputs = TD_MUXFLOW_INPUTS,
		.shift = zeros,
		.scale = ones,
		.target_shift = 0.5,
		.target_scale = 1,
		.coefficients = weights,
		.coefficient_count = sizeof(weights) / sizeof(*weights),
		.layers = 3,
		.widths = {WIDTH, WIDTH, 1}};
	line = (struct td_predictor){.form = TD_PREDICTOR_LINEAR,
		.inputs = TD_MUDI_INPUTS,
		.shift = zeros,
		.scale = ones,
		.target_scale = 1,
		.coefficients = weights,
		.coefficient_count = TD_MUDI_INPUTS + 1};
}

static void look(void *arg, const char *gpu, const char *program, struct td_guest_known *ret)
{
	uint64_t before = seed;

	(void)arg;
	(void)gpu;
	seed = strtoul(program + 1, NULL, 10) * 2654435761u + (unsigned char)*program;
	*ret = (struct td_guest_known){.speeds = &speeds,
		.is_measured = true,
		.alone = {draw(100) / 100., draw(100) / 100., draw(100) / 100., 0.1},
		.has_curves = true,
		.curves = {.left_slope = &line,
			.right_slope = &line,
			.knee_share = &line,
			.knee_latency = &line},
		.has_layers = true,
		.layers = {draw(50), draw(50), draw(50)}};
	seed = before;
}

static void submit(struct td_brain *brain, bool service)
{
	struct td_brain_request request = {
		.gpus = 1, .guaranteed = service, .share_ppm = 1000 * (1 + draw(999))};

	snprintf(request.id, sizeof(request.id), "%u", next_id++);
	snprintf(request.program, sizeof(request.program), "%c%u", service ? 's' : 'j',
		draw(service ? SERVICES : KINDS));
	snprintf(request.kind, sizeof(request.kind), "share%u", draw(100));
	if (td_brain_submit(brain, &request, now_ns))
		abort();
}

/* Asks until nothing more is ordered. Returns how many placements there were. */
static uint32_t ask(struct td_brain *brain)
{
	uint32_t count, placed = 0;

	do {
		count = td_brain_step(brain, now_ns, orders, ORDERS);
		for (uint32_t k = 0; k < count; k++)
			td_brain_ran(brain, orders[k].id, orders[k].epoch, now_ns);
		placed += count;
	} while (count + 1 >= ORDERS);
	return placed;
}

/* A cluster with a service on each GPU. */
static struct td_brain *fill(const struct td_brain_policy *policy)
{
	const struct td_brain_knowledge knowledge = {.look = look};
	struct td_brain_params params = td_brain_default;
	struct td_brain *brain;

	params.policy = policy;
	params.shape.nodes_max = NODES;
	params.shape.node_gpus_max = GPUS;
	params.shape.jobs_max = 65536;
	params.shape.kinds_max = 512;
	params.silent_ns = 0;
	brain = td_brain_new(&params);
	if (!brain)
		abort();
	td_brain_know(brain, &knowledge);
	for (uint32_t n = 0; n < NODES; n++) {
		struct td_brain_node node = {.gpus = GPUS};

		snprintf(node.name, sizeof(node.name), "node%u", n);
		if (td_brain_node_seen(brain, &node, now_ns))
			abort();
		for (uint32_t g = 0; g < GPUS; g++)
			td_brain_gpu_is(brain, node.name, g, "a GPU");
	}
	td_brain_lead(brain, 1);
	next_id = 0;
	for (uint32_t k = 0; k < ALL; k++)
		submit(brain, true);
	if (ask(brain) != ALL)
		abort();
	return brain;
}

static void measure_places(const struct td_brain_policy *policy)
{
	static double samples[TIMES];
	struct td_brain *brain = fill(policy);
	char figure[64];

	for (uint32_t k = 0; k < TIMES; k++) {
		uint64_t begin_ns = td_time_now_ns();

		now_ns += TD_NS_PER_MS;
		submit(brain, false);
		if (!ask(brain))
			abort();
		samples[k] = (double)(td_time_now_ns() - begin_ns) / 1e3;
	}
	snprintf(figure, sizeof(figure), "brain %s, a guest", policy->name);
	bench_row(figure, "us", samples, TIMES);
	printf("{\"figure\": \"%s, P99\", \"unit\": \"us\", \"median\": %.4g, \"n\": %u}\n", figure,
		samples[TIMES * 99 / 100], TIMES);
	td_brain_free(brain);
}

static void measure_matching(void)
{
	double samples[ROUNDS];
	uint32_t placed = 0;

	for (uint32_t k = 0; k < ROUNDS; k++) {
		struct td_brain *brain = fill(&td_brain_muxflow);
		uint64_t begin_ns;

		now_ns += 3600 * TD_NS_PER_S;
		for (uint32_t w = 0; w < WAITING; w++)
			submit(brain, false);
		begin_ns = td_time_now_ns();
		placed = ask(brain);
		samples[k] = (double)(td_time_now_ns() - begin_ns) / 1e6;
		td_brain_free(brain);
	}
	if (placed < WAITING / 2)
		abort();
	bench_row("brain muxflow, a matching", "ms", samples, ROUNDS);
}

int main(void)
{
	make_models();
	measure_places(&td_brain_dcuda);
	measure_places(&td_brain_mudi);
	measure_matching();
	return 0;
}
