/* The interpreter's instructions, found by what the parser knows: operation and type. */
#pragma once

#include <string.h>

#include "ptx/vm/vm.h"

/* Integers, ops_int.c. */
enum int_op {
	INT_ADD,
	INT_SUB,
	INT_MUL_LO,
	INT_MUL_HI,
	INT_MUL_WIDE,
	INT_MAD_LO,
	INT_MAD_HI,
	INT_MAD_WIDE,
	INT_DIV,
	INT_REM,
	INT_ABS,
	INT_NEG,
	INT_MIN,
	INT_MAX,
	INT_AND,
	INT_OR,
	INT_XOR,
	INT_NOT,
	INT_CNOT,
	INT_SHL,
	INT_SHR,
	INT_SAD,
	INT_MUL24_LO,
	INT_MUL24_HI,
	INT_MAD24_LO,
	INT_MAD24_HI,
	INT_N
};

/* Returns NULL if PTX does not have the operation for that type. */
op_fn sg_ptx_int_op(enum int_op op, enum ptx_type type);

/* Operations with the carry (ops_carry.c); imm comes from sg_ptx_carry_imm(). */
enum carry_op { CARRY_ADD, CARRY_SUB, CARRY_MAD_LO, CARRY_MAD_HI, CARRY_N };

op_fn sg_ptx_carry_op(enum carry_op op, enum ptx_type type);
uint64_t sg_ptx_carry_imm(bool reads, bool writes);

/* Bits, ops_bits.c. */
enum bit_op {
	BIT_POPC,
	BIT_CLZ,
	BIT_BREV,
	BIT_BFE,
	BIT_BFI, /* the length's slot is imm.u */
	BIT_BFIND,
	BIT_BFIND_SHIFT,
	BIT_BMSK_CLAMP,
	BIT_BMSK_WRAP,
	BIT_LOP3, /* the table is imm.u */
	BIT_PRMT,
	BIT_SHF_L_WRAP,
	BIT_SHF_L_CLAMP,
	BIT_SHF_R_WRAP,
	BIT_SHF_R_CLAMP,
	BIT_PACK2,   /* halves of type from a, b */
	BIT_UNPACK2, /* to d, c */
	BIT_PACK4,   /* quarters from a, b, c, imm.u */
	BIT_UNPACK4, /* to d, b, c, imm.u */
	BIT_N
};

op_fn sg_ptx_bit_op(enum bit_op op, enum ptx_type type);

/* Parts of words, ops_dot.c; imm from sg_ptx_dot_imm. */
enum dot_op {
	DOT_DP4A,
	DOT_DP2A,        /* flag: the higher bytes of b */
	DOT_DIFFERENCES, /* flag: their sum onto c */
	DOT_FIND_NTH,
	DOT_EXTEND_WRAP_U,
	DOT_EXTEND_WRAP_S,
	DOT_EXTEND_CLAMP_U,
	DOT_EXTEND_CLAMP_S,
	DOT_N
};

op_fn sg_ptx_dot_op(enum dot_op op);
uint64_t sg_ptx_dot_imm(bool signed_a, bool signed_b, bool flag);

/* Floating point, ops_float.c. */
enum float_op {
	FLOAT_ADD,
	FLOAT_SUB,
	FLOAT_MUL,
	FLOAT_FMA,
	FLOAT_DIV,
	FLOAT_RCP,
	FLOAT_SQRT,
	FLOAT_RSQRT,
	FLOAT_ABS,
	FLOAT_NEG,
	FLOAT_MIN,
	FLOAT_MAX,
	FLOAT_MIN_NAN,
	FLOAT_MAX_NAN,
	FLOAT_SIN,
	FLOAT_COS,
	FLOAT_EX2,
	FLOAT_LG2,
	FLOAT_TANH,
	FLOAT_COPYSIGN,
	FLOAT_SAT, /* clamps to [0, 1] */
	FLOAT_N
};

enum rounding { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP, ROUND_N };

op_fn sg_ptx_float_op(enum float_op op, enum ptx_type type, bool flush);

/* Runs imm.fn in a rounding mode other than nearest; NULL for ROUND_NEAREST. */
op_fn sg_ptx_round_op(enum rounding mode);

/* d is whether a belongs to the class; imm.u is an enum float_test. */
enum float_test {
	TEST_FINITE,
	TEST_INFINITE,
	TEST_NUMBER,
	TEST_NOTANUMBER,
	TEST_NORMAL,
	TEST_SUBNORMAL,
	TEST_N
};
op_fn sg_ptx_test_op(enum ptx_type type);

