/*
 * Programs for graphs.py, run under `softgpu run -- tandem run --mem`: allocations by graphs. Each
 * prints a line of JSON for a line on stdin: the most that graphs had in use by this program's own
 * account, and the most that they held by the driver's.
 *
 *   anew BLOCK N        graphs of one block each are launched until one is refused; every second
 *                       one is freed; the others are launched until one is refused
 *   again BLOCK BESIDE  a graph that frees its block itself is launched many times without a pause;
 *                       then one of BESIDE bytes, and the first again
 *   changed BLOCK       the same; then it is changed to be another graph's, and launched until that
 *                       is refused, or eight times
 *   replaced BLOCK      the same while the stream waits; each time it is destroyed and instantiated
 *                       anew
 *   race THREADS ROUNDS threads launch graphs of blocks of 2 to 8 MiB, free their memory, and trim
 *                       what is cached
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/objects.h"
#include "cuda/signatures.h"

/* Every symbol, in the types of the generated signatures. */
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult symbol TD_PARAMS_##symbol;
#include "cuda/symbols.def"
#undef SYMBOL

#define MIB      (1ull << 20)
#define OK(call) must(call, #call)

#define BLOCKS   64
#define AGAIN    40
#define TRIM_ONE 16 /* of so many rounds one */

static struct account {
	_Atomic uint64_t bytes, peak_bytes, granted, refused, failed;
} account;

struct graph {
	void *graph, *exec;
	CUdeviceptr address;
	size_t bytes;
	bool frees, live;
};

static CUcontext context;

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "graph_test: %s: %d\n", what, (int)r);
	exit(1);
}

static void count(uint64_t bytes)
{
	uint64_t now = atomic_fetch_add(&account.bytes, bytes) + bytes,
		 peak = atomic_load(&account.peak_bytes);

	while (now > peak && !atomic_compare_exchange_weak(&account.peak_bytes, &peak, now))
		;
}

static struct graph make(size_t bytes, bool frees)
{
	struct td_alloc_node memory = {
		.pool = {1, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, {0}}, .bytes = bytes};
	void *alloc, *end;
	struct graph g = {.bytes = bytes, .frees = frees};

	OK(cuGraphCreate(&g.graph, 0));
	OK(cuGraphAddMemAllocNode(&alloc, g.graph, NULL, 0, &memory));
	g.address = memory.address;
	if (frees)
		OK(cuGraphAddMemFreeNode(&end, g.graph, (const void **)&alloc, 1, memory.address));
	OK(cuGraphInstantiateWithFlags(&g.exec, g.graph, 0));
	return g;
}

static CUresult launch(struct graph *g, CUstream stream)
{
	CUresult r = cuGraphLaunch(g->exec, stream);

	if (!r) {
		g->live = true;
		if (!g->frees)
			count(g->bytes);
		account.granted++;
	} else {
		atomic_fetch_add(
			r == CUDA_ERROR_OUT_OF_MEMORY ? &account.refused : &account.failed, 1);
	}
	return r;
}

static void release(struct graph *g, CUstream stream)
{
	atomic_fetch_sub(&account.bytes, g->bytes);
	g->live = false;
	if (cuMemFreeAsync(g->address, stream))
		atomic_fetch_add(&account.failed, 1);
}

static void say(void)
{
	uint64_t high = 0, now = 0;

	OK(cuDeviceGetGraphMemAttribute(0, TD_GRAPH_ATTR_RESERVED + 1, &high));
	OK(cuDeviceGetGraphMemAttribute(0, TD_GRAPH_ATTR_RESERVED, &now));
	printf("{\"peak_bytes\": %llu, \"high_bytes\": %llu, \"now_bytes\": %llu, \"granted\": "
	       "%llu, \"refused\": %llu, \"failed\": %llu}\n",
		(unsigned long long)account.peak_bytes, (unsigned long long)high,
		(unsigned long long)now, (unsigned long long)account.granted,
		(unsigned long long)account.refused, (unsigned long long)account.failed);
	fflush(stdout);
}

