/*
 * Adapters for calls with locations in structs or arrays; see adapt.c. A location on the program's
 * GPU becomes one where its work now runs, and back in the driver's answers. None of these calls
 * has a handle of a context, but for the streams of prefetches.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/objects.h"
#include "preload/driver/real.h"
#include "preload/rehome/adapt.h"
#include "preload/rehome/objects.h"

CUmemLocation td_place_here(CUmemLocation location)
{
	if (location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		location.id = td_rehome_device(location.id);
	return location;
}

static void show(CUmemLocation *location)
{
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		location->id = td_rehome_device_shown(location->id);
}

/* -- memory by handle, pools -- */

static CUresult place_cuMemGetAllocationPropertiesFromHandle(
	CUmemAllocationProp *a0, CUmemGenericAllocationHandle a1)
{
	CUresult r = td_true->cuMemGetAllocationPropertiesFromHandle(a0, a1);

	if (!r && a0)
		show(&a0->location);
	return r;
}

static CUresult place_cuMemPoolCreate(void **a0, const void *a1)
{
	struct td_pool_props copy;

	if (!a1)
		return td_true->cuMemPoolCreate(a0, a1);
	memcpy(&copy, a1, sizeof(copy));
	copy.location = td_place_here(copy.location);
	return td_true->cuMemPoolCreate(a0, &copy);
}

static CUresult place_cuMemPoolSetAccess(void *a0, const CUmemAccessDesc *a1, size_t a2)
{
	CUmemAccessDesc *copy =
		a1 && a2 < SIZE_MAX / sizeof(*a1) ? malloc((a2 + 1) * sizeof(*a1)) : NULL;
	CUresult r;

	for (size_t i = 0; copy && i < a2; i++) {
		copy[i] = a1[i];
		copy[i].location = td_place_here(a1[i].location);
	}
	r = td_true->cuMemPoolSetAccess(a0, copy ? copy : a1, a2);
	free(copy);
	return r;
}

/* Calls of the driver with one location. */
#define AT_PLACE(symbol, location, ...)                                                            \
	static CUresult place_##symbol TD_PARAMS_##symbol                                          \
	{                                                                                          \
		CUmemLocation copy = {0, 0}, *at = (location) ? &copy : NULL;                      \
		if (at)                                                                            \
			copy = td_place_here(*(location));                                         \
		return td_true->symbol(__VA_ARGS__);                                               \
	}

AT_PLACE(cuMemPoolGetAccess, a2, a0, a1, at)
AT_PLACE(cuMemGetDefaultMemPool, a1, a0, at, a2)
AT_PLACE(cuMemGetMemPool, a1, a0, at, a2)
AT_PLACE(cuMemSetMemPool, a0, at, a1, a2)

/* -- unified memory -- */

/* Without memory for the copy the program's locations are passed. */
static CUmemLocation *places_here(const CUmemLocation *places, size_t count)
{
	CUmemLocation *copy = places && count < SIZE_MAX / sizeof(*copy)
				      ? malloc((count + 1) * sizeof(*copy))
				      : NULL;

	for (size_t i = 0; copy && i < count; i++)
		copy[i] = td_place_here(places[i]);
	return copy;
}

