/* Loads and stores of every space, scalar and vector. */
#include "ptx/vm/memory.h"
#include "ptx/vm/ops.h"

static const struct insn *misaligned(struct thread *t, const struct insn *i, uint64_t address,
	uint32_t bytes, enum sg_ptx_access access)
{
	sg_ptx_fault_access(t, i, SG_PTX_MISALIGNED_ADDRESS, address, access, bytes);
	return NULL;
}

/* Pinned host memory: the access happens at a time that the host agrees with. */
static void synchronise(struct thread *t, const struct insn *i)
{
	const struct sg_ptx_launch *launch = t->run->launch;
	uint64_t base_ps, now_ps, next_ns;

	if (!launch->memory.host_sync)
		return;
	sg_ptx_stop_at(t, i);
	base_ps = sg_ptx_thread_ps(t);
	now_ps = t->block->start_ns + base_ps / 1000;
	next_ns = launch->memory.host_sync(launch->memory.arg, now_ps);
	if (next_ns > now_ps)
		sg_ptx_thread_advance(t, (next_ns - t->block->start_ns) * 1000);
}

static bool fill(struct thread *t, struct tlb_entry *e, uint64_t address, uint32_t bytes,
	enum sg_ptx_access access)
{
	const struct sg_ptx_memory *memory = &t->run->launch->memory;
	struct sg_ptx_range range = {0};

	if (address >= WINDOW_GRID && address - WINDOW_GRID < sizeof(t->run->grid_barrier)) {
		range = (struct sg_ptx_range){.first = WINDOW_GRID,
			.last = WINDOW_GRID + sizeof(t->run->grid_barrier) - 1,
			.host = t->run->grid_barrier};
		access = SG_PTX_ATOMIC;
	} else if (!memory->translate || address >= SG_PTX_WINDOW_SHARED ||
		   !memory->translate(memory->arg, address, bytes, access, &range))
		return false;
	if (range.first > address || range.last < address || range.last - address < bytes - 1)
		return false;
	*e = (struct tlb_entry){.first = range.first,
		.span = range.last - range.first,
		.host = range.host,
		.is_remote = range.is_remote,
		.host_rights = access == SG_PTX_LOAD ? 1 : 2};
	if (!range.is_host && !range.is_remote)
		e->rights = e->host_rights;
	return true;
}

void *sg_ptx_resolve_miss(struct thread *t, const struct insn *i, uint64_t address, uint32_t bytes,
	enum sg_ptx_access access)
{
	struct tlb_entry *e = &t->run->tlb[address / SG_PTX_TLB_GRAIN % SG_PTX_TLB_ENTRIES];
	uint64_t offset = address - e->first;

	if (address & (bytes - 1)) {
		misaligned(t, i, address, bytes, access);
		return NULL;
	}
	if (e->host_rights <= (access != SG_PTX_LOAD) || offset > e->span ||
		e->span - offset < bytes - 1) {
		if (!fill(t, e, address, bytes, access)) {
			sg_ptx_fault_access(t, i, SG_PTX_ILLEGAL_ADDRESS, address, access, bytes);
			return NULL;
		}
	}
	if (e->is_remote)
		t->run->result->remote_bytes += access == SG_PTX_ATOMIC ? 2 * bytes : bytes;
	else if (!e->rights)
		synchronise(t, i);
	return e->host + (address - e->first);
}

/* The slot of element n of an instruction's values. */
static inline uint32_t value_slot(const struct insn *i, unsigned n)
{
	return n == 0 ? i->d : n == 1 ? i->b : n == 2 ? i->c : (uint32_t)(i->imm.u >> 32);
}

#define ADDRESS (r[i->a] + (uint64_t)(int64_t)(int32_t)i->imm.u)

#define LOAD(space, SPACE, T, n)                                                                   \
	static const struct insn *load_##space##_##T##_##n(                                        \
		struct thread *t, uint64_t *r, const struct insn *i)                               \
	{                                                                                          \
		T v[n];                                                                            \
		const void *p = resolve_space(t, i, SPACE, ADDRESS, sizeof(v), SG_PTX_LOAD);       \
		if (__builtin_expect(!p, 0))                                                       \
			return NULL;                                                               \
		memcpy(v, p, sizeof(v));                                                           \
		for (unsigned k = 0; k < (n); k++)                                                 \
			r[value_slot(i, k)] = (uint64_t)v[k];                                      \
		return i + 1;                                                                      \
	}

