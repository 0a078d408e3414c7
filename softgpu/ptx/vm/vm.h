/*
 * The data that the parser makes and the interpreter runs. Each instruction holds the function that
 * executes it and the slots of its operands in the thread's frame. Immediates, special registers
 * and addresses are slots too, filled when a frame is made, so that every operand is one load.
 *
 * Frame: slot 0 reads as zero, slot 1 is written and never read, then registers, specials and
 * constants in the order of their first use.
 *
 * Instructions are counted at jumps and stops only, as the distance from the last one. Helper
 * instructions that PTX does not have (guards, addresses) subtract themselves from the count.
 */
#pragma once

#include "ptx/ptx.h"

enum ptx_type {
	T_NONE,
	T_U8,
	T_U16,
	T_U32,
	T_U64,
	T_S8,
	T_S16,
	T_S32,
	T_S64,
	T_B8,
	T_B16,
	T_B32,
	T_B64,
	T_F32,
	T_F64,
	T_F16,
	T_F16X2,
	T_BF16,
	T_BF16X2,
	T_PRED,
	T_N
};

/* Tells whether the type has 16 bits, or two such parts. */
static inline bool sg_ptx_is_half(enum ptx_type type)
{
	return type >= T_F16 && type <= T_BF16X2;
}

enum ptx_space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM, SPACE_N };

/* Addresses that only kernels know: of functions, and of where a cooperative grid meets. */
#define WINDOW_CODE (4ull << 56)
#define WINDOW_GRID (5ull << 56)

#define CODE_SHIFT 4u /* WINDOW_CODE plus a function's number from 1, times 16 */

#define SLOT_ZERO  0u
#define SLOT_SCRAP 1u
#define SLOT_FIRST 2u

struct insn;
struct thread;

/* Executes *i and returns the next instruction; NULL: stopped, thread->pc and state say how. */
typedef const struct insn *(*op_fn)(struct thread *t, uint64_t *r, const struct insn *i);

struct call;

struct insn {
	op_fn fn;
	uint32_t d, a, b, c; /* slots: destination, sources */
	union {
		int64_t s;
		uint64_t u;
		op_fn fn;
		const struct insn *target;
		const struct call *call;
	} imm;
};

enum special {
	SPECIAL_TID_X,
	SPECIAL_TID_Y,
	SPECIAL_TID_Z,
	SPECIAL_NTID_X,
	SPECIAL_NTID_Y,
	SPECIAL_NTID_Z,
	SPECIAL_CTAID_X,
	SPECIAL_CTAID_Y,
	SPECIAL_CTAID_Z,
	SPECIAL_NCTAID_X,
	SPECIAL_NCTAID_Y,
	SPECIAL_NCTAID_Z,
	SPECIAL_LANEID,
	SPECIAL_WARPID,
	SPECIAL_NWARPID,
	SPECIAL_SMID,
	SPECIAL_NSMID,
	SPECIAL_GRIDID,
	SPECIAL_LANEMASK_EQ,
	SPECIAL_LANEMASK_LT,
	SPECIAL_LANEMASK_LE,
	SPECIAL_LANEMASK_GT,
	SPECIAL_LANEMASK_GE,
	SPECIAL_TOTAL_SHARED,
	SPECIAL_DYNAMIC_SHARED_BYTES,
	SPECIAL_GRID_LOW, /* the halves of WINDOW_GRID in a cooperative launch */
	SPECIAL_GRID_HIGH,
	/* The system's part of shared memory, which cooperative groups use. */
	SPECIAL_RESERVED_SHARED,
	SPECIAL_ZERO,
	SPECIAL_ONE,
	SPECIAL_DYNAMIC_SHARED, /* the address at which the extern .shared arrays begin */
	SPECIAL_N
};

struct special_slot {
	uint32_t slot;
	enum special special;
};

/* A slot of the frame whose value depends on an address that is assigned later. */
struct reloc {
	uint32_t slot;
	bool is_shared; /* true: an offset in shared memory; false: the address of a variable */
	uint32_t variable;
	int64_t addend;
};

struct formal {
	uint32_t offset, size; /* in the function's local memory */
};

struct function {
	struct sg_ptx_function pub;
	struct sg_ptx_param *params;
	char *name;
	char *refusal;   /* pub.refusal */
	uint32_t number; /* in the module, from 1 */
	bool is_entry, is_defined;
	struct insn *insns;
	uint32_t *lines; /* of the text, per instruction */
	uint32_t insn_count;
	uint64_t *frame; /* the initial contents of a new frame */
	uint32_t slot_count;
	struct special_slot *specials;
	uint32_t special_count;
	struct reloc *relocs;
	uint32_t reloc_count;
	struct formal *formals; /* results first, then arguments; .func only */
	uint32_t result_count, formal_count;
	struct call *calls; /* the list of calls that its call instructions refer to */
};

static inline uint64_t sg_ptx_code_address(const struct function *f)
{
	return WINDOW_CODE + ((uint64_t)f->number << CODE_SHIFT);
}

/* A parameter or result; its place in the callee is the callee's to say. */
struct call_copy {
	uint32_t at, size; /* in the caller's local memory */
};

struct call {
	struct call *next;
	struct function *callee; /* NULL: the call's address names the function */
	uint32_t line, result_count;
	uint32_t copy_count; /* results first */
	struct call_copy copies[];
};

struct initial {
	uint64_t offset;
	uint32_t variable; /* its address plus addend is stored at offset */
	int64_t addend;
};