/* Half precision, ops_half.c; imm.u are flags. */
enum half_op {
	HALF_ADD,
	HALF_SUB,
	HALF_MUL,
	HALF_FMA,
	HALF_NEG,
	HALF_ABS,
	HALF_MIN,
	HALF_MAX,
	HALF_EX2,
	HALF_TANH,
	HALF_N
};

#define HALF_FLUSH    1u
#define HALF_SATURATE 2u /* to [0, 1]; in conversions to the largest finite number */
#define HALF_RELU     4u
#define HALF_NAN_WINS 8u

op_fn sg_ptx_half_op(enum half_op op, enum ptx_type type);
uint64_t sg_ptx_half_add(enum ptx_type type, uint64_t a, uint64_t b);

/* Comparison, selection, moves, ops_compare.c. */
enum compare {
	CMP_EQ,
	CMP_NE,
	CMP_LT,
	CMP_LE,
	CMP_GT,
	CMP_GE,
	CMP_EQU, /* from here on: floats, true when unordered */
	CMP_NEU,
	CMP_LTU,
	CMP_LEU,
	CMP_GTU,
	CMP_GEU,
	CMP_NUM,
	CMP_NAN,
	CMP_N
};

op_fn sg_ptx_setp_op(enum compare cmp, enum ptx_type type, bool flush);

/* Compares one lane of a half or of a pair; d is 0 or 1. */
op_fn sg_ptx_half_compare_op(void);
uint64_t sg_ptx_half_compare_imm(enum compare cmp, bool is_bf16, bool flush, bool is_high);
op_fn sg_ptx_half_mask_op(void); /* d = imm's lower half if a, its upper half if b */
op_fn sg_ptx_half_pack_op(void); /* d = a, b rounded to a pair */
uint64_t sg_ptx_half_pack_imm(bool is_bf16, enum rounding rounding, unsigned flags);

enum move_op {
	MOVE_COPY,
	MOVE_SELECT,          /* d = c ? a : b */
	MOVE_SELECT_SIGN_S32, /* d = c >= 0 ? a : b */
	MOVE_SELECT_SIGN_F32,
	MOVE_PRED_AND,
	MOVE_PRED_OR,
	MOVE_PRED_XOR,
	MOVE_PRED_NOT,
	MOVE_MASK,          /* d = a ? all ones of 32 bits : 0 */
	MOVE_MASK_FLOAT,    /* d = a ? 1.0f : 0.0f */
	MOVE_ADD,           /* d = a + imm: cvta */
	MOVE_FRAME_ADDRESS, /* d = imm in the current frame's local memory; uncounted */
	MOVE_WINDOW,        /* d = a lies in the window of space imm.u */
	MOVE_N
};

op_fn sg_ptx_move_op(enum move_op op);

/* Conversion, ops_convert.c. */
op_fn sg_ptx_extend_op(enum ptx_type type); /* to 64 bits */

enum cvt_rounding { CVT_RN, CVT_RZ, CVT_RM, CVT_RP, CVT_RNI, CVT_RZI, CVT_RMI, CVT_RPI, CVT_N };

/* The general form; imm.u from sg_ptx_cvt_imm. */
op_fn sg_ptx_cvt_op(enum cvt_rounding rounding);
uint64_t sg_ptx_cvt_imm(enum ptx_type to, enum ptx_type from, enum cvt_rounding rounding,
	bool flush, bool saturate, bool relu);
op_fn sg_ptx_tf32_op(void); /* imm.u: CVT_RN, CVT_RZ, or CVT_N for ties away from zero */

/* Memory, ops_memory.c: address slot a plus the low 32 bits of imm, signed. Values d, b, c and the
 * high 32 bits of imm. */
op_fn sg_ptx_load_op(enum ptx_space space, enum ptx_type type, unsigned vector);
op_fn sg_ptx_store_op(enum ptx_space space, enum ptx_type type, unsigned vector);

/* Copies and barriers in shared memory, ops_async.c: addresses as above, a second one's offset in
 * the high half of imm; an mbarrier's flag there. */
enum async_op {
	ASYNC_COPY,
	ASYNC_BULK_IN,
	ASYNC_BULK_OUT,
	ASYNC_BULK_PREFETCH,
	ASYNC_INIT,
	ASYNC_INVALIDATE,
	ASYNC_ARRIVE,
	ASYNC_BYTES,
	ASYNC_TEST,
	ASYNC_PENDING,
	ASYNC_N
};

