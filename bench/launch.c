/*
 * What a launch costs on its way to a driver that does nothing: called directly, forwarded through a pointer (the least that any
 * interposer can cost), and through libtandem with an open gate; with one thread and with two. In each round the three are measured in
 * turn, so that a machine that changes its speed changes all of them. Prints one JSON object; times are ns per call.
 *
 * usage: launch LIBTANDEM NULL-DRIVER
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/time.h"
#include "cuda/types.h"

#define ROUNDS 101
#define CALLS  200000u

typedef CUresult (*launch_fn)(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);

static launch_fn target;

static CUresult forward(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	return target(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

static double once(launch_fn launch)
{
	uint64_t began = td_time_now_ns();

	for (unsigned i = 0; i < CALLS; i++)
		launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return (double)(td_time_now_ns() - began) / CALLS;
}

struct ways {
	launch_fn way[3];
	double ns[3][ROUNDS];
};

static void *measure(void *arg)
{
	struct ways *w = arg;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < 3; i++)
			w->ns[i][round] = once(w->way[i]);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const char *name, double *ns, const char *end)
{
	qsort(ns, ROUNDS, sizeof(*ns), compare);
	printf("\"%s\": {\"median\": %.2f, \"p5\": %.2f, \"p95\": %.2f}%s", name, ns[ROUNDS / 2],
		ns[ROUNDS / 20], ns[ROUNDS - 1 - ROUNDS / 20], end);
}

static void report(const char *name, struct ways *w, const char *end)
{
	double over[ROUNDS];

	for (unsigned i = 0; i < ROUNDS; i++)
		over[i] = w->ns[2][i] - w->ns[1][i];
	printf("\"%s\": {", name);
	print("direct_ns", w->ns[0], ", ");
	print("forwarded_ns", w->ns[1], ", ");
	print("libtandem_ns", w->ns[2], ", ");
	print("libtandem_over_forwarded_ns", over, "}");
	fputs(end, stdout);
}

int main(int argc, char **argv)
{
	void *driver = argc == 3 ? dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) : NULL;
	void *library = driver ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	static struct ways one, two[2];
	pthread_t thread;

	if (!library) {
		fprintf(stderr, "usage: launch LIBTANDEM NULL-DRIVER (%s)\n",
			argc == 3 ? dlerror() : "two paths");
		return 2;
	}
	*(void **)&target = dlsym(driver, "cuLaunchKernel");
	one.way[0] = target;
	one.way[1] = forward;
	*(void **)&one.way[2] = dlsym(library, "cuLaunchKernel");
	two[0] = two[1] = one;
	measure(&one);
	if (pthread_create(&thread, NULL, measure, &two[1]))
		return 1;
	measure(&two[0]);
	pthread_join(thread, NULL);
	printf("{\"rounds\": %d, \"calls\": %u,\n ", ROUNDS, CALLS);
	report("one_thread", &one, ",\n ");
	report("two_threads", &two[0], "}\n");
	return 0;
}
