/* Tells from the driver's attributes which devices can have memory that moves. */
#pragma once

#include <stdbool.h>

/* Numbers of CUdevice_attribute. */
#define TD_ATTRIBUTE_VMM           102
#define TD_ATTRIBUTE_POSIX_HANDLES 103 /* other processes are given memory by them */

/*
 * Tells whether memory of cuMemCreate can replace cuMemAlloc's on the device. `get` is
 * cuDeviceGetAttribute. Access by network cards (attribute 110) is not required: most programs have
 * none, and a program that has opened one keeps cuMemAlloc's memory (preload/driver/choose.h).
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
