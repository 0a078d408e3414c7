/*
 * Finds the address ranges that copies and memsets name, as cuda.h defines them, and checks whether
 * one allocation contains each; see reach.h.
 */
#include "preload/outside/reach.h"

#include "cuda/objects.h"
#include "preload/base/backend.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/gate/gate.h"
#include "preload/ipc/ipc.h"
#include "preload/swap/swap.h"

_Atomic bool td_reach_begun;

bool td_reach_flat(uint64_t address, uint64_t bytes)
{
	int r;

	if (!bytes)
		return false;
	r = td_swap_holds(address, bytes);
	if (r == TD_BACKEND_NOT_MINE)
		r = td_ipc_holds(address, bytes);
	return r != CUDA_SUCCESS && r != TD_BACKEND_NOT_MINE;
}

/* Adds count * each to *sum. Returns false on overflow. */
static bool add_product(uint64_t *sum, uint64_t count, uint64_t each)
{
	uint64_t bytes;

	return !__builtin_mul_overflow(count, each, &bytes) &&
	       !__builtin_add_overflow(*sum, bytes, sum);
}

bool td_reach_rows(
	uint64_t address, uint64_t pitch, unsigned element_bytes, uint64_t width, uint64_t rows)
{
	uint64_t bytes = 0;

	if (!width || !rows)
		return false;
	if (!add_product(&bytes, width, element_bytes) || !add_product(&bytes, rows - 1, pitch))
		bytes = UINT64_MAX;
	return td_reach_flat(address, bytes);
}

/* The bytes that a copy of a box reads, or writes, from the first to the last. */
struct extent {
	size_t width, height, depth; /* width in bytes */
};

static bool side_reaches(const struct td_copy3d_side *s, const struct extent *e)
{
	uint64_t address = s->device, bytes = e->width, slice = 0;

	if (s->type != TD_COPY_DEVICE && s->type != TD_COPY_UNIFIED)
		return false;
	if (!add_product(&slice, s->pitch, s->height) || !add_product(&address, s->z, slice) ||
		!add_product(&address, s->y, s->pitch) || !add_product(&address, s->x, 1) ||
		!add_product(&bytes, e->depth - 1, slice) ||
		!add_product(&bytes, e->height - 1, s->pitch))
		return td_reach_flat(s->device, UINT64_MAX);
	return td_reach_flat(address, bytes);
}

static bool copy_reaches(
	const struct td_copy3d_side *to, const struct td_copy3d_side *from, const struct extent *e)
{
	return e->width && e->height && e->depth && (side_reaches(to, e) || side_reaches(from, e));
}

static struct td_copy3d_side flat_side(const struct td_copy2d_side *s)
{
	return (struct td_copy3d_side){
		.x = s->x, .y = s->y, .type = s->type, .device = s->device, .pitch = s->pitch};
}

bool td_reach_copy_2d(const void *copy)
{
	const struct td_copy2d *c = copy;
	struct td_copy3d_side to, from;

	if (!c)
		return false;
	to = flat_side(&c->to);
	from = flat_side(&c->from);
	return copy_reaches(&to, &from, &(struct extent){c->width, c->height, 1});
}

bool td_reach_copy_3d(const void *copy)
{
	const struct td_copy3d *c = copy;

	return c && copy_reaches(&c->to, &c->from, &(struct extent){c->width, c->height, c->depth});
}

bool td_reach_set(const void *set)
{
	const struct td_set *s = set;

	return s && td_reach_rows(s->address, s->pitch, s->element_bytes, s->width, s->height);
}

bool td_reach_node(const void *params)
{
	const struct td_node_params *p = params;

	if (p && p->type == TD_NODE_COPY)
		return td_reach_copy_3d(&p->copy.copy);
	return p && p->type == TD_NODE_SET && td_reach_set(&p->set);
}

/* -- batches: the driver refuses the whole batch if one copy reaches beyond its allocation -- */

static bool fails(size_t i, size_t *ret_fail)
{
	if (ret_fail)
		*ret_fail = i;
	return true;
}

bool td_reach_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes,
	size_t count, size_t *ret_fail)
{
	if (!to || !from || !bytes)
		return false;
	for (size_t i = 0; i < count; i++)
		if (td_reach_flat(to[i], bytes[i]) || td_reach_flat(from[i], bytes[i]))
			return fails(i, ret_fail);
	return false;
}

/* Returns the bytes of one channel of a CUarray_format; 0: unknown format. */
static size_t channel_bytes(int format)
{
	switch (format) {
	case 0x01:
	case 0x08: return 1; /* UNSIGNED_INT8, SIGNED_INT8 */
	case 0x02:
	case 0x09:
	case 0x10: return 2; /* UNSIGNED_INT16, SIGNED_INT16, HALF */
	case 0x03:
	case 0x0a:
	case 0x20: return 4; /* UNSIGNED_INT32, SIGNED_INT32, FLOAT */
	default: return 0;
	}
}

/*
 * Returns the unit of an extent: an element of the array, if one side is an array, otherwise one
 * byte. 0: not known.
 */
static size_t element_bytes(const struct td_copy_op *op)
{
	const struct td_copy_operand *array = op->from.type == TD_OPERAND_ARRAY ? &op->from
					      : op->to.type == TD_OPERAND_ARRAY ? &op->to
										: NULL;
	struct td_array3d d = {0};

	if (!array)
		return 1;
	if (!td_real.cuArray3DGetDescriptor_v2 ||
		td_real.cuArray3DGetDescriptor_v2(&d, array->array.array))
		return 0;
	return channel_bytes(d.format) * d.channels;
}

/* A row length or layer height of 0 means that of the extent. */
static bool operand_reaches(
	const struct td_copy_operand *o, const struct td_copy_op *op, size_t each)
{
	size_t row = o->pointer.row_length ? o->pointer.row_length : op->width;
	struct td_copy3d_side side = {.type = TD_COPY_UNIFIED, .device = o->pointer.address};
	struct extent e = {.height = op->height, .depth = op->depth};

	if (o->type != TD_OPERAND_POINTER || __builtin_mul_overflow(op->width, each, &e.width) ||
		__builtin_mul_overflow(row, each, &side.pitch))
		return false;
	side.height = o->pointer.layer_height ? o->pointer.layer_height : op->height;
	return e.width && e.height && e.depth && side_reaches(&side, &e);
}

bool td_reach_batch_3d(size_t count, const void *ops, size_t *ret_fail)
{
	const struct td_copy_op *op = ops;

	for (size_t i = 0; op && i < count; i++) {
		size_t each = element_bytes(&op[i]);

		if (operand_reaches(&op[i].to, &op[i], each) ||
			operand_reaches(&op[i].from, &op[i], each))
			return fails(i, ret_fail);
	}
	return false;
}

CUresult td_reach_refuse(void *stream, uint32_t kind, bool waits)
{
	CUresult r = CUDA_SUCCESS;

	if (!stream)
		stream = kind & TD_SUBMIT_OWN_NULL ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
	if (waits && td_context_is_capturing(stream))
		return CUDA_SUCCESS;
	if (waits)
		r = td_refused_by_capture();
	return r ? r : CUDA_ERROR_INVALID_VALUE;
}
