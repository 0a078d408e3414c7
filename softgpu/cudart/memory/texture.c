/* Texture and surface objects: converts the runtime's descriptors to the driver's, and back. */
#include <string.h>

#include "softgpu/cudart/rt.h"

/* CUDA_RESOURCE_DESC of cuda.h */
struct resource {
	int type;
	union {
		void *array;
		struct {
			CUdeviceptr address;
			int format;
			unsigned channels;
			size_t bytes;
		} linear;
		struct {
			CUdeviceptr address;
			int format;
			unsigned channels;
			size_t width, height, pitch;
		} pitch2d;
		int reserved[32];
	};
	unsigned flags;
};
_Static_assert(sizeof(struct resource) == 144, "CUDA_RESOURCE_DESC of cuda.h");

/* CUDA_TEXTURE_DESC of cuda.h */
struct texture {
	int address_mode[3], filter;
	unsigned flags, max_anisotropy;
	int mipmap_filter;
	float bias, min_level, max_level, border[4];
	int reserved[12];
};
_Static_assert(sizeof(struct texture) == 104, "CUDA_TEXTURE_DESC of cuda.h");

/* CU_TRSF_* of cuda.h */
enum {
	READ_AS_INTEGER = 0x01,
	NORMALIZED_COORDINATES = 0x02,
	SRGB = 0x10,
	NO_TRILINEAR = 0x20,
	SEAMLESS_CUBEMAP = 0x40,
};

static int resource_from(const struct cudaResourceDesc *p, struct resource *ret)
{
	if (!p)
		return cudaErrorInvalidValue;
	memset(ret, 0, sizeof(*ret));
	ret->type = p->resType;
	ret->flags = p->flags;
	switch (p->resType) {
	case cudaResourceTypeArray:
	case cudaResourceTypeMipmappedArray: ret->array = p->res.array.array; return 0;
	case cudaResourceTypeLinear:
		ret->linear.address = (CUdeviceptr)p->res.linear.devPtr;
		ret->linear.bytes = p->res.linear.sizeInBytes;
		return rt_format_from(
			&p->res.linear.desc, &ret->linear.format, &ret->linear.channels);
	case cudaResourceTypePitch2D:
		ret->pitch2d.address = (CUdeviceptr)p->res.pitch2D.devPtr;
		ret->pitch2d.width = p->res.pitch2D.width;
		ret->pitch2d.height = p->res.pitch2D.height;
		ret->pitch2d.pitch = p->res.pitch2D.pitchInBytes;
		return rt_format_from(
			&p->res.pitch2D.desc, &ret->pitch2d.format, &ret->pitch2d.channels);
	default: return cudaErrorInvalidValue;
	}
}

static int resource_to(const struct resource *r, struct cudaResourceDesc *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->resType = r->type;
	ret->flags = r->flags;
	switch (r->type) {
	case cudaResourceTypeLinear:
		ret->res.linear.devPtr = (void *)r->linear.address;
		ret->res.linear.sizeInBytes = r->linear.bytes;
		return rt_format_to(r->linear.format, r->linear.channels, &ret->res.linear.desc);
	case cudaResourceTypePitch2D:
		ret->res.pitch2D.devPtr = (void *)r->pitch2d.address;
		ret->res.pitch2D.width = r->pitch2d.width;
		ret->res.pitch2D.height = r->pitch2d.height;
		ret->res.pitch2D.pitchInBytes = r->pitch2d.pitch;
		return rt_format_to(r->pitch2d.format, r->pitch2d.channels, &ret->res.pitch2D.desc);
	default: ret->res.array.array = r->array; return 0;
	}
}

