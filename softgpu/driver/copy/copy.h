/* Shared by the files about copies: the location of an address, and rectangular copies. */
#pragma once

#include "softgpu/driver/graph/graph.h"

enum sg_place { SG_ON_DEVICE, SG_ON_HOST_PINNED, SG_ON_HOST };

struct sg_where {
	enum sg_place place;
	uint32_t device;                /* if place is SG_ON_DEVICE */
	const struct CUctx_st *context; /* owner of the allocation; NULL: no context owns it */
};

/*
 * Tells where [address, address + bytes) lies. Returns INVALID_VALUE if it is in the device address
 * window and not fully allocated.
 */
int sg_locate(uint64_t address, uint64_t bytes, struct sg_where *ret);
/*
 * Returns the engine that performs a copy. A copy between two devices uses the link of the stream's
 * device.
 */
enum sg_engine sg_copy_engine(struct sg_where to, struct sg_where from);
uint32_t sg_copy_flags(struct sg_where to, struct sg_where from);

/*
 * One side of a copy of rows and slices. Row y of slice z begins at address + z * slice + y *
 * pitch.
 */
struct sg_side {
	uint64_t address, pitch, slice;
	struct sg_where where;
	bool in_array;
};

struct sg_box {
	struct sg_side to, from;
	size_t width, height, depth; /* width in bytes */
};

/* Checks the parameters of a CUDA_MEMCPY3D and resolves both sides. */
int sg_box_of(const CUDA_MEMCPY3D *copy, struct sg_box *ret);
/* Makes an operation for a stream. params is kept for cuGraphMemcpyNodeGetParams. */
int sg_work_box(const struct sg_box *box, const CUDA_MEMCPY3D *params, struct sg_work **ret);
/* Returns NULL if work is not a rectangular copy. */
const struct sg_box *sg_work_box_of(const struct sg_work *work);
/*
 * Returns the parameters that a copy or memset node's operation was made from; false if it is of
 * another kind.
 */
bool sg_work_box_params(const struct sg_work *work, CUDA_MEMCPY3D *ret);
bool sg_work_copy_params(const struct sg_work *work, CUDA_MEMCPY3D *ret);
bool sg_work_set_params(const struct sg_work *work, CUDA_MEMSET_NODE_PARAMS *ret);

/* A CUDA array (array.c). Its memory is linear, because no kernel can observe the layout here. */
struct CUarray_st {
	uint64_t magic;
	struct td_list link;
	struct CUctx_st *context;
	struct CUmipmappedArray_st *mipmap; /* the mipmapped array it is a level of; NULL: none */
	/* elements; height and depth are 0 if they were at creation */
	size_t width, height, depth;
	int format;
	unsigned channels, flags, element_bytes;
	uint64_t address, pitch, slice;
};
typedef struct CUarray_st *CUarray;
CUarray sg_array_find(CUarray handle); /* NULL if the handle is not live */
void sg_array_context_gone(struct CUctx_st *context);
