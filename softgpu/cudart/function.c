/* Queries about kernels: attributes, parameters, occupancy. */
#include "softgpu/cudart/rt.h"

/* The values of CU_FUNC_ATTRIBUTE_* in cuda.h. */
enum {
	MAX_THREADS,
	SHARED_BYTES,
	CONST_BYTES,
	LOCAL_BYTES,
	REGISTERS,
	PTX_VERSION,
	BINARY_VERSION,
	CACHE_MODE_CA,
	MAX_DYNAMIC_SHARED,
	CARVEOUT,
	CLUSTER_MUST_BE_SET,
	CLUSTER_WIDTH,
	CLUSTER_HEIGHT,
	CLUSTER_DEPTH,
	NON_PORTABLE_CLUSTER,
	CLUSTER_SCHEDULING,
	ATTRIBUTE_N
};

static int get_attributes(struct cudaFuncAttributes *ret, const void *key)
{
	int values[ATTRIBUTE_N] = {0}, error;
	CUfunction function;

	if (!ret)
		return cudaErrorInvalidValue;
	error = rt_function(key, &function);
	for (int i = 0; !error && i < ATTRIBUTE_N; i++)
		error = CU(cuFuncGetAttribute)(&values[i], i, function);
	if (error)
		return error;
	*ret = (struct cudaFuncAttributes){.sharedSizeBytes = (size_t)values[SHARED_BYTES],
		.constSizeBytes = (size_t)values[CONST_BYTES],
		.localSizeBytes = (size_t)values[LOCAL_BYTES],
		.maxThreadsPerBlock = values[MAX_THREADS],
		.numRegs = values[REGISTERS],
		.ptxVersion = values[PTX_VERSION],
		.binaryVersion = values[BINARY_VERSION],
		.cacheModeCA = values[CACHE_MODE_CA],
		.maxDynamicSharedSizeBytes = values[MAX_DYNAMIC_SHARED],
		.preferredShmemCarveout = values[CARVEOUT],
		.clusterDimMustBeSet = values[CLUSTER_MUST_BE_SET],
		.requiredClusterWidth = values[CLUSTER_WIDTH],
		.requiredClusterHeight = values[CLUSTER_HEIGHT],
		.requiredClusterDepth = values[CLUSTER_DEPTH],
		.clusterSchedulingPolicyPreference = values[CLUSTER_SCHEDULING],
		.nonPortableClusterSizeAllowed = values[NON_PORTABLE_CLUSTER]};
	return 0;
}

ONE(cudaFuncGetAttributes, (struct cudaFuncAttributes * ret, const void *key),
	get_attributes(ret, key))

/* Defines a call whose first parameter is the kernel, which `call` names as `function`. */
#define OF_FUNCTION(name, parameters, call)                                                        \
	API int name parameters                                                                    \
	{                                                                                          \
		CUfunction function;                                                               \
		int error = rt_function(key, &function);                                           \
                                                                                                   \
		return rt_done(error ? error : (call));                                            \
	}

OF_FUNCTION(cudaFuncSetAttribute, (const void *key, int attribute, int value),
	CU(cuFuncSetAttribute)(function, attribute, value))
OF_FUNCTION(cudaFuncSetCacheConfig, (const void *key, int config),
	CU(cuFuncSetCacheConfig)(function, config))
OF_FUNCTION(cudaFuncSetSharedMemConfig, (const void *key, int config),
	CU(cuFuncSetSharedMemConfig)(function, config))
OF_FUNCTION(
	cudaFuncGetName, (const char **name, const void *key), CU(cuFuncGetName)(name, function))
OF_FUNCTION(cudaFuncGetParamInfo, (const void *key, size_t index, size_t *offset, size_t *bytes),
	CU(cuFuncGetParamInfo)(function, index, offset, bytes))
OF_FUNCTION(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
	(int *blocks, const void *key, int threads, size_t shared_bytes),
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(blocks, function, threads, shared_bytes))
OF_FUNCTION(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	(int *blocks, const void *key, int threads, size_t shared_bytes, unsigned flags),
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(
		blocks, function, threads, shared_bytes, flags))
OF_FUNCTION(cudaOccupancyAvailableDynamicSMemPerBlock,
	(size_t * bytes, const void *key, int blocks, int threads),
	CU(cuOccupancyAvailableDynamicSMemPerBlock)(bytes, function, blocks, threads))

typedef CUresult (*cluster_fn)(int *, CUfunction, const CUlaunchConfig *);

static int ask_cluster(
	cluster_fn ask, int *ret, const void *key, const struct cudaLaunchConfig_st *config)
{
	CUlaunchConfig driver;
	CUfunction function;
	int error = config ? rt_function(key, &function) : cudaErrorInvalidValue;

	if (error)
		return error;
	driver = rt_launch_config(config);
	return ask(ret, function, &driver);
}

ONE(cudaOccupancyMaxPotentialClusterSize,
	(int *size, const void *key, const struct cudaLaunchConfig_st *config),
	ask_cluster(CU(cuOccupancyMaxPotentialClusterSize), size, key, config))
ONE(cudaOccupancyMaxActiveClusters,
	(int *clusters, const void *key, const struct cudaLaunchConfig_st *config),
	ask_cluster(CU(cuOccupancyMaxActiveClusters), clusters, key, config))
