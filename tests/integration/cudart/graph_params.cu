/*
 * Changed parameters of nodes, in a graph and in its executable graph: copies of every kind, sets,
 * host functions, kernels.
 */
#include "check.h"

__device__ int table[4];

__global__ void add_table(int *p, int by)
{
	p[threadIdx.x] += table[threadIdx.x] + by;
}

static void CUDART_CB bump(void *at)
{
	++*(int *)at;
}

struct nodes {
	cudaGraphNode_t to_table, in, set, kernel, from_table, out, host;
};

static void build(cudaGraph_t graph, nodes *n, const int *source, int *p, int *by, int *table_out,
	int *out, int *calls)
{
	static void *args[2];
	cudaKernelNodeParams k = {};
	cudaMemsetParams s = {};
	cudaMemcpy3DParms box = {};
	cudaHostNodeParams h = {bump, calls};

	args[0] = new int *(p);
	args[1] = by;
	CHECK(cudaGraphAddMemcpyNodeToSymbol(
		&n->to_table, graph, NULL, 0, table, source, 16, 0, cudaMemcpyHostToDevice));
	s.dst = p;
	s.elementSize = 4;
	s.value = 5;
	s.width = 4;
	s.height = 1;
	CHECK(cudaGraphAddMemsetNode(&n->set, graph, &n->to_table, 1, &s));
	k.func = (void *)add_table;
	k.gridDim = dim3(1);
	k.blockDim = dim3(4);
	k.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&n->kernel, graph, &n->set, 1, &k));
	CHECK(cudaGraphAddMemcpyNodeFromSymbol(&n->from_table, graph, &n->kernel, 1, table_out,
		table, 16, 0, cudaMemcpyDeviceToHost));
	box.srcPtr = make_cudaPitchedPtr(p, 16, 16, 1);
	box.dstPtr = make_cudaPitchedPtr(out, 16, 16, 1);
	box.extent = make_cudaExtent(16, 1, 1);
	box.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaGraphAddMemcpyNode(&n->out, graph, &n->from_table, 1, &box));
	CHECK(cudaGraphAddHostNode(&n->host, graph, &n->out, 1, &h));
	CHECK(cudaGraphHostNodeGetParams(n->host, &h));
	EXPECT(h.fn == bump && h.userData == calls);
}

static void run(cudaGraphExec_t exec)
{
	CHECK(cudaGraphUpload(exec, 0));
	CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaStreamSynchronize(0));
}

int main()
{
	int source[4] = {1, 2, 3, 4}, other[4] = {10, 20, 30, 40}, table_out[4], again[4], out[4],
	    moved[4], by = 100, calls = 0, second = 0, *p;
	cudaMemsetParams s;
	cudaHostNodeParams h = {bump, &second};
	unsigned long long flags = 99;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	nodes n;

	CHECK(cudaMalloc(&p, 16));
	CHECK(cudaGraphCreate(&graph, 0));
	build(graph, &n, source, p, &by, table_out, out, &calls);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphExecGetFlags(exec, &flags));
	EXPECT(flags == 0);
	run(exec);
	EXPECT(out[0] == 106 && out[3] == 109 && table_out[2] == 3 && calls == 1);
	CHECK(cudaGraphExecMemcpyNodeSetParamsToSymbol(
		exec, n.to_table, table, other, 16, 0, cudaMemcpyHostToDevice));
	CHECK(cudaGraphExecMemcpyNodeSetParamsFromSymbol(
		exec, n.from_table, again, table, 16, 0, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphExecMemcpyNodeSetParams1D(
		exec, n.out, moved, p, 16, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphMemsetNodeGetParams(n.set, &s));
	s.value = 7;
	CHECK(cudaGraphExecMemsetNodeSetParams(exec, n.set, &s));
	CHECK(cudaGraphExecHostNodeSetParams(exec, n.host, &h));
	run(exec);
	EXPECT(moved[0] == 117 && moved[3] == 147 && again[3] == 40 && calls == 1 && second == 1);
	CHECK(cudaGraphMemcpyNodeSetParamsToSymbol(
		n.to_table, table, other, 16, 0, cudaMemcpyHostToDevice));
	CHECK(cudaGraphMemcpyNodeSetParamsFromSymbol(
		n.from_table, table_out, table, 16, 0, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphMemcpyNodeSetParams1D(n.out, out, p, 16, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphHostNodeSetParams(n.host, &h));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	run(exec);
	EXPECT(out[1] == 125 && table_out[0] == 10 && second == 2);
	EXPECT_ERROR(cudaGraphMemcpyNodeSetParamsToSymbol(
			     n.to_table, table, other, 16, 4, cudaMemcpyHostToDevice),
		cudaErrorInvalidValue);
	EXPECT_ERROR(
		cudaGraphExecMemcpyNodeSetParams1D(NULL, n.out, out, p, 16, cudaMemcpyDeviceToHost),
		cudaErrorInvalidValue);
	return passed();
}
