/* printf() in kernels comes out on stdout, in order with the host's. */
#include <unistd.h>

#include "check.h"

__global__ void greet(const char *who)
{
	printf("thread %d of %s: %.3f %s\n", threadIdx.x, who, threadIdx.x / 4.0,
		threadIdx.x & 1 ? "odd" : "even");
}

int main()
{
	static const char want[] = "before\nthread 0 of gpu: 0.000 even\nthread 1 of gpu: 0.250 "
				   "odd\nthread 2 of gpu: 0.500 even\nafter\n";
	FILE *file = tmpfile();
	int out = dup(1);
	char got[512] = "", *who;

	EXPECT(file && out >= 0);
	CHECK(cudaMalloc(&who, 4));
	CHECK(cudaMemcpy(who, "gpu", 4, cudaMemcpyHostToDevice));
	dup2(fileno(file), 1);
	puts("before");
	greet<<<1, 3>>>(who);
	CHECK(cudaDeviceSynchronize());
	puts("after");
	fflush(stdout);
	dup2(out, 1);
	rewind(file);
	EXPECT(fread(got, 1, sizeof(got) - 1, file) == sizeof(want) - 1);
	EXPECT(!strcmp(got, want));
	return passed();
}
