/* A library that uses the GPU before main(), as libraries with static objects do; for place.py. */
#include "cuda/types.h"

CUresult cuInit(unsigned flags);
CUresult cuDeviceGetCount(int *count);

__attribute__((visibility("default"))) int early_count = -1;

__attribute__((constructor)) static void begin(void)
{
	int count;

	if (!cuInit(0) && !cuDeviceGetCount(&count))
		early_count = count;
}
