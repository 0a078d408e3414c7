/*
 * Copies, sets and prefetches. A copy is queued in its stream; the synchronous forms wait for it.
 *
 * Pageable host memory: a copy to the device returns after the source was staged; a copy to the host returns when the bytes are there
 * (cuda.h, "API synchronization behavior").
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/graph.h"

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
	if (sg_client_op_wait(sg.client, &op))
		return SG_LOST;
	stream->last_end_ns = op.end_ns;
	return r;
}

static void release_copy(struct sg_work *work)
{
	free(((struct copy_work *)work)->staged);
}

static struct copy_work *new_copy(int node)
{
	struct copy_work *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return NULL;
	copy->work.bytes = sizeof(*copy);
	copy->work.node = node + 1;
	copy->work.run = run_copy;
	copy->work.release = release_copy;
	return copy;
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

	r = sg_stream_submit(stream, &copy->work, &ticket);
	return r || !wait ? r : sg_stream_wait_ticket(stream, ticket);
}

static int make_copy(uint64_t target, uint64_t source, uint64_t bytes, struct copy_work **ret,
	enum place *ret_to, enum place *ret_from)
{
	struct copy_work *copy;
	int r = locate(target, bytes, ret_to);

	if (!r)
		r = locate(source, bytes, ret_from);
	if (r)
		return r;
	copy = new_copy(CU_GRAPH_NODE_TYPE_MEMCPY);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy->target = target;
	copy->source = source;
	copy->bytes = bytes;
	copy->engine = *ret_to == ON_DEVICE ? *ret_from == ON_DEVICE ? SG_ENGINE_D2D : SG_ENGINE_H2D
					    : SG_ENGINE_D2H;
	if (*ret_to == ON_HOST || *ret_from == ON_HOST)
		copy->flags = SG_FLAG_PAGEABLE;
	*ret = copy;
	return CUDA_SUCCESS;
}

/* In a graph, pageable memory is read and written when the graph runs. */
static int copy_in(
	struct CUstream_st *stream, uint64_t target, uint64_t source, uint64_t bytes, bool wait)
{
	bool captured = sg_stream_is_capturing(stream);
	struct copy_work *copy;
	enum place to, from;
	int r;

	if (wait && captured)
		return sg_capture_refuse(stream);
	if (wait) {
		r = sg_capture_check_stream(stream);
		if (r)
			return r;
	}
	r = make_copy(target, source, bytes, &copy, &to, &from);
	if (r)
		return r;
	if (from == ON_HOST && !wait && !captured) {
		copy->staged = malloc(bytes);
		if (copy->staged)
			memcpy(copy->staged, (const void *)source, bytes);
		else
			wait = true;
	}
	return submit(stream, copy, !captured && (wait || to == ON_HOST));
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

static int make_set(uint64_t target, uint64_t pattern, unsigned pattern_bytes, size_t count,
	struct copy_work **ret)
{
	struct copy_work *copy;
	enum place place;
	int r;

	if (target % pattern_bytes || count > UINT64_MAX / pattern_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	r = locate(target, count * pattern_bytes, &place);
	if (r || place == ON_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	copy = new_copy(CU_GRAPH_NODE_TYPE_MEMSET);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy->set = true;
	copy->target = target;
	copy->pattern = pattern;
	copy->pattern_bytes = pattern_bytes;
	copy->bytes = count * pattern_bytes;
	copy->engine = SG_ENGINE_D2D;
	*ret = copy;
	return CUDA_SUCCESS;
}

/* Sets return at once, the synchronous ones too: they are ordered, not awaited (cuda.h). */
static int set_call(uint64_t target, uint64_t pattern, unsigned pattern_bytes, size_t count,
	CUstream handle, bool ptsz)
{
	struct CUctx_st *context;
	struct CUstream_st *stream;
	struct copy_work *copy;
	int r = sg_current(&context);

	if (!r)
		r = sg_stream_find(context, handle, ptsz, &stream);
	if (r || !count)
		return r;
	r = make_set(target, pattern, pattern_bytes, count, &copy);
	return r ? r : submit(stream, copy, false);
}

static bool address_of(int type, const void *host, CUdeviceptr device, size_t offset, uint64_t *ret)
{
	*ret = (type == CU_MEMORYTYPE_HOST ? (uint64_t)host : device) + offset;
	return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE ||
	       type == CU_MEMORYTYPE_UNIFIED;
}

/* One row; arrays and further dimensions are not there. */
int sg_work_memcpy(const CUDA_MEMCPY3D *c, struct sg_work **ret)
{
	uint64_t target, source;
	struct copy_work *copy;
	enum place to, from;
	int r;

	if (!c->WidthInBytes || !c->Height || !c->Depth)
		return CUDA_ERROR_INVALID_VALUE;
	if (c->Height > 1 || c->Depth > 1 || c->srcY || c->srcZ || c->srcLOD || c->dstY ||
		c->dstZ || c->dstLOD ||
		!address_of(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, &target) ||
		!address_of(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, &source))
		return CUDA_ERROR_NOT_SUPPORTED;
	r = make_copy(target, source, c->WidthInBytes, &copy, &to, &from);
	if (!r)
		*ret = &copy->work;
	return r;
}

int sg_work_memset(const CUDA_MEMSET_NODE_PARAMS *set, struct sg_work **ret)
{
	struct copy_work *copy;
	int r;

	if (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (!set->width || !set->height)
		return CUDA_ERROR_INVALID_VALUE;
	if (set->height > 1)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = make_set(set->dst, set->value, set->elementSize, set->width, &copy);
	if (!r)
		*ret = &copy->work;
	return r;
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
