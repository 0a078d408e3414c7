/*
 * A program whose memory is to shrink: it takes BYTES in blocks of 8 MiB with the caching
 * allocator, frees them or not, and makes steps of 1 ms. Prints "ready" with its cached bytes.
 * After the request to give memory back it prints, in monotonic ns, when it saw the request and
 * when nothing exceeded the limit any more.
 *
 * usage: shrink BYTES cached|unwritten|live; unwritten: as cached, but none of its pages was ever
 * written
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/time.h"
#include "cuda/types.h"
#include "include/tandem/tandem.h"

#define BLOCK   ((size_t)8 << 20)
#define BLOCKS  4096
#define STEP_NS (1 * TD_NS_PER_MS)

CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned value, size_t count);

void *tandem_malloc(ssize_t bytes, int device, CUstream stream);
void tandem_free(void *address, ssize_t bytes, int device, CUstream stream);
void tandem_alloc_step(void);

static void *blocks[BLOCKS];

static unsigned take(size_t bytes, bool write)
{
	unsigned n = 0;

	for (; n < BLOCKS && (n + 1) * BLOCK <= bytes; n++) {
		blocks[n] = tandem_malloc((ssize_t)BLOCK, 0, NULL);
		if (!blocks[n] || (write && cuMemsetD32_v2((CUdeviceptr)blocks[n], n, BLOCK / 4)))
			exit(1);
	}
	return n;
}

int main(int argc, char **argv)
{
	bool live = argc == 3 && !strcmp(argv[2], "live");
	uint64_t asked_ns = 0;
	CUcontext context;
	CUdevice device;
	unsigned n;

	if (argc != 3 || cuInit(0) || cuDeviceGet(&device, 0) ||
		cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context))
		return 1;
	n = take((size_t)atoll(argv[1]), strcmp(argv[2], "unwritten"));
	/* The measurement must not wait for the sets. */
	if (cuCtxSynchronize())
		return 1;
	for (unsigned i = 0; i < n && !live; i++)
		tandem_free(blocks[i], (ssize_t)BLOCK, 0, NULL);
	puts("ready");
	fflush(stdout);
	for (;;) {
		if (!asked_ns && tandem_excess(0))
			asked_ns = td_time_now_ns();
		tandem_step();
		tandem_alloc_step();
		if (asked_ns && !tandem_excess(0)) {
			printf("%llu %llu\n", (unsigned long long)asked_ns,
				(unsigned long long)td_time_now_ns());
			fflush(stdout);
			asked_ns = 0;
		}
		td_time_sleep_until_ns(td_time_now_ns() + STEP_NS);
	}
}
