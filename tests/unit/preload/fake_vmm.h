/*
 * A driver's virtual memory, copies and events, for the backend swap. It is as strict as the
 * driver, and one of its calls can be made to fail. Copies happen when they are waited for, so that
 * memory which is released too early is noticed. Fills td_real.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/types.h"
#include "preload/driver/real.h"

#define VMM_GRANULE 4096u
#define VMM_MAX     512

struct vmm_memory {
	char *data; /* NULL: free */
	uint64_t bytes;
	bool host, released;
	unsigned maps;
};

struct vmm_span {
	uint64_t address, bytes; /* bytes 0: free */
	unsigned memory;         /* of a mapping */
	bool open;
};

struct vmm_copy {
	uint64_t to, from, bytes; /* addresses of the device */
	void *host_to;
	const void *host_from;
};

static struct {
	struct vmm_memory memory[VMM_MAX];
	struct vmm_span reserved[VMM_MAX], mapped[VMM_MAX];
	struct vmm_copy copies[VMM_MAX];
	uint64_t begun, done; /* copies, of which the last VMM_MAX are kept */
	uint64_t marks[8];    /* of events: copies before them */
	uint64_t next_address, device_bytes, device_most, host_bytes, host_most;
	unsigned events;                       /* those that there are */
	unsigned calls, fail_first, fail_last; /* calls are counted from 1 */
	unsigned broken; /* rules broken; what the driver would have done is unknown then */
} vmm;

static bool vmm_refuses(void)
{
	vmm.calls++;
	return vmm.calls >= vmm.fail_first && vmm.calls <= vmm.fail_last;
}

static struct vmm_span *vmm_find(struct vmm_span *spans, uint64_t address)
{
	for (unsigned i = 0; i < VMM_MAX; i++)
		if (address - spans[i].address < spans[i].bytes)
			return &spans[i];
	return NULL;
}

static struct vmm_span *vmm_new(struct vmm_span *spans, struct vmm_span span)
{
	for (unsigned i = 0; i < VMM_MAX; i++) {
		if (!spans[i].bytes) {
			spans[i] = span;
			return &spans[i];
		}
	}
	abort();
}

/* NULL: nothing is mapped there, or it is not open. */
static char *vmm_at(uint64_t address, uint64_t bytes)
{
	struct vmm_span *span = vmm_find(vmm.mapped, address);

	if (!span || !span->open || address + bytes > span->address + span->bytes)
		return NULL;
	return vmm.memory[span->memory].data + (address - span->address);
}

__attribute__((unused)) static unsigned vmm_count(const struct vmm_span *spans)
{
	unsigned n = 0;

	for (unsigned i = 0; i < VMM_MAX; i++)
		n += spans[i].bytes != 0;
	return n;
}

__attribute__((unused)) static unsigned vmm_memories(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < VMM_MAX; i++)
		n += vmm.memory[i].data != NULL;
	return n;
}

static CUresult vmm_reserve(
	CUdeviceptr *ret, size_t bytes, size_t align, CUdeviceptr at, unsigned long long flags)
{
	(void)align, (void)at, (void)flags;
	if (vmm_refuses())
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = vmm.next_address;
	vmm.next_address += bytes + VMM_GRANULE;
	vmm_new(vmm.reserved, (struct vmm_span){.address = *ret, .bytes = bytes});
	return CUDA_SUCCESS;
}

static CUresult vmm_unreserve(CUdeviceptr address, size_t bytes)
{
	struct vmm_span *span = vmm_find(vmm.reserved, address);

	if (!span || span->address != address || span->bytes != bytes ||
		vmm_find(vmm.mapped, address)) {
		vmm.broken++;
		return CUDA_ERROR_INVALID_VALUE;
	}
	span->bytes = 0;
	return CUDA_SUCCESS;
}

static CUresult vmm_create(CUmemGenericAllocationHandle *ret, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	bool host = prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
	uint64_t *used = host ? &vmm.host_bytes : &vmm.device_bytes;
	unsigned i = 0;

	(void)flags;
	if (vmm_refuses() || *used + bytes > (host ? vmm.host_most : vmm.device_most))
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (vmm.memory[i].data)
		i++;
	*used += bytes;
	vmm.memory[i] = (struct vmm_memory){.data = malloc(bytes), .bytes = bytes, .host = host};
	memset(vmm.memory[i].data, 0xee, bytes);
	*ret = i + 1;
	return CUDA_SUCCESS;
}

