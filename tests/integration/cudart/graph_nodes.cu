// also: --default-stream per-thread
/*
 * A graph made node by node: kernel, copy, set and host nodes, edges, and parameters changed later.
 */
#include "check.h"

__global__ void axpy(float *y, const float *x, float a, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] += a * x[i];
}

static const int n = 128;
static const size_t bytes = n * sizeof(float);

static void CUDART_CB count(void *at)
{
	++*(int *)at;
}

static cudaKernelNodeParams kernel_params(void **args)
{
	cudaKernelNodeParams p = {};

	p.func = (void *)axpy;
	p.gridDim = dim3(2);
	p.blockDim = dim3(64);
	p.kernelParams = args;
	return p;
}

static void launch(cudaGraphExec_t exec, const std::vector<float> &out, float wanted)
{
	CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaStreamSynchronize(0));
	for (int i = 0; i < n; i++)
		EXPECT(out[i] == wanted * i);
}

int main()
{
	std::vector<float> in(n), out(n);
	float *x, *y, a = 2, b = 5;
	int calls = 0;
	void *args[] = {&y, &x, &a, (void *)&n}, *other[] = {&y, &x, &b, (void *)&n};
	cudaGraphNode_t copy_in, clear, kernel, copy_out, host, deps[2], from[8], to[8];
	cudaMemsetParams set = {};
	cudaHostNodeParams note = {count, &calls};
	cudaKernelNodeParams params = kernel_params(args);
	cudaGraphNodeType type;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t count = 8;

	for (int i = 0; i < n; i++)
		in[i] = i;
	CHECK(cudaMalloc(&x, bytes));
	CHECK(cudaMalloc(&y, bytes));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNode1D(
		&copy_in, graph, NULL, 0, x, in.data(), bytes, cudaMemcpyHostToDevice));
	set.dst = y;
	set.elementSize = 4;
	set.width = n;
	set.height = 1;
	CHECK(cudaGraphAddMemsetNode(&clear, graph, NULL, 0, &set));
	deps[0] = copy_in;
	deps[1] = clear;
	CHECK(cudaGraphAddKernelNode(&kernel, graph, deps, 2, &params));
	CHECK(cudaGraphAddMemcpyNode1D(
		&copy_out, graph, NULL, 0, out.data(), y, bytes, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphAddHostNode(&host, graph, &copy_out, 1, &note));
	CHECK(cudaGraphAddDependencies(graph, &kernel, &copy_out, NULL, 1));
	CHECK(cudaGraphGetEdges(graph, from, to, NULL, &count));
	EXPECT(count == 4);
	CHECK(cudaGraphGetRootNodes(graph, NULL, &count));
	EXPECT(count == 2);
	CHECK(cudaGraphNodeGetType(clear, &type));
	EXPECT(type == cudaGraphNodeTypeMemset);
	CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	launch(exec, out, 2);
	EXPECT(calls == 1);
	params = kernel_params(other);
	CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &params));
	launch(exec, out, 5);
	launch(exec, out, 5);
	EXPECT(calls == 3);
	EXPECT_ERROR(cudaGraphAddKernelNode(&kernel, graph, NULL, 0, NULL), cudaErrorInvalidValue);
	params.func = &params;
	EXPECT_ERROR(cudaGraphAddKernelNode(&kernel, graph, NULL, 0, &params),
		cudaErrorInvalidDeviceFunction);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	return passed();
}
