/*
 * Refuses copies and memsets that reach beyond the end of an allocation. The driver does so for its
 * own cuMemAlloc memory. The backend's allocations are parts of larger mappings, where the driver
 * would let them write into the next allocation. cuda/signatures.h (TD_SPANS_) tells which ranges a
 * call names; this file interprets them. Only memory of the backend swap, and memory imported from
 * other processes (ipc.h), is checked. While a process has none, nothing is looked up.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda/types.h"
#include "preload/base/backend.h"

/*
 * -- these return true if the range reaches beyond its allocation; invalid arguments are left to
 * the driver to refuse; they keep errno, and take a lock only for a look-up --
 */

bool td_reach_flat(uint64_t address, uint64_t bytes);
bool td_reach_rows(
	uint64_t address, uint64_t pitch, unsigned element_bytes, uint64_t width, uint64_t rows);
bool td_reach_copy_2d(const void *copy);
bool td_reach_copy_3d(const void *copy);
bool td_reach_set(const void *set);
bool td_reach_node(const void *params);
/* ret_fail: receives the index of that copy, as the parameter of the call does, or NULL. */
bool td_reach_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes,
	size_t count, size_t *ret_fail);
bool td_reach_batch_3d(size_t count, const void *ops, size_t *ret_fail);

/*
 * Returns the error that the driver would give for such a call. CUDA_SUCCESS: the driver should be
 * called and will refuse. waits: whether the call waits for its work. While a stream captures, a
 * driver may refuse such a call before it checks memory, and end the capture. kind: as for
 * td_gate_enter.
 */
CUresult td_reach_refuse(void *stream, uint32_t kind, bool waits);

#define TD_FLAT(address, bytes) td_reach_flat(address, bytes)
#define TD_ROWS(address, pitch, element_bytes, width, rows)                                        \
	td_reach_rows(address, pitch, element_bytes, width, rows)
#define TD_COPY_2D(copy)                       td_reach_copy_2d(copy)
#define TD_COPY_3D(copy)                       td_reach_copy_3d(copy)
#define TD_SET(set)                            td_reach_set(set)
#define TD_NODE(params)                        td_reach_node(params)
#define TD_BATCH(to, from, bytes, count, fail) td_reach_batch(to, from, bytes, count, fail)
#define TD_BATCH_3D(count, ops, fail)          td_reach_batch_3d(count, ops, fail)

/* For a call whose parameters are in scope. Compiled away for a call that names no memory. */
#define TD_REACHES(symbol)                                                                         \
	(!(__builtin_constant_p(TD_SPANS_##symbol) && !(TD_SPANS_##symbol)) &&                     \
		atomic_load_explicit(&td_reach_begun, memory_order_relaxed) && TD_SPANS_##symbol)
