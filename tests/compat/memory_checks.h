/*
 * Every way to memory, for every_symbol.c, in addition to its checks of whole classes: memory
 * counts unless the driver refuses it, memory that was given back no longer counts, and the program
 * is told its share.
 */
#pragma once

#include "noting_driver.h"

/* -- memory -- */

static unsigned address32;
static CUdeviceptr address;
static CUmemGenericAllocationHandle handle;
static void *object, *pool = (void *)0x5000;
static size_t pitch;
static unsigned pitch32;
static const CUmemAllocationProp on_device = {.type = 1, .location = {1, 0}},
				 on_host = {.type = 1, .location = {3, 0}};
static const struct td_array2d flat = {1024, 512, 0x20, 1};
static const struct td_array2d_v1 flat_v1 = {1024, 512, 0x20, 1};
static const struct td_array3d box = {1024, 64, 8, 0x20, 1, 0},
			       deferred = {1024, 64, 8, 0x20, 1, TD_ARRAY3D_DEFERRED};
static const struct td_array3d_v1 box_v1 = {1024, 64, 8, 0x20, 1, 0};
static const struct td_external_memory foreign = {.type = 1, .bytes = 2 * MIB};

/*
 * `take` counts so many bytes unless the driver refuses; `give` ends that, unless the driver
 * refuses.
 */
#define MEMORY(name, bytes, take_symbol, take_args, give_symbol, give_args)                        \
	static void name(int symbol)                                                               \
	{                                                                                          \
		handle = 0x8000;                                                                   \
		object = (void *)0x9000;                                                           \
		address32 = 0xa000;                                                                \
		address = 0xb000;                                                                  \
		refused = TD_SYMBOL_##take_symbol;                                                 \
		EXPECT(symbol, VIA(take_symbol) take_args == CUDA_ERROR_UNKNOWN);                  \
		EXPECT(symbol, counted() == 0);                                                    \
		refused = -1;                                                                      \
		OK(VIA(take_symbol) take_args);                                                    \
		EXPECT(symbol, counted() == (bytes));                                              \
		refused = TD_SYMBOL_##give_symbol;                                                 \
		EXPECT(symbol, VIA(give_symbol) give_args == CUDA_ERROR_UNKNOWN);                  \
		EXPECT(symbol, counted() == (bytes));                                              \
		refused = -1;                                                                      \
		OK(VIA(give_symbol) give_args);                                                    \
		EXPECT(symbol, counted() == 0);                                                    \
	}

MEMORY(managed, 3 * MIB, cuMemAllocManaged, (&address, 3 * MIB, 1), cuMemFree_v2, (address))
MEMORY(legacy, 4096, cuMemAlloc, (&address32, 4096), cuMemFree, (address32))
MEMORY(legacy_pitch, 512 * 4, cuMemAllocPitch, (&address32, &pitch32, 100, 4, 4), cuMemFree,
	(address32))
MEMORY(vmm, 4 * MIB, cuMemCreate, (&handle, 4 * MIB, &on_device, 0), cuMemRelease, (handle))
MEMORY(host_vmm, 0, cuMemCreate, (&handle, 4 * MIB, &on_host, 0), cuMemRelease, (handle))
MEMORY(multicast, 0, cuMulticastCreate, (&handle, NULL), cuMemRelease, (handle))
MEMORY(array, 2 * MIB, cuArrayCreate_v2, (&object, &flat), cuArrayDestroy, (object))
MEMORY(array_v1, 2 * MIB, cuArrayCreate, (&object, &flat_v1), cuArrayDestroy, (object))
MEMORY(array3d, 2 * MIB, cuArray3DCreate_v2, (&object, &box), cuArrayDestroy, (object))
MEMORY(array3d_v1, 2 * MIB, cuArray3DCreate, (&object, &box_v1), cuArrayDestroy, (object))
MEMORY(array_deferred, 0, cuArray3DCreate_v2, (&object, &deferred), cuArrayDestroy, (object))
MEMORY(mipmap, 2 * MIB + 512 * 32 * 4 * 4, cuMipmappedArrayCreate, (&object, &box, 2),
	cuMipmappedArrayDestroy, (object))
