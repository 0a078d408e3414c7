/*
 * Copies, sets and prefetches. A copy is queued in its stream; the synchronous forms wait for it.
 *
 * Pageable host memory: a copy to the device returns after the source was staged; a copy to the host returns when the bytes are there
 * (cuda.h, "API synchronization behavior").
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/driver.h"

struct copy_work {
	struct sg_work work;
	uint64_t target, source, bytes;
	enum sg_engine engine;
	uint32_t flags;
	void *staged;
	/* sets */
	bool set;
	uint64_t pattern;
	unsigned pattern_bytes;
};

static int run_copy(struct CUstream_st *stream, struct sg_work *work)
{
	struct copy_work *copy = (struct copy_work *)work;
	const struct CUctx_st *context = stream->context;
	struct sg_op op;
	int r;

	if (sg_client_op_begin(sg.client, &op, context->device, context->id, copy->engine,
		    copy->bytes, copy->flags))
		return SG_LOST;
	if (copy->set)
		r = sg_memory_fill(copy->target, copy->pattern, copy->pattern_bytes,
			copy->bytes / copy->pattern_bytes);
	else
		r = sg_memory_copy(copy->target,
			copy->staged ? (uint64_t)copy->staged : copy->source, copy->bytes);
	free(copy->staged);
	if (sg_client_op_wait(sg.client, &op))
		return SG_LOST;
	stream->last_end_ns = op.end_ns;
	return r;
}

enum place { ON_DEVICE, ON_HOST_PINNED, ON_HOST };

/* Where an address lies; INVALID_VALUE for a device range that is not all allocated. */
static int locate(uint64_t address, uint64_t bytes, enum place *ret)
{
	struct sg_allocation allocation;

	if (sg_memory_find(address, bytes, &allocation)) {
		*ret = allocation.kind == SG_MEMORY_PINNED || allocation.kind == SG_MEMORY_REMOTE
			       ? ON_HOST_PINNED
			       : ON_DEVICE;
		return CUDA_SUCCESS;
	}
	*ret = ON_HOST;
	if (!sg_is_device_address(address))
		return CUDA_SUCCESS;
	/* Several mappings side by side are one range to a copy; on the host only if all of it is. */
	*ret = ON_HOST_PINNED;
	while (bytes) {
		uint64_t n;

		if (!sg_memory_find(address, 1, &allocation) || allocation.context)
			return CUDA_ERROR_INVALID_VALUE;
		if (allocation.kind != SG_MEMORY_REMOTE)
			*ret = ON_DEVICE;
		n = allocation.base + allocation.bytes - address;
		n = n < bytes ? n : bytes;
		address += n;
		bytes -= n;
	}
	return CUDA_SUCCESS;
}

static int submit(struct CUstream_st *stream, struct copy_work *copy, bool wait)
{
	uint64_t ticket;
	int r;

	copy->work.run = run_copy;
	r = sg_stream_submit(stream, &copy->work, &ticket);
	return r || !wait ? r : sg_stream_wait_ticket(stream, ticket);
}

static int copy_in(
	struct CUstream_st *stream, uint64_t target, uint64_t source, uint64_t bytes, bool wait)
{
	enum place to, from;
	struct copy_work *copy;
	int r = locate(target, bytes, &to);

	if (!r)
		r = locate(source, bytes, &from);
	if (r || !bytes)
		return r;
	copy = calloc(1, sizeof(*copy));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy->target = target;
	copy->source = source;
	copy->bytes = bytes;
	copy->engine =
		to == ON_DEVICE ? from == ON_DEVICE ? SG_ENGINE_D2D : SG_ENGINE_H2D : SG_ENGINE_D2H;
	if (to == ON_HOST || from == ON_HOST)
		copy->flags = SG_FLAG_PAGEABLE;
	if (from == ON_HOST && !wait) {
		copy->staged = malloc(bytes);
		if (copy->staged)
			memcpy(copy->staged, (const void *)source, bytes);
		else
			wait = true;
	}
	return submit(stream, copy, wait || to == ON_HOST);
}

enum direction { TO_DEVICE, TO_HOST, IN_DEVICE, ANY };

/* The pointers that a call says are device pointers must be. */
static int check_direction(enum direction direction, uint64_t target, uint64_t source)
{
	struct sg_allocation allocation;
	bool to = direction == TO_DEVICE || direction == IN_DEVICE,
	     from = direction == TO_HOST || direction == IN_DEVICE;

	if (!target || !source || (to && !sg_memory_find(target, 1, &allocation)) ||
		(from && !sg_memory_find(source, 1, &allocation)))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static int copy_call(enum direction direction, uint64_t target, uint64_t source, size_t bytes,
	CUstream handle, bool ptsz, bool wait)
{
	struct CUctx_st *context;
	struct CUstream_st *stream;
	int r = sg_current(&context);

	if (!r)
		r = sg_stream_find(context, handle, ptsz, &stream);
	if (r || !bytes)
		return r;
	r = check_direction(direction, target, source);
	return r ? r : copy_in(stream, target, source, bytes, wait);
}

#define U(pointer) ((uint64_t)(pointer))

#define COPY(name, direction, target_type, source_type)                                            \
	API CUresult name##_v2(target_type target, source_type source, size_t bytes)               \
	{                                                                                          \
		return copy_call(direction, U(target), U(source), bytes, NULL, false, true);       \
	}                                                                                          \
	API CUresult name##_v2_ptds(target_type target, source_type source, size_t bytes)          \
	{                                                                                          \
		return copy_call(direction, U(target), U(source), bytes, NULL, true, true);        \
	}                                                                                          \
	API CUresult name##Async_v2(                                                               \
		target_type target, source_type source, size_t bytes, CUstream stream)             \
	{                                                                                          \
		return copy_call(direction, U(target), U(source), bytes, stream, false, false);    \
	}                                                                                          \
	API CUresult name##Async_v2_ptsz(                                                          \
		target_type target, source_type source, size_t bytes, CUstream stream)             \
	{                                                                                          \
		return copy_call(direction, U(target), U(source), bytes, stream, true, false);     \
	}

