/* Maps, copies and unmaps chunks; see chunk.h. */
#include "preload/memory/chunk.h"

#include <stddef.h>

#include "preload/driver/real.h"
#include "preload/link/host.h"
#include "preload/memory/arena.h"

#define GRANULARITY_GUESS (2u << 20)
#define POSIX_FD          1 /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

#define DEVICES_MAX 64
/*
 * The devices that may access each device's memory: one word for each device, with one bit for each
 * other device.
 */
static _Atomic uint64_t peers_of[DEVICES_MAX];

/*
 * The handle types with which chunks of device memory are created, so that they can be passed to
 * other processes. It becomes 0 if the driver or the container refuses chunks with handles, or with
 * handles and RDMA together.
 */
static _Atomic int handle_types = POSIX_FD;

/* Should memory be created for RDMA? Only such memory can be registered for it later. */
static bool is_for_rdma(CUdevice device)
{
	int capable = 0;

	return td_true->cuDeviceGetAttribute &&
	       !td_true->cuDeviceGetAttribute(&capable,
		       CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device) &&
	       capable;
}

static CUmemAllocationProp on_device(CUdevice device)
{
	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = handle_types,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
		.allocFlags.gpuDirectRDMACapable = handle_types && is_for_rdma(device)};
}

/* Returns properties for host memory on the NUMA node nearest to the device. */
static CUmemAllocationProp on_host(CUdevice device)
{
	int node = 0;

	if (!td_true->cuDeviceGetAttribute ||
		td_true->cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device) ||
		node < 0)
		node = 0;
	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, node}};
}

uint64_t td_chunk_granularity(CUdevice device)
{
	const CUmemAllocationProp prop = on_device(device);
	size_t bytes = 0;

	if (td_true->cuMemGetAllocationGranularity(&bytes, &prop, 0) || !bytes)
		bytes = GRANULARITY_GUESS;
	return bytes;
}

static CUmemAccessDesc access_of(CUdevice device, bool open)
{
	return (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, device},
		open ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE};
}

uint64_t td_chunk_peers(CUdevice device)
{
	return device >= 0 && device < DEVICES_MAX ? peers_of[device] : 0;
}

static int map_at(
	uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle handle, CUdevice device)
{
	CUmemAccessDesc access[1 + DEVICES_MAX] = {access_of(device, true)};
	uint64_t peers = td_chunk_peers(device);
	int r = td_true->cuMemMap(address, bytes, 0, handle, 0);
	size_t n = 1;

	if (r)
		return r;
	for (CUdevice peer = 0; peer < DEVICES_MAX; peer++)
		if (peers >> peer & 1)
			access[n++] = access_of(peer, true);
	r = td_true->cuMemSetAccess(address, bytes, access, n);
	if (r)
		(void)td_true->cuMemUnmap(address, bytes);
	return r;
}

void td_chunk_peer(CUdevice device, CUdevice peer, bool open)
{
	if (device < 0 || device >= DEVICES_MAX || peer < 0 || peer >= DEVICES_MAX)
		return;
	if (open)
		peers_of[device] |= 1ull << peer;
	else
		peers_of[device] &= ~(1ull << peer);
}

int td_chunk_open(const struct td_chunk *chunk, CUdevice peer, bool open)
{
	const CUmemAccessDesc access = access_of(peer, open);

	if (chunk->place == TD_PLACE_FRESH || chunk->place == TD_PLACE_ARENA || chunk->loose)
		return CUDA_SUCCESS;
	return td_true->cuMemSetAccess(chunk->address, chunk->bytes, &access, 1);
}

void td_chunk_forked(void)
{
	for (CUdevice device = 0; device < DEVICES_MAX; device++)
		peers_of[device] = 0;
}

static int map(struct td_chunk *chunk, CUdevice device, const CUmemAllocationProp *prop)
{
	CUmemGenericAllocationHandle handle;
	int r = td_true->cuMemCreate(&handle, chunk->bytes, prop, 0);

	if (r)
		return r;
	r = map_at(chunk->address, chunk->bytes, handle, device);
	if (r)
		(void)td_true->cuMemRelease(handle);
	else
		chunk->handle = handle;
	return r;
}

int td_chunk_map(struct td_chunk *chunk, CUdevice device)
{
	CUmemAllocationProp prop = on_device(device);
	int r = map(chunk, device, &prop);

	/* If the driver refuses a chunk because of these properties, they are not tried again. */
	if (r && r != CUDA_ERROR_OUT_OF_MEMORY && prop.requestedHandleTypes) {
		prop.requestedHandleTypes = 0;
		prop.allocFlags.gpuDirectRDMACapable = 0;
		if (!map(chunk, device, &prop)) {
			handle_types = 0;
			r = CUDA_SUCCESS;
		}
	}
	return r;
}

bool td_chunk_has_handles(void)
{
	return handle_types != 0;
}

bool td_chunk_charge(struct td_chunk *chunk)
{
	if (!chunk->charged)
		chunk->charged = td_host_take(chunk->bytes, td_arena_limit());
	return chunk->charged;
}

void td_chunk_discharge(struct td_chunk *chunk)
{
	if (!chunk->charged || chunk->arena || chunk->hosted)
		return;
	td_host_give(chunk->bytes);
	chunk->charged = false;
}

