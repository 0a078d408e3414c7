/* Counts, attributes and properties of devices. context.c has a thread's choice of a device. */
#include <string.h>

#include "softgpu/cudart/rt.h"

API int cudaRuntimeGetVersion(int *version)
{
	if (!version)
		return rt_done(cudaErrorInvalidValue);
	*version = CUDART_VERSION;
	return rt_done(0);
}

/* Returns version 0 if there is no driver; that is not an error. */
API int cudaDriverGetVersion(int *version)
{
	if (!version)
		return rt_done(cudaErrorInvalidValue);
	*version = 0;
	if (rt_driver_init() == cudaErrorInsufficientDriver)
		return rt_done(0);
	return rt_done(CU(cuDriverGetVersion)(version));
}

API int cudaGetDeviceCount(int *count)
{
	int error = count ? rt_driver_init() : cudaErrorInvalidValue;

	if (count)
		*count = 0;
	if (!error)
		error = CU(cuDeviceGetCount)(count);
	if (!error && !*count)
		error = cudaErrorNoDevice;
	return rt_done(error);
}

/* Defines a call about a device, given by its ordinal. It needs no context. */
#define OF_DEVICE(name, parameters, call)                                                          \
	API int name parameters                                                                    \
	{                                                                                          \
		int error = rt_check_device(device);                                               \
                                                                                                   \
		return rt_done(error ? error : (call));                                            \
	}

OF_DEVICE(cudaDeviceGetAttribute, (int *value, int attribute, int device),
	CU(cuDeviceGetAttribute)(value, attribute, device))
OF_DEVICE(cudaDeviceGetPCIBusId, (char *id, int len, int device),
	CU(cuDeviceGetPCIBusId)(id, len, device))
OF_DEVICE(cudaDeviceGetDefaultMemPool, (void **pool, int device),
	CU(cuDeviceGetDefaultMemPool)(pool, device))
OF_DEVICE(cudaDeviceGetMemPool, (void **pool, int device), CU(cuDeviceGetMemPool)(pool, device))
OF_DEVICE(cudaDeviceSetMemPool, (int device, void *pool), CU(cuDeviceSetMemPool)(device, pool))
OF_DEVICE(cudaDeviceGraphMemTrim, (int device), CU(cuDeviceGraphMemTrim)(device))
OF_DEVICE(cudaDeviceGetGraphMemAttribute, (int device, int attribute, void *value),
	CU(cuDeviceGetGraphMemAttribute)(device, attribute, value))
OF_DEVICE(cudaDeviceSetGraphMemAttribute, (int device, int attribute, void *value),
	CU(cuDeviceSetGraphMemAttribute)(device, attribute, value))
OF_DEVICE(cudaDeviceGetHostAtomicCapabilities,
	(unsigned *capabilities, const int *operations, unsigned count, int device),
	CU(cuDeviceGetHostAtomicCapabilities)(capabilities, operations, count, device))

API int cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	int error = rt_driver_init();

	return rt_done(error ? error : CU(cuDeviceGetByPCIBusId)(device, id));
}

/*
 * One field of the properties: its offset and its attribute. Sizes are stored as size_t, other
 * fields as int.
 */
#define AT(field, attribute)                                                                       \
	{                                                                                          \
		offsetof(struct cudaDeviceProp, field),                                            \
			sizeof(((struct cudaDeviceProp *)0)->field), attribute                     \
	}
