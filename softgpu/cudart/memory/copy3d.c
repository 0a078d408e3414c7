/*
 * Copies in two and three dimensions, between memory and arrays. Each is converted to
 * CUDA_MEMCPY3D.
 */
#include <string.h>

#include "softgpu/cudart/rt.h"

enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2, MEMORY_ARRAY = 3, MEMORY_UNIFIED = 4 };

/*
 * Returns the type of memory for the driver. For host memory the driver reads the host address, for
 * other memory the device address; the caller sets both.
 */
static int memory_type(bool array, int kind, bool source)
{
	bool host = source ? kind == cudaMemcpyHostToDevice : kind == cudaMemcpyDeviceToHost;

	if (array)
		return MEMORY_ARRAY;
	if (kind == cudaMemcpyDefault)
		return MEMORY_UNIFIED;
	return host || kind == cudaMemcpyHostToHost ? MEMORY_HOST : MEMORY_DEVICE;
}

static void set_source(struct rt_copy3d *copy, void *array, struct cudaPos pos,
	const struct cudaPitchedPtr *memory, size_t element, int kind)
{
	copy->srcMemoryType = memory_type(array, kind, true);
	copy->srcXInBytes = pos.x * element;
	copy->srcY = pos.y;
	copy->srcZ = pos.z;
	copy->srcArray = array;
	if (array)
		return;
	copy->srcHost = memory->ptr;
	copy->srcDevice = (CUdeviceptr)memory->ptr;
	copy->srcPitch = memory->pitch;
	copy->srcHeight = memory->ysize;
}

static void set_target(struct rt_copy3d *copy, void *array, struct cudaPos pos,
	const struct cudaPitchedPtr *memory, size_t element, int kind)
{
	copy->dstMemoryType = memory_type(array, kind, false);
	copy->dstXInBytes = pos.x * element;
	copy->dstY = pos.y;
	copy->dstZ = pos.z;
	copy->dstArray = array;
	if (array)
		return;
	copy->dstHost = memory->ptr;
	copy->dstDevice = (CUdeviceptr)memory->ptr;
	copy->dstPitch = memory->pitch;
	copy->dstHeight = memory->ysize;
}

/*
 * Converts the parameters. If an array takes part, extents and positions in it are in elements;
 * positions in memory are in bytes.
 */
