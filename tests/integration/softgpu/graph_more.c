/*
 * Graphs: reading and changing nodes, children, clones, memory, memory operations, user objects,
 * capture into a graph.
 */
#define ALL_CALLS
#include "cuda.h"

#include "softgpu/driver/graph/graph_abi.h"

#include <unistd.h>

/* The signatures say const of what a call only reads. */
#define N(nodes) ((const void **)(nodes))

static CUdeviceptr word;
static CUstream stream;
static CUfunction add, store;
static void *add_params[] = {&word};

static void start(void)
{
	begin();
	OK(cuMemAlloc_v2(&word, 4096));
	OK(cuMemsetD32_v2(word, 0, 64));
	OK(cuCtxSynchronize());
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	add = kernel("add");
	store = kernel("store");
}

static CUDA_KERNEL_NODE_PARAMS_v1 kernel_of(CUfunction function, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS_v1){function, 1, 1, 1, 1, 1, 1, 0, params, NULL};
}

static void *add_node(void *graph, void *const *after, size_t count)
{
	CUDA_KERNEL_NODE_PARAMS_v1 params = kernel_of(add, add_params);
	void *node;

	OK(cuGraphAddKernelNode(&node, graph, N(after), count, &params));
	return node;
}

static void run(void *exec)
{
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
}

static void ten_times(void *arg)
{
	*(unsigned *)arg *= 10;
}

static void nothing(void *arg)
{
	(void)arg;
}

