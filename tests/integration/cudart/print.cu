/* A kernel prints: the text is there once the device was waited for. */
#include <unistd.h>

#include "check.h"

__global__ void hello(int n)
{
	printf("thread %d of %s: %.2f\n", threadIdx.x, "block", n / 4.0);
}

int main()
{
	char text[256] = "";
	FILE *file = tmpfile();
	int saved = dup(1);

	CHECK(cudaFree(0));
	EXPECT(file && dup2(fileno(file), 1) == 1);
	hello<<<1, 2>>>(5);
	cudaError_t error = cudaDeviceSynchronize();
	fflush(stdout);
	dup2(saved, 1);
	CHECK(error);
	rewind(file);
	EXPECT(fread(text, 1, sizeof(text) - 1, file) > 0);
	EXPECT(!strcmp(text, "thread 0 of block: 1.25\nthread 1 of block: 1.25\n"));
	return passed();
}
