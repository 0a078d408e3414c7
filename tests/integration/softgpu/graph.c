/* Graphs built by hand and by capture, launched, updated, and what is refused. */
#include "graph_calls.h"

static CUdeviceptr word;
static CUstream stream;

static void start(void)
{
	begin();
	OK(cuMemAlloc_v2(&word, 64));
	OK(cuMemsetD32_v2(word, 0, 16));
	OK(cuCtxSynchronize());
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(CUfunction function, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS_v2){.v1 = {function, 1, 1, 1, 1, 1, 1, 0, params, NULL}};
}

static void multiply(void *arg)
{
	unsigned *value = arg;

	*value *= 10;
}

TEST(a_graph_by_hand_runs_along_its_edges_each_time_it_is_launched)
{
	unsigned host = 5, seven = 7;
	CUDA_MEMCPY3D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = &host,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1};
	CUDA_MEMCPY3D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = &host,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1};
	CUDA_HOST_NODE_PARAMS times_ten = {multiply, &host};
	CUDA_MEMSET_NODE_PARAMS set = {.elementSize = 4, .value = 3, .width = 2, .height = 1};
	CUgraphNode nodes[6], listed[8], from[8], to[8];
	void *add_params[] = {&word}, *store_params[] = {&word, &seven};
	CUDA_KERNEL_NODE_PARAMS_v2 add;
	CUgraphExec exec;
	CUgraph graph;
	size_t count = 8;
	int type;

	start();
	in.dstDevice = out.srcDevice = word;
	set.dst = word + 8;
	add = kernel_params(kernel("add"), add_params);
	OK(cuGraphCreate(&graph, 0));
	/* The order of creation is not the order of the edges. */
	OK(cuGraphAddMemcpyNode(&nodes[0], graph, NULL, 0, &out, context));
	OK(cuGraphAddKernelNode_v2(&nodes[1], graph, NULL, 0, &add));
	OK(cuGraphAddMemcpyNode(&nodes[2], graph, NULL, 0, &in, context));
	OK(cuGraphAddHostNode(&nodes[3], graph, nodes, 1, &times_ten));
	OK(cuGraphAddEmptyNode(&nodes[4], graph, &nodes[3], 1));
	OK(cuGraphAddMemsetNode(&nodes[5], graph, NULL, 0, &set, context));
	OK(cuGraphAddDependencies(graph, &nodes[2], &nodes[1], 1));
	OK(cuGraphAddDependencies(graph, &nodes[1], &nodes[0], 1));
	CHECK_EQ(cuGraphAddDependencies(graph, &nodes[1], &nodes[0], 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuGraphAddDependencies(graph, &nodes[4], &nodes[2], 1),
		CUDA_ERROR_INVALID_VALUE); /* a circle */
	OK(cuGraphGetNodes(graph, listed, &count));
	CHECK_EQ(count, 6);
	CHECK(listed[0] == nodes[0] && listed[6] == NULL);
	count = 0;
	OK(cuGraphGetNodes(graph, NULL, &count));
	CHECK_EQ(count, 6);
	count = 8;
	OK(cuGraphGetRootNodes(graph, listed, &count));
	CHECK_EQ(count, 2);
	count = 8;
	OK(cuGraphGetEdges(graph, from, to, &count));
	CHECK_EQ(count, 4);
	OK(cuGraphNodeGetType(nodes[3], &type));
	CHECK_EQ(type, CU_GRAPH_NODE_TYPE_HOST);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphUpload(exec, stream));
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	CHECK_EQ(host, ((5 + 1) * 10 + 1) * 10);
	CHECK_EQ(word_at(word + 12), 3);
	/* Parameters of one node, for later launches. */
	add = kernel_params(kernel("store"), store_params);
	OK(cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], &add));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	CHECK_EQ(host, 70);
	CHECK_EQ(cuGraphExecKernelNodeSetParams_v2(exec, nodes[0], &add), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	OK(cuGraphLaunch(exec, stream)); /* it lives without the graph */
	OK(cuGraphExecDestroy(exec));    /* and a launch without it */
	OK(cuStreamSynchronize(stream));
	CHECK_EQ(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(nodes_are_checked_when_they_are_added)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params;
	CUDA_MEMSET_NODE_PARAMS set = {.dst = 1, .elementSize = 4, .width = 1, .height = 1};
	void *args[] = {&word};
	CUgraphNode node, twice[2];
	CUgraph graph, other;

	start();
	params = kernel_params(kernel("add"), args);
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&other, 0));
	CHECK_EQ(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphAddEmptyNode(&node, other, NULL, 0));
	CHECK_EQ(cuGraphAddKernelNode_v2(&twice[0], graph, &node, 1, &params),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	twice[0] = twice[1] = node;
	CHECK_EQ(cuGraphAddEmptyNode(&node, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
	params.v1.blockDimX = 0;
	CHECK_EQ(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context),
		CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(events_in_a_graph_order_it_with_streams)
{
	CUevent before, after;
	CUgraphNode nodes[3];
	CUDA_KERNEL_NODE_PARAMS_v2 add;
	CUstream other;
	CUgraphExec exec;
	CUgraph graph;
	void *params[] = {&word};

	start();
	add = kernel_params(kernel("add"), params);
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&after, 0));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEventWaitNode(&nodes[0], graph, NULL, 0, before));
	OK(cuGraphAddKernelNode_v2(&nodes[1], graph, nodes, 1, &add));
	OK(cuGraphAddEventRecordNode(&nodes[2], graph, &nodes[1], 1, after));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuMemsetD32Async(word, 41, 1, other));
	OK(cuEventRecord(before, other));
	OK(cuGraphLaunch(exec, stream));
	OK(cuEventSynchronize(after));
	CHECK_EQ(word_at(word), 42);
	end();
}

TEST(an_update_needs_the_same_shape)
{
	CUgraphExecUpdateResultInfo info;
	CUgraph graph, same, longer;
	CUgraphExec exec;
	CUfunction add;
	unsigned value = 9;
	void *params[] = {&word}, *store[] = {&word, &value};

	start();
	add = kernel("add");
	OK(cuStreamBeginCapture_v2(stream, RELAXED));
	OK(launch(add, stream, params));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuStreamBeginCapture_v2(stream, RELAXED));
	OK(launch(kernel("store"), stream, store));
	OK(cuStreamEndCapture(stream, &same));
	OK(cuStreamBeginCapture_v2(stream, RELAXED));
	OK(launch(add, stream, params));
	OK(launch(add, stream, params));
	OK(cuStreamEndCapture(stream, &longer));
	CHECK_EQ(cuGraphExecUpdate_v2(exec, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphExecUpdate_v2(exec, same, &info));
	CHECK_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	CHECK_EQ(word_at(word), 9);
	end();
}

TEST(a_fault_in_a_graph_kills_the_context)
{
	CUdeviceptr bad = 4096;
	void *params[] = {&bad};
	CUgraphExec exec;
	CUgraph graph;
	CUfunction add;

	start();
	add = kernel("add");
	OK(cuStreamBeginCapture_v2(stream, GLOBAL));
	OK(launch(add, stream, params));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	CHECK_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	end();
}
