/* Which devices can have memory that moves, by what the driver says of them. */
#pragma once

#include <stdbool.h>

/* CUdevice_attribute */
#define TD_ATTRIBUTE_VMM           102
#define TD_ATTRIBUTE_POSIX_HANDLES 103 /* other processes are given memory by them */
#define TD_ATTRIBUTE_RDMA_WITH_VMM 110
#define TD_ATTRIBUTE_RDMA          116

/* Can memory by cuMemCreate do all that memory of cuMemAlloc can do there? get: cuDeviceGetAttribute. */
static inline bool td_is_movable(int (*get)(int *ret, int attribute, int device), int device)
{
	const int needed[] = {TD_ATTRIBUTE_VMM, TD_ATTRIBUTE_POSIX_HANDLES};
	int value, rdma;

	for (unsigned i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (get(&value, needed[i], device) || !value)
			return false;
	if (get(&rdma, TD_ATTRIBUTE_RDMA, device) || !rdma)
		return true;
	return !get(&value, TD_ATTRIBUTE_RDMA_WITH_VMM, device) && value;
}
