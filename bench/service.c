/*
 * The cost of a request's two calls, tandem_arrived() and tandem_answered(), per call: with one
 * thread, and with two that count in the same page. Each reads the clock once, so the clock alone
 * is measured beside them, in turn. Time is the thread's own CPU time, so that other programs of a
 * busy machine do not count.
 *
 * usage: service LIBTANDEM
 */
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include "base/time.h"
#include "bench/row.h"

#define ROUNDS      101
#define PAIRS       50000u
#define THREADS_MAX 2

static int (*declare)(const char *name, uint64_t objective_ns, uint32_t batch_max);
static uint64_t (*arrived)(uint32_t requests);
static void (*answered)(uint64_t token, uint32_t requests);

struct run {
	pthread_t thread;
	pthread_barrier_t *start;
	double call_ns[ROUNDS], clock_ns[ROUNDS];
};

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * TD_NS_PER_S + (uint64_t)now.tv_nsec;
}

static double time_calls(void)
{
	uint64_t began = cpu_ns();

	for (unsigned i = 0; i < PAIRS; i++)
		answered(arrived(1), 1);
	return (double)(cpu_ns() - began) / (2 * PAIRS);
}

static double time_clock(void)
{
	uint64_t began = cpu_ns(), sum = 0;

	for (unsigned i = 0; i < 2 * PAIRS; i++)
		sum += td_time_now_ns();
	return (double)(cpu_ns() - began + (sum == 1)) / (2 * PAIRS);
}

static void *measure(void *arg)
{
	struct run *run = arg;

	for (unsigned round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(run->start);
		run->call_ns[round] = time_calls();
		pthread_barrier_wait(run->start);
		run->clock_ns[round] = time_clock();
	}
	return NULL;
}

static int run_with(unsigned threads, const char *name)
{
	static struct run runs[THREADS_MAX];
	pthread_barrier_t start;
	char figure[80];

	if (pthread_barrier_init(&start, NULL, threads))
		return 1;
	for (unsigned i = 0; i < threads; i++) {
		runs[i].start = &start;
		if (pthread_create(&runs[i].thread, NULL, measure, &runs[i]))
			return 1;
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(runs[i].thread, NULL);
	pthread_barrier_destroy(&start);
	snprintf(figure, sizeof(figure), "arrived, answered, %s", name);
	bench_row(figure, "ns", runs[0].call_ns, ROUNDS);
	snprintf(figure, sizeof(figure), "of it the clock, %s", name);
	bench_row(figure, "ns", runs[0].clock_ns, ROUNDS);
	return 0;
}

int main(int argc, char **argv)
{
	void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;

	if (!library) {
		fprintf(stderr, "service: %s\n",
			argc == 2 ? dlerror() : "usage: service LIBTANDEM");
		return 2;
	}
	*(void **)&declare = dlsym(library, "tandem_service");
	*(void **)&arrived = dlsym(library, "tandem_arrived");
	*(void **)&answered = dlsym(library, "tandem_answered");
	if (!declare || !arrived || !answered || declare("bench", 50 * TD_NS_PER_MS, 32)) {
		fputs("service: the library counts no requests\n", stderr);
		return 1;
	}
	return run_with(1, "one thread") || run_with(2, "two threads");
}
