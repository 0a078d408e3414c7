/*
 * Measures how long the driver alone copies memory to another GPU, as tandem does for a move: it
 * creates chunks of 32 MiB that can be passed on, on device 1, maps them, and fills them from
 * device 0 by cuMemcpyPeerAsync in one stream. Prints {"new": [ms...], "again": [ms...]}: into
 * new memory, and once more into the same. On the software GPU the first finds pages of the machine
 * and the second does not; neither is faster than the link of the model.
 *
 * usage: peer MEBIBYTES RUNS    under `softgpu run --`, with two GPUs
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/time.h"
#include "cuda/types.h"

#define CHUNK    ((size_t)32 << 20) /* CHUNK_MAX of swap.c */
#define CHUNKS   1024u
#define RUNS     1000u
#define POSIX_FD 1

CUresult cuInit(unsigned flags);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr at,
	unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes);
CUresult cuMemSetAccess(
	CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count);
CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t count);
CUresult cuCtxSynchronize(void);
CUresult cuMemcpyPeerAsync(CUdeviceptr target, CUcontext to, CUdeviceptr source, CUcontext from,
	size_t bytes, CUstream stream);

struct chunk {
	CUdeviceptr address;
	CUmemGenericAllocationHandle handle;
	size_t bytes;
};

static struct chunk old[CHUNKS], next[CHUNKS];
static unsigned count;
static CUcontext contexts[2];
static CUstream stream;

static void must(CUresult r)
{
	if (!r)
		return;
	fprintf(stderr, "peer: error %d\n", (int)r);
	exit(1);
}

static void create(struct chunk *chunk, size_t bytes, CUdevice device)
{
	const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = POSIX_FD,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
	const CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	chunk->bytes = bytes;
	must(cuMemAddressReserve(&chunk->address, bytes, 0, 0, 0));
	must(cuMemCreate(&chunk->handle, bytes, &prop, 0));
	must(cuMemMap(chunk->address, bytes, 0, chunk->handle, 0));
	must(cuMemSetAccess(chunk->address, bytes, &access, 1));
}

static void destroy(const struct chunk *chunk)
{
	must(cuMemUnmap(chunk->address, chunk->bytes));
	must(cuMemRelease(chunk->handle));
	must(cuMemAddressFree(chunk->address, chunk->bytes));
}

static void copy(unsigned i)
{
	must(cuMemcpyPeerAsync(
		next[i].address, contexts[1], old[i].address, contexts[0], old[i].bytes, stream));
}

static double since_ms(uint64_t began_ns)
{
	return (double)(td_time_now_ns() - began_ns) / 1e6;
}

static void run(double *ret_new_ms, double *ret_again_ms)
{
	uint64_t began_ns = td_time_now_ns();

	for (unsigned i = 0; i < count; i++) {
		create(&next[i], old[i].bytes, 1);
		copy(i);
	}
	must(cuStreamSynchronize(stream));
	*ret_new_ms = since_ms(began_ns);
	began_ns = td_time_now_ns();
	for (unsigned i = 0; i < count; i++)
		copy(i);
	must(cuStreamSynchronize(stream));
	*ret_again_ms = since_ms(began_ns);
	for (unsigned i = 0; i < count; i++)
		destroy(&next[i]);
}

static void print(const char *name, const double *values, unsigned n)
{
	printf("\"%s\": [", name);
	for (unsigned i = 0; i < n; i++)
		printf("%s%.3f", i ? ", " : "", values[i]);
	printf("]");
}

int main(int argc, char **argv)
{
	static double into_new[RUNS], again[RUNS];
	size_t bytes = argc == 3 ? strtoull(argv[1], NULL, 10) << 20 : 0;
	unsigned runs = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;

	if (!bytes || bytes > CHUNK * CHUNKS || !runs || runs > RUNS) {
		fputs("usage: peer MEBIBYTES RUNS\n", stderr);
		return 2;
	}
	must(cuInit(0));
	must(cuCtxCreate_v2(&contexts[0], 0, 0));
	for (; bytes; bytes -= old[count++].bytes) {
		create(&old[count], bytes < CHUNK ? bytes : CHUNK, 0);
		must(cuMemsetD8_v2(old[count].address, 1, old[count].bytes));
	}
	must(cuCtxSynchronize());
	must(cuCtxCreate_v2(&contexts[1], 0, 1));
	must(cuStreamCreate(&stream, 0));
	for (unsigned i = 0; i < runs; i++)
		run(&into_new[i], &again[i]);
	printf("{");
	print("new", into_new, runs);
	printf(", ");
	print("again", again, runs);
	printf("}\n");
	return 0;
}
