/*
 * The time of a placement by the brain, with 2,500 nodes of 8 GPUs that are full: a job ends,
 * another one comes, and the brain is asked until it has ordered the placement. Rows: median and
 * P99, for guaranteed jobs and for others, where no job waits; and the same with 2,000 that wait.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "bench/row.h"
#include "cluster/brain/brain.h"

#define NODES  2500u
#define GPUS   8u
#define JOBS   65536u
#define TIMES  20000u
#define ORDERS 512u

static struct td_brain_order orders[ORDERS];
static uint32_t running[JOBS], run_count, next_id;
static uint64_t now_ns = TD_NS_PER_S;

static void submit(struct td_brain *brain, uint64_t *seed)
{
	struct td_brain_request request = {.gpus = 1, .share_ppm = 1000000};

	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	request.guaranteed = *seed >> 40 & 1;
	snprintf(request.id, sizeof(request.id), "%u", next_id++);
	strcpy(request.kind, "whole");
	if (td_brain_submit(brain, &request, now_ns))
		abort();
}

/* Asks for orders and has them carried out. Returns how many placements there were. */
static uint32_t ask(struct td_brain *brain)
{
	uint32_t count = td_brain_step(brain, now_ns, orders, ORDERS), placed = 0;

	for (uint32_t k = 0; k < count; k++) {
		td_brain_done(brain, &orders[k]);
		if (orders[k].verb != TD_ORDER_PLACE)
			continue;
		td_brain_ran(brain, orders[k].id, orders[k].epoch, now_ns);
		running[run_count++] = (uint32_t)atoi(orders[k].id);
		placed++;
	}
	return placed;
}

static struct td_brain *fill(const struct td_brain_policy *policy, uint64_t *seed, uint32_t waiting)
{
	struct td_brain_params params = td_brain_default;
	struct td_brain *brain;

	params.policy = policy;
	params.shape.nodes_max = NODES;
	params.shape.node_gpus_max = GPUS;
	params.shape.jobs_max = JOBS;
	params.silent_ns = 0;
	brain = td_brain_new(&params);
	if (!brain)
		abort();
	for (uint32_t n = 0; n < NODES; n++) {
		struct td_brain_node node = {.gpus = GPUS};

		snprintf(node.name, sizeof(node.name), "node%u", n);
		if (td_brain_node_seen(brain, &node, now_ns))
			abort();
	}
	td_brain_lead(brain, 1);
	run_count = next_id = 0;
	while (run_count < NODES * GPUS) {
		submit(brain, seed);
		(void)ask(brain);
	}
	for (uint32_t k = 0; k < waiting; k++)
		submit(brain, seed);
	(void)ask(brain);
	return brain;
}

static void measure(const struct td_brain_policy *policy, uint32_t waiting)
{
	static double samples[TIMES];
	uint64_t seed = 1;
	struct td_brain *brain = fill(policy, &seed, waiting);
	char figure[64], id[TD_NAME_MAX];
	uint32_t n = 0;

	for (uint32_t k = 0; k < TIMES; k++) {
		uint64_t begin_ns, end_ns;
		uint32_t at, placed;

		now_ns += TD_NS_PER_MS;
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		at = (uint32_t)(seed >> 33) % run_count;
		snprintf(id, sizeof(id), "%u", running[at]);
		running[at] = running[--run_count];
		begin_ns = td_time_now_ns();
		td_brain_ended(brain, id, now_ns);
		submit(brain, &seed);
		placed = ask(brain);
		end_ns = td_time_now_ns();
		if (placed)
			samples[n++] = (double)(end_ns - begin_ns) / 1e3;
	}
	snprintf(figure, sizeof(figure), "brain %s, %u wait", policy->name, waiting);
	bench_row(figure, "us", samples, n);
	if (n)
		printf("{\"figure\": \"%s, P99\", \"unit\": \"us\", \"median\": %.4g, \"n\": %u}\n",
			figure, samples[n * 99 / 100], n);
	td_brain_free(brain);
}

int main(void)
{
	measure(&td_brain_tandem, 0);
	measure(&td_brain_tandem, 2000);
	measure(&td_brain_antman, 0);
	return 0;
}
