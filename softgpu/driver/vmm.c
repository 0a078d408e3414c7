/*
 * Virtual memory management: reserve addresses, create physical memory, map, grant access, unmap, release.
 *
 * As strict as the driver: offsets into a handle, partial unmaps, double maps and access to memory without cuMemSetAccess are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/driver.h"

#define MAGIC 0x7367766d6dull

struct physical {
	uint64_t magic, bytes;
	uint8_t *host;
	unsigned references; /* the handle and each mapping; memory_list_lock */
	bool released;
	CUmemAllocationProp prop;
	struct physical *next;
};

struct mapping {
	uint64_t base, bytes;
	struct physical *physical;
	struct mapping *next;
};

struct reservation {
	uint64_t base, bytes;
	struct reservation *next;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct physical *physicals;
static struct mapping *mappings;
static struct reservation *reservations;

static bool aligned(uint64_t value)
{
	return value && !(value & (GRANULE - 1));
}

API CUresult cuMemGetAllocationGranularity(
	size_t *granularity, const CUmemAllocationProp *prop, int option)
{
	if (!granularity || !prop || option < 0 || option > 1)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = GRANULE;
	return sg_ready();
}

API CUresult cuMemAddressReserve(
	CUdeviceptr *ret, size_t bytes, size_t align, CUdeviceptr wanted, unsigned long long flags)
{
	struct reservation *reservation;
	int r = sg_ready();

	(void)wanted; /* a hint */
	if (r)
		return r;
	if (!ret || !aligned(bytes) || flags || (align & (align - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	reservation = calloc(1, sizeof(*reservation));
	if (!reservation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reservation->base = sg_address_reserve(bytes, align);
	reservation->bytes = bytes;
	if (!reservation->base) {
		free(reservation);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = reservation->base;
	pthread_mutex_lock(&list_lock);
	reservation->next = reservations;
	reservations = reservation;
	pthread_mutex_unlock(&list_lock);
	return CUDA_SUCCESS;
}

static bool overlaps_mapping(uint64_t base, uint64_t bytes)
{
	for (const struct mapping *m = mappings; m; m = m->next)
		if (base < m->base + m->bytes && m->base < base + bytes)
			return true;
	return false;
}

/* The whole reservation, with nothing mapped in it. */
API CUresult cuMemAddressFree(CUdeviceptr base, size_t bytes)
{
	int r = sg_ready();

	if (r)
		return r;
	r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&list_lock);
	for (struct reservation **p = &reservations; *p; p = &(*p)->next) {
		struct reservation *found = *p;

		if (found->base != base || found->bytes != bytes || overlaps_mapping(base, bytes))
			continue;
		*p = found->next;
		free(found);
		sg_address_release(base, bytes);
		r = CUDA_SUCCESS;
		break;
	}
	pthread_mutex_unlock(&list_lock);
	return r;
}

static bool on_device(const CUmemAllocationProp *prop)
{
	return prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *ret, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct physical *physical;
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !prop || flags || !aligned(bytes) ||
		prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->requestedHandleTypes)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!on_device(prop))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (prop->location.id < 0 || prop->location.id >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	r = sg_reserve((uint32_t)prop->location.id, 0, bytes);
	if (r)
		return r;
	physical = calloc(1, sizeof(*physical));
	if (physical)
		physical->host = sg_pages_new(bytes);
	if (!physical || !physical->host) {
		free(physical);
		sg_release((uint32_t)prop->location.id, 0, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	physical->magic = MAGIC;
	physical->bytes = bytes;
	physical->references = 1;
	physical->prop = *prop;
	pthread_mutex_lock(&list_lock);
	physical->next = physicals;
	physicals = physical;
	pthread_mutex_unlock(&list_lock);
	*ret = (uint64_t)physical;
	return CUDA_SUCCESS;
}

/* list_lock is held. NULL: not a handle that is still owned. */
static struct physical *find_physical(CUmemGenericAllocationHandle handle)
{
	for (struct physical *p = physicals; p; p = p->next)
		if ((uint64_t)p == handle && !p->released)
			return p;
	return NULL;
}

/* list_lock is held. */
static void put_physical(struct physical *physical)
{
	if (--physical->references)
		return;
	for (struct physical **p = &physicals; *p; p = &(*p)->next) {
		if (*p == physical) {
			*p = physical->next;
			break;
		}
	}
	sg_pages_free(physical->host, physical->bytes);
	sg_release((uint32_t)physical->prop.location.id, 0, physical->bytes);
	free(physical);
}

API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct physical *physical;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&list_lock);
	physical = find_physical(handle);
	if (physical) {
		/* Each retain is a release owed; the memory lives on while it is mapped. */
		unsigned mapped = 0;

		for (const struct mapping *m = mappings; m; m = m->next)
			mapped += m->physical == physical;
		physical->released = physical->references == mapped + 1;
		put_physical(physical);
	}
	pthread_mutex_unlock(&list_lock);
	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static bool within_reservation(uint64_t base, uint64_t bytes)
{
	for (const struct reservation *r = reservations; r; r = r->next)
		if (base >= r->base && base + bytes <= r->base + r->bytes)
			return true;
	return false;
}

static int map_locked(uint64_t base, uint64_t bytes, CUmemGenericAllocationHandle handle)
{
	struct physical *physical = find_physical(handle);
	struct mapping *mapping;

	if (!physical || bytes != physical->bytes || !within_reservation(base, bytes) ||
		overlaps_mapping(base, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*mapping = (struct mapping){base, bytes, physical, mappings};
	mappings = mapping;
	physical->references++;
	sg_granules_set(base, bytes, physical->host, false);
	sg_allocation_add(&(struct sg_allocation){.base = base,
		.bytes = bytes,
		.kind = SG_MEMORY_DEVICE,
		.device = (uint32_t)physical->prop.location.id});
	return CUDA_SUCCESS;
}

API CUresult cuMemMap(CUdeviceptr base, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	int r = sg_ready();

	if (r)
		return r;
	/* offset must be zero, says cuda.h of cuMemMap. */
	if (offset || flags || !aligned(bytes) || base & (GRANULE - 1))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&list_lock);
	r = map_locked(base, bytes, handle);
	pthread_mutex_unlock(&list_lock);
	return r;
}

/* Whole mappings only; the range may hold several. Unlike cuMemFree it does not wait: work that still uses the range will fault. */
API CUresult cuMemUnmap(CUdeviceptr base, size_t bytes)
{
	uint64_t covered = 0;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&list_lock);
	for (const struct mapping *m = mappings; m; m = m->next)
		if (m->base >= base && m->base + m->bytes <= base + bytes)
			covered += m->bytes;
	if (!bytes || covered != bytes) {
		pthread_mutex_unlock(&list_lock);
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (struct mapping **p = &mappings; *p;) {
		struct mapping *m = *p;
		struct sg_allocation allocation;

		if (m->base < base || m->base >= base + bytes) {
			p = &m->next;
			continue;
		}
		*p = m->next;
		sg_granules_set(m->base, m->bytes, NULL, false);
		(void)sg_allocation_remove(m->base, &allocation);
		put_physical(m->physical);
		free(m);
	}
	pthread_mutex_unlock(&list_lock);
	return CUDA_SUCCESS;
}

API CUresult cuMemSetAccess(
	CUdeviceptr base, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	uint64_t covered = 0;
	int r = sg_ready();

	if (r)
		return r;
	if (!access || !count || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&list_lock);
	for (const struct mapping *m = mappings; m; m = m->next)
		if (m->base >= base && m->base + m->bytes <= base + bytes)
			covered += m->bytes;
	for (struct mapping *m = mappings; m && covered == bytes; m = m->next) {
		bool accessible = false;

		if (m->base < base || m->base >= base + bytes)
			continue;
		/* Access by the device that holds it; peers are a later matter. */
		for (size_t i = 0; i < count; i++)
			if (access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
				access[i].location.id == m->physical->prop.location.id)
				accessible = access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		sg_granules_set(m->base, m->bytes, m->physical->host, accessible);
	}
	pthread_mutex_unlock(&list_lock);
	return covered == bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
	uint64_t last;
	int r = sg_ready();

	if (r)
		return r;
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = sg_memory_translate(address, &last) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
						     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret, void *address)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&list_lock);
	for (struct mapping *m = mappings; m; m = m->next) {
		if ((uint64_t)address - m->base >= m->bytes)
			continue;
		m->physical->references++;
		m->physical->released = false;
		*ret = (uint64_t)m->physical;
		r = CUDA_SUCCESS;
		break;
	}
	pthread_mutex_unlock(&list_lock);
	return r;
}

API CUresult cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	struct physical *physical;

	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&list_lock);
	physical = find_physical(handle);
	if (physical)
		*prop = physical->prop;
	pthread_mutex_unlock(&list_lock);
	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