static void anew(size_t block, unsigned n)
{
	struct graph graphs[BLOCKS];
	CUstream stream;
	unsigned i, at;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (i = 0; i < n; i++)
		graphs[i] = make(block, false);
	for (at = 0; at < n && !launch(&graphs[at], stream); at++)
		;
	for (i = 0; i < at; i += 2)
		release(&graphs[i], stream);
	OK(cuStreamSynchronize(stream));
	for (; at < n && !launch(&graphs[at], stream); at++)
		;
}

static void again(size_t block, size_t beside)
{
	struct graph own = make(block, true), other = make(beside, true);
	CUstream stream;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < AGAIN; i++)
		(void)launch(&own, stream);
	OK(cuStreamSynchronize(stream));
	(void)launch(&other, stream);
	OK(cuStreamSynchronize(stream));
	for (unsigned i = 0; i < AGAIN; i++)
		(void)launch(&own, stream);
	OK(cuStreamSynchronize(stream));
}

static void changed(size_t block)
{
	struct graph own = make(block, true);
	CUstream stream;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	(void)launch(&own, stream);
	for (unsigned i = 0; i < 8; i++) {
		struct graph other = make(block, true);
		char result[64];

		OK(cuGraphExecUpdate_v2(own.exec, other.graph, (void *)result));
		if (launch(&own, stream))
			break;
	}
	OK(cuStreamSynchronize(stream));
}

static void replaced(size_t block)
{
	struct graph own = make(block, true);
	CUstream stream, other;
	CUdeviceptr word;

	OK(cuMemAlloc_v2(&word, sizeof(unsigned)));
	OK(cuMemsetD32_v2(word, 0, 1));
	OK(cuCtxSynchronize()); /* the streams below wait for no default stream */
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuStreamWaitValue32_v2(stream, word, 1, 0));
	for (unsigned i = 0; i < AGAIN; i++) {
		(void)launch(&own, stream);
		OK(cuGraphExecDestroy(own.exec));
		OK(cuGraphInstantiateWithFlags(&own.exec, own.graph, 0));
	}
	OK(cuStreamWriteValue32_v2(other, word, 1, 0));
	OK(cuStreamSynchronize(stream));
}

struct racer {
	pthread_t thread;
	unsigned seed, rounds;
};

static void *race_thread(void *arg)
{
	struct racer *racer = arg;
	struct graph graphs[4];
	CUstream stream;

	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < 4; i++)
		graphs[i] = make((i + 1) * 2 * MIB, false);
	for (unsigned i = 0; i < racer->rounds; i++) {
		struct graph *g = &graphs[(unsigned)rand_r(&racer->seed) % 4];

		if (!g->live)
			(void)launch(g, stream);
		else
			release(g, stream);
		if ((unsigned)rand_r(&racer->seed) % TRIM_ONE == 0)
			OK(cuDeviceGraphMemTrim(0));
	}
	OK(cuStreamSynchronize(stream));
	return NULL;
}

static void race(unsigned threads, unsigned rounds)
{
	struct racer racers[BLOCKS];

	for (unsigned i = 0; i < threads; i++) {
		racers[i] = (struct racer){.seed = i + 1, .rounds = rounds};
		if (pthread_create(&racers[i].thread, NULL, race_thread, &racers[i]))
			exit(1);
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(racers[i].thread, NULL);
}

static void run(const char *mode, size_t a, size_t b)
{
	if (!strcmp(mode, "anew"))
		anew(a, b < BLOCKS ? (unsigned)b : BLOCKS);
	else if (!strcmp(mode, "again"))
		again(a, b);
	else if (!strcmp(mode, "changed"))
		changed(a);
	else if (!strcmp(mode, "replaced"))
		replaced(a);
	else if (!strcmp(mode, "race"))
		race(a < BLOCKS ? (unsigned)a : BLOCKS, (unsigned)b);
}

int main(int argc, char **argv)
{
	char line[16];

	if (argc < 3) {
		fprintf(stderr, "usage: graph_test anew BLOCK N | again BLOCK BESIDE | changed "
				"BLOCK | replaced BLOCK | race THREADS ROUNDS\n");
		return 2;
	}
	OK(cuInit(0));
	OK(cuCtxCreate_v2(&context, 0, 0));
	while (fgets(line, sizeof(line), stdin)) {
		run(argv[1], (size_t)atoll(argv[2]), argc > 3 ? (size_t)atoll(argv[3]) : 0);
		say();
	}
	return 0;
}
