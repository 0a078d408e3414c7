/* Which devices can have memory that moves, by what the driver says of them. */
#pragma once

#include <stdbool.h>

/* CUdevice_attribute */
#define TD_ATTRIBUTE_VMM           102
#define TD_ATTRIBUTE_POSIX_HANDLES 103 /* other processes are given memory by them */

/*
 * Can memory by cuMemCreate do there what programs do with memory of cuMemAlloc? get:
 * cuDeviceGetAttribute. It is not asked whether network cards reach such memory (attribute 110):
 * most programs have none, and one that has opened one keeps cuMemAlloc's (preload/driver/choose.h).
 */
static inline bool td_is_movable(int (*get)(int *ret, int attribute, int device), int device)
{
	const int needed[] = {TD_ATTRIBUTE_VMM, TD_ATTRIBUTE_POSIX_HANDLES};
	int value;

	for (unsigned i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (get(&value, needed[i], device) || !value)
			return false;
	return true;
}