static void set_hosted(struct td_chunk *chunk, bool hosted)
{
	chunk->hosted = hosted;
	td_chunk_discharge(chunk);
}

int td_chunk_map_host(struct td_chunk *chunk, CUdevice device)
{
	const CUmemAllocationProp prop = on_host(device);
	int r;

	if (!td_chunk_charge(chunk))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = map(chunk, device, &prop);
	set_hosted(chunk, !r);
	return r;
}

void td_chunk_unmap(struct td_chunk *chunk)
{
	if (!chunk->loose)
		(void)td_true->cuMemUnmap(chunk->address, chunk->bytes);
	(void)td_true->cuMemRelease(chunk->handle);
	chunk->loose = false;
	set_hosted(chunk, false);
}

int td_chunk_to_arena(struct td_chunk *chunk, CUstream stream)
{
	if (!chunk->arena && td_chunk_charge(chunk))
		chunk->arena = td_arena_new(chunk->bytes);
	if (!chunk->arena) {
		td_chunk_discharge(chunk);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return td_true->cuMemcpyDtoHAsync_v2(chunk->arena, chunk->address, chunk->bytes, stream);
}

int td_chunk_from_arena(const struct td_chunk *chunk, CUstream stream)
{
	return td_true->cuMemcpyHtoDAsync_v2(chunk->address, chunk->arena, chunk->bytes, stream);
}

/*
 * Maps new memory for an exchange. Returns 0, or a CUresult with nothing mapped. The handle is in
 * *ret.
 */
static int map_beside(const struct td_chunk *chunk, CUdevice device, struct td_exchange *ret)
{
	const CUmemAllocationProp prop = on_host(device);
	struct td_chunk next = {.bytes = chunk->bytes};
	int r = td_true->cuMemAddressReserve(&ret->beside, chunk->bytes, 0, 0, 0);

	if (r)
		return r;
	next.address = ret->beside;
	r = ret->to_host ? map(&next, device, &prop) : td_chunk_map(&next, device);
	if (r)
		(void)td_true->cuMemAddressFree(ret->beside, chunk->bytes);
	ret->handle = next.handle;
	return r;
}

int td_chunk_begin_exchange(
	struct td_chunk *chunk, CUdevice device, CUstream stream, struct td_exchange *ret)
{
	int r;

	*ret = (struct td_exchange){.to_host = chunk->place != TD_PLACE_HOST};
	if (ret->to_host && !td_chunk_charge(chunk))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = map_beside(chunk, device, ret);
	if (r) {
		td_chunk_discharge(chunk);
		return r;
	}
	chunk->hosted = true;
	r = td_true->cuMemcpyDtoDAsync_v2(ret->beside, chunk->address, chunk->bytes, stream);
	if (r)
		td_chunk_drop_exchange(chunk, ret);
	return r;
}

void td_chunk_drop_exchange(struct td_chunk *chunk, const struct td_exchange *exchange)
{
	(void)td_true->cuMemUnmap(exchange->beside, chunk->bytes);
	(void)td_true->cuMemRelease(exchange->handle);
	(void)td_true->cuMemAddressFree(exchange->beside, chunk->bytes);
	set_hosted(chunk, !exchange->to_host);
}

int td_chunk_tie(struct td_chunk *chunk, CUdevice device)
{
	int r = map_at(chunk->address, chunk->bytes, chunk->handle, device);

	chunk->loose = r != CUDA_SUCCESS;
	return r;
}

int td_chunk_end_exchange(
	struct td_chunk *chunk, CUdevice device, const struct td_exchange *exchange)
{
	CUmemGenericAllocationHandle other = exchange->handle;
	int r = td_true->cuMemUnmap(chunk->address, chunk->bytes);

	if (r) {
		td_chunk_drop_exchange(chunk, exchange);
		return r;
	}
	(void)td_true->cuMemUnmap(exchange->beside, chunk->bytes);
	(void)td_true->cuMemAddressFree(exchange->beside, chunk->bytes);
	r = map_at(chunk->address, chunk->bytes, exchange->handle, device);
	if (!r) {
		other = chunk->handle;
		chunk->handle = exchange->handle;
	} else {
		/* The old memory still exists, and was mapped here a moment ago. */
		(void)td_chunk_tie(chunk, device);
	}
	(void)td_true->cuMemRelease(other);
	set_hosted(chunk, exchange->to_host == !r);
	/* The arena is not needed, and would stay pinned for nothing. */
	if (chunk->hosted)
		td_chunk_drop_arena(chunk);
	return r;
}

bool td_chunk_may_be_on_host(CUdevice device)
{
	int may = 0;

	return td_true->cuDeviceGetAttribute &&
	       !td_true->cuDeviceGetAttribute(&may,
		       CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) &&
	       may;
}

void td_chunk_drop_arena(struct td_chunk *chunk)
{
	td_arena_free(chunk->arena, chunk->bytes);
	chunk->arena = NULL;
	td_chunk_discharge(chunk);
}

void td_chunk_free(struct td_chunk *chunk)
{
	if (chunk->place == TD_PLACE_DEVICE || chunk->place == TD_PLACE_HOST)
		td_chunk_unmap(chunk);
	td_chunk_drop_arena(chunk);
}
