/*
 * Arrays and mipmapped arrays. Only copies can access them, because textures and surfaces are not
 * supported. Each takes its bytes from the device as cuMemAlloc does. Packed, planar and compressed
 * formats are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/copy/copy.h"
#include "softgpu/driver/copy/copy_abi.h"

#define ARRAY_MAGIC 0x7367617272ull
#define ROW_ALIGN   512u
/* limits as cuDeviceGetAttribute reports them, from compute capability 7.0 */
#define MAX_1D       131072u
#define MAX_2D_WIDTH 131072u
#define MAX_2D_ROWS  65536u
#define MAX_3D       16384u
#define MAX_LAYERS   2048u
#define MAX_CUBE     32768u
#define MAX_FACES    2046u
#define MAX_GATHER   32768u

struct CUmipmappedArray_st {
	struct td_list link;
	unsigned levels;
	CUarray level[32];
};
typedef struct CUmipmappedArray_st *CUmipmappedArray;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct td_list arrays = {&arrays, &arrays}, mipmaps = {&mipmaps, &mipmaps};

CUarray sg_array_find(CUarray handle)
{
	CUarray found = NULL;
	struct td_list *it;

	pthread_mutex_lock(&lock);
	td_list_for_each (it, &arrays)
		if (td_container_of(it, struct CUarray_st, link) == handle)
			found = handle;
	pthread_mutex_unlock(&lock);
	return found;
}

/* Returns the bytes of one channel, 0 for an unsupported format. */
static unsigned channel_bytes(int format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8: return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF: return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT: return 4;
	default: return 0;
	}
}

/* Checks the shape of each kind of array as cuda.h specifies at cuArray3DCreate. */
static int check_shape(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	bool layered = d->Flags & CUDA_ARRAY3D_LAYERED;

	/* cuda.h: "Texture gather can only be performed on 2D CUDA arrays." */
	if (d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER &&
		(d->Depth || !d->Height || d->Width > MAX_GATHER || d->Height > MAX_GATHER))
		return CUDA_ERROR_INVALID_VALUE;
	if (d->Flags & CUDA_ARRAY3D_CUBEMAP)
		return d->Width == d->Height && d->Width && d->Width <= MAX_CUBE && d->Depth &&
				       (layered ? d->Depth % 6 == 0 && d->Depth <= MAX_FACES
						: d->Depth == 6)
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	if (layered)
		return d->Width && d->Width <= MAX_3D * 2 && d->Height <= MAX_3D * 2 && d->Depth &&
				       d->Depth <= MAX_LAYERS
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	if (!d->Width || (d->Depth && !d->Height))
		return CUDA_ERROR_INVALID_VALUE;
	if (d->Depth)
		return d->Width <= MAX_3D && d->Height <= MAX_3D && d->Depth <= MAX_3D
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	if (d->Height)
		return d->Width <= MAX_2D_WIDTH && d->Height <= MAX_2D_ROWS
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	return d->Width <= MAX_1D ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int check(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	static const unsigned known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
				      CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
				      CUDA_ARRAY3D_DEPTH_TEXTURE;

	if (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4)
		return CUDA_ERROR_INVALID_VALUE;
	/* sparse, deferred-mapping and interop arrays, packed formats */
	if (d->Flags & ~known || !channel_bytes(d->Format))
		return CUDA_ERROR_NOT_SUPPORTED;
	return check_shape(d);
}

/* Computes the array's struct without allocating memory. */
static struct CUarray_st measure(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	struct CUarray_st array = {.magic = ARRAY_MAGIC,
		.width = d->Width,
		.height = d->Height,
		.depth = d->Depth,
		.format = d->Format,
		.channels = d->NumChannels,
		.flags = d->Flags,
		.element_bytes = channel_bytes(d->Format) * d->NumChannels};

	array.pitch =
		(array.width * array.element_bytes + ROW_ALIGN - 1) & ~(uint64_t)(ROW_ALIGN - 1);
	array.slice = array.pitch * (array.height ? array.height : 1);
	return array;
}

static uint64_t bytes_of(const struct CUarray_st *array)
{
	return array->slice * (array->depth ? array->depth : 1);
}

static int new_array(struct CUctx_st *context, const CUDA_ARRAY3D_DESCRIPTOR *d,
	struct CUmipmappedArray_st *mipmap, CUarray *ret)
{
	struct CUarray_st *array = calloc(1, sizeof(*array));
	int r;

	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*array = measure(d);
	array->context = context;
	array->mipmap = mipmap;
	r = sg_memory_alloc(context, bytes_of(array), true, &array->address);
	if (r) {
		free(array);
		return r;
	}
	pthread_mutex_lock(&lock);
	td_list_append(&arrays, &array->link);
	pthread_mutex_unlock(&lock);
	*ret = array;
	return CUDA_SUCCESS;
}

static void free_array(CUarray array)
{
	pthread_mutex_lock(&lock);
	td_list_remove(&array->link);
	pthread_mutex_unlock(&lock);
	(void)sg_memory_release(array->context, array->address);
	free(array);
}

/* Invalidates the arrays of a context. Their memory is freed with the context. */
void sg_array_context_gone(struct CUctx_st *context)
{
	struct td_list *it, *tmp;

	pthread_mutex_lock(&lock);
	td_list_for_each_safe (it, tmp, &mipmaps) {
		CUmipmappedArray mipmap = td_container_of(it, struct CUmipmappedArray_st, link);

		if (mipmap->level[0]->context != context)
			continue;
		td_list_remove(&mipmap->link);
		free(mipmap);
	}
	td_list_for_each_safe (it, tmp, &arrays) {
		CUarray array = td_container_of(it, struct CUarray_st, link);

		if (array->context != context)
			continue;
		td_list_remove(&array->link);
		free(array);
	}
	pthread_mutex_unlock(&lock);
}

static int create(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	struct CUctx_st *context;
	int r = sg_current_unsafe(&context);

	if (!r && (!ret || !d))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check(d);
	return r ? r : new_array(context, d, NULL, ret);
}

API CUresult cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	return create(ret, descriptor);
}

