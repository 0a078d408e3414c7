/*
 * Answers of a driver with one kind of GPU, of 1 GiB: for tables of a test's own, and for
 * bench/nulldrv.c.
 */
#pragma once

#include <string.h>

#include "cuda/types.h"

__attribute__((unused)) static CUresult stub_push(CUcontext context)
{
	(void)context;
	return CUDA_SUCCESS;
}

__attribute__((unused)) static CUresult stub_uuid(CUuuid *ret, CUdevice device)
{
	memset(ret, 1 + device, sizeof(*ret));
	return CUDA_SUCCESS;
}

__attribute__((unused)) static CUresult stub_total(size_t *ret_bytes, CUdevice device)
{
	(void)device;
	*ret_bytes = 1u << 30;
	return CUDA_SUCCESS;
}

__attribute__((unused)) static CUresult stub_info(size_t *ret_free, size_t *ret_total)
{
	*ret_free = *ret_total = 1u << 30;
	return CUDA_SUCCESS;
}
