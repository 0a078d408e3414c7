/*
 * Waits for and writes of memory words in stream order (cuStreamWaitValue, cuStreamWriteValue). A
 * wait polls, and the stream's worker sleeps between polls, so it uses neither the CPU nor the
 * GPU's time. It also ends when its context dies.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/driver/graph/graph.h"

enum {
	CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
	CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
	CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
	CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
	CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
	CU_STREAM_MEM_OP_BARRIER = 6,
};
enum {
	CU_STREAM_WAIT_VALUE_GEQ = 0,
	CU_STREAM_WAIT_VALUE_EQ = 1,
	CU_STREAM_WAIT_VALUE_AND = 2,
	CU_STREAM_WAIT_VALUE_NOR = 3,
};
#define OPS_MAX       255u /* cuda.h: "Must be less than 256." */
#define LOOK_EVERY_NS 20000

struct mem_op_work {
	struct sg_work work;
	unsigned count;
	CUstreamBatchMemOpParams ops[];
};

static bool is_64(int operation)
{
	return operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
	       operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static bool is_wait(int operation)
{
	return operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
	       operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

/* Compares cyclically, as cuda.h defines: "(int32_t)(*addr - value) >= 0". */
static bool holds(uint64_t found, uint64_t value, unsigned condition, bool wide)
{
	switch (condition) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return wide ? (int64_t)(found - value) >= 0
			    : (int32_t)((uint32_t)found - (uint32_t)value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return wide ? found == value : (uint32_t)found == (uint32_t)value;
	case CU_STREAM_WAIT_VALUE_AND: return found & value;
	default: return wide ? ~(found | value) != 0 : ~((uint32_t)found | (uint32_t)value) != 0;
	}
}

/* Returns a host pointer to the word, or NULL if it is no longer mapped. */
static void *word_at(const struct CUctx_st *context, uint64_t address)
{
	struct sg_allocation allocation;
	uint64_t last;
	bool remote;

	if (sg_is_device_address(address))
		return sg_memory_translate(context, address, &last, &remote);
	return sg_memory_find(address, 4, &allocation) ? (void *)address : NULL;
}

static int wait_for(const struct CUctx_st *context, const CUstreamBatchMemOpParams *op)
{
	const struct timespec pause = {0, LOOK_EVERY_NS};
	bool wide = is_64(op->operation);

	for (;;) {
		const void *word = word_at(context, op->address);
		uint64_t found;

		if (!word)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		found = wide ? __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE)
			     : __atomic_load_n((const uint32_t *)word, __ATOMIC_ACQUIRE);
		if (holds(found, op->value64, op->flags & 3, wide) ||
			__atomic_load_n(&context->cancel, __ATOMIC_RELAXED))
			return CUDA_SUCCESS;
		nanosleep(&pause, NULL);
	}
}

static int write_to(const struct CUctx_st *context, const CUstreamBatchMemOpParams *op)
{
	void *word = word_at(context, op->address);

	if (!word)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	if (is_64(op->operation))
		__atomic_store_n((uint64_t *)word, op->value64, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)word, (uint32_t)op->value64, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

static int run_mem_ops(struct CUstream_st *stream, struct sg_work *work)
{
	const struct mem_op_work *batch = (struct mem_op_work *)work;
	int r = CUDA_SUCCESS;

	for (unsigned i = 0; !r && i < batch->count; i++) {
		const CUstreamBatchMemOpParams *op = &batch->ops[i];

		if (op->operation == CU_STREAM_MEM_OP_BARRIER)
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
		else if (is_wait(op->operation))
			r = wait_for(stream->context, op);
		else
			r = write_to(stream->context, op);
	}
	return r;
}

/*
 * The word must be aligned device or pinned memory; cuda.h: "cannot be used with managed memory".
 */
static int check_op(const CUstreamBatchMemOpParams *op)
{
	struct sg_allocation allocation;
	unsigned bytes = is_64(op->operation) ? 8 : 4;

	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		/* CU_STREAM_WAIT_VALUE_FLUSH needs a device with CAN_FLUSH_REMOTE_WRITES. */
		if (op->flags & 1u << 30)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (op->flags > CU_STREAM_WAIT_VALUE_NOR)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		if (op->flags > 1) /* 1 is NO_MEMORY_BARRIER */
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_STREAM_MEM_OP_BARRIER: return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	if (op->address % bytes || !sg_memory_find(op->address, bytes, &allocation) ||
		allocation.kind == SG_MEMORY_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

int sg_work_mem_ops(const CUstreamBatchMemOpParams *ops, unsigned count, struct sg_work **ret)
{
	struct mem_op_work *work;
	size_t bytes = sizeof(*work) + count * sizeof(*ops);

	if (!ops || !count || count > OPS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		int r = check_op(&ops[i]);

		if (r)
			return r;
	}
	work = calloc(1, bytes);
	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->work.bytes = bytes;
	work->work.node = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP + 1;
	work->work.run = run_mem_ops;
	work->count = count;
	memcpy(work->ops, ops, count * sizeof(*ops));
	*ret = &work->work;
	return CUDA_SUCCESS;
}

const CUstreamBatchMemOpParams *sg_work_mem_ops_of(struct sg_work *work, unsigned *ret_count)
{
	struct mem_op_work *batch = (struct mem_op_work *)work;

	*ret_count = batch->count;
	return batch->ops;
}

static int submit(CUstream handle, const CUstreamBatchMemOpParams *ops, unsigned count,
	unsigned flags, bool ptsz)
{
	struct CUstream_st *stream;
	struct sg_work *work;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && flags)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_work_mem_ops(ops, count, &work);
	return r ? r : sg_stream_submit(stream, work, NULL);
}

static int one(CUstream stream, int operation, CUdeviceptr address, uint64_t value, unsigned flags,
	bool ptsz)
{
	const CUstreamBatchMemOpParams op = {
		.operation = operation, .address = address, .value64 = value, .flags = flags};

	return submit(stream, &op, 1, 0, ptsz);
}

/*
 * In NVIDIA's driver, the first version of each call must be enabled by a module option. Here both
 * versions are the same.
 */
#define BATCH(version)                                                                             \
	SG_BOTH(cuStreamBatchMemOp##version,                                                       \
		(CUstream stream, unsigned count, CUstreamBatchMemOpParams *ops, unsigned flags),  \
		submit(stream, ops, count, flags, false), submit(stream, ops, count, flags, true))
#define ONE(name, operation, type)                                                                 \
	SG_BOTH(name, (CUstream stream, CUdeviceptr address, type value, unsigned flags),          \
		one(stream, operation, address, value, flags, false),                              \
		one(stream, operation, address, value, flags, true))

BATCH()
BATCH(_v2)
ONE(cuStreamWaitValue32, CU_STREAM_MEM_OP_WAIT_VALUE_32, uint32_t)
ONE(cuStreamWaitValue32_v2, CU_STREAM_MEM_OP_WAIT_VALUE_32, uint32_t)
ONE(cuStreamWaitValue64, CU_STREAM_MEM_OP_WAIT_VALUE_64, uint64_t)
ONE(cuStreamWaitValue64_v2, CU_STREAM_MEM_OP_WAIT_VALUE_64, uint64_t)
ONE(cuStreamWriteValue32, CU_STREAM_MEM_OP_WRITE_VALUE_32, uint32_t)
ONE(cuStreamWriteValue32_v2, CU_STREAM_MEM_OP_WRITE_VALUE_32, uint32_t)
ONE(cuStreamWriteValue64, CU_STREAM_MEM_OP_WRITE_VALUE_64, uint64_t)
ONE(cuStreamWriteValue64_v2, CU_STREAM_MEM_OP_WRITE_VALUE_64, uint64_t)
