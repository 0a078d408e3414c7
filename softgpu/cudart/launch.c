/*
 * Launching kernels: <<<>>>, which pushes a configuration and pops it in the kernel's stub, and the
 * calls that take one.
 */
#include "softgpu/cudart/rt.h"

#define CONFIGURATIONS_MAX 16 /* configurations nest, since an argument of a launch may launch */

struct configuration {
	dim3 grid, block;
	size_t shared_bytes;
	CUstream stream;
};

static _Thread_local struct {
	struct configuration stack[CONFIGURATIONS_MAX];
	unsigned depth;
} thread;

/* Pushes the configuration of <<<>>>. The kernel's stub is not called if the result is not 0. */
API unsigned __cudaPushCallConfiguration(
	dim3 grid, dim3 block, size_t shared_bytes, CUstream stream)
{
	if (thread.depth == CONFIGURATIONS_MAX)
		return (unsigned)rt_done(cudaErrorMissingConfiguration);
	thread.stack[thread.depth++] = (struct configuration){grid, block, shared_bytes, stream};
	return 0;
}

API int __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
	const struct configuration *top;

	if (!thread.depth)
		return rt_done(cudaErrorMissingConfiguration);
	top = &thread.stack[--thread.depth];
	*grid = top->grid;
	*block = top->block;
	*shared_bytes = top->shared_bytes;
	*(CUstream *)stream = top->stream;
	return 0;
}

static int attribute(int number)
{
	CUdevice device;
	int value = 0;

	if (CU(cuCtxGetDevice)(&device) || CU(cuDeviceGetAttribute)(&value, number, device))
		return 0;
	return value;
}

static bool exceeds(dim3 size, int first_attribute)
{
	return size.x > (unsigned)attribute(first_attribute) ||
	       size.y > (unsigned)attribute(first_attribute + 1) ||
	       size.z > (unsigned)attribute(first_attribute + 2);
}

/*
 * Returns the runtime's error for a shape that the driver refused with INVALID_VALUE. The check
 * comes only then, so that a launch stays one call.
 */
static int name_error(int error, dim3 grid, dim3 block)
{
	if (error != CUDA_ERROR_INVALID_VALUE)
		return error;
	if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z ||
		exceeds(grid, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
		exceeds(block, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) ||
		(uint64_t)block.x * block.y * block.z >
			(uint64_t)attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK))
		return cudaErrorInvalidConfiguration;
	return error;
}

/*
 * NVIDIA's programming guide: "A kernel launch will fail if it is issued to a stream that is not
 * associated to the current device". The driver would launch a library's kernel there, so it is
 * checked here. With one device there is nothing to check.
 */
static int kernel_for(const void *key, CUstream stream, void **ret)
{
	bool special = !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
	CUcontext of_stream, current;
	int count, error = rt_kernel(key, ret);

	if (error || special || CU(cuDeviceGetCount)(&count) || count < 2)
		return error;
	error = CU(cuStreamGetCtx)(stream, &of_stream);
	if (!error)
		error = CU(cuCtxGetCurrent)(&current);
	return error ? error : of_stream == current ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

static int launch(
	const void *key, dim3 grid, dim3 block, void **args, size_t shared_bytes, CUstream stream)
{
	void *kernel;
	int error = kernel_for(key, stream, &kernel);

	if (!error && shared_bytes > UINT32_MAX)
		error = cudaErrorInvalidValue;
	if (!error)
		error = CU(cuLaunchKernel)(kernel, grid.x, grid.y, grid.z, block.x, block.y,
			block.z, (unsigned)shared_bytes, stream, args, NULL);
	return name_error(error, grid, block);
}

static int launch_cooperative(
	const void *key, dim3 grid, dim3 block, void **args, size_t shared_bytes, CUstream stream)
{
	void *kernel;
	int error = kernel_for(key, stream, &kernel);

	if (!error && shared_bytes > UINT32_MAX)
		error = cudaErrorInvalidValue;
	if (!error)
		error = CU(cuLaunchCooperativeKernel)(kernel, grid.x, grid.y, grid.z, block.x,
			block.y, block.z, (unsigned)shared_bytes, stream, args);
	return name_error(error, grid, block);
}

CUlaunchConfig rt_launch_config(const struct cudaLaunchConfig_st *config)
{
	return (CUlaunchConfig){.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned)config->dynamicSmemBytes,
		.hStream = config->stream,
		.attrs = config->attrs,
		.numAttrs = config->numAttrs};
}

static int launch_config(
	const struct cudaLaunchConfig_st *config, const void *key, void **args, bool ptsz)
{
	CUlaunchConfig driver;
	void *kernel;
	int error;

	if (!config || config->dynamicSmemBytes > UINT32_MAX)
		return cudaErrorInvalidValue;
	error = kernel_for(key, ON(config->stream), &kernel);
	if (error)
		return error;
	driver = rt_launch_config(config);
	driver.hStream = ON(config->stream);
	return name_error(CU(cuLaunchKernelEx)(&driver, kernel, args, NULL), config->gridDim,
		config->blockDim);
}

BOTH(cudaLaunchKernel, _ptsz,
	(const void *key, dim3 grid, dim3 block, void **args, size_t shared_bytes, CUstream stream),
	launch(key, grid, block, args, shared_bytes, ON(stream)))

/* Launches a kernel by the handle that __cudaGetKernel returned. */
BOTH(__cudaLaunchKernel, _ptsz,
	(const void *key, dim3 grid, dim3 block, void **args, size_t shared_bytes, CUstream stream),
	launch(key, grid, block, args, shared_bytes, ON(stream)))

BOTH(cudaLaunchCooperativeKernel, _ptsz,
	(const void *key, dim3 grid, dim3 block, void **args, size_t shared_bytes, CUstream stream),
	launch_cooperative(key, grid, block, args, shared_bytes, ON(stream)))

BOTH(cudaLaunchKernelExC, _ptsz,
	(const struct cudaLaunchConfig_st *config, const void *key, void **args),
	launch_config(config, key, args, ptsz))