MEMORY(external, 2 * MIB, cuImportExternalMemory, (&object, &foreign), cuDestroyExternalMemory,
	(object))

/* The backend also drops memory that the driver could not free: the context has failed then. */
static void plain_memory(int symbol)
{
	refused = TD_SYMBOL_cuMemAlloc_v2;
	EXPECT(symbol, VIA(cuMemAlloc_v2)(&address, MIB) == CUDA_ERROR_UNKNOWN);
	EXPECT(symbol, counted() == 0);
	refused = -1;
	OK(VIA(cuMemAlloc_v2)(&address, MIB));
	EXPECT(symbol, counted() == MIB);
	OK(VIA(cuMemFree_v2)(address));
	EXPECT(symbol, counted() == 0);
	OK(VIA(cuMemAllocPitch_v2)(&address, &pitch, 1000, 1024, 4));
	EXPECT(symbol, counted() == MIB && pitch == 1024);
	OK(VIA(cuMemFreeAsync)(address, NULL));
	EXPECT(symbol, counted() == 0);
}

/* Exportable memory may live on elsewhere. */
static void created(int symbol)
{
	const CUmemAllocationProp prop = {.type = 1, .requestedHandleTypes = 1, .location = {1, 0}};
	struct td_memory_stats before, after;

	vmm(symbol);
	handle = 0x8000;
	td_agent_stats(0, &before);
	OK(VIA(cuMemCreate)(&handle, 4 * MIB, &prop, 0));
	EXPECT(symbol, counted() == 4 * MIB);
	OK(VIA(cuMemRelease)(handle));
	td_agent_stats(0, &after);
	EXPECT(symbol, counted() == 0 && after.crossed_bytes == before.crossed_bytes + 4 * MIB);
}

static void mapped(int symbol)
{
	handle = 0x8000;
	OK(VIA(cuMemCreate)(&handle, 4 * MIB, &on_device, 0));
	OK(VIA(cuMemMap)(0x40000000, 4 * MIB, 0, handle, 0));
	OK(VIA(cuMemRelease)(handle));
	EXPECT(symbol, counted() == 4 * MIB);
	refused = TD_SYMBOL_cuMemUnmap;
	EXPECT(symbol, VIA(cuMemUnmap)(0x40000000, 4 * MIB) == CUDA_ERROR_UNKNOWN);
	EXPECT(symbol, counted() == 4 * MIB);
	refused = -1;
	OK(VIA(cuMemUnmap)(0x40000000, 4 * MIB));
	EXPECT(symbol, counted() == 0);
}

/*
 * Importing counts nothing; the memory counts once, as much as its largest mapping, until handle
 * and mappings are gone.
 */
static void imported(int symbol)
{
	struct td_memory_stats stats;
	uint64_t crossed;

	td_agent_stats(0, &stats);
	crossed = stats.crossed_bytes;
	handle = 0x8000;
	refused = symbol;
	EXPECT(symbol, VIA(cuMemImportFromShareableHandle)(&handle, NULL, 1) == CUDA_ERROR_UNKNOWN);
	refused = -1;
	OK(VIA(cuMemImportFromShareableHandle)(&handle, NULL, 1));
	/* How much it is a mapping tells; until then it may be anything. */
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_IMPORTED) > 1ull << 37);
	td_agent_stats(0, &stats);
	EXPECT(symbol, counted() == 0 && stats.crossed_bytes == crossed);
	OK(VIA(cuMemMap)(0x40000000, 4 * MIB, 0, handle, 0));
	OK(VIA(cuMemMap)(0x50000000, 4 * MIB, 0, handle, 0));
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_IMPORTED) == 4 * MIB);
	td_agent_stats(0, &stats);
	EXPECT(symbol, counted() == 0 && stats.imported_bytes == 4 * MIB);
	EXPECT(symbol, stats.crossed_bytes == crossed + 4 * MIB);
	refused = TD_SYMBOL_cuMemRelease;
	EXPECT(symbol, VIA(cuMemRelease)(handle) == CUDA_ERROR_UNKNOWN);
	refused = -1;
	OK(VIA(cuMemRelease)(handle));
	OK(VIA(cuMemUnmap)(0x40000000, 4 * MIB));
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_IMPORTED) == 4 * MIB);
	OK(VIA(cuMemUnmap)(0x50000000, 4 * MIB));
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_IMPORTED) == 0);
}

