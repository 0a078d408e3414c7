/*
 * The part of the CUDA driver API's binary interface that tandem uses: handles, error codes,
 * constants and structs. It is written out here so that the build needs no CUDA toolkit. Numbers
 * and layouts are those of CUDA 13.0's cuda.h, which 12.x shares; tests compare them where the
 * toolkit is present.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef void (*CUhostFn)(void *arg);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *arg);

/* Each row is X(name, number, meaning). */
#define CUDA_RESULTS(X)                                                                            \
	X(CUDA_SUCCESS, 0, "no error")                                                             \
	X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                                         \
	X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                                            \
	X(CUDA_ERROR_NOT_INITIALIZED, 3, "driver not initialised")                                 \
	X(CUDA_ERROR_DEINITIALIZED, 4, "driver shutting down")                                     \
	X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46, "device busy or unavailable")                         \
	X(CUDA_ERROR_NO_DEVICE, 100, "no device")                                                  \
	X(CUDA_ERROR_INVALID_DEVICE, 101, "no such device")                                        \
	X(CUDA_ERROR_INVALID_IMAGE, 200, "invalid kernel image")                                   \
	X(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid context")                                      \
	X(CUDA_ERROR_MAP_FAILED, 205, "mapping failed")                                            \
	X(CUDA_ERROR_ALREADY_MAPPED, 208, "already mapped")                                        \
	X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, "no kernel image for this device")                    \
	X(CUDA_ERROR_NOT_MAPPED, 211, "not mapped")                                                \
	X(CUDA_ERROR_ECC_UNCORRECTABLE, 214, "uncorrectable memory error")                         \
	X(CUDA_ERROR_UNSUPPORTED_LIMIT, 215, "limit not supported")                                \
	X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217, "no peer access between these devices")         \
	X(CUDA_ERROR_INVALID_PTX, 218, "invalid PTX")                                              \
	X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222, "the PTX is of a newer version")                \
	X(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, 224, "execution affinity not supported")           \
	X(CUDA_ERROR_FILE_NOT_FOUND, 301, "file not found")                                        \
	X(CUDA_ERROR_OPERATING_SYSTEM, 304, "operating system call failed")                        \
	X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid handle")                                        \
	X(CUDA_ERROR_ILLEGAL_STATE, 401, "not allowed in this state")                              \
	X(CUDA_ERROR_NOT_FOUND, 500, "not found")                                                  \
	X(CUDA_ERROR_NOT_READY, 600, "not ready")                                                  \
	X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "illegal memory access")                                \
	X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701, "too many resources asked for")                 \
	X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704, "peer access already enabled")              \
	X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705, "peer access not enabled")                      \
	X(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708, "primary context in use")                        \
	X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "context is destroyed")                            \
	X(CUDA_ERROR_ASSERT, 710, "assertion in a kernel failed")                                  \
	X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712, "host memory already registered")        \
	X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713, "host memory not registered")                \
	X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714, "stack error in a kernel")                         \
	X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715, "illegal instruction")                              \
	X(CUDA_ERROR_MISALIGNED_ADDRESS, 716, "misaligned address")                                \
	X(CUDA_ERROR_LAUNCH_FAILED, 719, "kernel failed")                                          \
	X(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720, "cooperative launch too large")            \
	X(CUDA_ERROR_NOT_PERMITTED, 800, "not permitted")                                          \
	X(CUDA_ERROR_NOT_SUPPORTED, 801, "not supported")                                          \
	X(CUDA_ERROR_MPS_CONNECTION_FAILED, 805, "no connection to the MPS control daemon")        \
	X(CUDA_ERROR_MPS_RPC_FAILURE, 806, "the MPS server is gone")                               \
	X(CUDA_ERROR_MPS_SERVER_NOT_READY, 807, "the MPS server takes no clients now")             \
	X(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, 808, "the MPS server has no room for more clients")  \
	X(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810, "the MPS server has terminated this client")      \
	X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900, "not permitted while a stream captures")     \
	X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906, "would depend on a capturing stream")           \
	X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

#define X(name, number, text) name = number,
enum { CUDA_RESULTS(X) };
#undef X

#define CU_STREAM_LEGACY     ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum {
	CU_EVENT_DEFAULT = 0,
	CU_EVENT_BLOCKING_SYNC = 1,
	CU_EVENT_DISABLE_TIMING = 2,
	CU_EVENT_INTERPROCESS = 4
};
enum { CU_STREAM_CAPTURE_STATUS_NONE = 0, CU_STREAM_CAPTURE_STATUS_ACTIVE = 1 };
enum {
	CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
	CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
	CU_STREAM_CAPTURE_MODE_RELAXED = 2
};
enum { CU_MEM_ATTACH_GLOBAL = 1, CU_MEM_ATTACH_HOST = 2 };
enum {
	CU_GET_PROC_ADDRESS_DEFAULT = 0,
	CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1,
	CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2
};
enum {
	CU_GET_PROC_ADDRESS_SUCCESS = 0,
	CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
	CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2
};

/* Markers of a launch's `extra` list: its end, the argument buffer, and that buffer's size. */
#define CU_LAUNCH_PARAM_END            ((void *)0x00)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x01)
#define CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *)0x02)

enum {
	CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
	CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1,
	CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
	CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3,
	CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
	CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
	CU_LAUNCH_ATTRIBUTE_PRIORITY = 8
};

enum {
	CU_MEM_LOCATION_TYPE_DEVICE = 1,
	CU_MEM_LOCATION_TYPE_HOST = 2,
	CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
	CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
};
enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum {
	CU_MEM_ACCESS_FLAGS_PROT_NONE = 0,
	CU_MEM_ACCESS_FLAGS_PROT_READ = 1,
	CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3
};

typedef struct {
	int type;
	int id;
} CUmemLocation;

typedef struct {
	int type, requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType, gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;

typedef struct {
	CUmemLocation location;
	int flags;
} CUmemAccessDesc;

typedef struct {
	int id;
	char pad[4];
	union {
		char bytes[64];
		int cooperative;
		int programmaticStreamSerializationAllowed;
	} value;
} CUlaunchAttribute;

typedef struct {
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned numAttrs;
} CUlaunchConfig;

typedef struct {
	unsigned char bytes[16];
} CUuuid;

typedef struct {
	char reserved[64];
} CUipcMemHandle, CUipcEventHandle;

_Static_assert(sizeof(CUmemAllocationProp) == 32, "CUmemAllocationProp of cuda.h");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "CUmemAccessDesc of cuda.h");
_Static_assert(sizeof(CUlaunchAttribute) == 72, "CUlaunchAttribute of cuda.h");
_Static_assert(sizeof(CUlaunchConfig) == 56, "CUlaunchConfig of cuda.h");

/* The device attributes that tandem reads or answers. */
enum {
	CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
	CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
	CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
	CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
	CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
	CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
	CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
	CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
	CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9,
	CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
	CU_DEVICE_ATTRIBUTE_MAX_PITCH = 11,
	CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
	CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
	CU_DEVICE_ATTRIBUTE_GPU_OVERLAP = 15,
	CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
	CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
	CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
	CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
	CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
	CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
	CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED = 78,
	CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
	CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
	CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
	CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
	CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED = 90,
	CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
	CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
	CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
	CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID = 134,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 141,
	CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 145,
};
