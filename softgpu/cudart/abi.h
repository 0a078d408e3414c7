/*
 * The part of the CUDA 13.0 runtime's binary interface that libcudart.so.13 needs: structs and
 * numbers under the names of driver_types.h. Handles are those of the driver. A test compares every
 * struct's size and offsets where NVIDIA's headers exist.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda/types.h"

#define CUDART_VERSION 13000

enum {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInitializationError = 3,
	cudaErrorInvalidConfiguration = 9,
	cudaErrorInvalidPitchValue = 12,
	cudaErrorInvalidSymbol = 13,
	cudaErrorInvalidChannelDescriptor = 20,
	cudaErrorInvalidMemcpyDirection = 21,
	cudaErrorInsufficientDriver = 35,
	cudaErrorMissingConfiguration = 52,
	cudaErrorInvalidDeviceFunction = 98,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidDevice = 101,
	cudaErrorInvalidKernelImage = 200,
	cudaErrorNoKernelImageForDevice = 209,
	cudaErrorInvalidResourceHandle = 400,
	cudaErrorSymbolNotFound = 500,
	cudaErrorNotReady = 600,
	cudaErrorNotSupported = 801,
	cudaErrorUnknown = 999,
};

enum {
	cudaMemcpyHostToHost = 0,
	cudaMemcpyHostToDevice = 1,
	cudaMemcpyDeviceToHost = 2,
	cudaMemcpyDeviceToDevice = 3,
	cudaMemcpyDefault = 4,
};

enum {
	cudaMemoryTypeUnregistered = 0,
	cudaMemoryTypeHost = 1,
	cudaMemoryTypeDevice = 2,
	cudaMemoryTypeManaged = 3,
};

enum { cudaInvalidDeviceId = -2, cudaCpuDeviceId = -1 };
enum { cudaDeviceMapHost = 8, cudaInitDeviceFlagsAreValid = 1 };
enum { cudaEventDefault = 0 };

enum {
	cudaChannelFormatKindSigned = 0,
	cudaChannelFormatKindUnsigned = 1,
	cudaChannelFormatKindFloat = 2,
	cudaChannelFormatKindNone = 3,
};

enum {
	cudaResourceTypeArray = 0,
	cudaResourceTypeMipmappedArray = 1,
	cudaResourceTypeLinear = 2,
	cudaResourceTypePitch2D = 3,
};

enum {
	cudaGraphNodeTypeKernel = 0,
	cudaGraphNodeTypeMemcpy = 1,
	cudaGraphNodeTypeMemset = 2,
	cudaGraphNodeTypeHost = 3,
	cudaGraphNodeTypeGraph = 4,
	cudaGraphNodeTypeEmpty = 5,
	cudaGraphNodeTypeWaitEvent = 6,
	cudaGraphNodeTypeEventRecord = 7,
	cudaGraphNodeTypeMemAlloc = 10,
	cudaGraphNodeTypeMemFree = 11,
	cudaGraphNodeTypeConditional = 13,
};

typedef struct {
	unsigned x, y, z;
} dim3;

struct cudaPos {
	size_t x, y, z;
};

struct cudaExtent {
	size_t width, height, depth;
};

struct cudaPitchedPtr {
	void *ptr;
	size_t pitch, xsize, ysize;
};

struct cudaChannelFormatDesc {
	int x, y, z, w;
	int f;
};

struct cudaMemcpy3DParms {
	void *srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	void *dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	struct cudaExtent extent;
	int kind;
};

struct cudaMemcpy3DPeerParms {
	void *srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	int srcDevice;
	void *dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	int dstDevice;
	struct cudaExtent extent;
};

struct cudaMemcpyNodeParams {
	int flags;
	int reserved[3];
	struct cudaMemcpy3DParms copyParams;
};

struct cudaMemsetParams {
	void *dst;
	size_t pitch;
	unsigned value, elementSize;
	size_t width, height;
};

struct cudaHostNodeParams {
	CUhostFn fn;
	void *userData;
};

struct cudaKernelNodeParams {
	void *func;
	dim3 gridDim, blockDim;
	unsigned sharedMemBytes;
	void **kernelParams, **extra;
};

struct cudaChildGraphNodeParams {
	void *graph;
	int ownership;
};

struct cudaEventRecordNodeParams {
	CUevent event;
};

struct cudaMemPoolProps {
	int allocType, handleTypes;
	CUmemLocation location;
	void *win32SecurityAttributes;
	size_t maxSize;
	unsigned short usage;
	unsigned char reserved[54];
};

struct cudaMemAllocNodeParams {
	struct cudaMemPoolProps poolProps;
	const CUmemAccessDesc *accessDescs;
	size_t accessDescCount, bytesize;
	void *dptr;
};

struct cudaConditionalNodeParams {
	unsigned long long handle;
	int type;
	unsigned size;
	void **phGraph_out;
};

struct cudaGraphNodeParams {
	int type;
	int reserved0[3];
	union {
		long long reserved1[29];
		struct cudaKernelNodeParams kernel;
		struct cudaMemcpyNodeParams memcpy;
		struct cudaMemsetParams memset;
		struct cudaHostNodeParams host;
		struct cudaChildGraphNodeParams graph;
		struct cudaEventRecordNodeParams eventRecord;
		struct cudaMemAllocNodeParams alloc;
		struct cudaConditionalNodeParams conditional;
	};
	long long reserved2;
};

struct cudaPointerAttributes {
	int type, device;
	void *devicePointer, *hostPointer;
	long reserved[8];
};

struct cudaFuncAttributes {
	size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
	int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
	int maxDynamicSharedSizeBytes, preferredShmemCarveout, clusterDimMustBeSet;
	int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
	int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
	int reserved[16];
};

struct cudaLaunchConfig_st {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	CUstream stream;
	CUlaunchAttribute *attrs;
	unsigned numAttrs;
};

struct cudaResourceDesc {
	int resType;
	union {
		struct {
			void *array;
		} array;
		struct {
			void *mipmap;
		} mipmap;
		struct {
			void *devPtr;
			struct cudaChannelFormatDesc desc;
			size_t sizeInBytes;
		} linear;
		struct {
			void *devPtr;
			struct cudaChannelFormatDesc desc;
			size_t width, height, pitchInBytes;
		} pitch2D;
		struct {
			int reserved[32];
		} reserved;
	} res;
	unsigned flags;
};

struct cudaTextureDesc {
	int addressMode[3];
	int filterMode, readMode, sRGB;
	float borderColor[4];
	int normalizedCoords;
	unsigned maxAnisotropy;
	int mipmapFilterMode;
	float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
	int disableTrilinearOptimization, seamlessCubemap;
};

struct cudaDeviceProp {
	char name[256];
	CUuuid uuid;
	char luid[8];
	unsigned luidDeviceNodeMask;
	size_t totalGlobalMem, sharedMemPerBlock;
	int regsPerBlock, warpSize;
	size_t memPitch;
	int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
	size_t totalConstMem;
	int major, minor;
	size_t textureAlignment, texturePitchAlignment;
	int multiProcessorCount, integrated, canMapHostMemory;
	int maxTexture1D, maxTexture1DMipmap, maxTexture2D[2], maxTexture2DMipmap[2];
	int maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3];
	int maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3];
	int maxTextureCubemapLayered[2];
	int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2];
	int maxSurface2DLayered[3], maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
	size_t surfaceAlignment;
	int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
	int asyncEngineCount, unifiedAddressing, memoryBusWidth, l2CacheSize;
	int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
	int globalL1CacheSupported, localL1CacheSupported;
	size_t sharedMemPerMultiprocessor;
	int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
	int hostNativeAtomicSupported, pageableMemoryAccess, concurrentManagedAccess;
	int computePreemptionSupported, canUseHostPointerForRegisteredMem, cooperativeLaunch;
	size_t sharedMemPerBlockOptin;
	int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
	int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
	size_t reservedSharedMemPerBlock;
	int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
	int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
	unsigned gpuDirectRDMAFlushWritesOptions;
	int gpuDirectRDMAWritesOrdering;
	unsigned memoryPoolSupportedHandleTypes;
	int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
	int unifiedFunctionPointers, deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
	unsigned gpuPciDeviceID, gpuPciSubsystemID;
	int hostNumaMultinodeIpcSupported;
	int reserved[56];
};

_Static_assert(sizeof(struct cudaMemcpy3DParms) == 160, "cudaMemcpy3DParms of driver_types.h");
_Static_assert(
	sizeof(struct cudaMemcpy3DPeerParms) == 168, "cudaMemcpy3DPeerParms of driver_types.h");
_Static_assert(sizeof(struct cudaGraphNodeParams) == 256, "cudaGraphNodeParams of driver_types.h");
_Static_assert(sizeof(struct cudaKernelNodeParams) == 56, "cudaKernelNodeParams of driver_types.h");
_Static_assert(sizeof(struct cudaLaunchConfig_st) == 56, "cudaLaunchConfig_st of driver_types.h");
_Static_assert(sizeof(struct cudaDeviceProp) == 1008, "cudaDeviceProp of driver_types.h");