API CUresult cuArrayCreate_v2(CUarray *ret, const CUDA_ARRAY_DESCRIPTOR *d)
{
	if (!d)
		return create(ret, NULL);
	return create(ret, &(CUDA_ARRAY3D_DESCRIPTOR){.Width = d->Width,
				   .Height = d->Height,
				   .Format = d->Format,
				   .NumChannels = d->NumChannels});
}

API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *ret, CUarray array)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!sg_array_find(array))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (CUDA_ARRAY3D_DESCRIPTOR){array->width, array->height, array->depth, array->format,
		array->channels, array->flags};
	return CUDA_SUCCESS;
}

API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *ret, CUarray array)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!sg_array_find(array))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (CUDA_ARRAY_DESCRIPTOR){array->width, array->height, array->format, array->channels};
	return CUDA_SUCCESS;
}

/* Waits for work that may use the array, as cuMemFree does. */
API CUresult cuArrayDestroy(CUarray array)
{
	struct CUctx_st *context;
	int r = sg_current_unsafe(&context);

	if (r)
		return r;
	if (!sg_array_find(array) || array->mipmap)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_context_synchronize(context);
	if (array->context != context)
		(void)sg_context_synchronize(array->context);
	free_array(array);
	return r;
}

/*
 * cuda.h: "If the array is not allocated with CUDA_ARRAY3D_DEFERRED_MAPPING,
 * CUDA_ERROR_INVALID_VALUE will be returned". That flag is not supported, so this call never
 * succeeds.
 */
API CUresult cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUarray array, CUdevice device)
{
	int r = sg_ready();

	(void)device;
	if (r)
		return r;
	if (!sg_array_find(array))
		return CUDA_ERROR_INVALID_HANDLE;
	(void)ret;
	return CUDA_ERROR_INVALID_VALUE;
}

/* Only arrays of planar formats have planes, and those are not supported. */
API CUresult cuArrayGetPlane(CUarray *ret, CUarray array, unsigned plane)
{
	int r = sg_ready();

	(void)plane;
	if (r)
		return r;
	if (!sg_array_find(array))
		return CUDA_ERROR_INVALID_HANDLE;
	(void)ret;
	return CUDA_ERROR_INVALID_VALUE;
}

