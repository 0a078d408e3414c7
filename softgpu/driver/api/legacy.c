/*
 * Exports of old API versions that do the same as their successors. Versions whose device addresses
 * have 32 bits are not supported (unsupported.c), because addresses here have 64.
 */
#include "cuda/signatures.h"
#include "softgpu/driver/driver.h"

#define SAME(old, now)                                                                             \
	CUresult now TD_PARAMS_##now;                                                              \
	API CUresult old TD_PARAMS_##old                                                           \
	{                                                                                          \
		return now TD_ARGS_##old;                                                          \
	}

SAME(cuCtxCreate, cuCtxCreate_v2)
SAME(cuCtxDestroy, cuCtxDestroy_v2)
SAME(cuCtxPushCurrent, cuCtxPushCurrent_v2)
SAME(cuCtxPopCurrent, cuCtxPopCurrent_v2)
SAME(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2)
SAME(cuStreamDestroy, cuStreamDestroy_v2)
SAME(cuEventDestroy, cuEventDestroy_v2)
SAME(cuMemAllocHost, cuMemAllocHost_v2)
SAME(cuMemHostRegister, cuMemHostRegister_v2)
SAME(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2)
SAME(cuLinkCreate, cuLinkCreate_v2)
SAME(cuLinkAddData, cuLinkAddData_v2)
SAME(cuLinkAddFile, cuLinkAddFile_v2)

/* A context has a single user here, so attaching and detaching changes no count. */
API CUresult cuCtxAttach(CUcontext *ret, unsigned flags)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (!r && (!ret || flags))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*ret = context;
	return r;
}

API CUresult cuCtxDetach(CUcontext handle)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	return r ? r : handle == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