static void vmm_put(unsigned i)
{
	struct vmm_memory *m = &vmm.memory[i];

	if (m->maps || !m->released)
		return;
	*(m->host ? &vmm.host_bytes : &vmm.device_bytes) -= m->bytes;
	free(m->data);
	m->data = NULL;
}

static CUresult vmm_release(CUmemGenericAllocationHandle handle)
{
	if (!handle || !vmm.memory[handle - 1].data || vmm.memory[handle - 1].released) {
		vmm.broken++;
		return CUDA_ERROR_INVALID_VALUE;
	}
	vmm.memory[handle - 1].released = true;
	vmm_put((unsigned)handle - 1);
	return CUDA_SUCCESS;
}

static CUresult vmm_map(CUdeviceptr address, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	(void)offset, (void)flags;
	if (!vmm_find(vmm.reserved, address) || vmm_find(vmm.mapped, address) || !handle ||
		!vmm.memory[handle - 1].data || vmm.memory[handle - 1].bytes != bytes) {
		vmm.broken++;
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (vmm_refuses())
		return CUDA_ERROR_OUT_OF_MEMORY;
	vmm.memory[handle - 1].maps++;
	vmm_new(vmm.mapped, (struct vmm_span){address, bytes, (unsigned)handle - 1, false});
	return CUDA_SUCCESS;
}

static CUresult vmm_open(
	CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	(void)bytes, (void)access, (void)count;
	if (vmm_refuses())
		return CUDA_ERROR_OUT_OF_MEMORY;
	vmm_find(vmm.mapped, address)->open = true;
	return CUDA_SUCCESS;
}

/* Nobody may be copying into it or out of it. */
static bool vmm_is_in_use(const struct vmm_span *span)
{
	for (uint64_t i = vmm.done; i < vmm.begun; i++)
		if (vmm.copies[i % VMM_MAX].to - span->address < span->bytes ||
			vmm.copies[i % VMM_MAX].from - span->address < span->bytes)
			return true;
	return false;
}

static CUresult vmm_unmap(CUdeviceptr address, size_t bytes)
{
	struct vmm_span *span = vmm_find(vmm.mapped, address);

	if (!span || span->address != address || span->bytes != bytes || vmm_is_in_use(span)) {
		vmm.broken++;
		return CUDA_ERROR_INVALID_VALUE;
	}
	vmm.memory[span->memory].maps--;
	vmm_put(span->memory);
	span->bytes = 0;
	return CUDA_SUCCESS;
}

static CUresult vmm_copy(struct vmm_copy copy)
{
	if (vmm_refuses())
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (vmm.begun - vmm.done == VMM_MAX || (copy.to && !vmm_at(copy.to, copy.bytes)) ||
		(copy.from && !vmm_at(copy.from, copy.bytes))) {
		vmm.broken++;
		return CUDA_ERROR_INVALID_VALUE;
	}
	vmm.copies[vmm.begun++ % VMM_MAX] = copy;
	return CUDA_SUCCESS;
}

static CUresult vmm_within(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	(void)stream;
	return vmm_copy((struct vmm_copy){.to = to, .from = from, .bytes = bytes});
}

static CUresult vmm_out(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	(void)stream;
	return vmm_copy((struct vmm_copy){.host_to = to, .from = from, .bytes = bytes});
}

static CUresult vmm_in(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	(void)stream;
	return vmm_copy((struct vmm_copy){.to = to, .host_from = from, .bytes = bytes});
}

static void vmm_run(uint64_t until)
{
	for (; vmm.done < until; vmm.done++) {
		const struct vmm_copy *copy = &vmm.copies[vmm.done % VMM_MAX];

		memcpy(copy->to ? vmm_at(copy->to, copy->bytes) : copy->host_to,
			copy->from ? vmm_at(copy->from, copy->bytes) : copy->host_from,
			copy->bytes);
	}
}

static CUresult vmm_event(CUevent *ret, unsigned flags)
{
	static uintptr_t next;

	(void)flags;
	if (vmm_refuses())
		return CUDA_ERROR_OUT_OF_MEMORY;
	vmm.events++;
	next = next % 7 + 1;
	vmm.marks[next] = 0;
	*ret = (CUevent)next;
	return CUDA_SUCCESS;
}

static CUresult vmm_event_end(CUevent event)
{
	(void)event;
	vmm.events--;
	return CUDA_SUCCESS;
}

static CUresult vmm_record(CUevent event, CUstream stream)
{
	(void)stream;
	if (vmm_refuses())
		return CUDA_ERROR_OUT_OF_MEMORY;
	vmm.marks[(uintptr_t)event] = vmm.begun;
	return CUDA_SUCCESS;
}

static CUresult vmm_await_event(CUevent event)
{
	if (vmm_refuses())
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (vmm.marks[(uintptr_t)event] > vmm.done)
		vmm_run(vmm.marks[(uintptr_t)event]);
	return CUDA_SUCCESS;
}

/* Fails as a context does: nothing is copied any more. */
static CUresult vmm_await(CUstream stream)
{
	(void)stream;
	if (vmm_refuses()) {
		vmm.done = vmm.begun;
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	vmm_run(vmm.begun);
	return CUDA_SUCCESS;
}

static CUresult vmm_stream(CUstream *ret, unsigned flags)
{
	(void)flags;
	*ret = (CUstream)16;
	return CUDA_SUCCESS;
}

static CUresult vmm_device(CUdevice *ret)
{
	*ret = 0;
	return CUDA_SUCCESS;
}

static CUresult vmm_granularity(size_t *ret, const CUmemAllocationProp *prop, int which)
{
	(void)prop, (void)which;
	*ret = VMM_GRANULE;
	return CUDA_SUCCESS;
}

static CUresult vmm_register(void *memory, size_t bytes, unsigned flags)
{
	(void)memory, (void)bytes, (void)flags;
	return vmm_refuses() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult vmm_unregister(void *memory)
{
	(void)memory;
	return CUDA_SUCCESS;
}

static CUresult vmm_context(CUcontext *ret)
{
	*ret = NULL;
	return CUDA_SUCCESS;
}

static CUresult vmm_info(size_t *left, size_t *all)
{
	if (vmm_refuses())
		return CUDA_ERROR_UNKNOWN;
	*left = vmm.device_most - vmm.device_bytes;
	*all = vmm.device_most;
	return CUDA_SUCCESS;
}

static CUresult vmm_nothing(void)
{
	return CUDA_SUCCESS;
}

static void vmm_begin(uint64_t device_most, uint64_t host_most)
{
	for (unsigned i = 0; i < VMM_MAX; i++)
		free(vmm.memory[i].data);
	memset(&vmm, 0, sizeof(vmm));
	vmm.next_address = 1ull << 40;
	vmm.device_most = device_most;
	vmm.host_most = host_most;
	td_real.cuMemAddressReserve = vmm_reserve;
	td_real.cuMemAddressFree = vmm_unreserve;
	td_real.cuMemCreate = vmm_create;
	td_real.cuMemRelease = vmm_release;
	td_real.cuMemMap = vmm_map;
	td_real.cuMemUnmap = vmm_unmap;
	td_real.cuMemSetAccess = vmm_open;
	td_real.cuMemcpyDtoDAsync_v2 = vmm_within;
	td_real.cuMemcpyDtoHAsync_v2 = vmm_out;
	td_real.cuMemcpyHtoDAsync_v2 = vmm_in;
	td_real.cuEventCreate = vmm_event;
	td_real.cuEventDestroy_v2 = vmm_event_end;
	td_real.cuEventRecord = vmm_record;
	td_real.cuEventSynchronize = vmm_await_event;
	td_real.cuStreamSynchronize = vmm_await;
	td_real.cuStreamCreate = vmm_stream;
	td_real.cuCtxGetDevice = vmm_device;
	td_real.cuCtxGetCurrent = vmm_context;
	td_real.cuCtxSynchronize = vmm_nothing;
	td_real.cuMemGetInfo_v2 = vmm_info;
	td_real.cuMemGetAllocationGranularity = vmm_granularity;
	td_real.cuMemHostRegister_v2 = vmm_register;
	td_real.cuMemHostUnregister = vmm_unregister;
}
