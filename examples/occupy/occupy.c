/* See occupy.h. */
#include "occupy/occupy.h"

#include <stddef.h>

#include "occupy_ptx.h"

/* Most of what an SM has on every GPU since Turing, without an attribute that raises it. */
#define SHARED_BYTES 49152u

CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);

CUresult occupy_load(CUfunction *ret)
{
	CUmodule module;
	CUresult r = cuModuleLoadData(&module, occupy_ptx);

	return r ? r : cuModuleGetFunction(ret, module, "occupy");
}

CUresult occupy_start(CUfunction function, unsigned sms, uint64_t ns)
{
	unsigned pieces = (unsigned)(ns / OCCUPY_PIECE_NS);
	void *params[] = {&pieces};

	return cuLaunchKernel(
		function, sms, 1, 1, 1, 1, 1, SHARED_BYTES, NULL, params, NULL);
}