static void texture_from(const struct cudaTextureDesc *p, struct texture *ret)
{
	*ret = (struct texture){
		.address_mode = {p->addressMode[0], p->addressMode[1], p->addressMode[2]},
		.filter = p->filterMode,
		.flags = (p->readMode ? 0u : READ_AS_INTEGER) |
			 (p->normalizedCoords ? NORMALIZED_COORDINATES : 0u) |
			 (p->sRGB ? SRGB : 0u) |
			 (p->disableTrilinearOptimization ? NO_TRILINEAR : 0u) |
			 (p->seamlessCubemap ? SEAMLESS_CUBEMAP : 0u),
		.max_anisotropy = p->maxAnisotropy,
		.mipmap_filter = p->mipmapFilterMode,
		.bias = p->mipmapLevelBias,
		.min_level = p->minMipmapLevelClamp,
		.max_level = p->maxMipmapLevelClamp};
	memcpy(ret->border, p->borderColor, sizeof(ret->border));
}

static void texture_to(const struct texture *t, struct cudaTextureDesc *ret)
{
	*ret = (struct cudaTextureDesc){
		.addressMode = {t->address_mode[0], t->address_mode[1], t->address_mode[2]},
		.filterMode = t->filter,
		.readMode = !(t->flags & READ_AS_INTEGER),
		.sRGB = !!(t->flags & SRGB),
		.normalizedCoords = !!(t->flags & NORMALIZED_COORDINATES),
		.maxAnisotropy = t->max_anisotropy,
		.mipmapFilterMode = t->mipmap_filter,
		.mipmapLevelBias = t->bias,
		.minMipmapLevelClamp = t->min_level,
		.maxMipmapLevelClamp = t->max_level,
		.disableTrilinearOptimization = !!(t->flags & NO_TRILINEAR),
		.seamlessCubemap = !!(t->flags & SEAMLESS_CUBEMAP)};
	memcpy(ret->borderColor, t->border, sizeof(ret->borderColor));
}

static int new_texture(unsigned long long *ret, const struct cudaResourceDesc *p,
	const struct cudaTextureDesc *how, const void *view)
{
	struct resource resource;
	struct texture texture;
	int error = how ? resource_from(p, &resource) : cudaErrorInvalidValue;

	if (error)
		return error;
	texture_from(how, &texture);
	return CU(cuTexObjectCreate)(ret, &resource, &texture, view);
}

static int new_surface(unsigned long long *ret, const struct cudaResourceDesc *p)
{
	struct resource resource;
	int error = resource_from(p, &resource);

	return error ? error : CU(cuSurfObjectCreate)(ret, &resource);
}

static int get_resource(struct cudaResourceDesc *ret, unsigned long long object,
	CUresult (*get)(void *, unsigned long long))
{
	struct resource resource;
	int error = ret ? get(&resource, object) : cudaErrorInvalidValue;

	return error ? error : resource_to(&resource, ret);
}

static int get_texture(struct cudaTextureDesc *ret, unsigned long long object)
{
	struct texture texture;
	int error = ret ? CU(cuTexObjectGetTextureDesc)(&texture, object) : cudaErrorInvalidValue;

	if (!error)
		texture_to(&texture, ret);
	return error;
}

/* The descriptor of a view is the same struct in both APIs. */
ONE(cudaCreateTextureObject,
	(unsigned long long *ret, const struct cudaResourceDesc *resource,
		const struct cudaTextureDesc *texture, const void *view),
	new_texture(ret, resource, texture, view))
ONE(cudaCreateSurfaceObject, (unsigned long long *ret, const struct cudaResourceDesc *resource),
	new_surface(ret, resource))
ONE(cudaGetTextureObjectResourceDesc, (struct cudaResourceDesc * ret, unsigned long long object),
	get_resource(ret, object, CU(cuTexObjectGetResourceDesc)))
ONE(cudaGetSurfaceObjectResourceDesc, (struct cudaResourceDesc * ret, unsigned long long object),
	get_resource(ret, object, CU(cuSurfObjectGetResourceDesc)))
ONE(cudaGetTextureObjectTextureDesc, (struct cudaTextureDesc * ret, unsigned long long object),
	get_texture(ret, object))
