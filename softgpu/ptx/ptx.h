/*
 * PTX, parsed and run: the execution half of the software GPU. A pure library: no socket, no
 * thread, no clock. Memory and time come through the caller's callbacks.
 *
 * Order of use: sg_ptx_module_new; allocate device memory for each variable; sg_ptx_module_bind
 * each; copy sg_ptx_module_initial's bytes to each; then sg_ptx_run any number of times. A module
 * is not written by sg_ptx_run, so runs of one module may overlap in several threads.
 *
 * The time model is just that: instructions times a constant, dealt to slots. It is no measurement
 * of a GPU.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct td_err;
struct sg_ptx_module;

/*
 * The places in the generic address space for memory that is private to a block, a thread or a
 * launch. All translated addresses must be below the lowest of them.
 */
#define SG_PTX_WINDOW_SHARED (1ull << 56)
#define SG_PTX_WINDOW_LOCAL  (2ull << 56)
#define SG_PTX_WINDOW_PARAM  (3ull << 56)

#define SG_PTX_MAX_THREADS      1024u
#define SG_PTX_MAX_SHARED_BYTES (227u << 10) /* the sum of static and dynamic shared memory */

struct sg_ptx_param {
	uint32_t offset, size, align; /* bytes */
};

struct sg_ptx_function {
	const char *name;
	const struct sg_ptx_param *params;
	uint32_t param_count;
	uint32_t param_bytes;  /* of the whole parameter block */
	uint32_t shared_bytes; /* static */
	uint32_t local_bytes;  /* per thread, without callees */
	uint32_t registers;    /* 32-bit ones; an estimate from live ranges, for occupancy */
	uint32_t max_threads;  /* of a block: .maxntid or .reqntid, else SG_PTX_MAX_THREADS */
	/*
	 * NULL, or the reason why it cannot run, such as "line 42: opcode \"wgmma.mma_async\" is
	 * not supported".
	 */
	const char *refusal;
};

struct sg_ptx_variable {
	const char *name;
	uint64_t size, align; /* bytes */
	bool constant;        /* .const, else .global */
	bool managed;         /* .attribute(.managed) */
	bool initialised;     /* else zeros */
};

/*
 * Parses text[0..len), in which a trailing NUL is allowed. Returns -ENOMEM, or -EINVAL with *err
 * quoting the text and its line ("line 42: \"foo\" where a type is expected"). A function that uses
 * unsupported PTX is refused alone: its entry holds the reason, and running it gives
 * SG_PTX_UNSUPPORTED. Several texts in a row, each with its own .version, are linked: .visible,
 * .weak and .extern names are known to all of them, other names to their own text.
 */
int sg_ptx_module_new(const char *text, size_t len, struct td_err *err, struct sg_ptx_module **ret);
void sg_ptx_module_free(struct sg_ptx_module *m);

uint32_t sg_ptx_module_target(const struct sg_ptx_module *m); /* sm_75: 75 */
/*
 * Tells whether the module may run on that architecture. sm_75's runs also on later ones, sm_90a's
 * on sm_90 only, sm_100f's on later ones of its family.
 */
bool sg_ptx_module_fits(const struct sg_ptx_module *m, uint32_t sm);
uint32_t sg_ptx_module_version(const struct sg_ptx_module *m); /* 8.4: 84 */

/*
 * Returns an entry function, in the order of the text; NULL if there is no such one. It lives as
 * long as the module.
 */
const struct sg_ptx_function *sg_ptx_module_function(const struct sg_ptx_module *m, size_t index);
const struct sg_ptx_function *sg_ptx_module_find_function(
	const struct sg_ptx_module *m, const char *name);

/* Returns a variable in device memory; NULL if there is no such one. */
const struct sg_ptx_variable *sg_ptx_module_variable(const struct sg_ptx_module *m, size_t index);

/* Returns the index of the variable, or -1 if there is none. */
long sg_ptx_module_find_variable(const struct sg_ptx_module *m, const char *name);

/* Sets the address of a variable. Each variable needs one before the first run. */
void sg_ptx_module_bind(struct sg_ptx_module *m, size_t index, uint64_t address);

/* Writes variable's size initial bytes; call when ALL are bound: they may hold addresses. */
void sg_ptx_module_initial(const struct sg_ptx_module *m, size_t index, void *ret_bytes);

enum sg_ptx_access { SG_PTX_LOAD, SG_PTX_STORE, SG_PTX_ATOMIC };

/*
 * A range of device addresses, [first, last]: they are host memory at `host` until the launch ends.
 */
struct sg_ptx_range {
	uint64_t first, last;
	void *host;   /* the address of first; as aligned as first is, at least to 16 */
	bool is_host; /* it is pinned host memory, so each access calls host_sync first */
	/*
	 * it is accessed across the link and is not host memory: its bytes count in
	 * result.remote_bytes
	 */
	bool is_remote;
};

