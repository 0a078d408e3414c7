/*
 * Drives the deciding modules that are not node policies with arbitrary events and checks their
 * invariants: AntMan's cluster (whole gangs, quotas, reservations), DCUDA's balancing and slices,
 * SysMonitor's transitions, the duty's floor, MuxFlow's control, matchings of arbitrary weights.
 * The first byte chooses the module, the rest are its events.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "match/match.h"
#include "policy/cluster/antman_cluster.h"
#include "policy/system/antman.h"
#include "policy/system/dcuda.h"
#include "policy/system/muxflow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

#define JOBS 32

static void check_cluster(const struct td_antman_cluster *c)
{
	uint32_t held[TD_TENANTS_MAX] = {0}, gpus[TD_GANG_MAX];

	for (uint32_t id = 0; id < JOBS; id++) {
		uint32_t n = td_antman_gpus(c, id, gpus);

		if (c->jobs[id].state != TD_JOB_RUNNING &&
			c->jobs[id].state != TD_JOB_OPPORTUNISTIC_RUNNING)
			continue;
		require(n == c->jobs[id].gpus);
		for (uint32_t k = 0; k < n && c->jobs[id].state == TD_JOB_RUNNING; k++) {
			require(c->gpus.holder[gpus[k]] == id);
			held[c->jobs[id].tenant]++;
		}
	}
	for (uint32_t g = 0; g < c->gpus.gpu_count; g++)
		if (c->gpus.reserved[g] != TD_NO_JOB) {
			require(c->gpus.holder[g] == TD_NO_JOB);
			held[c->jobs[c->gpus.reserved[g]].tenant]++;
		}
	for (uint32_t t = 0; t < c->tenant_count; t++)
		require(held[t] <= c->tenants[t].quota);
}

static void drive_cluster(const uint8_t *data, size_t size)
{
	static const uint32_t nodes[] = {4, 2, 8, 1}, quotas[] = {6, 4, 0};
	static struct td_antman_cluster cluster;
	size_t bytes = td_antman_bytes(4, 15, JOBS);
	void *memory = malloc(bytes);
	uint64_t now = 0;

	if (!memory)
		abort();
	require(!td_antman_init(
		&cluster, memory, bytes, &td_antman_default, nodes, 4, quotas, 3, JOBS));
	for (size_t i = 0; i + 2 < size && i < 3000; i += 3) {
		struct td_antman_request request = {data[i + 2] & 3, data[i + 2] >> 4,
			(enum td_job_kind)((data[i] >> 4) % TD_JOB_KIND_N), data[i + 2] & 4,
			TD_ANYWHERE};
		struct td_antman_action actions[8];

		now += (uint64_t)data[i] * 1000000000u;
		if (data[i] & 1)
			(void)td_antman_submit(&cluster, data[i + 1] % JOBS, &request, now);
		else if (data[i] & 2)
			td_antman_finish(&cluster, data[i + 1] % JOBS, now);
		else
			td_antman_set_load(&cluster, data[i + 1] % 15, data[i + 2] * 4000u);
		(void)td_antman_step(&cluster, now, actions, data[i] & 8 ? 8 : 1);
		check_cluster(&cluster);
	}
	free(memory);
}

static void drive_dcuda(const uint8_t *data, size_t size)
{
	struct td_balance_app apps[16];
	static struct td_dcuda_plan plan;
	uint32_t n = 0, groups_seen = 0;
	double before[4] = {0}, after[4] = {0};

	for (size_t i = 0; i + 1 < size && n < 16; i += 2)
		apps[n++] = (struct td_balance_app){data[i] & 3, (data[i] >> 2) / 40.,
			(data[i + 1] >> 1) / 200., data[i + 1] & 1};
	for (uint32_t i = 0; i < n; i++)
		before[apps[i].gpu] += apps[i].core;
	require(!td_dcuda_step(&td_dcuda_default, apps, n, 4, size * TD_SLICE_NS, &plan));
	for (uint32_t i = 0; i < n; i++)
		after[apps[i].gpu] += apps[i].core;
	for (uint32_t m = 0; m < plan.moves; m++)
		require(apps[plan.move[m].app].movable &&
			apps[plan.move[m].app].gpu == plan.move[m].to);
	for (uint32_t g = 0; g < 4; g++)
		require(after[g] <= before[g] + 1e-9 || after[g] < 1 + 1e-9);
	/* Over as many slices as there are applications at most, each has run. */
	for (uint32_t slice = 0; slice < n; slice++) {
		struct td_dcuda_params still = td_dcuda_default;

		still.compact = false;
		still.balance.core_under = still.balance.memory = 0; /* nothing moves any more */
		require(!td_dcuda_step(&still, apps, n, 4, slice * TD_SLICE_NS, &plan));
		for (uint32_t i = 0; i < n; i++)
			groups_seen |= (uint32_t)plan.runs[i] << i;
	}
	require(groups_seen == (n < 32 ? (1u << n) - 1 : UINT32_MAX));
}

