/*
 * Hooks for calls that take or give back memory that the backend cannot move: unified memory, VMM,
 * arrays, other APIs' memory.
 */
#include <stddef.h>

#include "cuda/objects.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/outside/outside.h"
#include "preload/rehome/rehome.h"
#include "preload/swap/swap.h"

/* Claims the memory, calls the driver, and records the handle that the driver wrote. */
#define TAKING(symbol, device, kind, bytes, what)                                                  \
	do {                                                                                       \
		struct td_outside_claim claim_;                                                    \
		CUresult r_ = td_outside_claim(&claim_, device, kind, bytes);                      \
		if (r_)                                                                            \
			return r_;                                                                 \
		do {                                                                               \
			/* A move to another GPU must not come between the call and its record. */ \
			td_rehome_begin();                                                         \
			r_ = td_real.symbol TD_ARGS_##symbol;                                      \
			if (!r_) {                                                                 \
				r_ = td_outside_settle(&claim_, r_, what, (uint64_t)*a0);          \
				td_rehome_end();                                                   \
				return r_;                                                         \
			}                                                                          \
			td_rehome_end();                                                           \
		} while (td_outside_again(&claim_, r_));                                           \
		return td_outside_settle(&claim_, r_, what, 0);                                    \
	} while (0)

CUresult td_hook_cuMemAllocManaged(CUdeviceptr *a0, size_t a1, unsigned a2)
{
	if (!a0 || !a1)
		return td_real.cuMemAllocManaged(a0, a1, a2);
	TAKING(cuMemAllocManaged, TD_DEVICE_CURRENT, TD_OUTSIDE_MANAGED, a1, TD_KEY_ADDRESS);
}

/* -- the 32-bit calls of programs from before CUDA 3.2 -- */

CUresult td_hook_cuMemAlloc(unsigned *a0, unsigned a1)
{
	if (!a0 || !a1)
		return td_real.cuMemAlloc(a0, a1);
	TAKING(cuMemAlloc, TD_DEVICE_CURRENT, TD_OUTSIDE_LEGACY, a1, TD_KEY_ADDRESS);
}

CUresult td_hook_cuMemAllocPitch(unsigned *a0, unsigned *a1, unsigned a2, unsigned a3, unsigned a4)
{
	/* The driver chooses the pitch. This is an upper bound of it. */
	uint64_t bytes = ((uint64_t)a2 + 511) / 512 * 512 * a3;

	if (!a0 || !a1)
		return td_real.cuMemAllocPitch(a0, a1, a2, a3, a4);
	TAKING(cuMemAllocPitch, TD_DEVICE_CURRENT, TD_OUTSIDE_LEGACY, bytes, TD_KEY_ADDRESS);
}

CUresult td_hook_cuMemFree(unsigned a0)
{
	struct td_key *key = td_outside_take(TD_KEY_ADDRESS, a0);

	return td_outside_end(key, td_real.cuMemFree(a0));
}

/* -- the program's own VMM: memory lasts as long as a handle or a mapping of it -- */

CUresult td_hook_cuMemCreate(CUmemGenericAllocationHandle *a0, size_t a1,
	const CUmemAllocationProp *a2, unsigned long long a3)
{
	if (!a0 || !a2 || a2->location.type != CU_MEM_LOCATION_TYPE_DEVICE || a2->location.id < 0)
		return td_real.cuMemCreate(a0, a1, a2, a3);
	TAKING(cuMemCreate, td_rehome_device(a2->location.id),
		a2->requestedHandleTypes ? TD_OUTSIDE_EXPORTABLE : TD_OUTSIDE_VMM, a1,
		TD_KEY_HANDLE);
}

/*
 * A multicast object takes no memory itself: memory of cuMemCreate is bound to it. It is recorded
 * so that its mappings are recognised.
 */
CUresult td_hook_cuMulticastCreate(CUmemGenericAllocationHandle *a0, const void *a1)
{
	CUresult r = td_real.cuMulticastCreate(a0, a1);

	if (!r && a0)
		td_outside_note(TD_OUTSIDE_SHARED, TD_KEY_HANDLE, *a0, 0);
	return r;
}

