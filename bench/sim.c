/*
 * The simulator's speed on one core, in CPU time: events alone, and whole clusters.
 *
 * events: hold model, each event that is taken puts another one an exponentially distributed time
 * later. clusters: synthetic jobs (78 % of one GPU, up to 8; lognormal durations) for 24 h under
 * AntMan's scheduler and tandem's, without reading and reporting.
 *
 * usage: sim
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/time.h"
#include "row.h"
#include "sim/base/random.h"
#include "sim/scheduler/schedulers.h"

#define HOLDS   4000000u
#define SAMPLES 5

static double samples[SAMPLES];

/* Counts this thread alone, because the machine may have other work. */
static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * TD_NS_PER_S + (uint64_t)now.tv_nsec;
}

static double seconds_since(uint64_t start_ns)
{
	return (double)(cpu_ns() - start_ns) * 1e-9;
}

/* Times to come are drawn beforehand: not the generator is measured. */
static void bench_events(uint32_t pending)
{
	static uint32_t delays[1u << 16];
	uint64_t seed = 1, last = 0;
	char figure[80];

	for (uint32_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++)
		delays[i] = (uint32_t)td_random_exponential(&seed, 1e8);
	for (int s = 0; s < SAMPLES; s++) {
		struct td_future future = {0};
		struct td_event event;
		uint64_t start_ns;

		if (td_future_reserve(&future, pending + 1))
			exit(1);
		for (uint32_t i = 0; i < pending; i++)
			td_future_push(&future, delays[i & 0xffff] + i, i);
		start_ns = cpu_ns();
		for (uint32_t i = 0; i < HOLDS; i++) {
			if (!td_future_pop(&future, &event) || event.at_ns < last)
				exit(1);
			last = event.at_ns;
			td_future_push(&future, last + delays[i & 0xffff], event.what);
		}
		samples[s] = HOLDS / seconds_since(start_ns) * 1e-6;
		last = 0;
		td_future_deinit(&future);
	}
	snprintf(figure, sizeof(figure), "events taken and put, %u pending", pending);
	bench_row(figure, "M/s", samples, SAMPLES);
}

static void make_jobs(struct td_sim_job *jobs, uint32_t count, double mean_s, uint32_t kinds)
{
	static const uint32_t sizes[] = {1, 1, 1, 1, 1, 1, 1, 2, 4, 8};
	uint64_t seed = 2;

	for (uint32_t i = 0; i < count; i++)
		jobs[i] = (struct td_sim_job){.submit_ns = (uint64_t)(86400e9 * i / count),
			.work_s = mean_s * exp(1.2 * td_random_normal(&seed) - 0.72),
			.gpus = sizes[td_random_below(&seed, 10)],
			.class = td_random_below(&seed, 2) ? TD_CLASS_GUARANTEED
							   : TD_CLASS_BESTEFFORT,
			.profile = td_random_below(&seed, kinds),
			.host_cost = 1};
}

static void bench_cluster(const struct td_sched *sched, uint32_t gpus, uint32_t count)
{
	static struct td_profiles profiles;
	static struct td_cluster cluster;
	struct td_cluster_options options = {
		.contention = {.capped_pressure = 1}, .until_s = 86400};
	uint32_t *nodes = calloc(gpus / 8, sizeof(*nodes));
	struct td_sim_job *jobs = calloc(count, sizeof(*jobs));
	char figure[80];

	if (!nodes || !jobs)
		exit(1);
	for (uint32_t n = 0; n < gpus / 8; n++)
		nodes[n] = 8;
	td_profiles_generic(&profiles);
	/* Mean of the sizes is 2.1: 70 % of the GPUs busy. */
	make_jobs(jobs, count, 0.7 * gpus * 86400 / 2.1 / count, profiles.count);
	for (int s = 0; s < SAMPLES; s++) {
		uint64_t start_ns = cpu_ns();

		if (td_cluster_init(
			    &cluster, &options, &profiles, nodes, gpus / 8, 0, jobs, count, sched))
			exit(1);
		td_cluster_run(&cluster);
		samples[s] = seconds_since(start_ns);
		fprintf(stderr, "# %u GPUs: %u of %u jobs ended, %llu events\n", gpus,
			cluster.ended, count, (unsigned long long)cluster.counts.events);
		td_cluster_deinit(&cluster);
	}
	snprintf(figure, sizeof(figure), "%u GPUs, 24 h, %u jobs, %s", gpus, count, sched->name);
	bench_row(figure, "s", samples, SAMPLES);
	free(nodes);
	free(jobs);
}

int main(void)
{
	bench_events(1000);
	bench_events(10000);
	bench_events(100000);
	bench_events(1000000);
	bench_cluster(&td_sched_antman, 1000, 7000);
	bench_cluster(&td_sched_antman, 20000, 140000);
	bench_cluster(&td_sched_tandem, 1000, 7000);
	bench_cluster(&td_sched_tandem, 20000, 140000);
	return 0;
}
