/*
 * Structs and constants of cuda.h for graphs and stream capture. They are the same in CUDA 12.x and
 * 13.0.
 */
#pragma once

#include "cuda/types.h"
#include "softgpu/driver/memory/pool_abi.h"

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

/* X(name, number, description) */
#define GRAPH_RESULTS(X)                                                                           \
	X(CUDA_ERROR_LOSSY_QUERY, 402, "the answer would leave something out")                     \
	X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901, "the capture was spoilt by an earlier call") \
	X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902, "two captures cannot become one")                  \
	X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903, "the capture began in another stream")         \
	X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904, "a forked stream was not joined")               \
	X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905, "would depend on what is not captured")        \
	X(CUDA_ERROR_CAPTURED_EVENT, 907, "the event was recorded in a capture")                   \
	X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908, "the capture began in another thread")      \
	X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910, "the graphs differ too much for an update")

#define X(name, number, text) name = number,
enum { GRAPH_RESULTS(X) };
#undef X

enum { CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2 };
enum { CU_EVENT_RECORD_EXTERNAL = 1, CU_EVENT_WAIT_EXTERNAL = 1 };

enum {
	CU_GRAPH_NODE_TYPE_KERNEL = 0,
	CU_GRAPH_NODE_TYPE_MEMCPY = 1,
	CU_GRAPH_NODE_TYPE_MEMSET = 2,
	CU_GRAPH_NODE_TYPE_HOST = 3,
	CU_GRAPH_NODE_TYPE_GRAPH = 4,
	CU_GRAPH_NODE_TYPE_EMPTY = 5,
	CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
	CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
	CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
	CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
	CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
};

enum {
	CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
	CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED = 2,
	CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED = 3,
	CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED = 5,
	CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED = 8,
};

typedef struct {
	CUfunction func;
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	void **kernelParams, **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

typedef struct {
	CUDA_KERNEL_NODE_PARAMS_v1 v1;
	void *kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS_v2;

typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	void *srcArray, *reserved0;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	void *dstArray, *reserved1;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;
enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2, CU_MEMORYTYPE_UNIFIED = 4 };

typedef struct {
	CUdeviceptr dst;
	size_t pitch;
	unsigned value, elementSize;
	size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

/* A union in cuda.h. All its members have these fields at the same offsets. */
typedef struct {
	int operation;
	CUdeviceptr address;
	uint64_t value64;
	unsigned flags;
	CUdeviceptr alias;
	uint64_t pad;
} CUstreamBatchMemOpParams;

typedef struct {
	CUcontext ctx;
	unsigned count;
	CUstreamBatchMemOpParams *paramArray;
	unsigned flags;
} CUDA_BATCH_MEM_OP_NODE_PARAMS;

typedef struct {
	CUhostFn fn;
	void *userData;
} CUDA_HOST_NODE_PARAMS;

typedef struct {
	int result;
	CUgraphNode errorNode, errorFromNode;
} CUgraphExecUpdateResultInfo;

typedef struct {
	uint64_t flags;
	CUstream hUploadStream;
	CUgraphNode hErrNode_out;
	int result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

/* Ports and type of an edge. All zeros is a plain edge. */
typedef struct {
	unsigned char bytes[8];
} CUgraphEdgeData;

typedef struct {
	CUmemPoolProps poolProps;
	const CUmemAccessDesc *accessDescs;
	size_t accessDescCount;
	size_t bytesize;
	CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct {
	int flags, reserved;
	CUcontext copyCtx;
	CUDA_MEMCPY3D copyParams;
} CUDA_MEMCPY_NODE_PARAMS;

typedef struct {
	CUDA_MEMSET_NODE_PARAMS v1;
	CUcontext ctx;
} CUDA_MEMSET_NODE_PARAMS_v2;

typedef struct {
	int type, reserved0[3];
	union {
		long long reserved1[29];
		CUDA_KERNEL_NODE_PARAMS_v2 kernel;
		CUDA_MEMCPY_NODE_PARAMS memcpy;
		CUDA_MEMSET_NODE_PARAMS_v2 memset;
		CUDA_HOST_NODE_PARAMS host;
		struct {
			CUgraph graph;
			int ownership;
		} graph;
		CUevent event;
		CUDA_MEM_ALLOC_NODE_PARAMS alloc;
		CUdeviceptr free;
		CUDA_BATCH_MEM_OP_NODE_PARAMS memOp;
	};
	long long reserved2;
} CUgraphNodeParams;

enum {
	CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT = 0,
	CU_GRAPH_MEM_ATTR_USED_MEM_HIGH = 1,
	CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT = 2,
	CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH = 3,
};
enum {
	CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1,
	CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2,
	CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4,
	CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8,
};
enum { CU_GRAPH_USER_OBJECT_MOVE = 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1 };
enum { CU_STREAM_ADD_CAPTURE_DEPENDENCIES = 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES = 1 };

_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v1) == 56, "CUDA_KERNEL_NODE_PARAMS_v1 of cuda.h");
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v2) == 72, "CUDA_KERNEL_NODE_PARAMS_v2 of cuda.h");
_Static_assert(sizeof(CUDA_MEMCPY3D) == 200, "CUDA_MEMCPY3D of cuda.h");
_Static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS) == 40, "CUDA_MEMSET_NODE_PARAMS of cuda.h");
_Static_assert(sizeof(CUstreamBatchMemOpParams) == 48, "CUstreamBatchMemOpParams of cuda.h");
_Static_assert(
	sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS) == 32, "CUDA_BATCH_MEM_OP_NODE_PARAMS of cuda.h");
_Static_assert(sizeof(CUDA_HOST_NODE_PARAMS) == 16, "CUDA_HOST_NODE_PARAMS of cuda.h");
_Static_assert(sizeof(CUgraphExecUpdateResultInfo) == 24, "CUgraphExecUpdateResultInfo of cuda.h");
_Static_assert(
	sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == 32, "CUDA_GRAPH_INSTANTIATE_PARAMS of cuda.h");
_Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120, "CUDA_MEM_ALLOC_NODE_PARAMS of cuda.h");
_Static_assert(sizeof(CUDA_MEMCPY_NODE_PARAMS) == 216, "CUDA_MEMCPY_NODE_PARAMS of cuda.h");
_Static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS_v2) == 48, "CUDA_MEMSET_NODE_PARAMS_v2 of cuda.h");
_Static_assert(sizeof(CUgraphNodeParams) == 256, "CUgraphNodeParams of cuda.h");
_Static_assert(sizeof(CUgraphEdgeData) == 8, "CUgraphEdgeData of cuda.h");
