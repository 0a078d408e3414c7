/* Sets bytes in one, two or three dimensions. */
#include "softgpu/cudart/rt.h"

static int finish_set(int error, bool wait, CUstream stream)
{
	return error || !wait ? error : CU(cuStreamSynchronize)(stream);
}

/*
 * Sets bytes. The synchronous calls of the plain flavour are forwarded to the driver; those of the
 * per-thread flavour are queued and waited for.
 */
static int set(void *at, int value, size_t bytes, bool async, bool ptsz, CUstream stream)
{
	if (!bytes)
		return 0;
	if (!async && !ptsz)
		return CU(cuMemsetD8_v2)((CUdeviceptr)at, (unsigned char)value, bytes);
	stream = ON(stream);
	return finish_set(CU(cuMemsetD8Async)((CUdeviceptr)at, (unsigned char)value, bytes, stream),
		!async, stream);
}

static int set_rows(CUdeviceptr at, size_t pitch, int value, size_t width, size_t height,
	bool async, bool ptsz, CUstream stream)
{
	if (!width || !height)
		return 0;
	if (height > 1 && pitch < width)
		return cudaErrorInvalidPitchValue;
	if (height == 1 || pitch == width)
		return set((void *)at, value, width * height, async, ptsz, stream);
	if (!async && !ptsz)
		return CU(cuMemsetD2D8_v2)(at, pitch, (unsigned char)value, width, height);
	stream = ON(stream);
	return finish_set(
		CU(cuMemsetD2D8Async)(at, pitch, (unsigned char)value, width, height, stream),
		!async, stream);
}

/* Sets a box. If its slices follow each other without rows between them, they are set as one. */
static int set_box(struct cudaPitchedPtr to, int value, struct cudaExtent extent, bool async,
	bool ptsz, CUstream stream)
{
	int error = 0;

	if (extent.depth > 1 && to.ysize < extent.height)
		return cudaErrorInvalidValue;
	if (extent.depth == 1 || to.ysize == extent.height)
		return set_rows((CUdeviceptr)to.ptr, to.pitch, value, extent.width,
			extent.height * extent.depth, async, ptsz, stream);
	for (size_t z = 0; !error && z < extent.depth; z++)
		error = set_rows((CUdeviceptr)to.ptr + z * to.pitch * to.ysize, to.pitch, value,
			extent.width, extent.height, async, ptsz, stream);
	return error;
}

BOTH(cudaMemset, _ptds, (void *at, int value, size_t bytes),
	set(at, value, bytes, false, ptsz, NULL))
BOTH(cudaMemsetAsync, _ptsz, (void *at, int value, size_t bytes, CUstream stream),
	set(at, value, bytes, true, ptsz, stream))
BOTH(cudaMemset2D, _ptds, (void *at, size_t pitch, int value, size_t width, size_t height),
	set_rows((CUdeviceptr)at, pitch, value, width, height, false, ptsz, NULL))
BOTH(cudaMemset2DAsync, _ptsz,
	(void *at, size_t pitch, int value, size_t width, size_t height, CUstream stream),
	set_rows((CUdeviceptr)at, pitch, value, width, height, true, ptsz, stream))
BOTH(cudaMemset3D, _ptds, (struct cudaPitchedPtr to, int value, struct cudaExtent extent),
	set_box(to, value, extent, false, ptsz, NULL))
BOTH(cudaMemset3DAsync, _ptsz,
	(struct cudaPitchedPtr to, int value, struct cudaExtent extent, CUstream stream),
	set_box(to, value, extent, true, ptsz, stream))