COPY(cuMemcpyHtoD, TO_DEVICE, CUdeviceptr, const void *)
COPY(cuMemcpyDtoH, TO_HOST, void *, CUdeviceptr)
COPY(cuMemcpyDtoD, IN_DEVICE, CUdeviceptr, CUdeviceptr)

API CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
	return copy_call(ANY, target, source, bytes, NULL, false, true);
}

API CUresult cuMemcpy_ptds(CUdeviceptr target, CUdeviceptr source, size_t bytes)
{
	return copy_call(ANY, target, source, bytes, NULL, true, true);
}

API CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
	return copy_call(ANY, target, source, bytes, stream, false, false);
}

API CUresult cuMemcpyAsync_ptsz(
	CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
	return copy_call(ANY, target, source, bytes, stream, true, false);
}

/* Sets return at once, the synchronous ones too: they are ordered, not awaited (cuda.h). */
static int set_call(uint64_t target, uint64_t pattern, unsigned pattern_bytes, size_t count,
	CUstream handle, bool ptsz)
{
	struct CUctx_st *context;
	struct CUstream_st *stream;
	struct copy_work *copy;
	enum place place;
	int r = sg_current(&context);

	if (!r)
		r = sg_stream_find(context, handle, ptsz, &stream);
	if (r || !count)
		return r;
	if (target % pattern_bytes || count > UINT64_MAX / pattern_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	r = locate(target, count * pattern_bytes, &place);
	if (r || place == ON_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	copy = calloc(1, sizeof(*copy));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy->set = true;
	copy->target = target;
	copy->pattern = pattern;
	copy->pattern_bytes = pattern_bytes;
	copy->bytes = count * pattern_bytes;
	copy->engine = SG_ENGINE_D2D;
	return submit(stream, copy, false);
}

#define SET(bits, type)                                                                            \
	API CUresult cuMemsetD##bits##_v2(CUdeviceptr target, type value, size_t count)            \
	{                                                                                          \
		return set_call(target, value, bits / 8, count, NULL, false);                      \
	}                                                                                          \
	API CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr target, type value, size_t count)       \
	{                                                                                          \
		return set_call(target, value, bits / 8, count, NULL, true);                       \
	}                                                                                          \
	API CUresult cuMemsetD##bits##Async(                                                       \
		CUdeviceptr target, type value, size_t count, CUstream stream)                     \
	{                                                                                          \
		return set_call(target, value, bits / 8, count, stream, false);                    \
	}                                                                                          \
	API CUresult cuMemsetD##bits##Async_ptsz(                                                  \
		CUdeviceptr target, type value, size_t count, CUstream stream)                     \
	{                                                                                          \
		return set_call(target, value, bits / 8, count, stream, true);                     \
	}

SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned)

struct prefetch_work {
	struct sg_work work;
	uint32_t range, device;
	uint64_t first, bytes;
	bool to_device;
};

static int run_prefetch(struct CUstream_st *stream, struct sg_work *work)
{
	struct prefetch_work *prefetch = (struct prefetch_work *)work;
	const struct CUctx_st *context = stream->context;
	struct sg_op op;

	if (sg_client_op_prefetch(sg.client, &op, context->device, context->id, prefetch->range,
		    prefetch->first, prefetch->bytes, prefetch->to_device) ||
		sg_client_op_wait(sg.client, &op))
		return SG_LOST;
	stream->last_end_ns = op.end_ns;
	return CUDA_SUCCESS;
}

static int prefetch_call(
	uint64_t address, size_t bytes, bool to_device, int device, CUstream handle, bool ptsz)
{
	struct sg_allocation allocation;
	struct prefetch_work *prefetch;
	struct CUctx_st *context;
	struct CUstream_st *stream;
	int r = sg_current(&context);

	if (!r)
		r = sg_stream_find(context, handle, ptsz, &stream);
	if (r)
		return r;
	if (!bytes || !sg_memory_find(address, bytes, &allocation) ||
		allocation.kind != SG_MEMORY_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	if (to_device && (device < 0 || device >= (int)sg.device_count))
		return CUDA_ERROR_INVALID_DEVICE;
	/* Managed memory has one home GPU here. */
	if (to_device && (uint32_t)device != allocation.device)
		return CUDA_ERROR_NOT_SUPPORTED;
	prefetch = calloc(1, sizeof(*prefetch));
	if (!prefetch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	prefetch->work.run = run_prefetch;
	prefetch->range = allocation.range;
	prefetch->first = address - allocation.base;
	prefetch->bytes = bytes;
	prefetch->to_device = to_device;
	return sg_stream_submit(stream, &prefetch->work, NULL);
}

/* CU_DEVICE_CPU is -1. */
API CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
	return prefetch_call(address, bytes, device != -1, device, stream, false);
}

API CUresult cuMemPrefetchAsync_ptsz(
	CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream)
{
	return prefetch_call(address, bytes, device != -1, device, stream, true);
}

API CUresult cuMemPrefetchAsync_v2(
	CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return prefetch_call(address, bytes, location.type == CU_MEM_LOCATION_TYPE_DEVICE,
		location.id, stream, false);
}

API CUresult cuMemPrefetchAsync_v2_ptsz(
	CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return prefetch_call(address, bytes, location.type == CU_MEM_LOCATION_TYPE_DEVICE,
		location.id, stream, true);
}