#define STORE(space, SPACE, T, n)                                                                  \
	static const struct insn *store_##space##_##T##_##n(                                       \
		struct thread *t, uint64_t *r, const struct insn *i)                               \
	{                                                                                          \
		T v[n];                                                                            \
		void *p = resolve_space(t, i, SPACE, ADDRESS, sizeof(v), SG_PTX_STORE);            \
		if (__builtin_expect(!p, 0))                                                       \
			return NULL;                                                               \
		for (unsigned k = 0; k < (n); k++)                                                 \
			v[k] = (T)r[value_slot(i, k)];                                             \
		memcpy(p, v, sizeof(v));                                                           \
		return i + 1;                                                                      \
	}

#define EACH_VECTOR(M, space, SPACE, T)                                                            \
	M(space, SPACE, T, 1) M(space, SPACE, T, 2) M(space, SPACE, T, 4)
#define EACH_UNSIGNED(M, space, SPACE)                                                             \
	EACH_VECTOR(M, space, SPACE, uint8_t)                                                      \
	EACH_VECTOR(M, space, SPACE, uint16_t)                                                     \
	EACH_VECTOR(M, space, SPACE, uint32_t)                                                     \
	EACH_VECTOR(M, space, SPACE, uint64_t)
#define EACH_SIGNED(M, space, SPACE)                                                               \
	EACH_VECTOR(M, space, SPACE, int8_t)                                                       \
	EACH_VECTOR(M, space, SPACE, int16_t) EACH_VECTOR(M, space, SPACE, int32_t)
#define EACH_SPACE(M, N)                                                                           \
	M(N, generic, SPACE_GENERIC)                                                               \
	M(N, global, SPACE_GLOBAL)                                                                 \
	M(N, shared, SPACE_SHARED) M(N, local, SPACE_LOCAL) M(N, param, SPACE_PARAM)

EACH_SPACE(EACH_UNSIGNED, LOAD)
EACH_SPACE(EACH_SIGNED, LOAD)
EACH_SPACE(EACH_UNSIGNED, STORE)

#define ROW(op, space, T)                                                                          \
	{                                                                                          \
		op##_##space##_##T##_1, op##_##space##_##T##_2, op##_##space##_##T##_4             \
	}
#define ROWS_UNSIGNED(op, space)                                                                   \
	[T_U8] = ROW(op, space, uint8_t), [T_U16] = ROW(op, space, uint16_t),                      \
	[T_U32] = ROW(op, space, uint32_t), [T_U64] = ROW(op, space, uint64_t),                    \
	[T_B8] = ROW(op, space, uint8_t), [T_B16] = ROW(op, space, uint16_t),                      \
	[T_B32] = ROW(op, space, uint32_t), [T_B64] = ROW(op, space, uint64_t),                    \
	[T_F32] = ROW(op, space, uint32_t), [T_F64] = ROW(op, space, uint64_t)
#define ROWS_LOAD(space)                                                                           \
	{                                                                                          \
		ROWS_UNSIGNED(load, space),                                                        \
			[T_S8] = ROW(load, space, int8_t), [T_S16] = ROW(load, space, int16_t),    \
			[T_S32] = ROW(load, space, int32_t), [T_S64] = ROW(load, space, uint64_t)  \
	}
#define ROWS_STORE(space)                                                                          \
	{                                                                                          \
		ROWS_UNSIGNED(store, space), [T_S8] = ROW(store, space, uint8_t),                  \
					     [T_S16] = ROW(store, space, uint16_t),                \
					     [T_S32] = ROW(store, space, uint32_t),                \
					     [T_S64] = ROW(store, space, uint64_t)                 \
	}

op_fn sg_ptx_load_op(enum ptx_space space, enum ptx_type type, unsigned vector)
{
	static const op_fn table[SPACE_N][T_N][3] = {
		[SPACE_GENERIC] = ROWS_LOAD(generic),
		[SPACE_GLOBAL] = ROWS_LOAD(global),
		[SPACE_SHARED] = ROWS_LOAD(shared),
		[SPACE_LOCAL] = ROWS_LOAD(local),
		[SPACE_PARAM] = ROWS_LOAD(param),
	};

	return table[space][type][vector / 2];
}

op_fn sg_ptx_store_op(enum ptx_space space, enum ptx_type type, unsigned vector)
{
	static const op_fn table[SPACE_N][T_N][3] = {
		[SPACE_GENERIC] = ROWS_STORE(generic),
		[SPACE_GLOBAL] = ROWS_STORE(global),
		[SPACE_SHARED] = ROWS_STORE(shared),
		[SPACE_LOCAL] = ROWS_STORE(local),
		[SPACE_PARAM] = ROWS_STORE(param),
	};

	return table[space][type][vector / 2];
}
