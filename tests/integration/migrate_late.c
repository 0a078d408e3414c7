/*
 * The last things that migrate_test does, on the GPU to which it has been moved: calls that name
 * its device or its context.
 */
#include <string.h>
#include <unistd.h>

#include "migrate_test.h"

/*
 * Nodes that name the program's context mean the GPU where it is now. This is the last that a
 * program does: one that has a graph is not moved.
 */
void name_context(void)
{
	uint32_t back = 0;
	CUstreamBatchMemOpParams write = {.operation = WRITE_VALUE_32};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = context, .count = 1, .paramArray = &write};
	CUDA_BATCH_MEM_OP_NODE_PARAMS told;
	CUDA_MEMSET_NODE_PARAMS set = {.elementSize = 4, .width = 1, .height = 1};
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	void *graph, *exec, *first;
	const void *last;
	CUstream stream;

	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuMemAlloc_v2(&set.dst, KIB));
	write.address = set.dst;
	any.memOp = params;
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddMemsetNode(&first, graph, NULL, 0, &set, context));
	last = first;
	MUST(cuGraphAddNode((void **)&last, graph, &last, 1, &any));
	MUST(cuGraphAddBatchMemOpNode((void **)&last, graph, &last, 1, &params));
	MUST(cuGraphBatchMemOpNodeGetParams((void *)last, &told));
	IS(told.ctx == context);
	write.value64 = 1;
	MUST(cuGraphBatchMemOpNodeSetParams((void *)last, &params));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	write.value64 = 2;
	MUST(cuGraphExecBatchMemOpNodeSetParams(exec, (void *)last, &params));
	MUST(cuGraphLaunch(exec, stream));
	MUST(cuStreamSynchronize(stream));
	MUST(cuMemcpyDtoH_v2(&back, set.dst, sizeof(back)));
	IS(back == 2);
	MUST(cuGraphExecDestroy(exec));
	MUST(cuGraphDestroy(graph));
	MUST(cuMemFree_v2(set.dst));
	MUST(cuStreamDestroy_v2(stream));
}

/* Numbers of cuda.h. */
enum { SET_PREFERRED = 3, SET_ACCESSED_BY = 5, UNSET_ACCESSED_BY = 6 };
enum { PREFERRED = 2, ACCESSED_BY = 3, PREFETCHED = 4, PREFERRED_ID = 6, PREFETCHED_ID = 8 };
enum { GRAPH_USED_HIGH = 1, NOBODY = -2 };

static int range_of(CUdeviceptr address, int attribute)
{
	int value = -9, again = -9;
	size_t bytes = sizeof(value);
	void *out = &again;

	MUST(cuMemRangeGetAttribute(&value, bytes, attribute, address, KIB));
	MUST(cuMemRangeGetAttributes(&out, &bytes, &attribute, 1, address, KIB));
	IS(value == again);
	return value;
}

static void is_on_device(CUdeviceptr address)
{
	CUcontext of_memory = context;
	CUdevice on = -1, again = -1;
	int attribute = TD_POINTER_DEVICE_ORDINAL;
	void *out = &again;

	MUST(cuPointerGetAttribute(&on, TD_POINTER_DEVICE_ORDINAL, address));
	MUST(cuPointerGetAttributes(1, &attribute, &out, address));
	IS(on == device && again == device);
	if (!cuPointerGetAttribute(&of_memory, TD_POINTER_CONTEXT, address))
		IS(of_memory == context || !of_memory);
}

/*
 * The program is on the other device now. Its own device means the same one, so what was set for
 * either of them is unset by the other.
 */
static void advise_late(CUstream stream)
{
	CUmemLocation own = {CU_MEM_LOCATION_TYPE_DEVICE, device},
		      other = {CU_MEM_LOCATION_TYPE_DEVICE, !device};
	CUdeviceptr address;
	size_t bytes = KIB, index = 0;

	MUST(cuMemAllocManaged(&address, KIB, CU_MEM_ATTACH_GLOBAL));
	is_on_device(address);
	MUST(cuMemAdvise(address, KIB, SET_PREFERRED, device));
	IS(range_of(address, PREFERRED) == device && range_of(address, PREFERRED_ID) == device);
	MUST(cuMemAdvise(address, KIB, SET_ACCESSED_BY, device));
	IS(range_of(address, ACCESSED_BY) == device);
	MUST(cuMemAdvise(address, KIB, UNSET_ACCESSED_BY, !device));
	IS(range_of(address, ACCESSED_BY) == NOBODY);
	MUST(cuMemAdvise_v2(address, KIB, SET_ACCESSED_BY, own));
	IS(range_of(address, ACCESSED_BY) == device);
	MUST(cuMemAdvise_v2(address, KIB, UNSET_ACCESSED_BY, other));
	IS(range_of(address, ACCESSED_BY) == NOBODY);
	MUST(cuMemPrefetchAsync(address, KIB, device, stream));
	MUST(cuMemPrefetchAsync_v2(address, KIB, own, 0, stream));
	MUST(cuMemPrefetchBatchAsync(&address, &bytes, 1, &own, &index, 1, 0, stream));
	IS(range_of(address, PREFETCHED) == device && range_of(address, PREFETCHED_ID) == device);
	MUST(cuMemDiscardAndPrefetchBatchAsync(&address, &bytes, 1, &own, &index, 1, 0, stream));
	MUST(cuStreamSynchronize(stream));
	MUST(cuMemFree_v2(address));
}

