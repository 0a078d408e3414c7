/*
 * Structs of cuda.h for memory that does not come from cuMemAlloc: arrays, pools, allocations in
 * graphs, memory of other APIs. Layouts are those of CUDA 13.0; 11.4 to 12.x have the same.
 */
#pragma once

#include "cuda/types.h"

struct td_array2d {
	size_t width, height;
	int format;
	unsigned channels;
};

struct td_array2d_v1 {
	unsigned width, height;
	int format;
	unsigned channels;
};

struct td_array3d {
	size_t width, height, depth;
	int format;
	unsigned channels, flags;
};

struct td_array3d_v1 {
	unsigned width, height, depth;
	int format;
	unsigned channels, flags;
};

/* Arrays without memory of their own: cuMemMapArrayAsync maps memory of cuMemCreate into them. */
#define TD_ARRAY3D_SPARSE   0x40u
#define TD_ARRAY3D_DEFERRED 0x80u

/*
 * Attributes that tell how much device memory a pool or the graphs hold: numbers of
 * CUmemPool_attribute and CUgraphMem_attribute.
 */
#define TD_POOL_ATTR_RESERVED  5
#define TD_POOL_ATTR_USED      7
#define TD_GRAPH_ATTR_USED     0
#define TD_GRAPH_ATTR_RESERVED 2

/* The part of CUmemPoolProps that is read. */
struct td_pool_props {
	int type, handle_types;
	CUmemLocation location;
	char rest[72];
};

/* The struct CUDA_MEM_ALLOC_NODE_PARAMS. */
struct td_alloc_node {
	struct td_pool_props pool;
	const void *access;
	size_t access_count, bytes;
	CUdeviceptr address;
};

/* The struct CUDA_KERNEL_NODE_PARAMS_v2; version 1 ends with `extra`. */
struct td_kernel_node {
	const void *function;
	unsigned grid[3], block[3], shared_bytes;
	void **params, **extra;
	const void *kernel;
	CUcontext context;
};

/* Values of CUgraphNodeType. */
#define TD_NODE_KERNEL 0
#define TD_NODE_COPY   1
#define TD_NODE_SET    2
#define TD_NODE_GRAPH  4
#define TD_NODE_ALLOC  10

/* The struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC. */
struct td_external_memory {
	int type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
	} handle;
	unsigned long long bytes;
	unsigned flags, reserved[16];
};

/* One side (source or destination) of CUDA_MEMCPY2D. */
struct td_copy2d_side {
	size_t x, y;
	int type; /* enum CUmemorytype */
	const void *host;
	CUdeviceptr device;
	void *array;
	size_t pitch;
};

struct td_copy2d {
	struct td_copy2d_side from, to;
	size_t width, height; /* width in bytes */
};

/*
 * One side of CUDA_MEMCPY3D or CUDA_MEMCPY3D_PEER. The second has a context where the first has a
 * reserved field.
 */
struct td_copy3d_side {
	size_t x, y, z, lod;
	int type;
	const void *host;
	CUdeviceptr device;
	void *array, *context;
	size_t pitch, height;
};

struct td_copy3d {
	struct td_copy3d_side from, to;
	size_t width, height, depth;
};

/* Values of CUmemorytype in which `device` of a side is an address of device or unified memory. */
#define TD_COPY_DEVICE  2
#define TD_COPY_UNIFIED 4

/* One operand of CUDA_MEMCPY3D_BATCH_OP. */
struct td_copy_operand {
	int type; /* enum CUmemcpy3DOperandType */
	union {
		struct {
			CUdeviceptr address;
			size_t row_length, layer_height;
			CUmemLocation near;
		} pointer;
		struct {
			void *array;
			size_t x, y, z;
		} array;
	};
};

#define TD_OPERAND_POINTER 1
#define TD_OPERAND_ARRAY   2

struct td_copy_op {
	struct td_copy_operand from, to;
	size_t width, height, depth; /* width in elements */
	int order;
	unsigned flags;
};

/* The common beginning of all versions of CUDA_MEMSET_NODE_PARAMS. */
struct td_set {
	CUdeviceptr address;
	size_t pitch;
	unsigned value, element_bytes;
	size_t width, height; /* width in elements */
};

/* The part of CUgraphNodeParams that is read. */
struct td_node_params {
	int type, reserved[3]; /* type: enum CUgraphNodeType */
	union {
		long long most[29];
		struct td_set set;
		struct {
			int flags, reserved;
			CUcontext context;
			struct td_copy3d copy;
		} copy;
		struct td_kernel_node kernel;
	};
	long long reserved2;
};

_Static_assert(sizeof(struct td_copy2d) == 128, "CUDA_MEMCPY2D of cuda.h");
_Static_assert(sizeof(struct td_copy3d) == 200, "CUDA_MEMCPY3D of cuda.h");
_Static_assert(sizeof(struct td_copy_operand) == 40, "CUmemcpy3DOperand of cuda.h");
_Static_assert(sizeof(struct td_copy_op) == 112, "CUDA_MEMCPY3D_BATCH_OP of cuda.h");
_Static_assert(sizeof(struct td_set) == 40, "CUDA_MEMSET_NODE_PARAMS of cuda.h");
_Static_assert(sizeof(struct td_node_params) == 256, "CUgraphNodeParams of cuda.h");
_Static_assert(sizeof(struct td_array2d) == 24, "CUDA_ARRAY_DESCRIPTOR of cuda.h");
_Static_assert(sizeof(struct td_array3d) == 40, "CUDA_ARRAY3D_DESCRIPTOR of cuda.h");
_Static_assert(sizeof(struct td_pool_props) == 88, "CUmemPoolProps of cuda.h");
_Static_assert(sizeof(struct td_kernel_node) == 72, "CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h");
_Static_assert(sizeof(struct td_alloc_node) == 120, "CUDA_MEM_ALLOC_NODE_PARAMS of cuda.h");
_Static_assert(
	sizeof(struct td_external_memory) == 104, "CUDA_EXTERNAL_MEMORY_HANDLE_DESC of cuda.h");

/* Numbers of CUpointer_attribute that are answered for the backend's memory. */
#define TD_POINTER_CONTEXT                  1
#define TD_POINTER_MEMORY_TYPE              2
#define TD_POINTER_DEVICE_POINTER           3
#define TD_POINTER_HOST_POINTER             4
#define TD_POINTER_SYNC_MEMOPS              6
#define TD_POINTER_BUFFER_ID                7
#define TD_POINTER_IS_MANAGED               8
#define TD_POINTER_DEVICE_ORDINAL           9
#define TD_POINTER_IS_LEGACY_IPC_CAPABLE    10
#define TD_POINTER_RANGE_START_ADDR         11
#define TD_POINTER_RANGE_SIZE               12
#define TD_POINTER_MAPPED                   13
#define TD_POINTER_ALLOWED_HANDLE_TYPES     14
#define TD_POINTER_ACCESS_FLAGS             16
#define TD_POINTER_MEMPOOL_HANDLE           17
#define TD_POINTER_MAPPING_SIZE             18
#define TD_POINTER_MAPPING_BASE_ADDR        19
#define TD_POINTER_MEMORY_BLOCK_ID          20
#define TD_POINTER_IS_HW_DECOMPRESS_CAPABLE 21

#define TD_MEMORY_TYPE_DEVICE 2
#define TD_DEVICE_INVALID     (-2) /* CU_DEVICE_INVALID */
