/*
 * Copies of one row, and memsets. A copy is queued in its stream, and the synchronous calls wait
 * for it. Rectangular copies are in box.c.
 * Pageable host memory: a copy to the device returns after the source was staged; a copy to the
 * host returns when the bytes have arrived (cuda.h, "API synchronization behavior").
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/copy/copy.h"

struct copy_work {
	struct sg_work work;
	uint64_t target, source, bytes; /* bytes: of one row */
	struct sg_where to, from;
	enum sg_engine engine;
	uint32_t flags;
	void *staged;
	/* for memsets: */
	bool set;
	uint64_t pattern, pitch, rows;
	unsigned pattern_bytes;
};

static int fill(const struct copy_work *set)
{
	int r = CUDA_SUCCESS;

	for (uint64_t row = 0; !r && row < set->rows; row++)
		r = sg_memory_fill(set->target + row * set->pitch, set->pattern, set->pattern_bytes,
			set->bytes / set->pattern_bytes);
	return r;
}

static int run_copy(struct CUstream_st *stream, struct sg_work *work)
{
	struct copy_work *copy = (struct copy_work *)work;
	const struct CUctx_st *context = stream->context;
	struct sg_op op;
	int r;

	if (sg_client_op_begin(sg.client, &op, context->device, context->id, copy->engine,
		    copy->bytes * (copy->set ? copy->rows : 1), copy->flags))
		return SG_LOST;
	if (copy->set)
		r = fill(copy);
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

int sg_locate(uint64_t address, uint64_t bytes, struct sg_where *ret)
{
	struct sg_allocation allocation;

	if (sg_memory_find(address, bytes, &allocation)) {
		ret->place =
			allocation.kind == SG_MEMORY_PINNED || allocation.kind == SG_MEMORY_REMOTE
				? SG_ON_HOST_PINNED
				: SG_ON_DEVICE;
		ret->device = allocation.device;
		ret->context = allocation.context;
		return CUDA_SUCCESS;
	}
	*ret = (struct sg_where){SG_ON_HOST, 0, NULL};
	if (!sg_is_device_address(address))
		return CUDA_SUCCESS;
	/*
	 * Adjacent mappings are one range for a copy. It counts as host memory only if all of it
	 * is.
	 */
	ret->place = SG_ON_HOST_PINNED;
	while (bytes) {
		uint64_t n;

		if (!sg_memory_find(address, 1, &allocation) || allocation.context)
			return CUDA_ERROR_INVALID_VALUE;
		if (allocation.kind != SG_MEMORY_REMOTE)
			*ret = (struct sg_where){SG_ON_DEVICE, allocation.device, NULL};
		n = allocation.base + allocation.bytes - address;
		n = n < bytes ? n : bytes;
		address += n;
		bytes -= n;
	}
	return CUDA_SUCCESS;
}

enum sg_engine sg_copy_engine(struct sg_where to, struct sg_where from)
{
	if (to.place != SG_ON_DEVICE)
		return SG_ENGINE_D2H;
	return from.place == SG_ON_DEVICE && from.device == to.device ? SG_ENGINE_D2D
								      : SG_ENGINE_H2D;
}

uint32_t sg_copy_flags(struct sg_where to, struct sg_where from)
{
	return to.place == SG_ON_HOST || from.place == SG_ON_HOST ? SG_FLAG_PAGEABLE : 0;
}

static int submit(struct CUstream_st *stream, struct copy_work *copy, bool wait)
{
	uint64_t ticket;
	int r;

	r = sg_stream_submit(stream, &copy->work, &ticket);
	return r || !wait ? r : sg_stream_wait_ticket(stream, ticket);
}

static int make_copy(uint64_t target, uint64_t source, uint64_t bytes, struct copy_work **ret,
	struct sg_where *ret_to, struct sg_where *ret_from)
{
	struct copy_work *copy;
	int r = sg_locate(target, bytes, ret_to);

	if (!r)
		r = sg_locate(source, bytes, ret_from);
	if (r)
		return r;
	copy = new_copy(CU_GRAPH_NODE_TYPE_MEMCPY);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy->target = target;
	copy->source = source;
	copy->bytes = bytes;
	copy->to = *ret_to;
	copy->from = *ret_from;
	copy->engine = sg_copy_engine(*ret_to, *ret_from);
	copy->flags = sg_copy_flags(*ret_to, *ret_from);
	*ret = copy;
	return CUDA_SUCCESS;
}

/* A captured copy accesses pageable memory when the graph runs. */
static int copy_in(
	struct CUstream_st *stream, uint64_t target, uint64_t source, uint64_t bytes, bool wait)
{
	bool captured = sg_stream_is_capturing(stream);
	struct copy_work *copy;
	struct sg_where to, from;
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
	if (from.place == SG_ON_HOST && !wait && !captured) {
		copy->staged = malloc(bytes);
		if (copy->staged)
			memcpy(copy->staged, (const void *)source, bytes);
		else
			wait = true;
	}
	return submit(stream, copy, !captured && (wait || to.place == SG_ON_HOST));
}

enum direction { TO_DEVICE, TO_HOST, IN_DEVICE, ANY };

/* Checks that the pointers which the call declares as device pointers are such. */
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
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

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

/* With unified addressing the pointers tell their devices, but the contexts must still be valid. */
static int copy_peer(CUdeviceptr target, CUcontext to, CUdeviceptr source, CUcontext from,
	size_t bytes, CUstream stream, bool ptsz, bool wait)
{
	if (!sg_context_is_live(to) || !sg_context_is_live(from))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy_call(IN_DEVICE, target, source, bytes, stream, ptsz, wait);
}

API CUresult cuMemcpyPeer(
	CUdeviceptr target, CUcontext to, CUdeviceptr source, CUcontext from, size_t bytes)
{
	return copy_peer(target, to, source, from, bytes, NULL, false, true);
}

API CUresult cuMemcpyPeer_ptds(
	CUdeviceptr target, CUcontext to, CUdeviceptr source, CUcontext from, size_t bytes)
{
	return copy_peer(target, to, source, from, bytes, NULL, true, true);
}

SG_BOTH(cuMemcpyPeerAsync,
	(CUdeviceptr target, CUcontext to, CUdeviceptr source, CUcontext from, size_t bytes,
		CUstream stream),
	copy_peer(target, to, source, from, bytes, stream, false, false),
	copy_peer(target, to, source, from, bytes, stream, true, false))

struct set {
	uint64_t target, pattern;
	unsigned pattern_bytes;
	size_t width, rows, pitch; /* width: in patterns */
};

static int make_set(const struct set *set, struct copy_work **ret)
{
	struct copy_work *copy;
	struct sg_where where;
	uint64_t row;
	int r;

	if (set->target % set->pattern_bytes || set->width > UINT32_MAX * 16ull ||
		set->rows > UINT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	row = set->width * set->pattern_bytes;
	if (set->rows > 1 &&
		(set->pitch < row || set->pitch % set->pattern_bytes || set->pitch > INT32_MAX))
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_locate(set->target, (set->rows - 1) * set->pitch + row, &where);
	if (r || where.place == SG_ON_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	copy = new_copy(CU_GRAPH_NODE_TYPE_MEMSET);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy->set = true;
	copy->to = where;
	copy->target = set->target;
	copy->pattern = set->pattern;
	copy->pattern_bytes = set->pattern_bytes;
	copy->bytes = row;
	copy->rows = set->rows;
	copy->pitch = set->pitch;
	copy->engine = SG_ENGINE_D2D;
	*ret = copy;
	return CUDA_SUCCESS;
}

/*
 * Memsets return at once, even the synchronous calls: they are ordered but not waited for (cuda.h).
 */
static int set_call(const struct set *set, CUstream handle, bool ptsz)
{
	struct CUstream_st *stream;
	struct copy_work *copy;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (r || !set->width || !set->rows)
		return r;
	r = make_set(set, &copy);
	return r ? r : submit(stream, copy, false);
}

bool sg_work_copy_params(const struct sg_work *work, CUDA_MEMCPY3D *ret)
{
	const struct copy_work *copy = (const struct copy_work *)work;

	if (work->run != run_copy || copy->set)
		return false;
	*ret = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = copy->source,
		.srcPitch = copy->bytes,
		.srcHeight = 1,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = copy->target,
		.dstPitch = copy->bytes,
		.dstHeight = 1,
		.WidthInBytes = copy->bytes,
		.Height = 1,
		.Depth = 1};
	return true;
}

bool sg_work_set_params(const struct sg_work *work, CUDA_MEMSET_NODE_PARAMS *ret)
{
	const struct copy_work *set = (const struct copy_work *)work;

	if (work->run != run_copy || !set->set)
		return false;
	*ret = (CUDA_MEMSET_NODE_PARAMS){.dst = set->target,
		.pitch = set->pitch,
		.value = (unsigned)set->pattern,
		.elementSize = set->pattern_bytes,
		.width = set->bytes / set->pattern_bytes,
		.height = set->rows};
	return true;
}

static bool is_same_place(struct sg_where a, struct sg_where b)
{
	return a.place == b.place && a.device == b.device && a.context == b.context;
}

/*
 * cuda.h: "For 2d memsets, all dimension changes are rejected. For 1d memsets, changes in height".
 */
static bool is_same_shape(const struct copy_work *a, const struct copy_work *b)
{
	return a->rows == b->rows &&
	       (a->rows == 1 || (a->bytes == b->bytes && a->pitch == b->pitch &&
					a->pattern_bytes == b->pattern_bytes));
}

/* A copy of one row exists in two forms: as a captured copy_work, or as a box. */
static struct sg_box box_of(const struct sg_work *work)
{
	const struct copy_work *copy = (const struct copy_work *)work;

	return work->run == run_copy ? (struct sg_box){.to = {.where = copy->to},
					       .from = {.where = copy->from},
					       .height = 1,
					       .depth = 1}
				     : *sg_work_box_of(work);
}

int sg_work_check_change(const struct sg_work *from, const struct sg_work *to, bool one_row)
{
	const struct copy_work *a = (const struct copy_work *)from,
			       *b = (const struct copy_work *)to;
	struct sg_box before, after;

	if (from->node == CU_GRAPH_NODE_TYPE_MEMSET + 1)
		return is_same_place(a->to, b->to) && is_same_shape(a, b)
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	before = box_of(from);
	after = box_of(to);
	if (one_row &&
		(before.height != 1 || before.depth != 1 || after.height != 1 || after.depth != 1))
		return CUDA_ERROR_INVALID_VALUE;
	return is_same_place(before.to.where, after.to.where) &&
			       is_same_place(before.from.where, after.from.where) &&
			       before.to.in_array == after.to.in_array &&
			       before.from.in_array == after.from.in_array
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

int sg_work_memset(const CUDA_MEMSET_NODE_PARAMS *params, struct sg_work **ret)
{
	const struct set set = {params->dst, params->value, params->elementSize, params->width,
		params->height, params->pitch};
	struct copy_work *copy;
	int r;

	if (params->elementSize != 1 && params->elementSize != 2 && params->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (!params->width || !params->height)
		return CUDA_ERROR_INVALID_VALUE;
	r = make_set(&set, &copy);
	if (!r)
		*ret = &copy->work;
	return r;
}

#define ROW(p, value, bits, n)                                                                     \
	&(struct set)                                                                              \
	{                                                                                          \
		(p), (value), (bits) / 8, (n), 1, 0                                                \
	}
#define ROWS(p, pitch_bytes, value, bits, n, m)                                                    \
	&(struct set)                                                                              \
	{                                                                                          \
		(p), (value), (bits) / 8, (n), (m), (pitch_bytes)                                  \
	}

#define SET(bits, type)                                                                            \
	API CUresult cuMemsetD##bits##_v2(CUdeviceptr p, type value, size_t n)                     \
	{                                                                                          \
		return set_call(ROW(p, value, bits, n), NULL, false);                              \
	}                                                                                          \
	API CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr p, type value, size_t n)                \
	{                                                                                          \
		return set_call(ROW(p, value, bits, n), NULL, true);                               \
	}                                                                                          \
	API CUresult cuMemsetD2D##bits##_v2(                                                       \
		CUdeviceptr p, size_t pitch, type value, size_t n, size_t m)                       \
	{                                                                                          \
		return set_call(ROWS(p, pitch, value, bits, n, m), NULL, false);                   \
	}                                                                                          \
	API CUresult cuMemsetD2D##bits##_v2_ptds(                                                  \
		CUdeviceptr p, size_t pitch, type value, size_t n, size_t m)                       \
	{                                                                                          \
		return set_call(ROWS(p, pitch, value, bits, n, m), NULL, true);                    \
	}                                                                                          \
	SG_BOTH(cuMemsetD##bits##Async, (CUdeviceptr p, type value, size_t n, CUstream stream),    \
		set_call(ROW(p, value, bits, n), stream, false),                                   \
		set_call(ROW(p, value, bits, n), stream, true))                                    \
	SG_BOTH(cuMemsetD2D##bits##Async,                                                          \
		(CUdeviceptr p, size_t pitch, type value, size_t n, size_t m, CUstream stream),    \
		set_call(ROWS(p, pitch, value, bits, n, m), stream, false),                        \
		set_call(ROWS(p, pitch, value, bits, n, m), stream, true))

SET(8, unsigned char)
SET(16, unsigned short)
SET(32, unsigned)
