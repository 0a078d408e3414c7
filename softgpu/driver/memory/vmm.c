/*
 * Virtual memory management: reserve addresses, create physical memory, map, grant access, unmap,
 * release.
 * It is as strict as the driver: offsets into a handle, partial unmaps, double maps, and access to
 * memory without cuMemSetAccess are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softgpu/driver/memory/vmm.h"

#define POSIX_FD    1 /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
#define SHARED_NAME "softgpu-vmm-"

struct reservation {
	uint64_t base, bytes;
	struct reservation *next;
};

pthread_mutex_t sg_vmm_lock = PTHREAD_MUTEX_INITIALIZER;
struct sg_mapping *sg_mappings;
static struct sg_physical *physicals;
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

	(void)wanted; /* the wanted address is only a hint */
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
	pthread_mutex_lock(&sg_vmm_lock);
	reservation->next = reservations;
	reservations = reservation;
	pthread_mutex_unlock(&sg_vmm_lock);
	return CUDA_SUCCESS;
}

static bool overlaps_mapping(uint64_t base, uint64_t bytes)
{
	for (const struct sg_mapping *m = sg_mappings; m; m = m->next)
		if (base < m->base + m->bytes && m->base < base + bytes)
			return true;
	return false;
}

/* Frees a whole reservation, in which nothing may be mapped. */
API CUresult cuMemAddressFree(CUdeviceptr base, size_t bytes)
{
	int r = sg_ready();

	if (r)
		return r;
	r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_vmm_lock);
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
	pthread_mutex_unlock(&sg_vmm_lock);
	return r;
}

/*
 * Checks a location by the rules of cuMemCreate: HOST ignores the id and cannot be shared,
 * HOST_NUMA needs a valid node, HOST_NUMA_CURRENT is not allowed.
 */
static int check_location(const CUmemAllocationProp *prop)
{
	const CUmemLocation *location = &prop->location;

	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		if (location->id < 0 || location->id >= (int)sg.device_count)
			return CUDA_ERROR_INVALID_DEVICE;
		return prop->requestedHandleTypes & ~POSIX_FD ? CUDA_ERROR_NOT_SUPPORTED
							      : CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
		if (prop->requestedHandleTypes)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		if (location->id)
			return CUDA_ERROR_INVALID_VALUE; /* node 0 is the only NUMA node here */
		if (prop->requestedHandleTypes)
			return CUDA_ERROR_NOT_SUPPORTED;
		break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return sg.devices[0].info.features & SG_FEATURE_HOST_VMM ? CUDA_SUCCESS
								 : CUDA_ERROR_NOT_SUPPORTED;
}

/*
 * Creates a file in memory. With a real driver, GPU memory needs no file descriptors, so a program
 * may not expect the limit: if it is reached, the soft limit is raised to the hard one.
 */
static int new_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	struct rlimit limit;

	if (fd >= 0 || errno != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) ||
		limit.rlim_cur == limit.rlim_max)
		return fd;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -1 : memfd_create(name, MFD_CLOEXEC);
}

