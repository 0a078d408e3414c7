/* Copies in one dimension: between addresses, to and from variables, and between devices. */
#include <string.h>

#include "softgpu/cudart/rt.h"

static bool is_direction(int kind)
{
	return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

static int copy_async(void *dst, const void *src, size_t bytes, int kind, CUstream stream)
{
	if (!is_direction(kind))
		return cudaErrorInvalidMemcpyDirection;
	if (!bytes)
		return 0;
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return CU(cuMemcpyHtoDAsync_v2)((CUdeviceptr)dst, src, bytes, stream);
	case cudaMemcpyDeviceToHost:
		return CU(cuMemcpyDtoHAsync_v2)(dst, (CUdeviceptr)src, bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return CU(cuMemcpyDtoDAsync_v2)((CUdeviceptr)dst, (CUdeviceptr)src, bytes, stream);
	default: return CU(cuMemcpyAsync)((CUdeviceptr)dst, (CUdeviceptr)src, bytes, stream);
	}
}

/*
 * The driver has no synchronous call for the per-thread stream, so the copy is queued and waited
 * for.
 */
static int copy(void *dst, const void *src, size_t bytes, int kind, bool ptsz)
{
	int error;

	if (!is_direction(kind))
		return cudaErrorInvalidMemcpyDirection;
	if (ptsz) {
		error = copy_async(dst, src, bytes, kind, CU_STREAM_PER_THREAD);
		return error ? error : CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD);
	}
	if (!bytes)
		return 0;
	switch (kind) {
	case cudaMemcpyHostToDevice: return CU(cuMemcpyHtoD_v2)((CUdeviceptr)dst, src, bytes);
	case cudaMemcpyDeviceToHost: return CU(cuMemcpyDtoH_v2)(dst, (CUdeviceptr)src, bytes);
	case cudaMemcpyDeviceToDevice:
		return CU(cuMemcpyDtoD_v2)((CUdeviceptr)dst, (CUdeviceptr)src, bytes);
	default: return CU(cuMemcpy)((CUdeviceptr)dst, (CUdeviceptr)src, bytes);
	}
}

BOTH(cudaMemcpy, _ptds, (void *dst, const void *src, size_t bytes, int kind),
	copy(dst, src, bytes, kind, ptsz))
BOTH(cudaMemcpyAsync, _ptsz, (void *dst, const void *src, size_t bytes, int kind, CUstream stream),
	copy_async(dst, src, bytes, kind, ON(stream)))

/* Checks the direction that a copy to or from a variable states. */
static int symbol_direction(int kind, int to_device, int *ret)
{
	if (kind != to_device && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	*ret = kind;
	return 0;
}

static int to_symbol(const void *symbol, const void *src, size_t bytes, size_t offset, int kind,
	bool async, bool ptsz, CUstream stream)
{
	CUdeviceptr dst;
	int error = symbol_direction(kind, cudaMemcpyHostToDevice, &kind);

	if (!error)
		error = rt_symbol_range(symbol, offset, bytes, &dst);
	if (error)
		return error;
	return async ? copy_async((void *)dst, src, bytes, kind, ON(stream))
		     : copy((void *)dst, src, bytes, kind, ptsz);
}

static int from_symbol(void *dst, const void *symbol, size_t bytes, size_t offset, int kind,
	bool async, bool ptsz, CUstream stream)
{
	CUdeviceptr src;
	int error = symbol_direction(kind, cudaMemcpyDeviceToHost, &kind);

	if (!error)
		error = rt_symbol_range(symbol, offset, bytes, &src);
	if (error)
		return error;
	return async ? copy_async(dst, (void *)src, bytes, kind, ON(stream))
		     : copy(dst, (void *)src, bytes, kind, ptsz);
}

BOTH(cudaMemcpyToSymbol, _ptds,
	(const void *symbol, const void *src, size_t bytes, size_t offset, int kind),
	to_symbol(symbol, src, bytes, offset, kind, false, ptsz, NULL))
BOTH(cudaMemcpyToSymbolAsync, _ptsz,
	(const void *symbol, const void *src, size_t bytes, size_t offset, int kind,
		CUstream stream),
	to_symbol(symbol, src, bytes, offset, kind, true, ptsz, stream))
BOTH(cudaMemcpyFromSymbol, _ptds,
	(void *dst, const void *symbol, size_t bytes, size_t offset, int kind),
	from_symbol(dst, symbol, bytes, offset, kind, false, ptsz, NULL))
BOTH(cudaMemcpyFromSymbolAsync, _ptsz,
	(void *dst, const void *symbol, size_t bytes, size_t offset, int kind, CUstream stream),
	from_symbol(dst, symbol, bytes, offset, kind, true, ptsz, stream))

static int copy_peer(void *dst, int dst_device, const void *src, int src_device, size_t bytes,
	bool async, CUstream stream)
{
	CUcontext to, from;
	int error = rt_primary(dst_device, &to);

	if (!error)
		error = rt_primary(src_device, &from);
	if (error || !bytes)
		return error;
	return async ? CU(cuMemcpyPeerAsync)(
			       (CUdeviceptr)dst, to, (CUdeviceptr)src, from, bytes, stream)
		     : CU(cuMemcpyPeer)((CUdeviceptr)dst, to, (CUdeviceptr)src, from, bytes);
}

ONE(cudaMemcpyPeer, (void *dst, int dst_device, const void *src, int src_device, size_t bytes),
	copy_peer(dst, dst_device, src, src_device, bytes, false, NULL))
ONE(cudaMemcpyPeerAsync,
	(void *dst, int dst_device, const void *src, int src_device, size_t bytes, CUstream stream),
	copy_peer(dst, dst_device, src, src_device, bytes, true, stream))