op_fn sg_ptx_async_op(enum async_op op);

/* Atomics, ops_atomic.c: address as above; d = old; operands b, c; imm from sg_ptx_atomic_imm. */
enum atomic_op {
	ATOMIC_ADD,
	ATOMIC_MIN,
	ATOMIC_MAX,
	ATOMIC_EXCH,
	ATOMIC_CAS,
	ATOMIC_AND,
	ATOMIC_OR,
	ATOMIC_XOR,
	ATOMIC_INC,
	ATOMIC_DEC,
	ATOMIC_N
};

op_fn sg_ptx_atomic_op(enum ptx_space space, enum atomic_op op, enum ptx_type type);
uint64_t sg_ptx_atomic_imm(int32_t offset, enum atomic_op op, enum ptx_type type);

/* Control, ops_control.c. */
enum control_op {
	CONTROL_GUARD, /* skips to imm.target unless a; uncounted, as is what it skips */
	CONTROL_GUARD_NOT,
	CONTROL_BRANCH,
	CONTROL_BRANCH_IF, /* the condition is a */
	CONTROL_BRANCH_IF_NOT,
	CONTROL_JUMP, /* to the target of the a-th of the imm.u branches that follow */
	CONTROL_CALL,
	CONTROL_CALL_AT, /* the function's address is in a */
	CONTROL_PRINT,
	CONTROL_RETURN,
	CONTROL_EXIT,
	CONTROL_TRAP,
	CONTROL_ASSERT,
	CONTROL_NOP,
	CONTROL_REFUSED,   /* the only instruction of a refused function */
	CONTROL_NANOSLEEP, /* a: ns */
	CONTROL_CLOCK32,
	CONTROL_CLOCK_HI,
	CONTROL_CLOCK64,
	CONTROL_TIMER,
	CONTROL_TIMER_LO,
	CONTROL_TIMER_HI,
	CONTROL_ACTIVEMASK,
	CONTROL_BARRIER, /* imm: enum barrier_op; a barrier, b count or SLOT_ZERO, c predicate */
	CONTROL_WARP,    /* imm from sg_ptx_warp_imm */
	CONTROL_N
};

op_fn sg_ptx_control_op(enum control_op op);

/* CONTROL_BRANCH_IF and _IF_NOT that close a loop which waits for a clock, spin.c. */
op_fn sg_ptx_spin_op(bool negated);

enum barrier_op { BARRIER_SYNC, BARRIER_ARRIVE, BARRIER_POPC, BARRIER_AND, BARRIER_OR, BARRIER_N };

enum warp_op {
	WARP_BAR,
	WARP_ELECT,
	WARP_SHFL_UP,
	WARP_SHFL_DOWN,
	WARP_SHFL_BFLY,
	WARP_SHFL_IDX,
	WARP_VOTE_ALL,
	WARP_VOTE_ANY,
	WARP_VOTE_UNI,
	WARP_VOTE_BALLOT,
	WARP_MATCH_ANY_32,
	WARP_MATCH_ANY_64,
	WARP_MATCH_ALL_32,
	WARP_MATCH_ALL_64,
	WARP_REDUX_ADD,
	WARP_REDUX_MIN_U,
	WARP_REDUX_MIN_S,
	WARP_REDUX_MAX_U,
	WARP_REDUX_MAX_S,
	WARP_REDUX_AND,
	WARP_REDUX_OR,
	WARP_REDUX_XOR,
	WARP_N
};

#define SLOT_BITS 24u
#define SLOT_MASK ((1u << SLOT_BITS) - 1)

/* The second result's and the member mask's slots. */
static inline uint64_t sg_ptx_warp_imm(enum warp_op op, uint32_t pred, uint32_t mask)
{
	return (uint64_t)op | (uint64_t)pred << 8 | (uint64_t)mask << 32;
}

static inline float sg_ptx_f32(uint64_t slot)
{
	uint32_t bits = (uint32_t)slot;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline double sg_ptx_f64(uint64_t slot)
{
	double f;

	memcpy(&f, &slot, sizeof(f));
	return f;
}

static inline uint64_t sg_ptx_from_f32(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline uint64_t sg_ptx_from_f64(double f)
{
	uint64_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

/* Subnormal numbers become zeros of their sign, as .ftz asks. */
static inline float sg_ptx_flush(float f)
{
	return __builtin_fabsf(f) < 0x1p-126f ? __builtin_copysignf(0, f) : f;
}
