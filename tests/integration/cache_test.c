/*
 * A training framework in miniature, with the caching allocator that python/tandem gives to
 * PyTorch. Reads lines: "N BYTES" makes N steps that each take, fill, check and give back so much
 * memory in blocks of 1 to 8 MiB; "0 BYTES" makes them until the next line. Prints one line of JSON
 * after each line.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "alloc/cache.h"
#include "cuda/types.h"
#include "include/tandem/tandem.h"

#define BLOCKS_MAX 256

CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned value, size_t count);
CUresult cuMemcpyDtoH_v2(void *host, CUdeviceptr address, size_t bytes);

void *tandem_malloc(ssize_t bytes, int device, CUstream stream);
void tandem_free(void *address, ssize_t bytes, int device, CUstream stream);
void tandem_alloc_step(void);
int tandem_alloc_stats(int device, struct td_cache_stats *ret);

static struct {
	void *address;
	size_t bytes;
} blocks[BLOCKS_MAX];

static void must(int r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "cache_test: %s: %d\n", what, r);
	exit(1);
}

static unsigned take(size_t bytes, unsigned step)
{
	unsigned n = 0;

	while (bytes && n < BLOCKS_MAX) {
		size_t part = (size_t)(n % 8 + 1) << 20;

		blocks[n].bytes = part < bytes ? part : bytes;
		blocks[n].address = tandem_malloc((ssize_t)blocks[n].bytes, 0, NULL);
		must(!blocks[n].address, "out of memory");
		must(cuMemsetD32_v2(
			     (CUdeviceptr)blocks[n].address, step * 1000 + n, blocks[n].bytes / 4),
			"set");
		bytes -= blocks[n].bytes;
		n++;
	}
	return n;
}

static void check_and_free(unsigned n, unsigned step)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t ends[2];

		must(cuMemcpyDtoH_v2(&ends[0], (CUdeviceptr)blocks[i].address, 4), "copy");
		must(cuMemcpyDtoH_v2(
			     &ends[1], (CUdeviceptr)blocks[i].address + blocks[i].bytes - 4, 4),
			"copy");
		must(ends[0] != step * 1000 + i || ends[1] != ends[0], "its content has changed");
		tandem_free(blocks[i].address, (ssize_t)blocks[i].bytes, 0, NULL);
	}
}

static bool is_told(void)
{
	struct pollfd in = {STDIN_FILENO, POLLIN, 0};

	return poll(&in, 1, 0) != 0;
}

int main(void)
{
	unsigned steps, step = 0;
	struct td_cache_stats stats;
	CUcontext context;
	CUdevice device;
	size_t bytes;

	must(cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
			cuCtxSetCurrent(context),
		"no GPU");
	while (scanf("%u %zu", &steps, &bytes) == 2) {
		size_t excess;

		for (unsigned n = 0; steps ? n < steps : !is_told(); n++, step++) {
			check_and_free(take(bytes, step), step);
			must(cuCtxSynchronize(), "synchronise");
			tandem_step();
			tandem_alloc_step();
		}
		excess = tandem_excess(0);
		must(tandem_alloc_stats(0, &stats), "stats");
		printf("{\"in_use\": %llu, \"cached\": %llu, \"misses\": %llu, \"excess\": %zu}\n",
			(unsigned long long)stats.in_use_bytes,
			(unsigned long long)stats.cached_bytes, (unsigned long long)stats.misses,
			excess);
		fflush(stdout);
	}
	return 0;
}