static void drive_muxflow(const uint8_t *data, size_t size)
{
	struct td_muxflow_gpu gpu = {0};
	uint64_t now = 1;

	for (size_t i = 0; i + 3 < size; i += 4) {
		struct td_sysmonitor_metrics metrics = {.initialised = data[i] & 1,
			.available = (data[i] & 6) != 0,
			.utilisation_ppm = data[i + 1] * 4000u,
			.sm_activity_ppm = data[i + 2] * 4000u,
			.memory_ppm = (data[i] >> 3) * 32000u,
			.clock_mhz = data[i + 3] * 7u};
		enum td_sysmonitor_state before = gpu.monitor.state;
		uint64_t until = gpu.monitor.until_ns;
		struct td_muxflow_output out =
			td_muxflow_gpu_step(&gpu, &td_muxflow_t4, &metrics, now);

		require(out.duty_ppm <= 1000000 && !(out.evict && out.duty_ppm));
		require(!(out.accepts && out.evict));
		if (before == TD_SYSMONITOR_OVERLIMIT && gpu.monitor.state != before)
			require(gpu.monitor.state == TD_SYSMONITOR_DISABLED ||
				(gpu.monitor.state == TD_SYSMONITOR_UNHEALTHY && now >= until));
		now += 1 + (uint64_t)data[i] * data[i + 3] * 1000000u;
	}
}

static void drive_antman_gpu(const uint8_t *data, size_t size)
{
	struct td_antman_gpu gpu = {0};
	uint64_t now = 1;

	for (size_t i = 0; i + 4 < size; i += 5) {
		struct td_memory_trial_job jobs[4];
		struct td_antman_gpu_input input = {.capacity_bytes = 64ull << 30,
			.guaranteed_bytes = (uint64_t)data[i + 1] << 28,
			.besteffort = jobs,
			.besteffort_count = data[i] & 3,
			.window_over = data[i] & 4};
		struct td_antman_gpu_output out;
		uint64_t sum = 0;

		input.guaranteed = (struct td_duty_input){.guaranteed = data[i] & 8,
			.busy = data[i] & 16,
			.job = data[i] >> 6,
			.steps = i / 5,
			.step_ns = (uint64_t)data[i + 2] << (data[i + 3] & 31),
			.step_began_ns = data[i] & 32 ? now : 0,
			.host_bytes = data[i + 4] == 7,
			.unit = data[i + 4] >> 6,
			.company = data[i + 4] & 3};
		for (uint32_t k = 0; k < input.besteffort_count; k++)
			jobs[k] = (struct td_memory_trial_job){k, (uint64_t)data[i + 3] << 29,
				(uint64_t)(data[i + 4] & 15) << 28, data[i + k] / 256.};
		require(!td_antman_gpu_step(&gpu, &td_antman_gpu_default, &input, now, &out));
		require(out.duty_ppm >= 20000 && out.duty_ppm <= 1000000);
		for (uint32_t k = 0; k < input.besteffort_count; k++)
			sum += out.limit_bytes[k];
		require(sum <= input.capacity_bytes);
		now += (uint64_t)data[i + 2] << 20;
	}
}

static void drive_match(const uint8_t *data, size_t size)
{
	uint32_t rows = size ? 1 + data[0] % 12 : 1, columns = size > 1 ? 1 + data[1] % 12 : 1;
	static char memory[1 << 17] __attribute__((aligned(64)));
	float weights[144];
	uint32_t column[12], taken = 0;
	struct td_match_problem problem = {weights, columns, rows, columns, NULL, NULL};
	struct td_match_result result;
	struct td_match *match;

	require(td_match_bytes(rows, columns, 12) <= sizeof(memory));
	for (uint32_t k = 0; k < rows * columns; k++) {
		uint8_t byte = 2 + k < size ? data[2 + k] : (uint8_t)(k * 37);

		weights[k] = byte == 255   ? NAN
			     : byte == 254 ? -1.f
					   : ldexpf((float)(1 + byte % 16), byte / 16);
	}
	require(td_match_solve(&problem, &td_match_default, memory, sizeof(memory), column, &result,
			&match) >= 0);
	require(result.weight <= result.bound * (1 + 1e-5));
	for (uint32_t i = 0; i < rows; i++) {
		if (column[i] == TD_MATCH_NONE)
			continue;
		require(column[i] < columns && !(taken >> column[i] & 1));
		require(weights[i * columns + column[i]] > 0);
		taken |= 1u << column[i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const drives[])(const uint8_t *, size_t) = {
		drive_cluster, drive_dcuda, drive_muxflow, drive_antman_gpu, drive_match};

	if (size)
		drives[data[0] % 5](data + 1, size - 1);
	return 0;
}
