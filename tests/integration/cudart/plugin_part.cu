/* The shared object of plugin.cu. */
__device__ int step = 99;

__global__ static void add(int *p)
{
	*p += ++step;
}

extern "C" int add_there(int *p)
{
	add<<<1, 1>>>(p);
	return cudaGetLastError();
}
