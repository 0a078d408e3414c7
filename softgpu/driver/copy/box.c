/*
 * Rectangular copies, between memory and arrays. All forms are converted to cuda.h's CUDA_MEMCPY3D,
 * which becomes two sides and an extent.
 * A synchronous copy is complete when its call returns. So is an asynchronous copy from or to
 * pageable memory, which cuda.h allows.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/copy/copy.h"
#include "softgpu/driver/copy/copy_abi.h"

struct box_work {
	struct sg_work work;
	struct sg_box box;
	CUDA_MEMCPY3D params;
};

/* One side of a copy, as cuda.h describes it. */
struct described {
	size_t x, y, z, lod;
	int type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t pitch, height;
};

/* Computes at + count <= limit without overflow. */
static bool is_within(size_t at, size_t count, size_t limit)
{
	return at <= limit && count <= limit - at;
}

static int array_side(
	const struct described *d, size_t width, size_t height, size_t depth, struct sg_side *ret)
{
	CUarray array = sg_array_find(d->array);
	size_t rows, slices;

	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	rows = array->height ? array->height : 1;
	slices = array->depth ? array->depth : 1;
	/* cuda.h: "srcXInBytes must be evenly divisible by the array element size." */
	if (d->x % array->element_bytes || width % array->element_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_within(d->x, width, array->width * array->element_bytes) ||
		!is_within(d->y, height, rows) || !is_within(d->z, depth, slices))
		return CUDA_ERROR_INVALID_VALUE;
	ret->pitch = array->pitch;
	ret->slice = array->slice;
	ret->address = array->address + d->z * array->slice + d->y * array->pitch + d->x;
	ret->where = (struct sg_where){SG_ON_DEVICE, array->context->device, array->context};
	ret->in_array = true;
	return CUDA_SUCCESS;
}

/* Computes *ret += count * each. Returns false on overflow. */
static bool advance(uint64_t *ret, uint64_t count, uint64_t each)
{
	uint64_t bytes;

	return !__builtin_mul_overflow(count, each, &bytes) &&
	       !__builtin_add_overflow(*ret, bytes, ret);
}

/*
 * cuda.h: "If specified, srcPitch must be greater than or equal to WidthInBytes + srcXInBytes, and
 * ... srcHeight ... to Height + srcY".
 */
static bool has_good_rows(const struct described *d, size_t width, size_t height, size_t depth)
{
	bool rows = height > 1 || depth > 1 || d->y || d->z, slices = depth > 1 || d->z;

	if (d->pitch > INT32_MAX && rows)
		return false; /* CU_DEVICE_ATTRIBUTE_MAX_PITCH */
	return ((!rows && !d->pitch) || is_within(d->x, width, d->pitch)) &&
	       ((!slices && !d->height) || is_within(d->y, height, d->height));
}

