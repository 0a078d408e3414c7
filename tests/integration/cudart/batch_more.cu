// also: --default-stream per-thread
/* Several operations in one call: boxes copied, managed ranges moved and let go. */
#include "check.h"

int main()
{
	const size_t bytes = 128 << 10;
	cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
	cudaMemcpy3DBatchOp ops[2] = {};
	size_t sizes[2] = {bytes, bytes}, first = 0;
	unsigned char in[96], out[96], *p, *managed[2];
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < 96; i++)
		in[i] = (unsigned char)(i * 5);
	CHECK(cudaMalloc(&p, 96));
	for (int i = 0; i < 2; i++) {
		ops[i].src.type = ops[i].dst.type = cudaMemcpyOperandTypePointer;
		ops[i].src.op.ptr.ptr = in + 48 * i;
		ops[i].dst.op.ptr.ptr = p + 48 * (1 - i);
		ops[i].extent = make_cudaExtent(12, 2, 2);
		ops[i].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	}
	CHECK(cudaMemcpy3DBatchAsync(2, ops, 0, stream));
	CHECK(cudaMemcpyAsync(out, p, 96, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(!memcmp(in, out + 48, 48) && !memcmp(in + 48, out, 48));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaMallocManaged(&managed[i], bytes));
		memset(managed[i], 7 + i, bytes);
	}
	CHECK(cudaMemPrefetchBatchAsync((void **)managed, sizes, 2, &device, &first, 1, 0, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(managed[0][bytes - 1] == 7 && managed[1][0] == 8);
	CHECK(cudaMemDiscardBatchAsync((void **)managed, sizes, 1, 0, stream));
	CHECK(cudaMemDiscardAndPrefetchBatchAsync(
		(void **)managed, sizes, 1, &device, &first, 1, 0, stream));
	CHECK(cudaMemsetAsync(managed[0], 1, bytes, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(managed[0][5] == 1 && managed[1][5] == 8);
	return passed();
}
