/* The driver calls that the tests use, and the few lines that each of them begins with. */
#pragma once

#include <stdbool.h>

#include "cuda/types.h"
#include "test.h"

#ifdef ALL_CALLS
/*
 * Every symbol, in the types of the generated signatures: handles that cuda/types.h does not have
 * are void *.
 */
#include "cuda/signatures.h"
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult symbol TD_PARAMS_##symbol;
#include "cuda/symbols.def"
#undef SYMBOL
#else
CUresult cuInit(unsigned flags);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetName(char *name, int len, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra);
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *arg);
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *arg, unsigned flags);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventQuery(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
#endif

#define MIB      (1ull << 20)
#define OK(call) CHECK_EQ(call, CUDA_SUCCESS)

static CUcontext context;

static inline void begin(void)
{
	OK(cuInit(0));
	OK(cuCtxCreate_v2(&context, 0, 0));
}

static inline void end(void)
{
	OK(cuCtxDestroy_v2(context));
}

#define PTX_HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

/*
 * store(p, value): *p = value; nap(n): sleeps n milliseconds of the model's time; add(p): *p = *p +
 * 1
 */
static const char kernels_ptx[] =
	PTX_HEAD ".visible .entry store(.param .u64 p, .param .u32 x)\n{\n"
		 ".reg .u64 %a;\n.reg .u32 %v;\nld.param.u64 %a, [p];\nld.param.u32 %v, [x];\n"
		 "st.global.u32 [%a], %v;\nret;\n}\n"
		 ".visible .entry add(.param .u64 p)\n{\n"
		 ".reg .u64 %a;\n.reg .u32 %v;\nld.param.u64 %a, [p];\nld.global.u32 %v, [%a];\n"
		 "add.u32 %v, %v, 1;\nst.global.u32 [%a], %v;\nret;\n}\n"
		 ".visible .entry nap(.param .u32 n)\n{\n"
		 ".reg .u32 %i;\n.reg .u32 %t;\n.reg .pred %p;\nld.param.u32 %i, [n];\nmov.u32 %t, "
		 "1000000;\n"
		 "more:\nnanosleep.u32 %t;\nsub.u32 %i, %i, 1;\nsetp.ne.u32 %p, %i, 0;\n@%p bra "
		 "more;\nret;\n}\n";

static inline CUfunction kernel(const char *name)
{
	CUmodule module;
	CUfunction function;

	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

/* One thread. */
static inline CUresult launch(CUfunction function, CUstream stream, void **params)
{
	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static inline unsigned word_at(CUdeviceptr address)
{
	unsigned word = 0;

	OK(cuMemcpyDtoH_v2(&word, address, 4));
	return word;
}
