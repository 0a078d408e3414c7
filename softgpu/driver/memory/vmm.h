/* Types that vmm.c (reserve, create, map) and vmm_access.c share. */
#pragma once

#include "softgpu/driver/driver.h"

struct sg_physical {
	uint64_t bytes;
	uint8_t *host;
	int fd;              /* file of host pages and of exportable memory; -1: none */
	unsigned references; /* one of the handle, one of each mapping; sg_vmm_lock */
	bool released;       /* the handle is gone; mappings may remain */
	CUmemAllocationProp prop;
	struct sg_physical *next;
};

struct sg_mapping {
	uint64_t base, bytes;
	struct sg_physical *physical;
	uint32_t devices; /* devices that may read and write it, one bit each */
	int host_access;  /* CU_MEM_ACCESS_FLAGS_PROT_* */
	struct sg_mapping *next;
};

extern pthread_mutex_t sg_vmm_lock;
extern struct sg_mapping *sg_mappings; /* sg_vmm_lock */

static inline bool sg_is_remote(const struct sg_physical *physical)
{
	return physical->prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
}

/*
 * Maps the bytes for the host at their device address with this access; 0 unmaps them. Returns
 * false on failure.
 */
bool sg_map_for_host(const struct sg_mapping *mapping, int access);