TEST(nodes_tell_what_they_do_and_can_be_changed)
{
	CUDA_KERNEL_NODE_PARAMS_v1 k, k_told;
	CUDA_KERNEL_NODE_PARAMS_v2 k2;
	CUDA_MEMSET_NODE_PARAMS set, set_told;
	CUDA_MEMCPY3D copy, copy_told;
	CUDA_HOST_NODE_PARAMS host, host_told;
	CUstreamBatchMemOpParams op = {.operation = 2, .value64 = 77};
	CUDA_BATCH_MEM_OP_NODE_PARAMS ops = {.count = 1, .paramArray = &op}, ops_told;
	void *graph, *kernel_node, *set_node, *copy_node, *host_node, *op_node, *exec, *wait_node,
		*record_node;
	unsigned value = 9, out = 0, other = 1;
	void *store_params[] = {&word, &value};
	CUevent event, second, told_event;
	union {
		char bytes[64];
		int number;
	} attribute;

	start();
	op.address = word + 64;
	OK(cuEventCreate(&event, 0));
	OK(cuEventCreate(&second, 0));
	OK(cuGraphCreate(&graph, 0));
	kernel_node = add_node(graph, NULL, 0);
	set = (CUDA_MEMSET_NODE_PARAMS){
		.dst = word + 8, .value = 3, .elementSize = 4, .width = 2, .height = 1};
	OK(cuGraphAddMemsetNode(&set_node, graph, N(&kernel_node), 1, &set, context));
	copy = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = word,
		.srcPitch = 4,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = &out,
		.dstPitch = 4,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1};
	OK(cuGraphAddMemcpyNode(&copy_node, graph, N(&set_node), 1, &copy, context));
	host = (CUDA_HOST_NODE_PARAMS){ten_times, &out};
	OK(cuGraphAddHostNode(&host_node, graph, N(&copy_node), 1, &host));
	OK(cuGraphAddBatchMemOpNode(&op_node, graph, N(&host_node), 1, &ops));
	OK(cuGraphAddEventWaitNode(&wait_node, graph, N(&op_node), 1, event));
	OK(cuGraphAddEventRecordNode(&record_node, graph, N(&wait_node), 1, event));
	OK(cuGraphKernelNodeGetParams(kernel_node, &k_told));
	CHECK(k_told.func == add && *(CUdeviceptr *)k_told.kernelParams[0] == word);
	OK(cuGraphKernelNodeGetParams_v2(kernel_node, &k2));
	CHECK(k2.ctx == context);
	OK(cuGraphMemsetNodeGetParams(set_node, &set_told));
	CHECK(set_told.dst == set.dst && set_told.width == 2 && set_told.value == 3);
	OK(cuGraphMemcpyNodeGetParams(copy_node, &copy_told));
	CHECK(!memcmp(&copy, &copy_told, sizeof(copy)));
	OK(cuGraphHostNodeGetParams(host_node, &host_told));
	CHECK(host_told.fn == ten_times && host_told.userData == &out);
	OK(cuGraphBatchMemOpNodeGetParams(op_node, &ops_told));
	CHECK(ops_told.count == 1 && ops_told.paramArray[0].value64 == 77);
	OK(cuGraphEventWaitNodeGetEvent(wait_node, &told_event));
	CHECK(told_event == event);
	OK(cuGraphEventRecordNodeSetEvent(record_node, second));
	OK(cuGraphEventRecordNodeGetEvent(record_node, &told_event));
	CHECK(told_event == second);
	OK(cuGraphEventWaitNodeSetEvent(wait_node, second));
	CHECK_EQ(cuGraphMemsetNodeGetParams(kernel_node, &set_told), CUDA_ERROR_INVALID_VALUE);
	attribute.number = -3;
	OK(cuGraphKernelNodeSetAttribute(kernel_node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute));
	attribute.number = 0;
	OK(cuGraphKernelNodeGetAttribute(kernel_node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute));
	CHECK_EQ(attribute.number, -3);
	OK(cuGraphKernelNodeCopyAttributes(kernel_node, kernel_node));
	OK(cuGraphInstantiate(&exec, graph, NULL, NULL, 0));
	run(exec);
	CHECK_EQ(out, 10);
	CHECK_EQ(word_at(word + 64), 77);
	/* In the executable graph alone. */
	k = kernel_of(store, store_params);
	OK(cuGraphExecKernelNodeSetParams(exec, kernel_node, &k));
	set.value = 4;
	OK(cuGraphExecMemsetNodeSetParams(exec, set_node, &set, context));
	copy.dstHost = &other;
	OK(cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, context));
	host.userData = &other;
	OK(cuGraphExecHostNodeSetParams(exec, host_node, &host));
	op.value64 = 78;
	OK(cuGraphExecBatchMemOpNodeSetParams(exec, op_node, &ops));
	OK(cuGraphExecEventRecordNodeSetEvent(exec, record_node, event));
	OK(cuGraphExecEventWaitNodeSetEvent(exec, wait_node, event));
	run(exec);
	CHECK_EQ(other, 90);
	CHECK_EQ(word_at(word + 8), 4);
	CHECK_EQ(word_at(word + 64), 78);
	OK(cuGraphNodeSetEnabled(exec, kernel_node, 0));
	OK(cuGraphNodeGetEnabled(exec, kernel_node, &value));
	CHECK_EQ(value, 0);
	CHECK_EQ(cuGraphNodeSetEnabled(exec, host_node, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD32_v2(word, 1, 1));
	OK(cuCtxSynchronize());
	run(exec);
	CHECK_EQ(other, 10);
	/* The graph itself changes too, for later instantiations. */
	value = 2;
	OK(cuGraphKernelNodeSetParams(kernel_node, &k));
	k2 = (CUDA_KERNEL_NODE_PARAMS_v2){.v1 = k};
	OK(cuGraphKernelNodeSetParams_v2(kernel_node, &k2));
	OK(cuGraphMemsetNodeSetParams(set_node, &set));
	OK(cuGraphMemcpyNodeSetParams(copy_node, &copy));
	OK(cuGraphHostNodeSetParams(host_node, &host));
	OK(cuGraphBatchMemOpNodeSetParams(op_node, &ops));
	OK(cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
	run(exec);
	CHECK_EQ(other, 20);
	end();
}

TEST(any_node_by_one_call)
{
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	void *graph, *first, *second, *third, *exec;
	unsigned char edge[8] = {0};

	start();
	params.kernel.v1 = kernel_of(add, add_params);
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddNode(&first, graph, NULL, 0, &params));
	OK(cuGraphAddNode_v2(&second, graph, N(&first), edge, 1, &params));
	params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {nothing, NULL}};
	OK(cuGraphAddNode(&third, graph, N(&second), 1, &params));
	params.host.fn = ten_times;
	params.host.userData = &params;
	OK(cuGraphNodeSetParams(third, &params));
	params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {nothing, NULL}};
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphExecNodeSetParams(exec, third, &params));
	run(exec);
	CHECK_EQ(word_at(word), 2);
	edge[0] = 1; /* a port */
	CHECK_EQ(cuGraphAddNode_v2(&third, graph, N(&first), edge, 1, &params),
		CUDA_ERROR_NOT_SUPPORTED);
	params.type = 13; /* a conditional */
	CHECK_EQ(cuGraphAddNode(&third, graph, NULL, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
	end();
}

TEST(edges_are_told_added_and_removed)
{
	void *graph, *a, *b, *c, *nodes[4], *from[4], *to[4];
	unsigned char data[4][8];
	size_t count = 4;

	start();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEmptyNode(&a, graph, NULL, 0));
	OK(cuGraphAddEmptyNode(&b, graph, N(&a), 1));
	OK(cuGraphAddEmptyNode(&c, graph, NULL, 0));
	OK(cuGraphAddDependencies_v2(graph, N(&b), N(&c), NULL, 1));
	OK(cuGraphNodeGetDependencies(c, nodes, &count));
	CHECK(count == 1 && nodes[0] == b && !nodes[1]);
	count = 4;
	OK(cuGraphNodeGetDependencies_v2(c, nodes, data, &count));
	CHECK_EQ(count, 1);
	count = 4;
	OK(cuGraphNodeGetDependentNodes(a, nodes, &count));
	CHECK(count == 1 && nodes[0] == b);
	count = 0;
	OK(cuGraphNodeGetDependentNodes_v2(a, NULL, NULL, &count));
	CHECK_EQ(count, 1);
	count = 4;
	OK(cuGraphGetEdges_v2(graph, from, to, data, &count));
	CHECK_EQ(count, 2);
	OK(cuGraphRemoveDependencies(graph, N(&a), N(&b), 1));
	CHECK_EQ(cuGraphRemoveDependencies(graph, N(&a), N(&b), 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphRemoveDependencies_v2(graph, N(&b), N(&c), NULL, 1));
	OK(cuGraphDestroyNode(b));
	CHECK_EQ(cuGraphDestroyNode(b), CUDA_ERROR_INVALID_VALUE);
	count = 4;
	OK(cuGraphGetNodes(graph, nodes, &count));
	CHECK_EQ(count, 2);
	end();
}

TEST(children_are_copies_and_clones_find_their_nodes)
{
	char path[] = "/tmp/softgpu-dot-XXXXXX";
	void *child, *graph, *node, *inner, *owned, *clone, *found, *exec, *changed, *roots[2];
	CUDA_KERNEL_NODE_PARAMS_v1 k;
	unsigned value = 50;
	void *store_params[] = {&word, &value};
	size_t count = 2;
	int fd = mkstemp(path);
	CUgraphExecUpdateResultInfo info;

	start();
	OK(cuGraphCreate(&child, 0));
	inner = add_node(child, NULL, 0);
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	(void)add_node(graph, &node, 1);
	(void)add_node(child, &inner, 1); /* too late for the copy */
	OK(cuGraphChildGraphNodeGetGraph(node, &owned));
	CHECK(owned != child);
	CHECK_EQ(cuGraphDestroy(owned), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	run(exec);
	CHECK_EQ(word_at(word), 2);
	OK(cuGraphGetNodes(owned, roots, &count));
	k = kernel_of(store, store_params);
	OK(cuGraphExecKernelNodeSetParams(exec, roots[0], &k)); /* a node within the child */
	run(exec);
	CHECK_EQ(word_at(word), 51);
	OK(cuGraphClone(&clone, graph));
	OK(cuGraphNodeFindInClone(&found, node, clone));
	CHECK(found != node);
	CHECK_EQ(cuGraphNodeFindInClone(&found, inner, clone), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecUpdate_v2(exec, clone, &info));
	run(exec);
	CHECK_EQ(word_at(word), 53);
	OK(cuGraphCreate(&changed, 0));
	(void)add_node(changed, NULL, 0);
	value = 60;
	OK(cuGraphExecChildGraphNodeSetParams(exec, node, changed));
	OK(cuGraphExecUpdate(exec, clone, &found, &info.result));
	CHECK_EQ(cuGraphExecChildGraphNodeSetParams(exec, node, graph),
		CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	OK(cuGraphDebugDotPrint(graph, path, 0));
	CHECK(lseek(fd, 0, SEEK_END) > 40);
	CHECK_EQ(cuGraphDebugDotPrint(graph, "/nowhere/x.dot", 0), CUDA_ERROR_OPERATING_SYSTEM);
	close(fd);
	unlink(path);
	end();
}

static CUDA_MEM_ALLOC_NODE_PARAMS memory_of(size_t bytes)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
		.bytesize = bytes};
}

static uint64_t graph_memory(int attribute)
{
	uint64_t value;

	OK(cuDeviceGetGraphMemAttribute(0, attribute, &value));
	return value;
}

TEST(graphs_allocate_at_addresses_that_stay)
{
	CUDA_MEM_ALLOC_NODE_PARAMS memory = memory_of(3 * MIB), told;
	void *graph, *alloc, *set, *release, *exec, *again, *clone;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUdeviceptr address;
	uint64_t zero = 0;

	start();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &memory));
	fill = (CUDA_MEMSET_NODE_PARAMS){
		.dst = memory.dptr, .value = 1, .elementSize = 4, .width = 64, .height = 1};
	OK(cuGraphAddMemsetNode(&set, graph, N(&alloc), 1, &fill, context));
	OK(cuGraphAddMemFreeNode(&release, graph, N(&set), 1, memory.dptr));
	CHECK_EQ(cuGraphAddMemFreeNode(&again, graph, N(&set), 1, memory.dptr),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphMemAllocNodeGetParams(alloc, &told));
	CHECK(told.dptr == memory.dptr && told.bytesize == 3 * MIB);
	OK(cuGraphMemFreeNodeGetParams(release, &address));
	CHECK_EQ(address, memory.dptr);
	CHECK_EQ(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQ(cuGraphDestroyNode(set), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_EQ(cuGraphInstantiateWithFlags(&again, graph, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
	run(exec);
	run(exec);
	CHECK_EQ(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
	CHECK_EQ(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 4 * MIB);
	CHECK_EQ(cuMemFree_v2(memory.dptr), CUDA_ERROR_INVALID_VALUE); /* the graph's own to free */
	OK(cuDeviceGraphMemTrim(0));
	CHECK_EQ(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
	CHECK_EQ(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 4 * MIB);
	OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &zero));
	CHECK_EQ(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), 0);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	end();
}

TEST(what_a_graph_leaves_is_freed_before_it_runs_again)
{
	CUDA_MEM_ALLOC_NODE_PARAMS memory = memory_of(4096);
	CUDA_MEMSET_NODE_PARAMS fill;
	void *graph, *alloc, *set, *exec;
	uint64_t flags;

	start();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &memory));
	fill = (CUDA_MEMSET_NODE_PARAMS){
		.dst = memory.dptr, .value = 8, .elementSize = 4, .width = 4, .height = 1};
	OK(cuGraphAddMemsetNode(&set, graph, N(&alloc), 1, &fill, context));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	run(exec);
	CHECK_EQ(word_at(memory.dptr), 8); /* outside of the graph */
	CHECK_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeAsync(memory.dptr, stream));
	run(exec);
	OK(cuMemFree_v2(memory.dptr));
	run(exec);
	OK(cuMemFree_v2(memory.dptr));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphInstantiateWithFlags(
		&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	OK(cuGraphExecGetFlags(exec, &flags));
	CHECK_EQ(flags, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	run(exec);
	run(exec);
	CHECK_EQ(word_at(memory.dptr), 8);
	end();
}

TEST(graph_memory_that_is_not_there_is_refused_at_the_launch)
{
	CUDA_MEM_ALLOC_NODE_PARAMS memory = memory_of(1024 * MIB);
	void *graph, *alloc, *exec;

	start();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &memory));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_OUT_OF_MEMORY);
	end();
}

