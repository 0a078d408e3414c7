/*
 * Access to mapped memory (cuMemSetAccess). Device memory: each device that was named. Host memory
 * of cuMemCreate (HOST or HOST_NUMA): any device, across the link, and the host, each only after
 * cuMemSetAccess. A location that a call does not name keeps its access.
 */
#include <sys/mman.h>

#include "softgpu/driver/memory/vmm.h"

bool sg_map_for_host(const struct sg_mapping *mapping, int access)
{
	void *at = (void *)mapping->base;

	if (!sg_is_remote(mapping->physical))
		return true;
	if (!access)
		return mmap(at, mapping->bytes, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			       0) != MAP_FAILED;
	return mmap(at, mapping->bytes,
		       access == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED, mapping->physical->fd, 0) != MAP_FAILED;
}

static bool is_within(const struct sg_mapping *m, uint64_t base, uint64_t bytes)
{
	return m->base >= base && m->base + m->bytes <= base + bytes;
}

/* Checks that this memory can be made accessible at that location. */
static int check(const struct sg_physical *physical, const CUmemAccessDesc *access)
{
	const CUmemLocation *location = &access->location;

	if (access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		access->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
		if (location->id < 0 || location->id >= (int)sg.device_count)
			return CUDA_ERROR_INVALID_DEVICE;
		/* Read-only mappings are not supported. */
		return access->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? CUDA_ERROR_NOT_SUPPORTED
								      : CUDA_SUCCESS;
	}
	/*
	 * cuda.h, cuMemSetAccess: HOST_NUMA is only valid for memory created there, and its id is
	 * ignored. HOST is treated the same.
	 */
	return sg_is_remote(physical) && location->type == physical->prop.location.type
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

static int check_all(uint64_t base, uint64_t bytes, const CUmemAccessDesc *access, size_t count)
{
	uint64_t covered = 0;

	for (const struct sg_mapping *m = sg_mappings; m; m = m->next) {
		if (!is_within(m, base, bytes))
			continue;
		covered += m->bytes;
		for (size_t i = 0; i < count; i++) {
			int r = check(m->physical, &access[i]);

			if (r)
				return r;
		}
	}
	return covered == bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int apply(struct sg_mapping *m, const CUmemAccessDesc *access, size_t count)
{
	int host_access = m->host_access;

	for (size_t i = 0; i < count; i++) {
		if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			host_access = access[i].flags;
		else if (access[i].flags)
			m->devices |= SG_DEVICE_BIT(access[i].location.id);
		else
			m->devices &= ~SG_DEVICE_BIT(access[i].location.id);
	}
	sg_granules_set(m->base, m->bytes,
		&(struct sg_granule){.host = m->physical->host,
			.devices = m->devices,
			.home = sg_is_remote(m->physical) ? 0
							  : (uint8_t)m->physical->prop.location.id,
			.remote = sg_is_remote(m->physical)});
	if (host_access != m->host_access && !sg_map_for_host(m, host_access))
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->host_access = host_access;
	return CUDA_SUCCESS;
}

API CUresult cuMemSetAccess(
	CUdeviceptr base, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!access || !count || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_vmm_lock);
	r = check_all(base, bytes, access, count);
	for (struct sg_mapping *m = sg_mappings; m && !r; m = m->next)
		if (is_within(m, base, bytes))
			r = apply(m, access, count);
	pthread_mutex_unlock(&sg_vmm_lock);
	return r;
}

API CUresult cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!flags || !location ||
		(location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
			(location->id < 0 || location->id >= (int)sg.device_count)))
		return CUDA_ERROR_INVALID_VALUE;
	r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_vmm_lock);
	for (const struct sg_mapping *m = sg_mappings; m; m = m->next) {
		if (address - m->base >= m->bytes)
			continue;
		if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
			*flags = (unsigned long long)m->host_access;
		else
			*flags = m->devices & SG_DEVICE_BIT(location->id)
					 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
					 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
		r = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&sg_vmm_lock);
	return r;
}
