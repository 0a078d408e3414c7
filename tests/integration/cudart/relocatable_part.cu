/* The other part of relocatable.cu and of relocatable_variable.cu. */
__device__ int shift = 10;

__device__ int other(int x)
{
	return x * x + shift;
}

__global__ void own(int *p)
{
	*p = 77;
}

int launched_there(int *p)
{
	int got = 0;

	own<<<1, 1>>>(p);
	return cudaMemcpy(&got, p, sizeof(got), cudaMemcpyDeviceToHost) ? -1 : got;
}
