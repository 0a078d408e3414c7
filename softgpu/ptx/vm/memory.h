/* Translates addresses to host memory, with every check; for loads, stores and atomics. */
#pragma once

#include "ptx/vm/vm.h"

/*
 * The slow path: fills the cache, synchronises clocks, checks alignment. Returns NULL if the run
 * has ended.
 */
void *sg_ptx_resolve_miss(struct thread *t, const struct insn *i, uint64_t address, uint32_t bytes,
	enum sg_ptx_access access);

static inline __attribute__((always_inline)) void *resolve_global(struct thread *t,
	const struct insn *i, uint64_t address, uint32_t bytes, enum sg_ptx_access access)
{
	struct run *run = t->run;
	const struct tlb_entry *e = &run->tlb[address / SG_PTX_TLB_GRAIN % SG_PTX_TLB_ENTRIES];
	uint64_t offset = address - e->first;

	t->spin_ps = 0;
	if (access != SG_PTX_STORE)
		run->result->load_bytes += bytes;
	if (access != SG_PTX_LOAD)
		run->result->store_bytes += bytes;
	if (__builtin_expect(e->rights > (access != SG_PTX_LOAD) && offset <= e->span &&
				     e->span - offset >= bytes - 1 && !(address & (bytes - 1)),
		    1))
		return e->host + offset;
	return sg_ptx_resolve_miss(t, i, address, bytes, access);
}

/* Returns the address within a buffer of `size` bytes at host. */
static inline __attribute__((always_inline)) void *resolve_buffer(struct thread *t,
	const struct insn *i, uint8_t *host, uint64_t size, uint64_t address, uint32_t bytes,
	enum sg_ptx_access access)
{
	if (__builtin_expect(
		    address < size && size - address >= bytes && !(address & (bytes - 1)), 1))
		return host + address;
	sg_ptx_fault_access(t, i,
		address & (bytes - 1) ? SG_PTX_MISALIGNED_ADDRESS : SG_PTX_ILLEGAL_ADDRESS, address,
		access, bytes);
	return NULL;
}

static inline __attribute__((always_inline)) void *resolve_space(struct thread *t,
	const struct insn *i, enum ptx_space space, uint64_t address, uint32_t bytes,
	enum sg_ptx_access access)
{
	if (space == SPACE_GENERIC) {
		switch (address >> 56) {
		case 0: space = SPACE_GLOBAL; break;
		case SG_PTX_WINDOW_SHARED >> 56: space = SPACE_SHARED; break;
		case SG_PTX_WINDOW_LOCAL >> 56: space = SPACE_LOCAL; break;
		case SG_PTX_WINDOW_PARAM >> 56: space = SPACE_PARAM; break;
		default: space = SPACE_GLOBAL; break;
		}
		if (space != SPACE_GLOBAL)
			address &= (1ull << 56) - 1;
	}
	switch (space) {
	case SPACE_SHARED:
		return resolve_buffer(
			t, i, t->block->shared, t->run->shared_bytes, address, bytes, access);
	case SPACE_LOCAL:
		return resolve_buffer(
			t, i, t->context->local, t->context->local_bytes, address, bytes, access);
	case SPACE_PARAM:
		if (access != SG_PTX_LOAD) {
			sg_ptx_fault_access(t, i, SG_PTX_ILLEGAL_ADDRESS, address, access, bytes);
			return NULL;
		}
		return resolve_buffer(t, i, (uint8_t *)(uintptr_t)t->run->launch->params,
			t->run->function->pub.param_bytes, address, bytes, access);
	default: return resolve_global(t, i, address, bytes, access);
	}
}
