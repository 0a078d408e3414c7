/* What the files about copies share: where an address lies, and rectangular copies. */
#pragma once

#include "softgpu/driver/graph/graph.h"

enum sg_place { SG_ON_DEVICE, SG_ON_HOST_PINNED, SG_ON_HOST };

struct sg_where {
	enum sg_place place;
	uint32_t device;                /* of SG_ON_DEVICE */
	const struct CUctx_st *context; /* whose allocation it is; NULL: none's */
};

/* Where [address, address + bytes) lies; INVALID_VALUE for device addresses that are not all allocated. */
int sg_locate(uint64_t address, uint64_t bytes, struct sg_where *ret);
/* Copies between two devices cross the link of the stream's device. */
enum sg_engine sg_copy_engine(struct sg_where to, struct sg_where from);
uint32_t sg_copy_flags(struct sg_where to, struct sg_where from);

/* One side of a copy in rows and slices: row y of slice z begins at address + z * slice + y * pitch. */
struct sg_side {
	uint64_t address, pitch, slice;
	struct sg_where where;
	bool in_array;
};

struct sg_box {
	struct sg_side to, from;
	size_t width, height, depth; /* width: bytes */
};

/* Checks the parameters of cuda.h's 3D copy and finds both sides. */
int sg_box_of(const CUDA_MEMCPY3D *copy, struct sg_box *ret);
/* To be queued; params: to be told again by cuGraphMemcpyNodeGetParams. */
int sg_work_box(const struct sg_box *box, const CUDA_MEMCPY3D *params, struct sg_work **ret);
/* NULL: another kind of operation. */
const struct sg_box *sg_work_box_of(const struct sg_work *work);
/* What a copy node's operation was made from. */
bool sg_work_box_params(const struct sg_work *work, CUDA_MEMCPY3D *ret);
bool sg_work_copy_params(const struct sg_work *work, CUDA_MEMCPY3D *ret);
bool sg_work_set_params(const struct sg_work *work, CUDA_MEMSET_NODE_PARAMS *ret);

/* Arrays (array.c). Their memory is linear here: nothing can see how it lies. */
struct CUarray_st {
	uint64_t magic;
	struct td_list link;
	struct CUctx_st *context;
	struct CUmipmappedArray_st *mipmap; /* whose level it is */
	size_t width, height, depth;        /* elements; height and depth 0 as it was created */
	int format;
	unsigned channels, flags, element_bytes;
	uint64_t address, pitch, slice;
};
typedef struct CUarray_st *CUarray;
CUarray sg_array_find(CUarray handle); /* NULL: none */
void sg_array_context_gone(struct CUctx_st *context);