static int destroyed;

static void destroy(void *arg)
{
	(void)arg;
	destroyed++;
}

TEST(user_objects_live_as_long_as_their_graphs)
{
	void *object, *graph, *clone, *exec;

	start();
	destroyed = 0;
	OK(cuUserObjectCreate(&object, &destroyed, destroy, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	CHECK_EQ(cuUserObjectCreate(&clone, NULL, destroy, 1, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuUserObjectRetain(object, 1));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphRetainUserObject(graph, object, 2, CU_GRAPH_USER_OBJECT_MOVE));
	OK(cuUserObjectRelease(object, 1));
	CHECK_EQ(cuGraphReleaseUserObject(graph, object, 3), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphReleaseUserObject(graph, object, 1));
	OK(cuGraphClone(&clone, graph));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(clone));
	CHECK_EQ(destroyed, 0);
	OK(cuGraphExecDestroy(exec));
	CHECK_EQ(destroyed, 1);
	CHECK_EQ(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(capture_goes_into_a_graph_that_exists)
{
	void *graph, *captured, *first, *exec, *nodes[4];
	size_t count = 4;
	uint64_t id;
	const void *front, *edges;
	int status;
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};

	start();
	OK(cuGraphCreate(&graph, 0));
	first = add_node(graph, NULL, 0);
	OK(cuStreamBeginCaptureToGraph(
		stream, graph, N(&first), NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(launch(add, stream, add_params));
	OK(cuStreamGetCaptureInfo(stream, &status, &id));
	OK(cuStreamGetCaptureInfo_v3(
		stream, &status, &id, &captured, (void *)&front, (void *)&edges, &count));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && captured == graph && count == 1);
	OK(cuStreamUpdateCaptureDependencies(
		stream, &first, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	OK(cuStreamUpdateCaptureDependencies_v2(
		stream, &first, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	OK(launch(add, stream, add_params));
	CHECK_EQ(cuGraphDestroy(graph), CUDA_ERROR_ILLEGAL_STATE);
	OK(cuStreamEndCapture(stream, &captured));
	CHECK(captured == graph);
	count = 4;
	OK(cuGraphNodeGetDependentNodes(first, nodes, &count));
	CHECK_EQ(count, 2);
	OK(cuGraphInstantiateWithParams(&exec, graph, &params));
	OK(cuGraphUpload(exec, stream));
	run(exec);
	CHECK_EQ(word_at(word), 3);
	CHECK_EQ(cuStreamUpdateCaptureDependencies(stream, &first, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
	end();
}

TEST(captures_in_the_threads_own_stream)
{
	const void *front;
	const void *edges;
	void *graph, *exec, *info, *node;
	CUdeviceptr memory;
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
	size_t count = 0;
	uint64_t id;
	int status;

	start();
	OK(cuStreamBeginCapture_v2_ptsz(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemAllocAsync_ptsz(&memory, 4096, NULL));
	OK(cuMemsetD32Async_ptsz(memory, 5, 1, NULL));
	OK(cuMemcpyDtoDAsync_v2_ptsz(word, memory, 4, NULL));
	OK(cuMemFreeAsync_ptsz(memory, NULL));
	OK(cuStreamIsCapturing_ptsz(NULL, &status));
	CHECK_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuStreamGetCaptureInfo_ptsz(NULL, &status, &id));
	OK(cuStreamGetCaptureInfo_v2_ptsz(NULL, &status, &id, &info, (void *)&front, &count));
	OK(cuStreamGetCaptureInfo_v3_ptsz(
		NULL, &status, &id, &info, (void *)&front, (void *)&edges, &count));
	node = *(void *const *)front;
	OK(cuStreamUpdateCaptureDependencies_ptsz(NULL, &node, 1, 0));
	OK(cuStreamUpdateCaptureDependencies_v2_ptsz(NULL, &node, NULL, 1, 0));
	OK(cuStreamEndCapture_ptsz(NULL, &graph));
	OK(cuGraphInstantiateWithParams_ptsz(&exec, graph, &params));
	OK(cuGraphUpload_ptsz(exec, NULL));
	OK(cuGraphLaunch_ptsz(exec, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	CHECK_EQ(word_at(word), 5);
	OK(cuStreamBeginCapture_ptsz(NULL));
	OK(cuStreamEndCapture_ptsz(NULL, &graph));
	OK(cuStreamBeginCapture(stream));
	OK(cuStreamIsCapturing(stream, &status));
	OK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &info, (void *)&front, &count));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphCreate(&graph, 0));
	OK(cuStreamBeginCaptureToGraph_ptsz(
		NULL, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuStreamEndCapture_ptsz(NULL, &info));
	CHECK(info == graph);
	end();
}