struct variable {
	struct sg_ptx_variable pub;
	char *name;
	uint8_t *bytes; /* the first byte_count of size */
	uint64_t byte_count;
	struct initial *initials;
	uint32_t initial_count;
	uint64_t address;
	uint32_t line; /* where it was first declared */
	bool is_bound, is_defined;
};

struct sg_ptx_module {
	uint32_t target, version;
	char suffix;                 /* of the target: 'a', 'f' or 0 */
	struct function **functions; /* device functions too */
	uint32_t function_count;
	struct variable **variables;
	uint32_t variable_count;
	uint32_t shared_bytes; /* of variables outside entry functions */
	bool uses_reserved;    /* a function asks for SPECIAL_RESERVED_SHARED */
};

enum thread_state {
	THREAD_NEW, /* has no context yet */
	THREAD_READY,
	THREAD_BARRIER,
	THREAD_WARP,
	THREAD_DONE,
	THREAD_FRAME /* ready, but its frame changed: reload and go on */
};

/* A thread's memory; goes back to the run's free list when the thread is done. */
struct frame_record {
	const struct function *function;
	const struct call *call; /* the call that made the frame; NULL: it is the entry's */
	const struct insn *back;
	uint32_t slots_at, local_at;
};

struct context {
	struct context *next;
	uint64_t *slots;
	uint8_t *local;
	struct frame_record *frames;
	uint32_t slot_capacity, local_capacity, frame_capacity;
	uint32_t frame_count, local_bytes; /* in use */
};

struct thread {
	struct run *run;
	struct block *block;
	const struct insn *pc;   /* valid while stopped */
	const struct insn *mark; /* instructions before this one are counted */
	uint64_t count;          /* instructions until mark */
	uint64_t slice_end;      /* the value of count at which it stops so that others can run */
	uint64_t extra_ps;       /* virtual time beyond its instructions */
	uint64_t spin_count;     /* count at the last clock read */
	uint64_t spin_ps;        /* the time that a clock read skips; 0 after a memory access */
	struct context *context;
	uint32_t local_at; /* current frame's part of context->local */
	uint32_t index;    /* in the block */
	uint32_t wait;     /* the lanes that it waits for, or the barrier */
	uint8_t state;
	bool carry;     /* the carry of add.cc and the like */
	bool did_yield; /* it stopped to let others run, not to wait */
};

#define BARRIER_COUNT 16

struct barrier {
	uint32_t arrived, expected; /* expected 0: all live threads */
	uint32_t votes;             /* those of the arrived threads whose predicate is true */
	uint64_t latest_ps;
};

struct block {
	uint32_t id[3];
	uint32_t slot;
	uint32_t live, thread_count;
	uint64_t start_ns;  /* virtual, after the launch */
	uint64_t latest_ps; /* the latest end of a thread that is done */
	uint8_t *shared;
	struct thread *threads;
	struct barrier barriers[BARRIER_COUNT];
};

struct tlb_entry {
	uint64_t first, span; /* last - first */
	uint8_t *host;
	/* 0: empty; 1: load; 2: store and atomic too; always 0 for is_host and is_remote */
	uint8_t rights;
	uint8_t host_rights; /* the same for ranges with is_host or is_remote */
	bool is_remote;
};

struct slot_time {
	uint64_t free_ns;
	uint32_t slot;
};

struct run {
	struct tlb_entry tlb[SG_PTX_TLB_ENTRIES];
	const struct sg_ptx_launch *launch;
	const struct function *function;
	struct sg_ptx_result *result;
	struct context *contexts; /* contexts that are free */
	struct slot_time *slots;  /* a heap; the slot that is free first is at the front */
	uint32_t slot_count;
	uint32_t thread_count, shared_bytes, dynamic_shared_at, reserved_shared_at;
	uint64_t spin_ps;         /* how long the last loop that waited for a clock had to wait */
	uint32_t grid_barrier[2]; /* its size and its state */
	int outcome;
};

/* Ends the run: the thread that did it, where, and for memory which access. */
const struct insn *sg_ptx_fault(struct thread *t, const struct insn *i, int outcome);
const struct insn *sg_ptx_fault_access(struct thread *t, const struct insn *i, int outcome,
	uint64_t address, enum sg_ptx_access access, uint32_t bytes);

static inline uint64_t sg_ptx_thread_ps(const struct thread *t)
{
	return t->count * t->run->launch->time.instr_ps + t->extra_ps;
}

/* Brings the thread's clock forward to ps. */
static inline void sg_ptx_thread_advance(struct thread *t, uint64_t ps)
{
	uint64_t now = sg_ptx_thread_ps(t);

	if (now < ps)
		t->extra_ps += ps - now;
}

/* Counts the instructions before `pc` and leaves the thread there. */
static inline void sg_ptx_stop_at(struct thread *t, const struct insn *pc)
{
	t->count += (uint64_t)(pc - t->mark);
	t->mark = t->pc = pc;
}

/* Counts up to and with i, goes to target; every loop passes here, so slices end here. */
static inline const struct insn *sg_ptx_jump(
	struct thread *t, const struct insn *i, const struct insn *target)
{
	t->count += (uint64_t)(i + 1 - t->mark);
	t->mark = target;
	if (__builtin_expect(t->count < t->slice_end, 1))
		return target;
	t->pc = target;
	t->did_yield = true;
	return NULL;
}
