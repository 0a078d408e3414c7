/*
 * Implements atom and red by real atomic instructions of the host, since other processes and the
 * host's own threads may share the memory.
 */
#include "ptx/vm/memory.h"
#include "ptx/vm/ops.h"

#include <math.h>

uint64_t sg_ptx_atomic_imm(int32_t offset, enum atomic_op op, enum ptx_type type)
{
	return (uint32_t)offset | (uint64_t)op << 32 | (uint64_t)type << 40;
}

static uint64_t next_u32(enum atomic_op op, uint32_t old, uint32_t b)
{
	switch (op) {
	case ATOMIC_MIN: return b < old ? b : old;
	case ATOMIC_MAX: return b > old ? b : old;
	case ATOMIC_INC: return old >= b ? 0 : old + 1;
	case ATOMIC_DEC: return old == 0 || old > b ? b : old - 1;
	default: return old;
	}
}

static uint64_t next_of(enum atomic_op op, enum ptx_type type, uint64_t old, uint64_t b)
{
	switch (type) {
	case T_U32: return next_u32(op, (uint32_t)old, (uint32_t)b);
	case T_S32:
		if (op == ATOMIC_MIN)
			return (int32_t)b < (int32_t)old ? b : old;
		return (int32_t)b > (int32_t)old ? b : old;
	case T_U64:
		if (op == ATOMIC_MIN)
			return b < old ? b : old;
		return b > old ? b : old;
	case T_S64:
		if (op == ATOMIC_MIN)
			return (int64_t)b < (int64_t)old ? b : old;
		return (int64_t)b > (int64_t)old ? b : old;
	case T_F32: return sg_ptx_from_f32(sg_ptx_f32(old) + sg_ptx_f32(b));
	case T_F64: return sg_ptx_from_f64(sg_ptx_f64(old) + sg_ptx_f64(b));
	case T_F16:
	case T_BF16:
	case T_F16X2:
	case T_BF16X2: return sg_ptx_half_add(type, old, b);
	default: return old;
	}
}

/*
 * Operations that the host has no instruction for: compare and swap is repeated until no other
 * thread has changed the value meanwhile.
 */
#define LOOP(T)                                                                                    \
	static uint64_t loop_##T(T *p, enum atomic_op op, enum ptx_type type, uint64_t b)          \
	{                                                                                          \
		T old = __atomic_load_n(p, __ATOMIC_SEQ_CST);                                      \
		while (!__atomic_compare_exchange_n(p, &old, (T)next_of(op, type, old, b), false,  \
			__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))                                       \
			;                                                                          \
		return old;                                                                        \
	}

#define ATOMIC(T)                                                                                  \
	LOOP(T)                                                                                    \
	static uint64_t atomic_##T(                                                                \
		T *p, enum atomic_op op, enum ptx_type type, uint64_t b, uint64_t c)               \
	{                                                                                          \
		T old = (T)b;                                                                      \
		switch (op) {                                                                      \
		case ATOMIC_ADD:                                                                   \
			if (type == T_F32 || type == T_F64 || sg_ptx_is_half(type))                \
				return loop_##T(p, op, type, b);                                   \
			return __atomic_fetch_add(p, (T)b, __ATOMIC_SEQ_CST);                      \
		case ATOMIC_EXCH: return __atomic_exchange_n(p, (T)b, __ATOMIC_SEQ_CST);           \
		case ATOMIC_CAS:                                                                   \
			__atomic_compare_exchange_n(                                               \
				p, &old, (T)c, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);         \
			return old;                                                                \
		case ATOMIC_AND: return __atomic_fetch_and(p, (T)b, __ATOMIC_SEQ_CST);             \
		case ATOMIC_OR: return __atomic_fetch_or(p, (T)b, __ATOMIC_SEQ_CST);               \
		case ATOMIC_XOR: return __atomic_fetch_xor(p, (T)b, __ATOMIC_SEQ_CST);             \
		default: return loop_##T(p, op, type, b);                                          \
		}                                                                                  \
	}

LOOP(uint16_t)
ATOMIC(uint32_t)
ATOMIC(uint64_t)

static uint64_t atomic_16(uint16_t *p, enum ptx_type type, uint64_t b, uint64_t c)
{
	uint16_t old = (uint16_t)b;

	if (type != T_B16)
		return loop_uint16_t(p, ATOMIC_ADD, type, b);
	__atomic_compare_exchange_n(
		p, &old, (uint16_t)c, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return old;
}

static uint32_t bytes_of(enum ptx_type type)
{
	switch (type) {
	case T_B16:
	case T_F16:
	case T_BF16: return 2;
	case T_F64:
	case T_U64:
	case T_S64:
	case T_B64: return 8;
	default: return 4;
	}
}

static inline const struct insn *run_atomic(
	struct thread *t, uint64_t *r, const struct insn *i, enum ptx_space space)
{
	enum atomic_op op = i->imm.u >> 32 & 0xff;
	enum ptx_type type = i->imm.u >> 40 & 0xff;
	uint64_t address = r[i->a] + (uint64_t)(int64_t)(int32_t)i->imm.u;
	uint32_t bytes = bytes_of(type);
	void *p = resolve_space(t, i, space, address, bytes, SG_PTX_ATOMIC);

	if (!p)
		return NULL;
	t->run->result->atomics +=
		space == SPACE_GLOBAL || (space == SPACE_GENERIC && address < SG_PTX_WINDOW_SHARED);
	if (bytes == 2)
		r[i->d] = atomic_16(p, type, r[i->b], r[i->c]);
	else if (bytes == 4)
		r[i->d] = atomic_uint32_t(p, op, type, r[i->b], r[i->c]);
	else
		r[i->d] = atomic_uint64_t(p, op, type, r[i->b], r[i->c]);
	return i + 1;
}

static const struct insn *atomic_generic(struct thread *t, uint64_t *r, const struct insn *i)
{
	return run_atomic(t, r, i, SPACE_GENERIC);
}

static const struct insn *atomic_global(struct thread *t, uint64_t *r, const struct insn *i)
{
	return run_atomic(t, r, i, SPACE_GLOBAL);
}

static const struct insn *atomic_shared(struct thread *t, uint64_t *r, const struct insn *i)
{
	return run_atomic(t, r, i, SPACE_SHARED);
}

static bool is_supported(enum atomic_op op, enum ptx_type type)
{
	bool is_32 = type == T_U32 || type == T_S32, is_64 = type == T_U64 || type == T_S64;

	switch (op) {
	case ATOMIC_ADD:
		return is_32 || is_64 || type == T_F32 || type == T_F64 || sg_ptx_is_half(type);
	case ATOMIC_MIN:
	case ATOMIC_MAX: return is_32 || is_64;
	case ATOMIC_INC:
	case ATOMIC_DEC: return type == T_U32;
	case ATOMIC_CAS: return type == T_B16 || type == T_B32 || type == T_B64;
	default: return type == T_B32 || type == T_B64;
	}
}

op_fn sg_ptx_atomic_op(enum ptx_space space, enum atomic_op op, enum ptx_type type)
{
	static const op_fn table[SPACE_N] = {[SPACE_GENERIC] = atomic_generic,
		[SPACE_GLOBAL] = atomic_global,
		[SPACE_SHARED] = atomic_shared};

	return is_supported(op, type) ? table[space] : NULL;
}