static int memory_side(
	const struct described *d, size_t width, size_t height, size_t depth, struct sg_side *ret)
{
	uint64_t base = d->type == CU_MEMORYTYPE_HOST ? (uint64_t)d->host : d->device, span = width;
	int r;

	if (!base || !has_good_rows(d, width, height, depth))
		return CUDA_ERROR_INVALID_VALUE;
	ret->pitch = d->pitch;
	if (__builtin_mul_overflow(d->pitch, d->height, &ret->slice) && (depth > 1 || d->z))
		return CUDA_ERROR_INVALID_VALUE;
	ret->address = base;
	if (!advance(&ret->address, d->z, ret->slice) || !advance(&ret->address, d->y, d->pitch) ||
		!advance(&ret->address, d->x, 1) || !advance(&span, depth - 1, ret->slice) ||
		!advance(&span, height - 1, ret->pitch) || span > UINT64_MAX - ret->address)
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_locate(ret->address, span, &ret->where);
	if (r)
		return r;
	if (d->type == CU_MEMORYTYPE_HOST && sg_is_device_address(base))
		return CUDA_ERROR_INVALID_VALUE;
	return d->type == CU_MEMORYTYPE_DEVICE && ret->where.place == SG_ON_HOST
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

static int side_of(
	const struct described *d, size_t width, size_t height, size_t depth, struct sg_side *ret)
{
	if (d->lod)
		return CUDA_ERROR_INVALID_VALUE; /* cuda.h: "must be set to 0" */
	switch (d->type) {
	case CU_MEMORYTYPE_ARRAY: return array_side(d, width, height, depth, ret);
	case CU_MEMORYTYPE_HOST:
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED: return memory_side(d, width, height, depth, ret);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

int sg_box_of(const CUDA_MEMCPY3D *c, struct sg_box *ret)
{
	const struct described to = {c->dstXInBytes, c->dstY, c->dstZ, c->dstLOD, c->dstMemoryType,
		c->dstHost, c->dstDevice, c->dstArray, c->dstPitch, c->dstHeight};
	const struct described from = {c->srcXInBytes, c->srcY, c->srcZ, c->srcLOD,
		c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcPitch, c->srcHeight};
	uint64_t bytes;
	int r;

	*ret = (struct sg_box){.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth};
	if (!ret->width || !ret->height || !ret->depth)
		return CUDA_ERROR_INVALID_VALUE;
	/* The server is told the total number of bytes, so it must not overflow. */
	if (__builtin_mul_overflow(ret->width, ret->height, &bytes) ||
		__builtin_mul_overflow(bytes, ret->depth, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	r = side_of(&to, ret->width, ret->height, ret->depth, &ret->to);
	return r ? r : side_of(&from, ret->width, ret->height, ret->depth, &ret->from);
}

static int move(const struct sg_box *box)
{
	for (size_t z = 0; z < box->depth; z++) {
		for (size_t y = 0; y < box->height; y++) {
			int r = sg_memory_copy(
				box->to.address + z * box->to.slice + y * box->to.pitch,
				box->from.address + z * box->from.slice + y * box->from.pitch,
				box->width);

			if (r)
				return r;
		}
	}
	return CUDA_SUCCESS;
}

static int run_box(struct CUstream_st *stream, struct sg_work *work)
{
	const struct sg_box *box = &((struct box_work *)work)->box;
	const struct CUctx_st *context = stream->context;
	struct sg_op op;
	int r;

	if (sg_client_op_begin(sg.client, &op, context->device, context->id,
		    sg_copy_engine(box->to.where, box->from.where),
		    box->width * box->height * box->depth,
		    sg_copy_flags(box->to.where, box->from.where)))
		return SG_LOST;
	r = move(box);
	if (sg_client_op_wait(sg.client, &op))
		return SG_LOST;
	stream->last_end_ns = op.end_ns;
	return r;
}

int sg_work_box(const struct sg_box *box, const CUDA_MEMCPY3D *params, struct sg_work **ret)
{
	struct box_work *work = calloc(1, sizeof(*work));

	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->work.bytes = sizeof(*work);
	work->work.node = CU_GRAPH_NODE_TYPE_MEMCPY + 1;
	work->work.run = run_box;
	work->box = *box;
	work->params = *params;
	*ret = &work->work;
	return CUDA_SUCCESS;
}

const struct sg_box *sg_work_box_of(const struct sg_work *work)
{
	return work->run == run_box ? &((const struct box_work *)work)->box : NULL;
}

bool sg_work_box_params(const struct sg_work *work, CUDA_MEMCPY3D *ret)
{
	if (work->run != run_box)
		return false;
	*ret = ((const struct box_work *)work)->params;
	return true;
}

int sg_work_memcpy(const CUDA_MEMCPY3D *copy, struct sg_work **ret)
{
	struct sg_box box;
	int r = sg_box_of(copy, &box);

	return r ? r : sg_work_box(&box, copy, ret);
}

/* -- the calls -- */

static int copy_3d(const CUDA_MEMCPY3D *copy, CUstream handle, bool ptsz, bool wait)
{
	struct CUstream_st *stream;
	struct sg_work *work;
	struct sg_box box;
	uint64_t ticket;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && !copy)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	if (wait && sg_stream_is_capturing(stream))
		return sg_capture_refuse(stream);
	if (wait)
		r = sg_capture_check_stream(stream);
	if (r || !copy->WidthInBytes || !copy->Height || !copy->Depth)
		return r;
	r = sg_box_of(copy, &box);
	if (!r)
		r = sg_work_box(&box, copy, &work);
	if (r)
		return r;
	if (!sg_stream_is_capturing(stream))
		wait |= box.to.where.place == SG_ON_HOST || box.from.where.place == SG_ON_HOST;
	r = sg_stream_submit(stream, work, &ticket);
	return r || !wait ? r : sg_stream_wait_ticket(stream, ticket);
}

/* A 2D copy is a 3D copy of one slice. */
static int copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool ptsz, bool wait)
{
	CUDA_MEMCPY3D copy;

	if (!c)
		return copy_3d(NULL, stream, ptsz, wait);
	copy = (CUDA_MEMCPY3D){.srcXInBytes = c->srcXInBytes,
		.srcY = c->srcY,
		.srcMemoryType = c->srcMemoryType,
		.srcHost = c->srcHost,
		.srcDevice = c->srcDevice,
		.srcArray = c->srcArray,
		.srcPitch = c->srcPitch,
		.dstXInBytes = c->dstXInBytes,
		.dstY = c->dstY,
		.dstMemoryType = c->dstMemoryType,
		.dstHost = c->dstHost,
		.dstDevice = c->dstDevice,
		.dstArray = c->dstArray,
		.dstPitch = c->dstPitch,
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
		.Depth = 1};
	return copy_3d(&copy, stream, ptsz, wait);
}

#define COPY_2D(name, ptds)                                                                        \
	API CUresult name(const CUDA_MEMCPY2D *copy)                                               \
	{                                                                                          \
		return copy_2d(copy, NULL, ptds, true);                                            \
	}

COPY_2D(cuMemcpy2D_v2, false)
COPY_2D(cuMemcpy2D_v2_ptds, true)
COPY_2D(cuMemcpy2DUnaligned_v2, false)
COPY_2D(cuMemcpy2DUnaligned_v2_ptds, true)

SG_BOTH(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream stream),
	copy_2d(copy, stream, false, false), copy_2d(copy, stream, true, false))
SG_BOTH(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *copy, CUstream stream),
	copy_3d(copy, stream, false, false), copy_3d(copy, stream, true, false))

API CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
	return copy_3d(copy, NULL, false, true);
}

API CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *copy)
{
	return copy_3d(copy, NULL, true, true);
}

/*
 * The contexts would tell the devices of the pointers. With unified addressing the pointers tell
 * that themselves.
 */
static int copy_3d_peer(const CUDA_MEMCPY3D_PEER *c, CUstream stream, bool ptsz, bool wait)
{
	CUDA_MEMCPY3D copy;

	if (!c)
		return copy_3d(NULL, stream, ptsz, wait);
	if (!sg_context_is_live(c->srcContext) || !sg_context_is_live(c->dstContext))
		return CUDA_ERROR_INVALID_CONTEXT;
	/* the contexts replace reserved fields of the other struct */
	memcpy(&copy, c, sizeof(copy));
	copy.reserved0 = copy.reserved1 = NULL;
	return copy_3d(&copy, stream, ptsz, wait);
}

_Static_assert(
	sizeof(CUDA_MEMCPY3D_PEER) == sizeof(CUDA_MEMCPY3D) &&
		offsetof(CUDA_MEMCPY3D_PEER, srcContext) == offsetof(CUDA_MEMCPY3D, reserved0) &&
		offsetof(CUDA_MEMCPY3D_PEER, dstContext) == offsetof(CUDA_MEMCPY3D, reserved1),
	"the two differ in what their reserved fields mean");

API CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy)
{
	return copy_3d_peer(copy, NULL, false, true);
}

API CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *copy)
{
	return copy_3d_peer(copy, NULL, true, true);
}

SG_BOTH(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *copy, CUstream stream),
	copy_3d_peer(copy, stream, false, false), copy_3d_peer(copy, stream, true, false))

/* -- one-dimensional arrays; offsets are in bytes -- */

