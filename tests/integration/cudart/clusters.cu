// flags: -arch=compute_90
// softgpu: --model h100 --memory 2g
/* How many clusters of a kernel fit, and how large they can be. */
#include "check.h"

__global__ void nothing(int *p)
{
	*p = 1;
}

int main()
{
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	int count = 0;

	config.gridDim = dim3(8);
	config.blockDim = dim3(128);
	CHECK(cudaOccupancyMaxPotentialClusterSize(&count, nothing, &config));
	EXPECT(count >= 1);
	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = 2;
	attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
	config.attrs = &attribute;
	config.numAttrs = 1;
	CHECK(cudaOccupancyMaxActiveClusters(&count, nothing, &config));
	EXPECT(count >= 1);
	EXPECT(cudaOccupancyMaxActiveClusters(&count, nothing, NULL) == cudaErrorInvalidValue);
	return passed();
}