static const struct {
	size_t offset, bytes;
	int attribute;
} fields[] = {
	AT(maxThreadsPerBlock, 1),
	AT(maxThreadsDim[0], 2),
	AT(maxThreadsDim[1], 3),
	AT(maxThreadsDim[2], 4),
	AT(maxGridSize[0], 5),
	AT(maxGridSize[1], 6),
	AT(maxGridSize[2], 7),
	AT(sharedMemPerBlock, 8),
	AT(totalConstMem, 9),
	AT(warpSize, 10),
	AT(memPitch, 11),
	AT(regsPerBlock, 12),
	AT(textureAlignment, 14),
	AT(multiProcessorCount, 16),
	AT(integrated, 18),
	AT(canMapHostMemory, 19),
	AT(maxTexture1D, 21),
	AT(maxTexture2D[0], 22),
	AT(maxTexture2D[1], 23),
	AT(maxTexture3D[0], 24),
	AT(maxTexture3D[1], 25),
	AT(maxTexture3D[2], 26),
	AT(maxTexture2DLayered[0], 27),
	AT(maxTexture2DLayered[1], 28),
	AT(maxTexture2DLayered[2], 29),
	AT(surfaceAlignment, 30),
	AT(concurrentKernels, 31),
	AT(ECCEnabled, 32),
	AT(pciBusID, 33),
	AT(pciDeviceID, 34),
	AT(tccDriver, 35),
	AT(memoryBusWidth, 37),
	AT(l2CacheSize, 38),
	AT(maxThreadsPerMultiProcessor, 39),
	AT(asyncEngineCount, 40),
	AT(unifiedAddressing, 41),
	AT(maxTexture1DLayered[0], 42),
	AT(maxTexture1DLayered[1], 43),
	AT(maxTexture2DGather[0], 45),
	AT(maxTexture2DGather[1], 46),
	AT(maxTexture3DAlt[0], 47),
	AT(maxTexture3DAlt[1], 48),
	AT(maxTexture3DAlt[2], 49),
	AT(pciDomainID, 50),
	AT(texturePitchAlignment, 51),
	AT(maxTextureCubemap, 52),
	AT(maxTextureCubemapLayered[0], 53),
	AT(maxTextureCubemapLayered[1], 54),
	AT(maxSurface1D, 55),
	AT(maxSurface2D[0], 56),
	AT(maxSurface2D[1], 57),
	AT(maxSurface3D[0], 58),
	AT(maxSurface3D[1], 59),
	AT(maxSurface3D[2], 60),
	AT(maxSurface1DLayered[0], 61),
	AT(maxSurface1DLayered[1], 62),
	AT(maxSurface2DLayered[0], 63),
	AT(maxSurface2DLayered[1], 64),
	AT(maxSurface2DLayered[2], 65),
	AT(maxSurfaceCubemap, 66),
	AT(maxSurfaceCubemapLayered[0], 67),
	AT(maxSurfaceCubemapLayered[1], 68),
	AT(maxTexture2DLinear[0], 70),
	AT(maxTexture2DLinear[1], 71),
	AT(maxTexture2DLinear[2], 72),
	AT(maxTexture2DMipmap[0], 73),
	AT(maxTexture2DMipmap[1], 74),
	AT(major, 75),
	AT(minor, 76),
	AT(maxTexture1DMipmap, 77),
	AT(streamPrioritiesSupported, 78),
	AT(globalL1CacheSupported, 79),
	AT(localL1CacheSupported, 80),
	AT(sharedMemPerMultiprocessor, 81),
	AT(regsPerMultiprocessor, 82),
	AT(managedMemory, 83),
	AT(isMultiGpuBoard, 84),
	AT(multiGpuBoardGroupID, 85),
	AT(hostNativeAtomicSupported, 86),
	AT(pageableMemoryAccess, 88),
	AT(concurrentManagedAccess, 89),
	AT(computePreemptionSupported, 90),
	AT(canUseHostPointerForRegisteredMem, 91),
	AT(cooperativeLaunch, 95),
	AT(sharedMemPerBlockOptin, 97),
	AT(hostRegisterSupported, 99),
	AT(pageableMemoryAccessUsesHostPageTables, 100),
	AT(directManagedMemAccessFromHost, 101),
	AT(maxBlocksPerMultiProcessor, 106),
	AT(persistingL2CacheMaxSize, 108),
	AT(accessPolicyMaxWindowSize, 109),
	AT(reservedSharedMemPerBlock, 111),
	AT(sparseCudaArraySupported, 112),
	AT(hostRegisterReadOnlySupported, 113),
	AT(timelineSemaphoreInteropSupported, 114),
	AT(memoryPoolsSupported, 115),
	AT(gpuDirectRDMASupported, 116),
	AT(gpuDirectRDMAFlushWritesOptions, 117),
	AT(gpuDirectRDMAWritesOrdering, 118),
	AT(memoryPoolSupportedHandleTypes, 119),
	AT(clusterLaunch, 120),
	AT(deferredMappingCudaArraySupported, 121),
	AT(ipcEventSupported, 125),
	AT(unifiedFunctionPointers, 129),
	AT(deviceNumaConfig, 130),
	AT(deviceNumaId, 131),
	AT(mpsEnabled, 133),
	AT(hostNumaId, 134),
	AT(gpuPciDeviceID, 139),
	AT(gpuPciSubsystemID, 140),
	AT(hostNumaMultinodeIpcSupported, 143),
};
#undef AT