static CUstream stream_here(CUstream stream)
{
	return (uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD
		       ? stream
		       : td_twin_here(TD_TWIN_STREAM, stream);
}

/* The program cannot move meanwhile: a prefetch is inside the gate. */
#define PREFETCHES(symbol)                                                                         \
	static CUresult place_##symbol TD_PARAMS_##symbol                                          \
	{                                                                                          \
		CUmemLocation *copy = places_here(a3, a5);                                         \
		CUresult r;                                                                        \
		td_rehome_sync();                                                                  \
		r = td_true->symbol(                                                               \
			a0, a1, a2, copy ? copy : a3, a4, a5, a6, stream_here(stream));            \
		free(copy);                                                                        \
		return r;                                                                          \
	}

PREFETCHES(cuMemPrefetchBatchAsync)
PREFETCHES(cuMemPrefetchBatchAsync_ptsz)
PREFETCHES(cuMemDiscardAndPrefetchBatchAsync)
PREFETCHES(cuMemDiscardAndPrefetchBatchAsync_ptsz)

/* Values of CUmem_range_attribute. */
enum {
	RANGE_PREFERRED = 2,
	RANGE_ACCESSED_BY = 3,
	RANGE_PREFETCHED = 4,
	RANGE_PREFERRED_ID = 6,
	RANGE_PREFETCHED_ID = 8,
};

/* An id may be that of a NUMA node: the attribute before it is the type of the location. */
static bool is_of_device(int attribute, CUdeviceptr address, size_t bytes)
{
	int type = 0;

	return !td_true->cuMemRangeGetAttribute(
		       &type, sizeof(type), attribute - 1, address, bytes) &&
	       type == CU_MEM_LOCATION_TYPE_DEVICE;
}

static void show_range(
	void *out, size_t out_bytes, int attribute, CUdeviceptr address, size_t bytes)
{
	CUdevice *devices = out;
	size_t count = out_bytes / sizeof(*devices);

	switch (attribute) {
	case RANGE_PREFERRED:
	case RANGE_ACCESSED_BY:
	case RANGE_PREFETCHED: break;
	case RANGE_PREFERRED_ID:
	case RANGE_PREFETCHED_ID:
		if (is_of_device(attribute, address, bytes))
			break;
		return;
	default: return;
	}
	for (size_t i = 0; i < count; i++)
		devices[i] = td_rehome_device_shown(devices[i]);
}

static CUresult place_cuMemRangeGetAttribute(void *a0, size_t a1, int a2, CUdeviceptr a3, size_t a4)
{
	CUresult r = td_true->cuMemRangeGetAttribute(a0, a1, a2, a3, a4);

	if (!r && a0)
		show_range(a0, a1, a2, a3, a4);
	return r;
}

static CUresult place_cuMemRangeGetAttributes(
	void **a0, size_t *a1, int *a2, size_t a3, CUdeviceptr a4, size_t a5)
{
	CUresult r = td_true->cuMemRangeGetAttributes(a0, a1, a2, a3, a4, a5);

	for (size_t i = 0; !r && i < a3; i++)
		show_range(a0[i], a1[i], a2[i], a4, a5);
	return r;
}

/* -- what an address is: its device and its context are the program's -- */

static void show_pointer(void *out, int attribute)
{
	if (attribute == TD_POINTER_DEVICE_ORDINAL)
		*(CUdevice *)out = td_rehome_device_shown(*(CUdevice *)out);
	else if (attribute == TD_POINTER_CONTEXT)
		*(void **)out = td_rehome_program_context(*(void **)out);
}

static CUresult place_cuPointerGetAttribute(void *a0, int a1, CUdeviceptr a2)
{
	CUresult r = td_true->cuPointerGetAttribute(a0, a1, a2);

	if (!r && a0)
		show_pointer(a0, a1);
	return r;
}

static CUresult place_cuPointerGetAttributes(unsigned a0, int *a1, void **a2, CUdeviceptr a3)
{
	CUresult r = td_true->cuPointerGetAttributes(a0, a1, a2, a3);

	for (unsigned i = 0; !r && i < a0; i++)
		show_pointer(a2[i], a1[i]);
	return r;
}

void *td_place_adapter(unsigned symbol)
{
	switch (symbol) {
#define PLACED(symbol)                                                                             \
	case TD_SYMBOL_##symbol: return (void *)place_##symbol
		PLACED(cuMemGetAllocationPropertiesFromHandle);
		PLACED(cuMemPoolCreate);
		PLACED(cuMemPoolSetAccess);
		PLACED(cuMemPoolGetAccess);
		PLACED(cuMemGetDefaultMemPool);
		PLACED(cuMemGetMemPool);
		PLACED(cuMemSetMemPool);
		PLACED(cuMemPrefetchBatchAsync);
		PLACED(cuMemPrefetchBatchAsync_ptsz);
		PLACED(cuMemDiscardAndPrefetchBatchAsync);
		PLACED(cuMemDiscardAndPrefetchBatchAsync_ptsz);
		PLACED(cuMemRangeGetAttribute);
		PLACED(cuMemRangeGetAttributes);
		PLACED(cuPointerGetAttribute);
		PLACED(cuPointerGetAttributes);
#undef PLACED
	default: return NULL;
	}
}
