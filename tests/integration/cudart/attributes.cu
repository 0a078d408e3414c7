// also: --default-stream per-thread
/* Attributes of streams and of ranges, memory attached to a stream, logs of the driver. */
#include "check.h"

int main()
{
	cudaMemRangeAttribute which[2] = {
		cudaMemRangeAttributeReadMostly, cudaMemRangeAttributePreferredLocation};
	cudaStreamAttrValue value = {}, got = {};
	int mostly = 5, preferred = 5;
	void *answers[2] = {&mostly, &preferred};
	size_t sizes[2] = {sizeof(int), sizeof(int)};
	cudaStream_t a, b;
	char *p;

	CHECK(cudaStreamCreate(&a));
	CHECK(cudaStreamCreate(&b));
	value.syncPolicy = cudaSyncPolicyYield;
	CHECK(cudaStreamSetAttribute(a, cudaLaunchAttributeSynchronizationPolicy, &value));
	CHECK(cudaStreamCopyAttributes(b, a));
	CHECK(cudaStreamGetAttribute(b, cudaLaunchAttributeSynchronizationPolicy, &got));
	EXPECT(got.syncPolicy == cudaSyncPolicyYield);
	CHECK(cudaMallocManaged(&p, 4096, cudaMemAttachHost));
	p[0] = 1;
	CHECK(cudaStreamAttachMemAsync(a, p, 0, cudaMemAttachSingle));
	CHECK(cudaMemsetAsync(p, 2, 4096, a));
	CHECK(cudaStreamSynchronize(a));
	EXPECT(p[0] == 2 && p[4095] == 2);
	CHECK(cudaMemRangeGetAttributes(answers, sizes, which, 2, p, 4096));
	EXPECT(mostly == 0 && preferred == cudaInvalidDeviceId);
	return passed();
}