/* Reads the fields. An attribute that the driver does not know is 0. */
static void read_fields(struct cudaDeviceProp *prop, int device)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		char *at = (char *)prop + fields[i].offset;
		int value = 0;
		size_t wide;

		if (CU(cuDeviceGetAttribute)(&value, fields[i].attribute, device))
			value = 0;
		wide = (size_t)value;
		if (fields[i].bytes == sizeof(wide))
			memcpy(at, &wide, sizeof(wide));
		else
			memcpy(at, &value, sizeof(value));
	}
}

static int read_properties(struct cudaDeviceProp *prop, int device)
{
	int error;

	memset(prop, 0, sizeof(*prop));
	read_fields(prop, device);
	error = CU(cuDeviceGetName)(prop->name, sizeof(prop->name), device);
	if (!error)
		error = CU(cuDeviceTotalMem_v2)(&prop->totalGlobalMem, device);
	if (!error)
		error = CU(cuDeviceGetUuid_v2)(&prop->uuid, device);
	/* Only Windows has a LUID. */
	if (!error && CU(cuDeviceGetLuid)(prop->luid, &prop->luidDeviceNodeMask, device))
		memset(prop->luid, 0, sizeof(prop->luid));
	return error;
}

API int cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	int error = prop ? rt_check_device(device) : cudaErrorInvalidValue;

	return rt_done(error ? error : read_properties(prop, device));
}

/* Returns how many of the wishes the device meets. A field of 0 is not a wish. */
static int score(const struct cudaDeviceProp *have, const struct cudaDeviceProp *wish)
{
	int capability = have->major * 10 + have->minor, wished = wish->major * 10 + wish->minor;

	return (wished && capability >= wished) +
	       (wish->totalGlobalMem && have->totalGlobalMem >= wish->totalGlobalMem) +
	       (wish->multiProcessorCount &&
		       have->multiProcessorCount >= wish->multiProcessorCount) +
	       (wish->name[0] && !strncmp(have->name, wish->name, sizeof(have->name)));
}

API int cudaChooseDevice(int *device, const struct cudaDeviceProp *wish)
{
	int count, best = -1, best_score = -1, error;
	struct cudaDeviceProp prop;

	if (!device || !wish)
		return rt_done(cudaErrorInvalidValue);
	error = cudaGetDeviceCount(&count);
	for (int i = 0; !error && i < count; i++) {
		error = read_properties(&prop, i);
		if (!error && score(&prop, wish) > best_score) {
			best = i;
			best_score = score(&prop, wish);
		}
	}
	if (!error)
		*device = best;
	return rt_done(error);
}

static int texture_width(size_t *ret, const struct cudaChannelFormatDesc *desc, int device)
{
	unsigned channels;
	int format, error;

	if (!desc)
		return cudaErrorInvalidValue;
	error = rt_format_from(desc, &format, &channels);
	return error ? error
		     : CU(cuDeviceGetTexture1DLinearMaxWidth)(ret, format, channels, device);
}

OF_DEVICE(cudaDeviceGetTexture1DLinearMaxWidth,
	(size_t * ret, const struct cudaChannelFormatDesc *desc, int device),
	texture_width(ret, desc, device))
