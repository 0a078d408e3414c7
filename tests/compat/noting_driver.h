/*
 * A driver of every symbol that notes its callers, under the interposer that is linked in; and a
 * program's way of calling the functions that it looks up.
 */
#pragma once

#include "test.h"

#include <pthread.h>
#include <stdbool.h>

#include "cuda/objects.h"
#include "cuda/symbols.h"
#include "preload/agent/agent.h"
#include "preload/base/backend.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"
#include "preload/driver/real.h"
#include "preload/gate/gate.h"
#include "preload/link/client_internal.h"
#include "preload/outside/outside.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define MIB   (1ull << 20)
#define OK(r) CHECK_EQ(r, CUDA_SUCCESS)

/* -- the driver -- */

static _Atomic unsigned calls[TD_SYMBOL_N]; /* by the program's threads */
static _Atomic bool inside[TD_SYMBOL_N];    /* the last one came from within the gate */
static int refused = -1;                    /* a symbol that answers with an error */

static CUresult called(int symbol)
{
	if (td_marker_self && td_marker_self->internal)
		return CUDA_SUCCESS;
	calls[symbol]++;
	inside[symbol] = td_marker_self && td_marker_self->depth;
	return symbol == refused ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	static CUresult fake_##symbol TD_PARAMS_##symbol                                           \
	{                                                                                          \
		return called(TD_SYMBOL_##symbol);                                                 \
	}
#include "cuda/symbols.def"
#undef SYMBOL

static CUcontext current = (CUcontext)0x1000;
static _Atomic uint64_t next_address = 0x7000000000;
static uint64_t pool_bytes, graph_bytes;
static bool capturing, active = true;

/* In place of the fake of that name. */
#define ANSWER(symbol, ...)                                                                        \
	static CUresult answer_##symbol TD_PARAMS_##symbol                                         \
	{                                                                                          \
		CUresult r = called(TD_SYMBOL_##symbol);                                           \
		if (r)                                                                             \
			return r;                                                                  \
		__VA_ARGS__                                                                        \
		return CUDA_SUCCESS;                                                               \
	}
#define ANSWERS(X)                                                                                 \
	X(cuCtxGetCurrent, *a0 = current;)                                                         \
	X(cuCtxGetDevice, *a0 = 0;)                                                                \
	X(cuCtxCreate, *a0 = current = (CUcontext)0x2000;)                                         \
	X(cuCtxCreate_v2, *a0 = current = (CUcontext)0x2000;)                                      \
	X(cuCtxCreate_v3, *a0 = current = (CUcontext)0x2000;)                                      \
	X(cuCtxCreate_v4, *a0 = current = (CUcontext)0x2000;)                                      \
	X(cuCtxSetCurrent, current = a0;)                                                          \
	X(cuCtxPushCurrent, current = a0;)                                                         \
	X(cuCtxFromGreenCtx, *a0 = (CUcontext)0x2000;)                                             \
	X(cuCtxGetApiVersion, return CUDA_ERROR_INVALID_CONTEXT;)                                  \
	X(cuDevicePrimaryCtxGetState, *a2 = active;)                                               \
	X(cuDeviceTotalMem_v2, *a0 = 16384 * MIB;)                                                 \
	X(cuMemGetInfo_v2, *a0 = *a1 = 16384 * MIB;)                                               \
	X(cuStreamIsCapturing, *a1 = capturing;)                                                   \
	X(cuStreamGetDevice, *a1 = 0;)                                                             \
	X(cuMemAlloc_v2, *a0 = atomic_fetch_add(&next_address, 64 * MIB);)                         \
	X(cuMemAllocPitch_v2, *a0 = atomic_fetch_add(&next_address, 64 * MIB);)                    \
	X(cuMemAllocAsync, if (a0) *a0 = atomic_fetch_add(&next_address, 64 * MIB);                \
		pool_bytes += a1;)                                                                 \
	X(cuMemAllocAsync_ptsz, if (a0) *a0 = atomic_fetch_add(&next_address, 64 * MIB);           \
		pool_bytes += a1;)                                                                 \
	X(cuMemAllocFromPoolAsync, if (a0) *a0 = atomic_fetch_add(&next_address, 64 * MIB);        \
		pool_bytes += a1;)                                                                 \
	X(cuMemAllocFromPoolAsync_ptsz, if (a0) *a0 = atomic_fetch_add(&next_address, 64 * MIB);   \
		pool_bytes += a1;)                                                                 \
	X(cuMemGetAddressRange_v2, *a0 = a2; *a1 = 4 * MIB;)                                       \
	X(cuDeviceGetMemPool, *a0 = (void *)0x5000;)                                               \
	X(cuMemPoolGetAttribute, *(uint64_t *)a2 = pool_bytes;)                                    \
	X(cuDeviceGetGraphMemAttribute, *(uint64_t *)a2 = a1 ? graph_bytes : 0;)                   \
	X(cuGraphGetNodes, *a2 = 3;                                                                \
		if (a1) for (size_t i = 0; i < 3; i++) a1[i] = (void *)(0x6000 + i);)              \
	X(cuGraphNodeGetType, *a1 = a0 == (void *)0x6002 ? TD_NODE_ALLOC : TD_NODE_KERNEL;)        \
	X(cuGraphMemAllocNodeGetParams,                                                            \
		*(struct td_alloc_node *)a1 = (struct td_alloc_node){                              \
			.pool = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},                    \
			.bytes = 4 * MIB};)                                                        \
	X(cuGraphLaunch, graph_bytes = 4 * MIB;)                                                   \
	X(cuGraphLaunch_ptsz, graph_bytes = 4 * MIB;)                                              \
	X(cuGraphUpload, graph_bytes = 4 * MIB;)                                                   \
	X(cuGraphUpload_ptsz, graph_bytes = 4 * MIB;)                                              \
	X(cuDeviceGraphMemTrim, graph_bytes = 0;)                                                  \
	X(cuMemPoolTrimTo, pool_bytes = 0;)                                                        \
	X(cuGetProcAddress, *a1 = found(a0, a2, a3);)                                              \
	X(cuGetProcAddress_v2, *a1 = found(a0, a2, a3);)

static void *found(const char *name, int version, uint64_t flags)
{
	const struct td_symbol *row = td_symbol_find(name, version, flags);

	return row ? ((void **)&td_real)[row - td_symbols] : NULL;
}

ANSWERS(ANSWER)

CUresult cuGetProcAddress TD_PARAMS_cuGetProcAddress;
CUresult cuGetProcAddress_v2 TD_PARAMS_cuGetProcAddress_v2;

static void start(void)
{
	static bool started;

	if (started)
		return;
	started = true;
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds) td_real.symbol = fake_##symbol;
#include "cuda/symbols.def"
#undef SYMBOL
#define X(symbol, ...) td_real.symbol = answer_##symbol;
	ANSWERS(X)
#undef X
	td_driver_publish_real();
	CHECK_EQ(td_context_use(), 0);
	/* The thread has a slot from now on. */
	td_gate_leave(td_gate_enter(NULL, 0));
}

/* -- calling -- */

/* Returns what a program gets from the look-up. */
static void *got(int symbol)
{
	const struct td_symbol *row = &td_symbols[symbol];
	uint64_t flags = row->flavour == TD_FLAVOUR_PLAIN
				 ? 0
				 : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	char name[TD_SYMBOL_MAX] = "";
	void *ret = NULL;

	memcpy(name, row->symbol, row->name_len);
	OK(cuGetProcAddress_v2(name, &ret, row->since, flags, NULL));
	return ret;
}

#define VIA(symbol) ((CUresult(*) TD_PARAMS_##symbol)got(TD_SYMBOL_##symbol))

/*
 * Calls with zeros for all parameters: registers and stack hold as many as any function has,
 * including structs passed by value.
 */
static CUresult call_with_zeros(void *function)
{
	CUresult (*f)(long, long, long, long, long, long, long, long, long, long, long, long, long,
		long, long, long, long, long) = (CUresult(*)(long, long, long, long, long, long,
		long, long, long, long, long, long, long, long, long, long, long, long))function;

	return f(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

#define EXPECT(which, cond)                                                                        \
	do {                                                                                       \
		if (!(cond))                                                                       \
			test_fail(__FILE__, __LINE__, "%s: %s", td_symbols[which].symbol, #cond);  \
	} while (0)

static uint64_t counted(void)
{
	struct td_memory_stats stats;

	td_agent_stats(0, &stats);
	CHECK(stats.resident_bytes == stats.demanded_bytes);
	return stats.demanded_bytes;
}

static uint64_t launches(void)
{
	return td_marker_launches();
}