static void make_pool_late(CUstream stream)
{
	CUmemLocation own = {CU_MEM_LOCATION_TYPE_DEVICE, device};
	struct td_pool_props props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = own};
	CUmemAccessDesc access = {own, CU_MEM_ACCESS_FLAGS_PROT_NONE};
	uint32_t back[64] = {0};
	CUdeviceptr address;
	void *pool, *found = NULL;
	int flags = -1;

	MUST(cuMemPoolCreate(&pool, &props));
	MUST(cuMemPoolGetAccess(&flags, pool, &own));
	IS(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	/* A pool's own device cannot be kept out. */
	IS(cuMemPoolSetAccess(pool, &access, 1) == CUDA_ERROR_INVALID_VALUE);
	MUST(cuMemAllocFromPoolAsync(&address, sizeof(back), pool, stream));
	is_on_device(address);
	MUST(cuMemsetD32Async(address, 77, 64, stream));
	MUST(cuMemcpyDtoHAsync_v2(back, address, sizeof(back), stream));
	MUST(cuMemFreeAsync(address, stream));
	MUST(cuStreamSynchronize(stream));
	IS(back[0] == 77 && back[63] == 77);
	MUST(cuMemSetMemPool(&own, CU_MEM_ALLOCATION_TYPE_PINNED, pool));
	MUST(cuMemGetMemPool(&found, &own, CU_MEM_ALLOCATION_TYPE_PINNED));
	IS(found == pool);
	MUST(cuDeviceGetMemPool(&found, device));
	IS(found == pool);
	MUST(cuMemGetDefaultMemPool(&found, &own, CU_MEM_ALLOCATION_TYPE_PINNED));
	MUST(cuDeviceSetMemPool(device, found));
	MUST(cuMemPoolDestroy(pool));
}

static uint64_t graph_memory(int attribute)
{
	uint64_t bytes = 0;

	MUST(cuDeviceGetGraphMemAttribute(device, attribute, &bytes));
	return bytes;
}

static void launch_graph_late(CUstream stream)
{
	CUdeviceptr address;
	uint64_t zero = 0;
	void *graph, *exec;

	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(cuMemAllocAsync(&address, 1024 * KIB, stream));
	MUST(cuMemFreeAsync(address, stream));
	MUST(cuStreamEndCapture(stream, &graph));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cuGraphLaunch(exec, stream));
	MUST(cuStreamSynchronize(stream));
	IS(graph_memory(TD_GRAPH_ATTR_RESERVED) && graph_memory(GRAPH_USED_HIGH));
	MUST(cuDeviceSetGraphMemAttribute(device, GRAPH_USED_HIGH, &zero));
	IS(graph_memory(GRAPH_USED_HIGH) == graph_memory(TD_GRAPH_ATTR_USED));
	MUST(cuGraphExecDestroy(exec));
	MUST(cuDeviceGraphMemTrim(device));
	IS(!graph_memory(TD_GRAPH_ATTR_RESERVED));
	MUST(cuGraphDestroy(graph));
}

/* Changes the first word, which is 5, by a kernel in the current context, and looks for it. */
static void multiply(CUdeviceptr address)
{
	uint32_t n = 1, m = 3, c = 4, word = 0;
	void *params[] = {&address, &n, &m, &c};
	CUmodule module;
	CUfunction affine;
	int access = -1;

	MUST(cuPointerGetAttribute(&access, TD_POINTER_ACCESS_FLAGS, address));
	IS(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	MUST(cuModuleLoadData(&module, ptx));
	MUST(cuModuleGetFunction(&affine, module, "affine"));
	MUST(cuLaunchKernel(affine, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	MUST(cuMemcpyDtoH_v2(&word, address, sizeof(word)));
	IS(word == 5 * m + c);
	MUST(cuMemsetD32_v2(address, 5, 1));
	MUST(cuCtxSynchronize());
	MUST(cuModuleUnload(module));
}

/* Kernels on either of two GPUs reach memory on the other one. */
static void reach_late(void)
{
	CUdeviceptr own, others;
	CUcontext other;

	MUST(cuMemAlloc_v2(&own, KIB));
	MUST(cuMemsetD32_v2(own, 5, 1));
	MUST(cuCtxCreate_v2(&other, 0, 2));
	MUST(cuMemAlloc_v2(&others, KIB));
	MUST(cuMemsetD32_v2(others, 5, 1));
	MUST(cuCtxEnablePeerAccess(context, 0));
	multiply(own);
	MUST(cuCtxSetCurrent(context));
	MUST(cuCtxEnablePeerAccess(other, 0));
	multiply(others);
	MUST(cuMemFree_v2(own));
	MUST(cuCtxDestroy_v2(other));
	MUST(cuCtxSetCurrent(context));
}

/* The program names the device that it has chosen, and means the one on which it is. */
void make_late(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
	CUmemGenericAllocationHandle handle;
	CUstream stream;

	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuMemCreate(&handle, 2 * KIB * KIB, &prop, 0));
	prop.location.id = -9;
	MUST(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
	IS(prop.location.id == device);
	MUST(cuMemRelease(handle));
	advise_late(stream);
	make_pool_late(stream);
	launch_graph_late(stream);
	reach_late();
	MUST(cuStreamDestroy_v2(stream));
}
