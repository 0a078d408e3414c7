/*
 * Structs and constants of cuda.h for arrays, rectangular copies and batches of copies. They are
 * the same in CUDA 12.x and 13.0.
 */
#pragma once

#include "cuda/types.h"
#include "softgpu/driver/graph/graph_abi.h"

enum { CU_MEMORYTYPE_ARRAY = 3 };

typedef struct {
	size_t srcXInBytes, srcY;
	int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	void *srcArray;
	size_t srcPitch;
	size_t dstXInBytes, dstY;
	int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	void *dstArray;
	size_t dstPitch;
	size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	void *srcArray;
	CUcontext srcContext;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	void *dstArray;
	CUcontext dstContext;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_PEER;

enum {
	CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
	CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 2,
	CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 3,
};
enum { CU_MEMCPY_OPERAND_TYPE_POINTER = 1, CU_MEMCPY_OPERAND_TYPE_ARRAY = 2 };

typedef struct {
	int srcAccessOrder;
	CUmemLocation srcLocHint, dstLocHint;
	unsigned flags;
} CUmemcpyAttributes;

typedef struct {
	int type;
	union {
		struct {
			CUdeviceptr ptr;
			size_t rowLength, layerHeight;
			CUmemLocation locHint;
		} ptr;
		struct {
			void *array;
			struct {
				size_t x, y, z;
			} offset;
		} array;
	} op;
} CUmemcpy3DOperand;

typedef struct {
	CUmemcpy3DOperand src, dst;
	struct {
		size_t width, height, depth;
	} extent;
	int srcAccessOrder;
	unsigned flags;
} CUDA_MEMCPY3D_BATCH_OP;

enum {
	CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
	CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
	CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
	CU_AD_FORMAT_SIGNED_INT8 = 0x08,
	CU_AD_FORMAT_SIGNED_INT16 = 0x09,
	CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
	CU_AD_FORMAT_HALF = 0x10,
	CU_AD_FORMAT_FLOAT = 0x20,
};
enum {
	CUDA_ARRAY3D_LAYERED = 0x01,
	CUDA_ARRAY3D_SURFACE_LDST = 0x02,
	CUDA_ARRAY3D_CUBEMAP = 0x04,
	CUDA_ARRAY3D_TEXTURE_GATHER = 0x08,
	CUDA_ARRAY3D_DEPTH_TEXTURE = 0x10,
};

typedef struct {
	size_t Width, Height;
	int Format;
	unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
	size_t Width, Height, Depth;
	int Format;
	unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
	size_t size, alignment;
	unsigned reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;

_Static_assert(sizeof(CUDA_MEMCPY2D) == 128, "CUDA_MEMCPY2D of cuda.h");
_Static_assert(sizeof(CUDA_MEMCPY3D_PEER) == 200, "CUDA_MEMCPY3D_PEER of cuda.h");
_Static_assert(sizeof(CUmemcpyAttributes) == 24, "CUmemcpyAttributes of cuda.h");
_Static_assert(sizeof(CUmemcpy3DOperand) == 40, "CUmemcpy3DOperand of cuda.h");
_Static_assert(sizeof(CUDA_MEMCPY3D_BATCH_OP) == 112, "CUDA_MEMCPY3D_BATCH_OP of cuda.h");
_Static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR) == 24, "CUDA_ARRAY_DESCRIPTOR of cuda.h");
_Static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40, "CUDA_ARRAY3D_DESCRIPTOR of cuda.h");
_Static_assert(
	sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) == 32, "CUDA_ARRAY_MEMORY_REQUIREMENTS of cuda.h");
