/*
 * The driver of a program of the model: it counts memory, mappings and contexts, copies take a
 * while, and nothing is computed.
 */
#include <string.h>

#include "parts.h"

#include "base/time.h"
#include "preload/context/drain.h"
#include "preload/driver/driver.h"
#include "preload/driver/real.h"
#include "preload/rehome/rehome.h"

#define MIB           (1ull << 20)
#define GRANULE       (2 * MIB)
#define MEMORIES      512
#define MAPS          512
#define CONTEXT_BYTES MIB
#define CONTEXT(gpu)  ((void *)(uintptr_t)(0x1000 + (gpu)))

struct td_real td_real;
const struct td_real *td_true = &td_real;

/* Nobody moves to another GPU here. */
void td_rehome_begin(void)
{
}

void td_rehome_end(void)
{
}

CUdevice td_rehome_device(CUdevice device)
{
	return device;
}

static struct {
	uint64_t bytes;
	int gpu; /* -1: the host's */
	enum quota_memory memory;
	bool released;
	unsigned maps;
} memories[MEMORIES];
static struct {
	uint64_t address;
	unsigned memory;
} maps[MAPS];
static bool has_context[QUOTA_GPUS];

static void put(unsigned i)
{
	if (memories[i].maps || !memories[i].released)
		return;
	if (memories[i].gpu >= 0)
		quota_world->give(
			quota_self, memories[i].gpu, memories[i].bytes, memories[i].memory);
	memories[i].bytes = 0;
}

