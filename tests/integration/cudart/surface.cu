/* A surface: an array written by a kernel and read back. */
#include "check.h"

__global__ void paint(cudaSurfaceObject_t surface)
{
	surf2Dwrite<int>(threadIdx.x * 100 + threadIdx.y, surface, threadIdx.x * 4, threadIdx.y);
}

int main()
{
	const int w = 8, h = 4;
	cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
	cudaResourceDesc what = {}, said;
	cudaSurfaceObject_t surface;
	cudaArray_t array;
	int got[w * h];

	CHECK(cudaMallocArray(&array, &desc, w, h, cudaArraySurfaceLoadStore));
	what.resType = cudaResourceTypeArray;
	what.res.array.array = array;
	CHECK(cudaCreateSurfaceObject(&surface, &what));
	CHECK(cudaGetSurfaceObjectResourceDesc(&said, surface));
	EXPECT(said.res.array.array == array);
	paint<<<1, dim3(w, h)>>>(surface);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy2DFromArray(got, w * 4, array, 0, 0, w * 4, h, cudaMemcpyDeviceToHost));
	for (int i = 0; i < w * h; i++)
		EXPECT(got[i] == i % w * 100 + i / w);
	CHECK(cudaDestroySurfaceObject(surface));
	return passed();
}