/* Sparse arrays are not supported. */
API CUresult cuArrayGetSparseProperties(void *ret, CUarray array)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!sg_array_find(array))
		return CUDA_ERROR_INVALID_HANDLE;
	(void)ret;
	return CUDA_ERROR_INVALID_VALUE;
}

/* -- mipmapped arrays -- */

static CUmipmappedArray find_mipmap(CUmipmappedArray handle)
{
	CUmipmappedArray found = NULL;
	struct td_list *it;

	pthread_mutex_lock(&lock);
	td_list_for_each (it, &mipmaps)
		if (td_container_of(it, struct CUmipmappedArray_st, link) == handle)
			found = handle;
	pthread_mutex_unlock(&lock);
	return found;
}

static void free_mipmap(CUmipmappedArray mipmap)
{
	for (unsigned i = 0; i < mipmap->levels; i++)
		free_array(mipmap->level[i]);
	free(mipmap);
}

static size_t half(size_t n)
{
	return n > 1 ? n / 2 : n;
}

/*
 * Each level has half the size of the one before; the number of layers stays. cuda.h, number of
 * levels: "clamped to the range [1, 1 + floor(log2(max(width, height, depth)))]".
 */
static int fill_mipmap(CUmipmappedArray mipmap, struct CUctx_st *context, CUDA_ARRAY3D_DESCRIPTOR d,
	unsigned wanted)
{
	bool layered = d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);

	do {
		int r = new_array(context, &d, mipmap, &mipmap->level[mipmap->levels]);

		if (r)
			return r;
		mipmap->levels++;
		if (d.Width <= 1 && d.Height <= 1 && (layered || d.Depth <= 1))
			break;
		d.Width = half(d.Width);
		d.Height = half(d.Height);
		d.Depth = layered ? d.Depth : half(d.Depth);
	} while (mipmap->levels < wanted && mipmap->levels < 32);
	return CUDA_SUCCESS;
}

API CUresult cuMipmappedArrayCreate(
	CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
	CUmipmappedArray mipmap;
	struct CUctx_st *context;
	int r = sg_current_unsafe(&context);

	if (!r && (!ret || !descriptor))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check(descriptor);
	if (r)
		return r;
	mipmap = calloc(1, sizeof(*mipmap));
	if (!mipmap)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = fill_mipmap(mipmap, context, *descriptor, levels ? levels : 1);
	if (r) {
		free_mipmap(mipmap);
		return r;
	}
	pthread_mutex_lock(&lock);
	td_list_append(&mipmaps, &mipmap->link);
	pthread_mutex_unlock(&lock);
	*ret = mipmap;
	return CUDA_SUCCESS;
}

API CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
	struct CUctx_st *context;
	int r = sg_current_unsafe(&context);

	if (r)
		return r;
	if (!find_mipmap(mipmap))
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_context_synchronize(context);
	if (mipmap->level[0]->context != context)
		(void)sg_context_synchronize(mipmap->level[0]->context);
	pthread_mutex_lock(&lock);
	td_list_remove(&mipmap->link);
	pthread_mutex_unlock(&lock);
	free_mipmap(mipmap);
	return r;
}

API CUresult cuMipmappedArrayGetLevel(CUarray *ret, CUmipmappedArray mipmap, unsigned level)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!find_mipmap(mipmap))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret || level >= mipmap->levels)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = mipmap->level[level];
	return CUDA_SUCCESS;
}

API CUresult cuMipmappedArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUmipmappedArray mipmap, CUdevice device)
{
	int r = sg_ready();

	(void)ret;
	(void)device;
	if (r)
		return r;
	return find_mipmap(mipmap) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

API CUresult cuMipmappedArrayGetSparseProperties(void *ret, CUmipmappedArray mipmap)
{
	int r = sg_ready();

	(void)ret;
	if (r)
		return r;
	return find_mipmap(mipmap) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}
