// also: --default-stream per-thread
/* Many copies in one call. */
#include "check.h"

int main()
{
	const int n = 6;
	cudaMemcpyAttributes how = {};
	size_t sizes[n], first = 0;
	const void *from[n];
	void *to[n];
	char in[n][64], out[n][64], *p;
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&p, sizeof(in)));
	for (int i = 0; i < n; i++) {
		memset(in[i], 'a' + i, 64);
		memset(out[i], 0, 64);
		from[i] = in[i];
		to[i] = p + 64 * i;
		sizes[i] = 10 * (i + 1);
	}
	how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CHECK(cudaMemcpyBatchAsync(to, from, sizes, n, &how, &first, 1, stream));
	CHECK(cudaMemcpyAsync(out, p, sizeof(out), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < n; i++)
		EXPECT(!memcmp(in[i], out[i], sizes[i]));
	return passed();
}
