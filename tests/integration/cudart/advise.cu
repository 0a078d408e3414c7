/* Advice on managed memory, and what its range says of itself. */
#include "check.h"

int main()
{
	const size_t bytes = 1 << 20;
	cudaMemLocation device = {cudaMemLocationTypeDevice, 0},
			host = {cudaMemLocationTypeHost, 0};
	int mostly = -1, preferred = -5;
	char *p;

	CHECK(cudaMallocManaged(&p, bytes));
	memset(p, 3, bytes);
	CHECK(cudaMemAdvise(p, bytes, cudaMemAdviseSetReadMostly, device));
	CHECK(cudaMemRangeGetAttribute(
		&mostly, sizeof(mostly), cudaMemRangeAttributeReadMostly, p, bytes));
	EXPECT(mostly == 1);
	CHECK(cudaMemAdvise(p, bytes, cudaMemAdviseUnsetReadMostly, device));
	CHECK(cudaMemAdvise(p, bytes, cudaMemAdviseSetPreferredLocation, host));
	CHECK(cudaMemRangeGetAttribute(
		&preferred, sizeof(preferred), cudaMemRangeAttributePreferredLocation, p, bytes));
	EXPECT(preferred == cudaCpuDeviceId);
	CHECK(cudaMemAdvise(p, bytes, cudaMemAdviseSetAccessedBy, device));
	EXPECT(p[bytes - 1] == 3);
	EXPECT(cudaMemAdvise(p, bytes, (cudaMemoryAdvise)77, device) == cudaErrorInvalidValue);
	CHECK(cudaFree(p));
	return passed();
}
