// also: --default-stream per-thread
/* A stream's work captured as a graph, with a fork and a join, and launched several times. */
#include "check.h"

__global__ void scale(float *to, const float *from, float by, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] = from[i] * by;
}

__global__ void add(float *to, const float *a, const float *b, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] += a[i] + b[i];
}

int main()
{
	const int n = 300, blocks = 3;
	const size_t bytes = n * sizeof(float);
	std::vector<float> in(n), out(n);
	cudaStream_t s, side;
	cudaEvent_t fork, join;
	cudaStreamCaptureStatus status;
	cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t nodes = 0;
	float *x, *a, *b, *y;

	for (float **p : {&x, &a, &b, &y})
		CHECK(cudaMalloc(p, bytes));
	for (int i = 0; i < n; i++)
		in[i] = i;
	CHECK(cudaStreamCreate(&s));
	CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	CHECK(cudaMemset(y, 0, bytes));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	CHECK(cudaMemcpyAsync(x, in.data(), bytes, cudaMemcpyHostToDevice, s));
	CHECK(cudaEventRecord(fork, s));
	CHECK(cudaStreamWaitEvent(side, fork, 0));
	scale<<<blocks, 128, 0, s>>>(a, x, 2, n);
	scale<<<blocks, 128, 0, side>>>(b, x, 3, n);
	CHECK(cudaEventRecord(join, side));
	CHECK(cudaStreamWaitEvent(s, join, 0));
	add<<<blocks, 128, 0, s>>>(y, a, b, n);
	CHECK(cudaStreamIsCapturing(s, &status));
	EXPECT(status == cudaStreamCaptureStatusActive);
	CHECK(cudaStreamEndCapture(s, &graph));
	CHECK(cudaStreamIsCapturing(s, &status));
	EXPECT(status == cudaStreamCaptureStatusNone);
	CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
	EXPECT(nodes == 4);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int launch = 1; launch <= 3; launch++) {
		CHECK(cudaGraphLaunch(exec, s));
		CHECK(cudaMemcpyAsync(out.data(), y, bytes, cudaMemcpyDeviceToHost, s));
		CHECK(cudaStreamSynchronize(s));
		for (int i = 0; i < n; i++)
			EXPECT(out[i] == 5.0f * i * launch);
	}
	CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
	EXPECT(mode == cudaStreamCaptureModeGlobal);
	CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	EXPECT(cudaStreamSynchronize(s) == cudaErrorStreamCaptureUnsupported);
	EXPECT(cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated);
	(void)cudaGetLastError();
	CHECK(cudaGraphExecDestroy(exec));
	return passed();
}