/* Memory of another process's pool: NVML shows its size, until it is freed. */
static void imported_at(int symbol)
{
	CUdeviceptr at = 0x77000000;

	refused = symbol;
	EXPECT(symbol, VIA(cuMemPoolImportPointer)(&at, NULL, NULL) == CUDA_ERROR_UNKNOWN);
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_IMPORTED) == 0);
	refused = -1;
	OK(VIA(cuMemPoolImportPointer)(&at, NULL, NULL));
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_IMPORTED) > 1ull << 37 && counted() == 0);
	OK(VIA(cuMemFreeAsync)(at, NULL));
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_IMPORTED) == 0);
}

/* Nothing of it yet: what its maker lets go of is whose pool that is. */
static void imported_pool(int symbol)
{
	void *made = NULL;

	refused = symbol;
	EXPECT(symbol,
		VIA(cuMemPoolImportFromShareableHandle)(&made, NULL, 1, 0) == CUDA_ERROR_UNKNOWN);
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_IMPORTED) == 0);
	refused = -1;
	made = (void *)0x9990;
	OK(VIA(cuMemPoolImportFromShareableHandle)(&made, NULL, 1, 0));
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_IMPORTED) > 1ull << 37 && counted() == 0);
	refused = TD_SYMBOL_cuMemPoolDestroy;
	EXPECT(symbol, VIA(cuMemPoolDestroy)(made) == CUDA_ERROR_UNKNOWN);
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_IMPORTED) > 1ull << 37);
	refused = -1;
	OK(VIA(cuMemPoolDestroy)(made));
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_IMPORTED) == 0);
}

