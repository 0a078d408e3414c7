/*
 * Batches of copies. The whole batch is checked before any copy is queued. The copies run in order,
 * although the API does not promise an order.
 */
#include <stdlib.h>

#include "softgpu/driver/copy/copy.h"
#include "softgpu/driver/copy/copy_abi.h"

/* cuda.h: "hStream ... must not be the legacy NULL stream". CU_STREAM_LEGACY is refused too. */
static int batch_stream(CUstream handle, bool ptsz, struct CUstream_st **ret)
{
	int r = sg_stream_find(handle, ptsz, ret);

	if (r)
		return r;
	if (*ret == (*ret)->context->legacy)
		return CUDA_ERROR_INVALID_VALUE;
	return sg_stream_is_capturing(*ret) ? sg_capture_refuse(*ret) : CUDA_SUCCESS;
}

/*
 * Queues all operations, or frees them after an error r. With `wait`, which is set if memory is
 * pageable, it waits for the last one.
 */
static int submit(
	struct CUstream_st *stream, struct sg_work **works, size_t count, bool wait, int r)
{
	uint64_t ticket = 0;

	for (size_t i = 0; i < count; i++) {
		if (r)
			sg_work_free(works[i]);
		else
			r = sg_stream_submit(stream, works[i], &ticket);
	}
	free(works);
	return r || !wait || !count ? r : sg_stream_wait_ticket(stream, ticket);
}