static CUresult make(
	CUmemGenericAllocationHandle *ret, size_t bytes, int gpu, enum quota_memory memory)
{
	unsigned i = 0;

	quota_preempt();
	while (i < MEMORIES && memories[i].bytes)
		i++;
	if (i == MEMORIES || (gpu >= 0 && quota_world->take(quota_self, gpu, bytes, memory)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	memories[i].bytes = bytes;
	memories[i].gpu = gpu;
	memories[i].memory = memory;
	memories[i].released = false;
	memories[i].maps = 0;
	*ret = i + 1;
	return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *ret, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	(void)flags;
	return make(ret, bytes,
		prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1,
		QUOTA_ON_DEVICE);
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
	quota_preempt();
	memories[handle - 1].released = true;
	put((unsigned)handle - 1);
	return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	unsigned i = 0;

	(void)bytes;
	(void)offset;
	(void)flags;
	while (i < MAPS && maps[i].address)
		i++;
	if (i == MAPS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	maps[i].address = address;
	maps[i].memory = (unsigned)handle - 1;
	memories[handle - 1].maps++;
	return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr address, size_t bytes)
{
	(void)bytes;
	quota_preempt();
	for (unsigned i = 0; i < MAPS; i++) {
		if (maps[i].address != address)
			continue;
		maps[i].address = 0;
		memories[maps[i].memory].maps--;
		put(maps[i].memory);
		return CUDA_SUCCESS;
	}
	quota_world->broken(quota_self, "what is not mapped is unmapped");
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_access(
	CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	(void)address;
	(void)bytes;
	(void)access;
	(void)count;
	return CUDA_SUCCESS;
}

static uint64_t next_address = 1ull << 40;

static CUresult reserve(
	CUdeviceptr *ret, size_t bytes, size_t align, CUdeviceptr at, unsigned long long flags)
{
	(void)align;
	(void)at;
	(void)flags;
	*ret = next_address;
	next_address += (bytes + GRANULE - 1) / GRANULE * GRANULE + GRANULE;
	return CUDA_SUCCESS;
}

static CUresult unreserve(CUdeviceptr address, size_t bytes)
{
	(void)address;
	(void)bytes;
	return CUDA_SUCCESS;
}

static CUresult copy_within(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	(void)to;
	(void)from;
	(void)bytes;
	(void)stream;
	return CUDA_SUCCESS;
}

static CUresult copy_out(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	(void)to;
	return copy_within(0, from, bytes, stream);
}

static CUresult copy_in(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	(void)from;
	return copy_within(to, 0, bytes, stream);
}

static CUresult new_event(CUevent *ret, unsigned flags)
{
	(void)flags;
	*ret = (CUevent)16;
	return CUDA_SUCCESS;
}

static CUresult end_event(CUevent event)
{
	(void)event;
	return CUDA_SUCCESS;
}

static CUresult record(CUevent event, CUstream stream)
{
	(void)event;
	(void)stream;
	return CUDA_SUCCESS;
}

static CUresult await_event(CUevent event)
{
	(void)event;
	quota_wait_ns(TD_NS_PER_MS);
	return CUDA_SUCCESS;
}

static CUresult await_stream(CUstream stream)
{
	(void)stream;
	quota_wait_ns(TD_NS_PER_MS);
	return CUDA_SUCCESS;
}

static CUresult new_stream(CUstream *ret, unsigned flags)
{
	(void)flags;
	*ret = (CUstream)16;
	return CUDA_SUCCESS;
}

static CUresult current_device(CUdevice *ret)
{
	*ret = *quota_world->current();
	return *ret < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

static CUresult current_context(CUcontext *ret)
{
	*ret = *quota_world->current() < 0 ? NULL : CONTEXT(*quota_world->current());
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	*quota_world->current() = (int)((uintptr_t)context - (uintptr_t)CONTEXT(0));
	return CUDA_SUCCESS;
}

/* The agent has none of its own, and a thread pushes none but its own. */
static CUresult pop(CUcontext *ret)
{
	*ret = NULL;
	return CUDA_SUCCESS;
}

void quota_synchronize(void)
{
	while (quota_world->now_ns() < quota_busy_until_ns)
		quota_world->wait(quota_busy_until_ns, NULL, 0);
}

static CUresult synchronize(void)
{
	quota_synchronize();
	return CUDA_SUCCESS;
}

static CUresult granularity(size_t *ret, const CUmemAllocationProp *prop, int which)
{
	(void)prop;
	(void)which;
	*ret = GRANULE;
	return CUDA_SUCCESS;
}

static CUresult attribute(int *ret, int which, CUdevice device)
{
	(void)device;
	*ret = which == CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
	return CUDA_SUCCESS;
}

/* An allocation on the model's devices takes exactly the requested bytes. */
static CUresult make_mapped(CUdeviceptr *ret, size_t bytes, enum quota_memory memory)
{
	CUmemGenericAllocationHandle handle;
	CUresult r = make(&handle, bytes, *quota_world->current(), memory);

	if (r)
		return r;
	(void)reserve(ret, bytes, 0, 0, 0);
	r = map(*ret, bytes, 0, handle, 0);
	(void)release(handle);
	return r;
}

static CUresult allocate(CUdeviceptr *ret, size_t bytes)
{
	return make_mapped(ret, bytes, QUOTA_ON_DEVICE);
}

static CUresult allocate_managed(CUdeviceptr *ret, size_t bytes, unsigned flags)
{
	(void)flags;
	return make_mapped(ret, bytes, QUOTA_PAGED);
}

static CUresult deallocate(CUdeviceptr address)
{
	quota_synchronize();
	return unmap(address, 0);
}

static int driver_current(void **ret)
{
	CUcontext context;

	(void)current_context(&context);
	*ret = context;
	return 0;
}

static int driver_pop(void **ret)
{
	*ret = NULL;
	return 0;
}

static int driver_push(void *context)
{
	return push(context);
}

static int driver_device(int *ret)
{
	return current_device(ret);
}

static int driver_uuid(uint8_t uuid[16], int device)
{
	memset(uuid, device + 1, 16);
	return 0;
}

static int driver_name(char *name, int len, int device)
{
	(void)device;
	strncpy(name, "model", (size_t)len);
	return 0;
}

static int driver_total(uint64_t *ret, int device)
{
	(void)device;
	*ret = quota_world->gpu_bytes;
	return 0;
}

static int driver_info(uint64_t *ret_free, uint64_t *ret_total)
{
	int gpu = *quota_world->current();

	*ret_total = quota_world->gpu_bytes;
	*ret_free = gpu < 0 ? 0 : quota_world->gpu_bytes - quota_world->used(gpu);
	return gpu < 0;
}

static int driver_mode(int *mode)
{
	*mode = 0;
	return 0;
}

static int driver_capturing(void *stream, int *ret)
{
	(void)stream;
	*ret = 0;
	return 0;
}

static const struct td_driver driver_table = {
	.ctx_get_current = driver_current,
	.ctx_push_current = driver_push,
	.ctx_pop_current = driver_pop,
	.ctx_get_device = driver_device,
	.device_get_uuid = driver_uuid,
	.device_get_name = driver_name,
	.device_total_mem = driver_total,
	.mem_get_info = driver_info,
	.thread_exchange_capture_mode = driver_mode,
	.stream_is_capturing = driver_capturing,
};

/* -- the drain -- */

static struct {
	uint64_t ticket, done_ns;
} drain;

/* Nothing captures here, nor is anything freed in stream order. */
void td_drain_set_after(void (*then)(void))
{
	(void)then;
}

bool td_drain_is_idle(void)
{
	return quota_world->now_ns() >= quota_busy_until_ns;
}

uint64_t td_drain_begin(void)
{
	drain.done_ns = quota_busy_until_ns;
	return ++drain.ticket;
}

bool td_drain_is_done(uint64_t ticket)
{
	return quota_world->now_ns() >= drain.done_ns || ticket < drain.ticket;
}

bool td_drain_is_busy(void)
{
	return !td_drain_is_done(drain.ticket);
}

void quota_fill_driver(void)
{
	td_real.cuMemAddressReserve = reserve;
	td_real.cuMemAddressFree = unreserve;
	td_real.cuMemCreate = create;
	td_real.cuMemRelease = release;
	td_real.cuMemMap = map;
	td_real.cuMemUnmap = unmap;
	td_real.cuMemSetAccess = set_access;
	td_real.cuMemcpyDtoDAsync_v2 = copy_within;
	td_real.cuMemcpyDtoHAsync_v2 = copy_out;
	td_real.cuMemcpyHtoDAsync_v2 = copy_in;
	td_real.cuEventCreate = new_event;
	td_real.cuEventDestroy_v2 = end_event;
	td_real.cuEventRecord = record;
	td_real.cuEventSynchronize = await_event;
	td_real.cuStreamSynchronize = await_stream;
	td_real.cuStreamCreate = new_stream;
	td_real.cuCtxGetDevice = current_device;
	td_real.cuCtxGetCurrent = current_context;
	td_real.cuCtxPushCurrent_v2 = push;
	td_real.cuCtxPopCurrent_v2 = pop;
	td_real.cuCtxSynchronize = synchronize;
	td_real.cuMemGetAllocationGranularity = granularity;
	td_real.cuDeviceGetAttribute = attribute;
	td_real.cuMemAlloc_v2 = allocate;
	td_real.cuMemAllocManaged = allocate_managed;
	td_real.cuMemFree_v2 = deallocate;
	td_driver_set(&driver_table);
}

bool quota_make_context(int gpu)
{
	if (!has_context[gpu] &&
		quota_world->take(quota_self, gpu, CONTEXT_BYTES, QUOTA_OF_CONTEXT))
		return false;
	has_context[gpu] = true;
	return true;
}

uint64_t quota_reserve(uint64_t bytes)
{
	CUdeviceptr address;

	(void)reserve(&address, bytes, 0, 0, 0);
	return address;
}
