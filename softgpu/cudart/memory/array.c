/*
 * Arrays and mipmapped arrays. Channel descriptors are converted to the driver's formats and
 * channels.
 */
#include <string.h>

#include "softgpu/cudart/rt.h"

/* CUDA_ARRAY3D_DESCRIPTOR of cuda.h */
struct descriptor {
	size_t width, height, depth;
	int format;
	unsigned channels, flags;
};
_Static_assert(sizeof(struct descriptor) == 40, "CUDA_ARRAY3D_DESCRIPTOR of cuda.h");

/* CU_AD_FORMAT_* of cuda.h */
static const struct {
	int kind, bits, format;
} formats[] = {
	{cudaChannelFormatKindUnsigned, 8, 0x01},
	{cudaChannelFormatKindUnsigned, 16, 0x02},
	{cudaChannelFormatKindUnsigned, 32, 0x03},
	{cudaChannelFormatKindSigned, 8, 0x08},
	{cudaChannelFormatKindSigned, 16, 0x09},
	{cudaChannelFormatKindSigned, 32, 0x0a},
	{cudaChannelFormatKindFloat, 16, 0x10},
	{cudaChannelFormatKindFloat, 32, 0x20},
};
#define FORMAT_N (sizeof(formats) / sizeof(formats[0]))

/*
 * Returns the number of channels of equal width, which can be 1, 2 or 4; 0 for any other
 * descriptor.
 */
static unsigned channels_of(const struct cudaChannelFormatDesc *desc)
{
	unsigned n = !desc->x ? 0 : !desc->y ? 1 : !desc->z ? 2 : !desc->w ? 0 : 4;

	if ((n >= 2 && desc->y != desc->x) ||
		(n == 4 && (desc->z != desc->x || desc->w != desc->x)))
		return 0;
	if ((n == 1 && (desc->z || desc->w)) || (n == 2 && desc->w))
		return 0;
	return n;
}

int rt_format_from(
	const struct cudaChannelFormatDesc *desc, int *ret_format, unsigned *ret_channels)
{
	unsigned channels = channels_of(desc);

	for (size_t i = 0; channels && i < FORMAT_N; i++) {
		if (formats[i].kind == desc->f && formats[i].bits == desc->x) {
			*ret_format = formats[i].format;
			*ret_channels = channels;
			return 0;
		}
	}
	return cudaErrorInvalidChannelDescriptor;
}

int rt_format_to(int format, unsigned channels, struct cudaChannelFormatDesc *ret)
{
	for (size_t i = 0; i < FORMAT_N; i++) {
		int bits = formats[i].bits;

		if (formats[i].format != format)
			continue;
		*ret = (struct cudaChannelFormatDesc){bits, channels > 1 ? bits : 0,
			channels > 2 ? bits : 0, channels > 3 ? bits : 0, formats[i].kind};
		return 0;
	}
	return cudaErrorInvalidChannelDescriptor;
}

size_t rt_element_bytes(void *array)
{
	struct cudaChannelFormatDesc desc;
	struct descriptor d;

	if (CU(cuArray3DGetDescriptor_v2)(&d, array) || rt_format_to(d.format, d.channels, &desc))
		return 0;
	return (size_t)desc.x / 8 * d.channels;
}

static int describe(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
	unsigned flags, struct descriptor *ret)
{
	if (!desc)
		return cudaErrorInvalidValue;
	ret->width = extent.width;
	ret->height = extent.height;
	ret->depth = extent.depth;
	ret->flags = flags;
	return rt_format_from(desc, &ret->format, &ret->channels);
}

static int allocate(void **ret, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
	unsigned flags)
{
	struct descriptor d;
	int error = ret ? describe(desc, extent, flags, &d) : cudaErrorInvalidValue;

	return error ? error : CU(cuArray3DCreate_v2)(ret, &d);
}

static int allocate_mipmapped(void **ret, const struct cudaChannelFormatDesc *desc,
	struct cudaExtent extent, unsigned levels, unsigned flags)
{
	struct descriptor d;
	int error = ret ? describe(desc, extent, flags, &d) : cudaErrorInvalidValue;

	return error ? error : CU(cuMipmappedArrayCreate)(ret, &d, levels);
}

ONE(cudaMallocArray,
	(void **ret, const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
		unsigned flags),
	allocate(ret, desc, (struct cudaExtent){width, height, 0}, flags))
ONE(cudaMalloc3DArray,
	(void **ret, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
		unsigned flags),
	allocate(ret, desc, extent, flags))
ONE(cudaMallocMipmappedArray,
	(void **ret, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
		unsigned levels, unsigned flags),
	allocate_mipmapped(ret, desc, extent, levels, flags))
ONE(cudaFreeArray, (void *array), array ? CU(cuArrayDestroy)(array) : 0)
ONE(cudaFreeMipmappedArray, (void *array), array ? CU(cuMipmappedArrayDestroy)(array) : 0)

static int array_info(struct cudaChannelFormatDesc *ret_desc, struct cudaExtent *ret_extent,
	unsigned *ret_flags, void *array)
{
	struct cudaChannelFormatDesc desc;
	struct descriptor d;
	int error = CU(cuArray3DGetDescriptor_v2)(&d, array);

	if (!error)
		error = rt_format_to(d.format, d.channels, &desc);
	if (error)
		return error;
	if (ret_desc)
		*ret_desc = desc;
	if (ret_extent)
		*ret_extent = (struct cudaExtent){d.width, d.height, d.depth};
	if (ret_flags)
		*ret_flags = d.flags;
	return 0;
}

ONE(cudaArrayGetInfo,
	(struct cudaChannelFormatDesc * desc, struct cudaExtent *extent, unsigned *flags,
		void *array),
	array_info(desc, extent, flags, array))
ONE(cudaGetChannelDesc, (struct cudaChannelFormatDesc * desc, void *array),
	desc ? array_info(desc, NULL, NULL, array) : cudaErrorInvalidValue)

API struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int kind)
{
	return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
