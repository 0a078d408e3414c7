/* The parameters of graph nodes as cuda.h declares them, where driver_types.h differs. */
#pragma once

#include "softgpu/cudart/rt.h"

struct rt_kernel_params { /* CUDA_KERNEL_NODE_PARAMS_v2 and _v3 */
	CUfunction func;
	dim3 grid, block;
	unsigned sharedMemBytes;
	void **kernelParams, **extra;
	void *kern;
	CUcontext ctx;
};
_Static_assert(sizeof(struct rt_kernel_params) == 72, "CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h");

int rt_kernel_params_from(const struct cudaKernelNodeParams *p, struct rt_kernel_params *ret);