static int check_order(int order)
{
	return order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
			       order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
			       order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

static int make(const CUDA_MEMCPY3D *copy, struct sg_work **ret, bool *wait)
{
	struct sg_box box;
	int r = sg_box_of(copy, &box);

	if (!r)
		r = sg_work_box(&box, copy, ret);
	if (!r)
		*wait |= box.to.where.place == SG_ON_HOST || box.from.where.place == SG_ON_HOST;
	return r;
}

/* The indices must start with 0 and increase. Each set of attributes applies from its index on. */
static int check_attributes(const CUmemcpyAttributes *attributes, const size_t *indices,
	size_t attribute_count, size_t count, bool *wait)
{
	if (!attributes || !indices || !attribute_count || attribute_count > count || indices[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < attribute_count; i++) {
		if (check_order(attributes[i].srcAccessOrder) || attributes[i].flags > 1 ||
			indices[i] >= count || (i && indices[i] <= indices[i - 1]))
			return CUDA_ERROR_INVALID_VALUE;
		*wait |= attributes[i].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
	}
	return CUDA_SUCCESS;
}

static int copy_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes,
	size_t count, const CUmemcpyAttributes *attributes, const size_t *indices,
	size_t attribute_count, size_t *fail, CUstream handle, bool ptsz)
{
	struct CUstream_st *stream;
	struct sg_work **works;
	bool wait = false;
	size_t made = 0;
	int r = batch_stream(handle, ptsz, &stream);

	if (fail)
		*fail = SIZE_MAX; /* cuda.h: "if the error isn't specific to any operation" */
	if (!r && (!to || !from || !bytes || !count))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check_attributes(attributes, indices, attribute_count, count, &wait);
	if (r)
		return r;
	works = calloc(count, sizeof(struct sg_work *));
	if (!works)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (; !r && made < count; made += !r) {
		r = make(&(CUDA_MEMCPY3D){.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
				 .dstDevice = to[made],
				 .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
				 .srcDevice = from[made],
				 .WidthInBytes = bytes[made],
				 .Height = 1,
				 .Depth = 1},
			&works[made], &wait);
		if (r && fail)
			*fail = made;
	}
	return submit(stream, works, made, wait, r);
}

SG_BOTH(cuMemcpyBatchAsync,
	(CUdeviceptr * to, CUdeviceptr *from, size_t *bytes, size_t count,
		CUmemcpyAttributes *attributes, size_t *indices, size_t attribute_count,
		size_t *fail, CUstream stream),
	copy_batch(
		to, from, bytes, count, attributes, indices, attribute_count, fail, stream, false),
	copy_batch(
		to, from, bytes, count, attributes, indices, attribute_count, fail, stream, true))
SG_BOTH(cuMemcpyBatchAsync_v2,
	(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes, size_t count,
		const CUmemcpyAttributes *attributes, const size_t *indices, size_t attribute_count,
		CUstream stream),
	copy_batch(
		to, from, bytes, count, attributes, indices, attribute_count, NULL, stream, false),
	copy_batch(
		to, from, bytes, count, attributes, indices, attribute_count, NULL, stream, true))

/* Row lengths and extents are in elements: those of the array if there is one, otherwise bytes. */
static unsigned element_bytes(const CUDA_MEMCPY3D_BATCH_OP *op)
{
	CUarray array = op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY   ? op->src.op.array.array
			: op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? op->dst.op.array.array
								       : NULL;

	array = array ? sg_array_find(array) : NULL;
	return array ? array->element_bytes : 1;
}

static int check_operand(const CUmemcpy3DOperand *operand)
{
	if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return sg_array_find(operand->op.array.array) ? CUDA_SUCCESS
							      : CUDA_ERROR_INVALID_VALUE;
	return operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER ? CUDA_SUCCESS
							       : CUDA_ERROR_INVALID_VALUE;
}

/* A row length or layer height of 0 means that of the extent. */
static int describe(const CUDA_MEMCPY3D_BATCH_OP *op, CUDA_MEMCPY3D *c)
{
	size_t each = element_bytes(op), row = op->extent.width, rows = op->extent.height;
	static const size_t most = SIZE_MAX / 64; /* leaves room for elements of up to 16 bytes */

	if (check_operand(&op->src) || check_operand(&op->dst) || check_order(op->srcAccessOrder) ||
		op->flags > 1 || row > most)
		return CUDA_ERROR_INVALID_VALUE;
	*c = (CUDA_MEMCPY3D){.WidthInBytes = row * each, .Height = rows, .Depth = op->extent.depth};
	if (op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		c->srcMemoryType = CU_MEMORYTYPE_ARRAY;
		c->srcArray = op->src.op.array.array;
		if (op->src.op.array.offset.x > most)
			return CUDA_ERROR_INVALID_VALUE;
		c->srcXInBytes = op->src.op.array.offset.x * each;
		c->srcY = op->src.op.array.offset.y;
		c->srcZ = op->src.op.array.offset.z;
	} else if (op->src.op.ptr.rowLength > most) {
		return CUDA_ERROR_INVALID_VALUE;
	} else {
		c->srcMemoryType = CU_MEMORYTYPE_UNIFIED;
		c->srcDevice = op->src.op.ptr.ptr;
		c->srcPitch = (op->src.op.ptr.rowLength ? op->src.op.ptr.rowLength : row) * each;
		c->srcHeight = op->src.op.ptr.layerHeight ? op->src.op.ptr.layerHeight : rows;
	}
	if (op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		c->dstMemoryType = CU_MEMORYTYPE_ARRAY;
		c->dstArray = op->dst.op.array.array;
		if (op->dst.op.array.offset.x > most)
			return CUDA_ERROR_INVALID_VALUE;
		c->dstXInBytes = op->dst.op.array.offset.x * each;
		c->dstY = op->dst.op.array.offset.y;
		c->dstZ = op->dst.op.array.offset.z;
	} else if (op->dst.op.ptr.rowLength > most) {
		return CUDA_ERROR_INVALID_VALUE;
	} else {
		c->dstMemoryType = CU_MEMORYTYPE_UNIFIED;
		c->dstDevice = op->dst.op.ptr.ptr;
		c->dstPitch = (op->dst.op.ptr.rowLength ? op->dst.op.ptr.rowLength : row) * each;
		c->dstHeight = op->dst.op.ptr.layerHeight ? op->dst.op.ptr.layerHeight : rows;
	}
	return CUDA_SUCCESS;
}

static int copy_batch_3d(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail,
	unsigned long long flags, CUstream handle, bool ptsz)
{
	struct CUstream_st *stream;
	struct sg_work **works;
	bool wait = false;
	size_t made = 0;
	int r = batch_stream(handle, ptsz, &stream);

	if (fail)
		*fail = SIZE_MAX;
	if (!r && (!ops || !count || flags))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	works = calloc(count, sizeof(struct sg_work *));
	if (!works)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (; !r && made < count; made += !r) {
		CUDA_MEMCPY3D copy;

		r = describe(&ops[made], &copy);
		if (!r)
			r = make(&copy, &works[made], &wait);
		if (r && fail)
			*fail = made;
		wait |= ops[made].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
	}
	return submit(stream, works, made, wait, r);
}

SG_BOTH(cuMemcpy3DBatchAsync,
	(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail, unsigned long long flags,
		CUstream stream),
	copy_batch_3d(count, ops, fail, flags, stream, false),
	copy_batch_3d(count, ops, fail, flags, stream, true))
SG_BOTH(cuMemcpy3DBatchAsync_v2,
	(size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream stream),
	copy_batch_3d(count, ops, NULL, flags, stream, false),
	copy_batch_3d(count, ops, NULL, flags, stream, true))