struct sg_ptx_memory {
	void *arg;
	/*
	 * Fills *ret with a range that holds [address, address + bytes); false: illegal address.
	 * Ranges are cached: a store or atomic comes back for a range that was last asked for as a
	 * load, nothing else does as long as the range stays in the cache (SG_PTX_TLB_ENTRIES,
	 * direct-mapped by address / SG_PTX_TLB_GRAIN). To see each page touched, return small
	 * ranges.
	 */
	bool (*translate)(void *arg, uint64_t address, uint32_t bytes, enum sg_ptx_access access,
		struct sg_ptx_range *ret);
	/*
	 * Called before each access to an is_host range with the thread's virtual time (ns, on the
	 * scale of sg_ptx_time.start_ns). Returns the time to go on with, which is not earlier. It
	 * may sleep. NULL: the time does not change.
	 */
	uint64_t (*host_sync)(void *arg, uint64_t virtual_ns);
};

#define SG_PTX_TLB_ENTRIES 256u
#define SG_PTX_TLB_GRAIN   (64u << 10)

/*
 * Virtual time. A thread's clock counts instructions times instr_ps, plus its sleeps; a barrier or
 * a warp operation brings its participants to the latest of them. A block takes block_launch_ns
 * plus the time of its last thread, and goes to the slot that is free first. A clock read that
 * follows another within 64 instructions and without a memory access skips ahead by 8 ns, doubling
 * up to 1 us: a spin on a clock costs the host little and overshoots by 1 us at most. A loop that
 * only waits for a clock goes to its end at once, and overshoots by 0.5 us at most.
 */
struct sg_ptx_time {
	uint64_t start_ns;        /* %globaltimer at the launch */
	uint32_t instr_ps;        /* one instruction of one thread within its block */
	uint32_t clock_mhz;       /* %clock, %clock64 */
	uint32_t slots;           /* how many blocks run at a time; at least 1 */
	uint32_t sm_count;        /* %nsmid; %smid is the slot modulo it; 0: slots */
	uint32_t block_launch_ns; /* the time to launch one block */
};

/*
 * Receives the output of printf(), one whole call at a time, without a NUL. If write is NULL,
 * printf fails.
 */
struct sg_ptx_output {
	void *arg;
	void (*write)(void *arg, const char *text, size_t len);
};

struct sg_ptx_launch {
	const struct sg_ptx_module *module;
	const struct sg_ptx_function *function;
	uint32_t grid[3], block[3];
	uint32_t dynamic_shared_bytes;
	const void *params; /* function->param_bytes, laid out by function->params */
	struct sg_ptx_memory memory;
	struct sg_ptx_time time;
	struct sg_ptx_output output;
	bool cooperative;           /* all blocks are alive at once; at most time.slots of them */
	const volatile int *cancel; /* NULL or: non-zero ends the run soon */
	uint64_t max_instructions;  /* of all threads; 0: no limit */
};

/* Outcomes of sg_ptx_run. */
enum sg_ptx_outcome {
	SG_PTX_ILLEGAL_ADDRESS = 1, /* see ret->fault_address and fault_access */
	SG_PTX_MISALIGNED_ADDRESS,  /* see ret->fault_address and fault_access */
	SG_PTX_TRAP,                /* the kernel ran trap or brkpt */
	SG_PTX_ASSERT,              /* assert() failed in the kernel */
	SG_PTX_CANCELLED,           /* *cancel was set */
	SG_PTX_LIMIT,               /* max_instructions was reached */
	SG_PTX_INVALID,             /* dimensions of 0, too many threads, too much shared memory */
	SG_PTX_COOPERATIVE_TOO_LARGE, /* more blocks than slots */
	SG_PTX_DEADLOCK,              /* every thread waits in a barrier or a warp operation */
	SG_PTX_STACK_OVERFLOW,        /* calls too deep, or too much local memory in them */
	SG_PTX_UNSUPPORTED,           /* a function that is refused was run */
	/* a call through an address that is not a function's, or of a function of another kind */
	SG_PTX_INVALID_PC,
};

struct sg_ptx_result {
	uint64_t instructions;            /* of all threads */
	uint64_t load_bytes, store_bytes; /* of translated memory; atomics count in both */
	uint64_t remote_bytes;            /* the part of these bytes in is_remote ranges */
	uint64_t atomics;                 /* on translated memory */
	uint64_t makespan_ns;             /* modelled length of the grid */
	/* The place of the fault, for outcomes of a single thread. */
	uint64_t fault_address;
	enum sg_ptx_access fault_access;
	uint32_t fault_bytes;
	uint32_t fault_line; /* of the PTX text */
	uint32_t fault_block[3], fault_thread[3];
};

/*
 * Runs a grid to its end. 0, an enum sg_ptx_outcome, -ENOMEM; *ret holds what was counted until
 * then in every case. Blocks start in order; a thread runs to its next barrier, warp operation,
 * sleep or end of its instruction budget, so that threads that wait for each other's memory
 * progress. Blocks that wait for each other progress as long as all fit in time.slots.
 */
int sg_ptx_run(const struct sg_ptx_launch *launch, struct sg_ptx_result *ret);

/* Returns a text for messages, such as "illegal address". */
const char *sg_ptx_outcome_name(int outcome);
