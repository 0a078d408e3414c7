/* See stream.h. */
#include "occupy/stream.h"

#include <stddef.h>

#include "occupy/occupy.h"
#include "stream_ptx.h"

/* More than half of what an SM of Hopper has, so that one block is on each. */
#define SHARED_BYTES       (120u << 10)
#define MAX_DYNAMIC_SHARED 8 /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
#define MEMORY_BYTES       (256ull << 20)
#define PIECES_PER_S       (1000000000u / OCCUPY_PIECE_NS)
#define PREFETCH_GRAIN     16u /* PTX wants multiples of it */

CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);

CUresult stream_load(struct stream_kernel *ret)
{
	CUmodule module;
	CUresult r = cuModuleLoadData(&module, stream_ptx);

	r = r ? r : cuModuleGetFunction(&ret->function, module, "stream");
	r = r ? r : cuFuncSetAttribute(ret->function, MAX_DYNAMIC_SHARED, SHARED_BYTES);
	/* The last piece may begin at the end. */
	return r ? r : cuMemAlloc_v2(&ret->memory, 2 * MEMORY_BYTES);
}

CUresult stream_start(
	const struct stream_kernel *kernel, unsigned sms, uint64_t ns, uint64_t bytes_per_s)
{
	unsigned pieces = (unsigned)(ns / OCCUPY_PIECE_NS);
	uint64_t each = bytes_per_s / PIECES_PER_S / sms, size = MEMORY_BYTES;
	unsigned bytes = (unsigned)(each < MEMORY_BYTES ? each : MEMORY_BYTES);
	CUdeviceptr memory = kernel->memory;
	void *params[] = {&pieces, &memory, &size, &bytes};

	bytes -= bytes % PREFETCH_GRAIN;
	return cuLaunchKernel(
		kernel->function, sms, 1, 1, 1, 1, 1, SHARED_BYTES, NULL, params, NULL);
}