/* Host memory must be a file, because it may also be mapped at its device address. */
static int new_host_pages(struct sg_physical *physical, const char *name)
{
	void *pages = MAP_FAILED;

	physical->fd = new_file(name);
	if (physical->fd >= 0 && !ftruncate(physical->fd, (off_t)physical->bytes))
		pages = mmap(
			NULL, physical->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, physical->fd, 0);
	if (pages == MAP_FAILED) {
		if (physical->fd >= 0)
			close(physical->fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	physical->host = pages;
	return CUDA_SUCCESS;
}

/*
 * Exportable device memory may be held by several processes. The server counts it once, identified
 * by its file.
 */
static bool is_file_of_device(const struct sg_physical *physical)
{
	return !sg_is_remote(physical) && physical->fd >= 0;
}

static int hold_what_is_free(const struct sg_physical *physical, const struct stat *file)
{
	struct sg_msg msg = {.type = SG_MEMORY_HOLD,
		.gpu = (uint32_t)physical->prop.location.id,
		.bytes = physical->bytes,
		.value = file->st_ino,
		.value2 = file->st_dev};

	if (sg_client_request(sg.client, &msg, NULL, 0, NULL))
		return SG_LOST;
	switch (msg.error) {
	case SG_OK: return CUDA_SUCCESS;
	case SG_ERR_VALUE: return CUDA_ERROR_INVALID_VALUE;
	case SG_ERR_STATE: return CUDA_ERROR_NOT_SUPPORTED; /* the process is checkpointed */
	default: return CUDA_ERROR_OUT_OF_MEMORY;
	}
}

static int hold(const struct sg_physical *physical)
{
	struct stat file;
	int r;

	if (fstat(physical->fd, &file))
		return CUDA_ERROR_OPERATING_SYSTEM;
	r = hold_what_is_free(physical, &file);
	if (r != CUDA_ERROR_OUT_OF_MEMORY)
		return r;
	sg_pools_trim((uint32_t)physical->prop.location.id);
	return hold_what_is_free(physical, &file);
}

static void drop(const struct sg_physical *physical)
{
	struct sg_msg msg = {.type = SG_MEMORY_DROP};
	struct stat file;

	if (fstat(physical->fd, &file))
		return;
	msg.value = file.st_ino;
	msg.value2 = file.st_dev;
	(void)sg_client_request(sg.client, &msg, NULL, 0, NULL);
}

static void free_pages(struct sg_physical *physical)
{
	sg_pages_free(physical->host, physical->bytes);
	if (physical->fd >= 0)
		close(physical->fd);
}

/* The file's name contains the GPU number, which tells an importing process whose memory it is. */
static int new_exportable_pages(struct sg_physical *physical)
{
	char name[32];
	int r;

	snprintf(name, sizeof(name), SHARED_NAME "%u", sg.devices[physical->prop.location.id].gpu);
	r = new_host_pages(physical, name);
	if (r)
		return r;
	r = hold(physical);
	if (r)
		free_pages(physical);
	return r;
}

static int new_device_pages(struct sg_physical *physical)
{
	uint32_t device = (uint32_t)physical->prop.location.id;
	int r;

	if (physical->prop.requestedHandleTypes & POSIX_FD)
		return new_exportable_pages(physical);
	r = sg_reserve(device, 0, physical->bytes);
	if (r)
		return r;
	physical->fd = -1;
	physical->host = sg_pages_new(physical->bytes);
	if (!physical->host) {
		sg_release(device, 0, physical->bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *ret, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct sg_physical *physical;
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !prop || flags || !aligned(bytes) ||
		prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	r = check_location(prop);
	if (r)
		return r;
	physical = calloc(1, sizeof(*physical));
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical->bytes = bytes;
	physical->references = 1;
	physical->prop = *prop;
	r = sg_is_remote(physical) ? new_host_pages(physical, "softgpu-host")
				   : new_device_pages(physical);
	if (r) {
		free(physical);
		return r;
	}
	pthread_mutex_lock(&sg_vmm_lock);
	physical->next = physicals;
	physicals = physical;
	pthread_mutex_unlock(&sg_vmm_lock);
	*ret = (uint64_t)physical;
	return CUDA_SUCCESS;
}

/* Called with sg_vmm_lock held. Returns NULL if the handle was released. */
static struct sg_physical *find_physical(CUmemGenericAllocationHandle handle)
{
	for (struct sg_physical *p = physicals; p; p = p->next)
		if ((uint64_t)p == handle && !p->released)
			return p;
	return NULL;
}

/* Called with sg_vmm_lock held. */
static void put_physical(struct sg_physical *physical)
{
	if (--physical->references)
		return;
	for (struct sg_physical **p = &physicals; *p; p = &(*p)->next) {
		if (*p == physical) {
			*p = physical->next;
			break;
		}
	}
	if (is_file_of_device(physical))
		drop(physical);
	else if (!sg_is_remote(physical))
		sg_release((uint32_t)physical->prop.location.id, 0, physical->bytes);
	free_pages(physical);
	free(physical);
}

API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct sg_physical *physical;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_vmm_lock);
	physical = find_physical(handle);
	if (physical) {
		/*
		 * Each cuMemRetainAllocationHandle needs a release of its own. The memory itself
		 * lives on while it is mapped.
		 */
		unsigned mapped = 0;

		for (const struct sg_mapping *m = sg_mappings; m; m = m->next)
			mapped += m->physical == physical;
		physical->released = physical->references == mapped + 1;
		put_physical(physical);
	}
	pthread_mutex_unlock(&sg_vmm_lock);
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
	struct sg_physical *physical = find_physical(handle);
	struct sg_mapping *mapping;

	if (!physical || bytes != physical->bytes || !within_reservation(base, bytes) ||
		overlaps_mapping(base, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*mapping = (struct sg_mapping){
		.base = base, .bytes = bytes, .physical = physical, .next = sg_mappings};
	sg_mappings = mapping;
	physical->references++;
	sg_granules_set(base, bytes, &(struct sg_granule){.host = physical->host});
	sg_allocation_add(&(struct sg_allocation){.base = base,
		.bytes = bytes,
		.kind = sg_is_remote(physical) ? SG_MEMORY_REMOTE : SG_MEMORY_DEVICE,
		.device = sg_is_remote(physical) ? 0 : (uint32_t)physical->prop.location.id});
	return CUDA_SUCCESS;
}

API CUresult cuMemMap(CUdeviceptr base, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	int r = sg_ready();

	if (r)
		return r;
	/* cuda.h, cuMemMap: offset must be zero. */
	if (offset || flags || !aligned(bytes) || base & (GRANULE - 1))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_vmm_lock);
	r = map_locked(base, bytes, handle);
	pthread_mutex_unlock(&sg_vmm_lock);
	return r;
}

/*
 * The range may hold several mappings, but only whole ones. Unlike cuMemFree this does not wait, so
 * work that still uses the range faults.
 */
API CUresult cuMemUnmap(CUdeviceptr base, size_t bytes)
{
	uint64_t covered = 0;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_vmm_lock);
	for (const struct sg_mapping *m = sg_mappings; m; m = m->next)
		if (m->base >= base && m->base + m->bytes <= base + bytes)
			covered += m->bytes;
	if (!bytes || covered != bytes) {
		pthread_mutex_unlock(&sg_vmm_lock);
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (struct sg_mapping **p = &sg_mappings; *p;) {
		struct sg_mapping *m = *p;
		struct sg_allocation allocation;

		if (m->base < base || m->base >= base + bytes) {
			p = &m->next;
			continue;
		}
		*p = m->next;
		sg_granules_set(m->base, m->bytes, &(struct sg_granule){0});
		(void)sg_map_for_host(m, 0);
		(void)sg_allocation_remove(m->base, &allocation);
		put_physical(m->physical);
		free(m);
	}
	pthread_mutex_unlock(&sg_vmm_lock);
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
	pthread_mutex_lock(&sg_vmm_lock);
	for (struct sg_mapping *m = sg_mappings; m; m = m->next) {
		if ((uint64_t)address - m->base >= m->bytes)
			continue;
		m->physical->references++;
		m->physical->released = false;
		*ret = (uint64_t)m->physical;
		r = CUDA_SUCCESS;
		break;
	}
	pthread_mutex_unlock(&sg_vmm_lock);
	return r;
}

API CUresult cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	struct sg_physical *physical;

	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_vmm_lock);
	physical = find_physical(handle);
	if (physical)
		*prop = physical->prop;
	pthread_mutex_unlock(&sg_vmm_lock);
	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* -- handles for other processes: file descriptors -- */

API CUresult cuMemExportToShareableHandle(
	void *ret, CUmemGenericAllocationHandle handle, int type, unsigned long long flags)
{
	struct sg_physical *physical;
	int fd = -1, r = sg_ready();

	if (r)
		return r;
	if (!ret || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != POSIX_FD)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&sg_vmm_lock);
	physical = find_physical(handle);
	if (!physical || !(physical->prop.requestedHandleTypes & POSIX_FD))
		r = CUDA_ERROR_INVALID_VALUE; /* must be requested when the memory is created */
	else
		fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 3);
	pthread_mutex_unlock(&sg_vmm_lock);
	if (!r && fd < 0)
		r = CUDA_ERROR_OPERATING_SYSTEM;
	if (!r)
		*(int *)ret = fd;
	return r;
}