/* Returns the device of the memory, or a negative number if the driver does not say. */
static int device_of(CUmemGenericAllocationHandle handle)
{
	CUmemAllocationProp prop;

	return td_true->cuMemGetAllocationPropertiesFromHandle &&
			       !td_true->cuMemGetAllocationPropertiesFromHandle(&prop, handle) &&
			       prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE
		       ? prop.location.id
		       : -1;
}

/*
 * The process that exported the memory counts it as long as it has it open. After that, NVML shows
 * which processes hold it (docs/decisions/0009).
 */
CUresult td_hook_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *a0, void *a1, int a2)
{
	CUresult r = td_real.cuMemImportFromShareableHandle(a0, a1, a2);

	if (!r && a0)
		td_outside_note_import(device_of(*a0), *a0);
	return r;
}

CUresult td_hook_cuMemMap(CUdeviceptr a0, size_t a1, size_t a2, CUmemGenericAllocationHandle a3,
	unsigned long long a4)
{
	CUresult r = td_is_no_mapping(a0, a1) ? CUDA_ERROR_INVALID_VALUE
					      : td_real.cuMemMap(a0, a1, a2, a3, a4);

	if (!r)
		td_outside_alias(TD_KEY_HANDLE, a3, TD_KEY_MAPPING, a0, a1);
	return r;
}

CUresult td_hook_cuMemUnmap(CUdeviceptr a0, size_t a1)
{
	struct td_key *keys;

	if (td_is_no_mapping(a0, a1))
		return CUDA_ERROR_INVALID_VALUE;
	keys = td_outside_take_mappings(a0, a1);
	return td_outside_end(keys, td_real.cuMemUnmap(a0, a1));
}

CUresult td_hook_cuMemRelease(CUmemGenericAllocationHandle a0)
{
	struct td_key *key = td_outside_take(TD_KEY_HANDLE, a0);

	return td_outside_end(key, td_real.cuMemRelease(a0));
}

/*
 * -- arrays: the driver does not tell an array's size, so at least its elements are counted, in
 * blocks of 64 bytes by 8 rows --
 */

/*
 * Returns the bytes of one channel. Compressed and packed formats count as their largest variant.
 */
static uint64_t channel_bytes(int format)
{
	switch (format) {
	case 0x01:          /* CU_AD_FORMAT_UNSIGNED_INT8 */
	case 0x08:          /* CU_AD_FORMAT_SIGNED_INT8 */
	case 0xc0 ... 0xc5: /* [UN|S]NORM_INT8X[1|2|4] */
	case 0x91 ... 0x9e: /* CU_AD_FORMAT_BC*: 16 bytes for 16 elements, or less */ return 1;
	case 0x02: /* CU_AD_FORMAT_UNSIGNED_INT16 */
	case 0x09: /* CU_AD_FORMAT_SIGNED_INT16 */
	case 0x10: /* CU_AD_FORMAT_HALF */
	case 0xc6 ... 0xcb: /* [UN|S]NORM_INT16X[1|2|4] */ return 2;
	default: return 4;
	}
}

static uint64_t multiple(uint64_t n, uint64_t of)
{
	return (n + of - 1) / of * of;
}

/* Returns the bytes of an array. A size that overflows is one that the driver refuses. */
static uint64_t array_bytes(uint64_t width, uint64_t height, uint64_t depth, int format,
	unsigned channels, unsigned flags)
{
	uint64_t rows = height ? multiple(height, 8) : 1, row, plane, bytes;

	if (flags & (TD_ARRAY3D_SPARSE | TD_ARRAY3D_DEFERRED) ||
		__builtin_mul_overflow(
			width, channel_bytes(format) * (channels ? channels : 1), &row) ||
		__builtin_mul_overflow(multiple(row, 64), rows, &plane) ||
		__builtin_mul_overflow(plane, depth ? depth : 1, &bytes))
		return 0;
	return multiple(bytes, 512);
}