int rt_copy3d_from(const struct cudaMemcpy3DParms *p, struct rt_copy3d *ret)
{
	struct rt_copy3d copy = {0};
	size_t from = 1, to = 1;

	if (!p || (!p->srcArray == !p->srcPtr.ptr) || (!p->dstArray == !p->dstPtr.ptr))
		return cudaErrorInvalidValue;
	if (p->kind < cudaMemcpyHostToHost || p->kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (p->srcArray)
		from = rt_element_bytes(p->srcArray);
	if (p->dstArray)
		to = rt_element_bytes(p->dstArray);
	if (!from || !to || (p->srcArray && p->dstArray && from != to))
		return cudaErrorInvalidValue;
	set_source(&copy, p->srcArray, p->srcPos, &p->srcPtr, from, p->kind);
	set_target(&copy, p->dstArray, p->dstPos, &p->dstPtr, to, p->kind);
	copy.WidthInBytes = p->extent.width * (p->srcArray ? from : to);
	copy.Height = p->extent.height;
	copy.Depth = p->extent.depth;
	*ret = copy;
	return 0;
}

static int kind_of(const struct rt_copy3d *copy)
{
	bool from = copy->srcMemoryType == MEMORY_HOST, to = copy->dstMemoryType == MEMORY_HOST;

	if (copy->srcMemoryType == MEMORY_UNIFIED || copy->dstMemoryType == MEMORY_UNIFIED)
		return cudaMemcpyDefault;
	return from ? to ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice
	       : to ? cudaMemcpyDeviceToHost
		    : cudaMemcpyDeviceToDevice;
}

static void *address(int type, const void *host, CUdeviceptr device)
{
	return type == MEMORY_ARRAY ? NULL : type == MEMORY_HOST ? (void *)host : (void *)device;
}

void rt_copy3d_to(const struct rt_copy3d *copy, struct cudaMemcpy3DParms *ret)
{
	size_t from = copy->srcArray ? rt_element_bytes(copy->srcArray) : 1;
	size_t to = copy->dstArray ? rt_element_bytes(copy->dstArray) : 1;
	size_t element = copy->srcArray ? from : to;

	*ret = (struct cudaMemcpy3DParms){.srcArray = copy->srcArray,
		.srcPos = {copy->srcXInBytes / (from ? from : 1), copy->srcY, copy->srcZ},
		.srcPtr = {address(copy->srcMemoryType, copy->srcHost, copy->srcDevice),
			copy->srcPitch, copy->WidthInBytes, copy->srcHeight},
		.dstArray = copy->dstArray,
		.dstPos = {copy->dstXInBytes / (to ? to : 1), copy->dstY, copy->dstZ},
		.dstPtr = {address(copy->dstMemoryType, copy->dstHost, copy->dstDevice),
			copy->dstPitch, copy->WidthInBytes, copy->dstHeight},
		.extent = {copy->WidthInBytes / (element ? element : 1), copy->Height, copy->Depth},
		.kind = kind_of(copy)};
}

int rt_copy1d(void *dst, const void *src, size_t bytes, int kind, struct rt_copy3d *ret)
{
	return rt_copy3d_from(&(struct cudaMemcpy3DParms){.srcPtr = {(void *)src, bytes, bytes, 1},
				      .dstPtr = {dst, bytes, bytes, 1},
				      .extent = {bytes, 1, 1},
				      .kind = kind},
		ret);
}

/*
 * Makes the driver's call. On the per-thread stream, a synchronous copy is queued and waited for.
 */
static int submit(const struct rt_copy3d *copy, bool async, bool ptsz, CUstream stream)
{
	int error;

	if (!copy->WidthInBytes || !copy->Height || !copy->Depth)
		return 0;
	if (!async && !ptsz)
		return CU(cuMemcpy3D_v2)(copy);
	stream = ON(stream);
	error = CU(cuMemcpy3DAsync_v2)(copy, stream);
	return error || async ? error : CU(cuStreamSynchronize)(stream);
}

static int copy_box(const struct cudaMemcpy3DParms *p, bool async, bool ptsz, CUstream stream)
{
	struct rt_copy3d copy;
	int error = rt_copy3d_from(p, &copy);

	return error ? error : submit(&copy, async, ptsz, stream);
}

BOTH(cudaMemcpy3D, _ptds, (const struct cudaMemcpy3DParms *p), copy_box(p, false, ptsz, NULL))
BOTH(cudaMemcpy3DAsync, _ptsz, (const struct cudaMemcpy3DParms *p, CUstream stream),
	copy_box(p, true, ptsz, stream))

static int copy_rows(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
	size_t height, int kind, bool async, bool ptsz, CUstream stream)
{
	struct cudaMemcpy3DParms p = {.srcPtr = {(void *)src, src_pitch, width, height},
		.dstPtr = {dst, dst_pitch, width, height},
		.extent = {width, height, 1},
		.kind = kind};

	if (!width || !height)
		return 0;
	if (dst_pitch < width || src_pitch < width)
		return cudaErrorInvalidPitchValue;
	return copy_box(&p, async, ptsz, stream);
}

BOTH(cudaMemcpy2D, _ptds,
	(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
		size_t height, int kind),
	copy_rows(dst, dst_pitch, src, src_pitch, width, height, kind, false, ptsz, NULL))
BOTH(cudaMemcpy2DAsync, _ptsz,
	(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
		size_t height, int kind, CUstream stream),
	copy_rows(dst, dst_pitch, src, src_pitch, width, height, kind, true, ptsz, stream))

/* CUDA_MEMCPY3D_PEER differs from CUDA_MEMCPY3D in that two reserved fields are contexts. */
static int copy_peers(const struct cudaMemcpy3DPeerParms *p, bool async, bool ptsz, CUstream stream)
{
	struct cudaMemcpy3DParms plain;
	CUcontext from, to;
	struct rt_copy3d copy;
	int error;

	if (!p)
		return cudaErrorInvalidValue;
	plain = (struct cudaMemcpy3DParms){p->srcArray, p->srcPos, p->srcPtr, p->dstArray,
		p->dstPos, p->dstPtr, p->extent, cudaMemcpyDefault};
	error = rt_copy3d_from(&plain, &copy);
	if (!error)
		error = rt_primary(p->srcDevice, &from);
	if (!error)
		error = rt_primary(p->dstDevice, &to);
	if (error)
		return error;
	copy.srcContext = from;
	copy.dstContext = to;
	if (!async && !ptsz)
		return CU(cuMemcpy3DPeer)(&copy);
	stream = ON(stream);
	error = CU(cuMemcpy3DPeerAsync)(&copy, stream);
	return error || async ? error : CU(cuStreamSynchronize)(stream);
}

BOTH(cudaMemcpy3DPeer, _ptds, (const struct cudaMemcpy3DPeerParms *p),
	copy_peers(p, false, ptsz, NULL))
BOTH(cudaMemcpy3DPeerAsync, _ptsz, (const struct cudaMemcpy3DPeerParms *p, CUstream stream),
	copy_peers(p, true, ptsz, stream))

/* In the calls below, widths and x positions are in bytes, also in arrays. */
struct in_array {
	void *array;
	size_t x, y;
};

static int copy_arrays(const struct in_array *dst, void *dst_memory, size_t dst_pitch,
	const struct in_array *src, const void *src_memory, size_t src_pitch, size_t width,
	size_t height, int kind, struct rt_copy3d *ret)
{
	struct cudaPitchedPtr to = {dst_memory, dst_pitch, width, height};
	struct cudaPitchedPtr from = {(void *)src_memory, src_pitch, width, height};
	struct rt_copy3d copy = {.WidthInBytes = width, .Height = height, .Depth = 1};

	if ((dst && !dst->array) || (src && !src->array))
		return cudaErrorInvalidResourceHandle;
	if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	set_source(&copy, src ? src->array : NULL,
		src ? (struct cudaPos){src->x, src->y, 0} : (struct cudaPos){0, 0, 0}, &from, 1,
		kind);
	set_target(&copy, dst ? dst->array : NULL,
		dst ? (struct cudaPos){dst->x, dst->y, 0} : (struct cudaPos){0, 0, 0}, &to, 1,
		kind);
	*ret = copy;
	return 0;
}

static int rows_to_array(struct in_array dst, const void *src, size_t pitch, size_t width,
	size_t height, int kind, bool async, bool ptsz, CUstream stream)
{
	struct rt_copy3d copy;
	int error = copy_arrays(&dst, NULL, 0, NULL, src, pitch, width, height, kind, &copy);

	return error ? error : submit(&copy, async, ptsz, stream);
}

static int rows_from_array(void *dst, size_t pitch, struct in_array src, size_t width,
	size_t height, int kind, bool async, bool ptsz, CUstream stream)
{
	struct rt_copy3d copy;
	int error = copy_arrays(NULL, dst, pitch, &src, NULL, 0, width, height, kind, &copy);

	return error ? error : submit(&copy, async, ptsz, stream);
}

static int between_arrays(
	struct in_array dst, struct in_array src, size_t width, size_t height, int kind, bool ptsz)
{
	struct rt_copy3d copy;
	int error = copy_arrays(&dst, NULL, 0, &src, NULL, 0, width, height, kind, &copy);

	return error ? error : submit(&copy, false, ptsz, NULL);
}

#define IN(array, x, y) ((struct in_array){(void *)(array), (x), (y)})

BOTH(cudaMemcpy2DToArray, _ptds,
	(void *dst, size_t x, size_t y, const void *src, size_t pitch, size_t width, size_t height,
		int kind),
	rows_to_array(IN(dst, x, y), src, pitch, width, height, kind, false, ptsz, NULL))
BOTH(cudaMemcpy2DToArrayAsync, _ptsz,
	(void *dst, size_t x, size_t y, const void *src, size_t pitch, size_t width, size_t height,
		int kind, CUstream stream),
	rows_to_array(IN(dst, x, y), src, pitch, width, height, kind, true, ptsz, stream))
BOTH(cudaMemcpy2DFromArray, _ptds,
	(void *dst, size_t pitch, const void *src, size_t x, size_t y, size_t width, size_t height,
		int kind),
	rows_from_array(dst, pitch, IN(src, x, y), width, height, kind, false, ptsz, NULL))
BOTH(cudaMemcpy2DFromArrayAsync, _ptsz,
	(void *dst, size_t pitch, const void *src, size_t x, size_t y, size_t width, size_t height,
		int kind, CUstream stream),
	rows_from_array(dst, pitch, IN(src, x, y), width, height, kind, true, ptsz, stream))
BOTH(cudaMemcpy2DArrayToArray, _ptds,
	(void *dst, size_t dst_x, size_t dst_y, const void *src, size_t src_x, size_t src_y,
		size_t width, size_t height, int kind),
	between_arrays(IN(dst, dst_x, dst_y), IN(src, src_x, src_y), width, height, kind, ptsz))
/* The older calls give a number of bytes. They are supported for bytes within one row. */
BOTH(cudaMemcpyToArray, _ptds,
	(void *dst, size_t x, size_t y, const void *src, size_t bytes, int kind),
	rows_to_array(IN(dst, x, y), src, bytes, bytes, 1, kind, false, ptsz, NULL))
BOTH(cudaMemcpyToArrayAsync, _ptsz,
	(void *dst, size_t x, size_t y, const void *src, size_t bytes, int kind, CUstream stream),
	rows_to_array(IN(dst, x, y), src, bytes, bytes, 1, kind, true, ptsz, stream))
BOTH(cudaMemcpyFromArray, _ptds,
	(void *dst, const void *src, size_t x, size_t y, size_t bytes, int kind),
	rows_from_array(dst, bytes, IN(src, x, y), bytes, 1, kind, false, ptsz, NULL))
BOTH(cudaMemcpyFromArrayAsync, _ptsz,
	(void *dst, const void *src, size_t x, size_t y, size_t bytes, int kind, CUstream stream),
	rows_from_array(dst, bytes, IN(src, x, y), bytes, 1, kind, true, ptsz, stream))
BOTH(cudaMemcpyArrayToArray, _ptds,
	(void *dst, size_t dst_x, size_t dst_y, const void *src, size_t src_x, size_t src_y,
		size_t bytes, int kind),
	between_arrays(IN(dst, dst_x, dst_y), IN(src, src_x, src_y), bytes, 1, kind, ptsz))