/* All forms are inside the gate, and count the pool's growth. */
#define POOLED(name, symbol_, args, free_symbol)                                                   \
	static void name(int symbol)                                                               \
	{                                                                                          \
		uint64_t before = launches();                                                      \
		refused = TD_SYMBOL_##symbol_;                                                     \
		EXPECT(symbol, VIA(symbol_) args == CUDA_ERROR_UNKNOWN);                           \
		EXPECT(symbol, counted() == 0);                                                    \
		refused = -1;                                                                      \
		OK(VIA(symbol_) args);                                                             \
		EXPECT(symbol, inside[TD_SYMBOL_##symbol_]);                                       \
		EXPECT(symbol, launches() == before + 2);                                          \
		EXPECT(symbol, counted() == 6 * MIB);                                              \
		OK(VIA(free_symbol)(address, NULL));                                               \
		EXPECT(symbol, inside[TD_SYMBOL_##free_symbol]);                                   \
		EXPECT(symbol, launches() == before + 3);                                          \
		EXPECT(symbol, counted() == 6 * MIB);                                              \
		OK(VIA(cuMemPoolTrimTo)(pool, 0));                                                 \
		EXPECT(symbol, counted() == 0);                                                    \
		waits_at_a_closed_gate(TD_SYMBOL_##symbol_, &calls[TD_SYMBOL_##symbol_]);          \
		waits_at_a_closed_gate(TD_SYMBOL_##free_symbol, &calls[TD_SYMBOL_##free_symbol]);  \
		pool_bytes = 0;                                                                    \
		td_outside_refresh();                                                              \
	}

POOLED(pooled, cuMemAllocAsync, (&address, 6 * MIB, NULL), cuMemFreeAsync)
POOLED(pooled_ptsz, cuMemAllocAsync_ptsz, (&address, 6 * MIB, NULL), cuMemFreeAsync_ptsz)
POOLED(from_pool, cuMemAllocFromPoolAsync, (&address, 6 * MIB, pool, NULL), cuMemFreeAsync)
POOLED(from_pool_ptsz, cuMemAllocFromPoolAsync_ptsz, (&address, 6 * MIB, pool, NULL),
	cuMemFreeAsync_ptsz)

static void pool_destroyed(int symbol)
{
	OK(VIA(cuMemAllocAsync)(&address, 2 * MIB, NULL));
	pool_bytes = 6 * MIB;
	td_outside_refresh();
	EXPECT(symbol, counted() == 6 * MIB);
	refused = symbol;
	EXPECT(symbol, VIA(cuMemPoolDestroy)(pool) == CUDA_ERROR_UNKNOWN);
	EXPECT(symbol, counted() == 6 * MIB);
	refused = -1;
	OK(VIA(cuMemPoolDestroy)(pool));
	EXPECT(symbol, counted() == 2 * MIB);
	pool_bytes = 0;
	OK(VIA(cuMemFreeAsync)(address, NULL));
	EXPECT(symbol, counted() == 0);
}

static void shared_by_ipc(int symbol)
{
	address = 0xb000;
	OK(symbol == TD_SYMBOL_cuIpcOpenMemHandle
			? VIA(cuIpcOpenMemHandle)(&address, (CUipcMemHandle){{0}}, 1)
			: VIA(cuIpcOpenMemHandle_v2)(&address, (CUipcMemHandle){{0}}, 1));
	EXPECT(symbol, counted() == 0);
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_OPENED) == 4 * MIB);
	OK(VIA(cuIpcCloseMemHandle)(address));
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_OPENED) == 0);
}

static void handed_out(int symbol)
{
	CUipcMemHandle given;

	address = 0xb000;
	for (unsigned i = 0; i < 2; i++)
		OK(VIA(cuIpcGetMemHandle)(&given, address));
	EXPECT(symbol, counted() == 0);
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_HANDED) == 4 * MIB);
	refused = TD_SYMBOL_cuMemFree_v2;
	EXPECT(symbol, VIA(cuMemFree_v2)(address) == CUDA_ERROR_UNKNOWN);
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_HANDED) == 4 * MIB);
	refused = -1;
	OK(VIA(cuMemFree_v2)(address));
	EXPECT(symbol, td_outside_bytes(0, TD_OUTSIDE_HANDED) == 0);
}

/* -- what is told -- */

static void tells_the_programs_share(int symbol)
{
	size_t free_bytes = 0, total = 0;
	unsigned free32 = 0, total32 = 0;

	OK(VIA(cuMemAlloc_v2)(&address, MIB));
	OK(VIA(cuMemGetInfo_v2)(&free_bytes, &total));
	EXPECT(symbol, total == 16384 * MIB && free_bytes == total - MIB);
	OK(VIA(cuMemGetInfo)(&free32, &total32));
	EXPECT(symbol, total32 == UINT32_MAX && free32 == UINT32_MAX);
	OK(VIA(cuDeviceTotalMem_v2)(&total, 0));
	EXPECT(symbol, total == 16384 * MIB);
	OK(VIA(cuDeviceTotalMem)(&total32, 0));
	EXPECT(symbol, total32 == UINT32_MAX);
	OK(VIA(cuMemFree_v2)(address));
	EXPECT(symbol, calls[symbol]);
}

static void tells_the_programs_range(int symbol)
{
	unsigned reached = calls[symbol];
	CUdeviceptr base = 0;
	size_t bytes = 0;

	OK(VIA(cuMemAlloc_v2)(&address, MIB));
	OK(VIA(cuMemGetAddressRange_v2)(&base, &bytes, address + 4096));
	EXPECT(symbol, base == address && bytes == MIB && calls[symbol] == reached);
	OK(VIA(cuMemFree_v2)(address));
	OK(VIA(cuMemGetAddressRange_v2)(&base, &bytes, address));
	EXPECT(symbol, calls[symbol] == reached + 1);
}