CUresult td_hook_cuArrayCreate_v2(void **a0, const void *a1)
{
	const struct td_array2d *d = a1;

	if (!a0 || !d)
		return td_real.cuArrayCreate_v2(a0, a1);
	TAKING(cuArrayCreate_v2, TD_DEVICE_CURRENT, TD_OUTSIDE_ARRAY,
		array_bytes(d->width, d->height, 0, d->format, d->channels, 0), TD_KEY_ARRAY);
}

CUresult td_hook_cuArrayCreate(void **a0, const void *a1)
{
	const struct td_array2d_v1 *d = a1;

	if (!a0 || !d)
		return td_real.cuArrayCreate(a0, a1);
	TAKING(cuArrayCreate, TD_DEVICE_CURRENT, TD_OUTSIDE_ARRAY,
		array_bytes(d->width, d->height, 0, d->format, d->channels, 0), TD_KEY_ARRAY);
}

static uint64_t array3d_bytes(const struct td_array3d *d)
{
	return array_bytes(d->width, d->height, d->depth, d->format, d->channels, d->flags);
}

CUresult td_hook_cuArray3DCreate_v2(void **a0, const void *a1)
{
	if (!a0 || !a1)
		return td_real.cuArray3DCreate_v2(a0, a1);
	TAKING(cuArray3DCreate_v2, TD_DEVICE_CURRENT, TD_OUTSIDE_ARRAY, array3d_bytes(a1),
		TD_KEY_ARRAY);
}

CUresult td_hook_cuArray3DCreate(void **a0, const void *a1)
{
	const struct td_array3d_v1 *d = a1;

	if (!a0 || !d)
		return td_real.cuArray3DCreate(a0, a1);
	TAKING(cuArray3DCreate, TD_DEVICE_CURRENT, TD_OUTSIDE_ARRAY,
		array_bytes(d->width, d->height, d->depth, d->format, d->channels, d->flags),
		TD_KEY_ARRAY);
}

static uint64_t half(uint64_t n)
{
	return n > 1 ? n / 2 : n;
}

/* Returns the bytes of all mipmap levels. The number of layers stays the same at each level. */
static uint64_t mipmap_bytes(struct td_array3d d, unsigned levels)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < levels && i < 32; i++) {
		bytes += array3d_bytes(&d);
		d.width = half(d.width);
		d.height = half(d.height);
		if (!(d.flags & 0x5)) /* CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_CUBEMAP */
			d.depth = half(d.depth);
	}
	return bytes;
}

CUresult td_hook_cuMipmappedArrayCreate(void **a0, const void *a1, unsigned a2)
{
	if (!a0 || !a1)
		return td_real.cuMipmappedArrayCreate(a0, a1, a2);
	TAKING(cuMipmappedArrayCreate, TD_DEVICE_CURRENT, TD_OUTSIDE_ARRAY,
		mipmap_bytes(*(const struct td_array3d *)a1, a2), TD_KEY_ARRAY);
}

CUresult td_hook_cuArrayDestroy(void *a0)
{
	struct td_key *key = td_outside_take(TD_KEY_ARRAY, (uint64_t)a0);

	return td_outside_end(key, td_real.cuArrayDestroy(a0));
}

CUresult td_hook_cuMipmappedArrayDestroy(void *a0)
{
	struct td_key *key = td_outside_take(TD_KEY_ARRAY, (uint64_t)a0);

	return td_outside_end(key, td_real.cuMipmappedArrayDestroy(a0));
}

/* -- memory imported from other APIs (Vulkan and so on), which no limit counts -- */

CUresult td_hook_cuImportExternalMemory(void **a0, const void *a1)
{
	const struct td_external_memory *d = a1;

	if (!a0 || !d)
		return td_real.cuImportExternalMemory(a0, a1);
	TAKING(cuImportExternalMemory, TD_DEVICE_CURRENT, TD_OUTSIDE_EXTERNAL, d->bytes,
		TD_KEY_EXTERNAL);
}

CUresult td_hook_cuDestroyExternalMemory(void *a0)
{
	struct td_key *key = td_outside_take(TD_KEY_EXTERNAL, (uint64_t)a0);

	return td_outside_end(key, td_real.cuDestroyExternalMemory(a0));
}
