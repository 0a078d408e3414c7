/*
 * Graphs of every shape: long, reversed, deep, in other contexts. The edges determine the order,
 * whatever the order of creation. Two GPUs.
 */
#define ALL_CALLS
#include "cuda.h"
#include "softgpu/driver/graph/graph_abi.h"

#include <stdlib.h>

#define LONG 100000

static void check_runs(CUgraph graph)
{
	CUgraphExec exec;
	CUgraph clone;

	OK(cuGraphInstantiateWithFlags((void **)&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	OK(cuGraphClone((void **)&clone, graph));
	OK(cuGraphExecUpdate_v2(exec, clone, &(CUgraphExecUpdateResultInfo){0}));
	OK(cuGraphDestroy(clone));
	OK(cuGraphExecDestroy(exec));
}

TEST(a_line_of_a_hundred_thousand_nodes_runs)
{
	CUgraph graph;
	CUgraphNode node, last = NULL;
	size_t count;

	begin();
	OK(cuGraphCreate((void **)&graph, 0));
	for (unsigned i = 0; i < LONG; i++) {
		OK(cuGraphAddEmptyNode((void **)&node, graph, (const void **)&last, last != NULL));
		last = node;
	}
	OK(cuGraphGetNodes(graph, NULL, &count));
	CHECK_EQ(count, LONG);
	check_runs(graph);
	OK(cuGraphDestroy(graph));
	end();
}

/* Each node comes after the one that was made after it. */
TEST(a_line_that_is_turned_around_runs)
{
	CUgraphNode *nodes = calloc(LONG, sizeof(*nodes));
	CUgraph graph;

	begin();
	OK(cuGraphCreate((void **)&graph, 0));
	for (unsigned i = 0; i < LONG; i++)
		OK(cuGraphAddEmptyNode((void **)&nodes[i], graph, NULL, 0));
	OK(cuGraphAddDependencies(graph, (const void **)nodes + 1, (const void **)nodes, LONG - 1));
	CHECK_EQ(cuGraphAddDependencies(
			 graph, (const void **)nodes, (const void **)nodes + LONG - 1, 1),
		CUDA_ERROR_INVALID_VALUE);
	check_runs(graph);
	OK(cuGraphDestroy(graph));
	free(nodes);
	end();
}

/* A fork is joined through a hundred thousand nodes. */
TEST(a_capture_joins_over_a_long_way)
{
	CUstream origin, forked;
	CUevent event;
	CUgraph graph;
	CUdeviceptr at;

	begin();
	OK(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&forked, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	OK(cuMemAlloc_v2(&at, 4));
	OK(cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuEventRecord(event, origin));
	OK(cuStreamWaitEvent(forked, event, 0));
	OK(cuMemsetD32Async(at, 1, 1, forked));
	OK(cuEventRecord(event, forked));
	OK(cuStreamWaitEvent(origin, event, 0));
	for (unsigned i = 0; i < LONG; i++)
		OK(cuMemsetD32Async(at, i, 1, origin));
	OK(cuStreamEndCapture(origin, (void **)&graph));
	OK(cuGraphDestroy(graph));
	end();
}

#define SOME 300

struct step {
	unsigned number, *clock, at;
};

static void take_turn(void *arg)
{
	struct step *step = arg;

	step->at = ++*step->clock;
}

static unsigned next_random(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned)(state >> 33);
}

static void check_order(CUgraph graph, const struct step *steps, const unsigned (*edges)[2],
	unsigned edge_count, unsigned *clock)
{
	CUgraphExec exec;

	*clock = 0;
	OK(cuGraphInstantiateWithFlags((void **)&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	CHECK_EQ(*clock, SOME);
	for (unsigned i = 0; i < edge_count; i++)
		CHECK(steps[edges[i][0]].at < steps[edges[i][1]].at);
	OK(cuGraphExecDestroy(exec));
}

TEST(nodes_run_in_an_order_that_every_edge_allows)
{
	static struct step steps[SOME];
	static unsigned edges[3 * SOME][2], place[SOME];
	CUgraphNode nodes[SOME];
	unsigned clock, edge_count = 0;
	CUgraph graph, clone;

	begin();
	OK(cuGraphCreate((void **)&graph, 0));
	for (unsigned i = 0; i < SOME; i++) {
		unsigned k = next_random() % (i + 1);

		steps[i] = (struct step){i, &clock, 0};
		OK(cuGraphAddHostNode((void **)&nodes[i], graph, NULL, 0,
			&(CUDA_HOST_NODE_PARAMS){take_turn, &steps[i]}));
		place[i] = place[k];
		place[k] = i; /* a random order, which has nothing to do with that of creation */
	}
	for (unsigned i = 0; i < 3 * SOME; i++) {
		unsigned a = next_random() % SOME, b = next_random() % SOME;
		unsigned from = place[a] < place[b] ? a : b, to = from == a ? b : a;
		CUresult r;

		if (a == b)
			continue;
		r = cuGraphAddDependencies(
			graph, (const void **)&nodes[from], (const void **)&nodes[to], 1);
		CHECK(r == CUDA_SUCCESS || r == CUDA_ERROR_INVALID_VALUE); /* it may be there */
		CHECK_EQ(cuGraphAddDependencies(
				 graph, (const void **)&nodes[to], (const void **)&nodes[from], 1),
			CUDA_ERROR_INVALID_VALUE);
		edges[edge_count][0] = from;
		edges[edge_count++][1] = to;
	}
	check_order(graph, steps, edges, edge_count, &clock);
	OK(cuGraphClone((void **)&clone, graph));
	check_order(clone, steps, edges, edge_count, &clock);
	/* The clone is as strict about circles. */
	for (unsigned i = 0; i < SOME; i++) {
		OK(cuGraphNodeFindInClone((void **)&nodes[i], nodes[i], clone));
	}
	for (unsigned i = 0; i < edge_count; i++)
		CHECK_EQ(cuGraphAddDependencies(clone, (const void **)&nodes[edges[i][1]],
				 (const void **)&nodes[edges[i][0]], 1),
			CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(clone));
	end();
}

TEST(graphs_in_graphs_have_an_end)
{
	CUgraph inner, outer;
	CUgraphNode node;
	unsigned levels = 1;
	CUresult r;

	begin();
	OK(cuGraphCreate((void **)&inner, 0));
	OK(cuGraphAddEmptyNode((void **)&node, inner, NULL, 0));
	for (;;) {
		OK(cuGraphCreate((void **)&outer, 0));
		r = cuGraphAddChildGraphNode((void **)&node, outer, NULL, 0, inner);
		if (r || levels > 100000)
			break;
		OK(cuGraphDestroy(inner));
		inner = outer;
		levels++;
	}
	CHECK_EQ(r, CUDA_ERROR_NOT_SUPPORTED);
	CHECK(levels >= 100);
	/* A cycle cannot be made through the innermost child either. */
	OK(cuGraphAddChildGraphNode((void **)&node, outer, NULL, 0, outer));
	OK(cuGraphChildGraphNodeGetGraph(node, (void **)&outer));
	CHECK_EQ(cuGraphAddChildGraphNode((void **)&node, outer, NULL, 0, inner),
		CUDA_ERROR_NOT_SUPPORTED);
	check_runs(inner);
	end();
}

TEST(a_kernel_node_is_of_the_context_that_it_names)
{
	CUDA_KERNEL_NODE_PARAMS_v2 params = {{NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL}, NULL, NULL};
	CUdeviceptr at;
	unsigned value = 6;
	void *args[] = {&at, &value};
	CUcontext other;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CUstream stream;

	begin();
	OK(cuMemAlloc_v2(&at, 4));
	params.v1.func = kernel("store");
	params.v1.kernelParams = args;
	params.ctx = context;
	OK(cuStreamCreate(&stream, 0));
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuGraphCreate((void **)&graph, 0));
	OK(cuGraphAddKernelNode_v2((void **)&node, graph, NULL, 0, &params));
	OK(cuGraphKernelNodeGetParams_v2(node, &params));
	CHECK(params.ctx == context);
	params.v1.kernelParams = args;
	params.ctx = other;
	CHECK_EQ(cuGraphAddKernelNode_v2((void **)&node, graph, NULL, 0, &params),
		CUDA_ERROR_INVALID_HANDLE);
	params.ctx = (CUcontext)&params;
	CHECK_EQ(cuGraphAddKernelNode_v2((void **)&node, graph, NULL, 0, &params),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphInstantiateWithFlags((void **)&exec, graph, 0));
	CHECK_EQ(cuGraphLaunch(exec, NULL), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(context));
	CHECK_EQ(word_at(at), 6);
	end();
}