/* Returns the device whose memory the file is. False if softgpu did not create the file. */
static bool device_of(int fd, int *ret)
{
	char link[32], path[64], tail;
	ssize_t n;
	unsigned gpu;
	uint32_t device;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return false;
	path[n] = 0;
	if (sscanf(path, "/memfd:" SHARED_NAME "%u (deleted%c", &gpu, &tail) != 2 ||
		!sg_device_of_gpu(gpu, &device))
		return false;
	*ret = (int)device;
	return true;
}

static int import(int fd, struct sg_physical *physical)
{
	struct stat st;
	void *pages;
	int r;

	if (!device_of(fd, &physical->prop.location.id) || fstat(fd, &st) || st.st_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	physical->bytes = (uint64_t)st.st_size;
	physical->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (physical->fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	pages = mmap(NULL, physical->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, physical->fd, 0);
	if (pages == MAP_FAILED) {
		close(physical->fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	physical->host = pages;
	r = hold(physical);
	if (r)
		free_pages(physical);
	return r;
}

/* The caller keeps its file descriptor. */
API CUresult cuMemImportFromShareableHandle(
	CUmemGenericAllocationHandle *ret, void *os_handle, int type)
{
	struct sg_physical *physical;
	int r = sg_ready();

	if (r)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != POSIX_FD)
		return CUDA_ERROR_NOT_SUPPORTED;
	physical = calloc(1, sizeof(*physical));
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical->references = 1;
	physical->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	physical->prop.requestedHandleTypes = POSIX_FD;
	physical->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	r = import((int)(intptr_t)os_handle, physical);
	if (r) {
		free(physical);
		return r;
	}
	pthread_mutex_lock(&sg_vmm_lock);
	physical->next = physicals;
	physicals = physical;
	pthread_mutex_unlock(&sg_vmm_lock);
	*ret = (uint64_t)physical;
	return CUDA_SUCCESS;
}