struct end {
	CUarray array; /* the array, unless type says that it is memory */
	int type;
	const void *host;
	CUdeviceptr device;
	size_t offset;
};

static int copy_array(
	struct end to, struct end from, size_t bytes, CUstream stream, bool ptsz, bool wait)
{
	const CUDA_MEMCPY3D copy = {.dstXInBytes = to.offset,
		.dstMemoryType = to.type,
		.dstHost = (void *)to.host,
		.dstDevice = to.device,
		.dstArray = to.array,
		.srcXInBytes = from.offset,
		.srcMemoryType = from.type,
		.srcHost = from.host,
		.srcDevice = from.device,
		.srcArray = from.array,
		.WidthInBytes = bytes,
		.Height = 1,
		.Depth = 1};
	const CUarray both[] = {to.array, from.array};

	for (int i = 0; i < 2; i++)
		if (both[i] && sg_array_find(both[i]) &&
			(both[i]->height > 1 || both[i]->depth > 1))
			return CUDA_ERROR_INVALID_VALUE;
	return copy_3d(&copy, stream, ptsz, wait);
}

#define IN_ARRAY(a, at)                                                                            \
	(struct end)                                                                               \
	{                                                                                          \
		.array = (a), .type = CU_MEMORYTYPE_ARRAY, .offset = (at)                          \
	}
#define ON_DEVICE(p)                                                                               \
	(struct end)                                                                               \
	{                                                                                          \
		.type = CU_MEMORYTYPE_DEVICE, .device = (p)                                        \
	}
#define ON_HOST(p)                                                                                 \
	(struct end)                                                                               \
	{                                                                                          \
		.type = CU_MEMORYTYPE_HOST, .host = (p)                                            \
	}

#define ARRAY_COPIES(suffix, ptds)                                                                 \
	API CUresult cuMemcpyHtoA##suffix(CUarray to, size_t offset, const void *from, size_t n)   \
	{                                                                                          \
		return copy_array(IN_ARRAY(to, offset), ON_HOST(from), n, NULL, ptds, true);       \
	}                                                                                          \
	API CUresult cuMemcpyAtoH##suffix(void *to, CUarray from, size_t offset, size_t n)         \
	{                                                                                          \
		return copy_array(ON_HOST(to), IN_ARRAY(from, offset), n, NULL, ptds, true);       \
	}                                                                                          \
	API CUresult cuMemcpyDtoA##suffix(CUarray to, size_t offset, CUdeviceptr from, size_t n)   \
	{                                                                                          \
		return copy_array(IN_ARRAY(to, offset), ON_DEVICE(from), n, NULL, ptds, true);     \
	}                                                                                          \
	API CUresult cuMemcpyAtoD##suffix(CUdeviceptr to, CUarray from, size_t offset, size_t n)   \
	{                                                                                          \
		return copy_array(ON_DEVICE(to), IN_ARRAY(from, offset), n, NULL, ptds, true);     \
	}                                                                                          \
	API CUresult cuMemcpyAtoA##suffix(                                                         \
		CUarray to, size_t to_offset, CUarray from, size_t offset, size_t n)               \
	{                                                                                          \
		return copy_array(                                                                 \
			IN_ARRAY(to, to_offset), IN_ARRAY(from, offset), n, NULL, ptds, true);     \
	}

ARRAY_COPIES(_v2, false)
ARRAY_COPIES(_v2_ptds, true)

SG_BOTH(cuMemcpyHtoAAsync_v2,
	(CUarray to, size_t offset, const void *from, size_t n, CUstream stream),
	copy_array(IN_ARRAY(to, offset), ON_HOST(from), n, stream, false, false),
	copy_array(IN_ARRAY(to, offset), ON_HOST(from), n, stream, true, false))
SG_BOTH(cuMemcpyAtoHAsync_v2, (void *to, CUarray from, size_t offset, size_t n, CUstream stream),
	copy_array(ON_HOST(to), IN_ARRAY(from, offset), n, stream, false, false),
	copy_array(ON_HOST(to), IN_ARRAY(from, offset), n, stream, true, false))
