/* Allocates pinned host memory; see arena.h. */
#include "preload/memory/arena.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/parse.h"
#include "preload/base/settings.h"
#include "preload/driver/real.h"

#define PORTABLE 1u /* CU_MEMHOSTREGISTER_PORTABLE: for all contexts */

uint64_t td_arena_limit(void)
{
	static _Atomic uint64_t known; /* the limit plus 1; 0: not read yet */
	uint64_t limit = atomic_load_explicit(&known, memory_order_relaxed), whole;

	if (limit)
		return limit - 1;
	whole = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	if (!*td_settings.host_limit || td_parse_size(td_settings.host_limit, whole, &limit, NULL))
		limit = UINT64_MAX;
	else
		limit++;
	atomic_store_explicit(&known, limit, memory_order_relaxed);
	return limit - 1;
}

void *td_arena_new(uint64_t bytes)
{
	void *arena;

	arena = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED)
		return NULL;
	/*
	 * After a fork, copy-on-write must not give the parent other pages than those that the GPU
	 * writes.
	 */
	(void)madvise(arena, bytes, MADV_DONTFORK);
	if (!td_real.cuMemHostRegister_v2 || td_real.cuMemHostRegister_v2(arena, bytes, PORTABLE)) {
		(void)munmap(arena, bytes);
		return NULL;
	}
	return arena;
}

void td_arena_free(void *arena, uint64_t bytes)
{
	if (!arena)
		return;
	/* Fails harmlessly if the pinning ended with its context. */
	(void)td_real.cuMemHostUnregister(arena);
	(void)munmap(arena, bytes);
}
