/*
 * More work at once than the server takes from one process: the rest waits its turn, and nobody is
 * cut off.
 */
#define ALL_CALLS
#include "cuda.h"

#define STREAMS 5000
#define BYTES   400 /* 0.4 ms each over a link of 1 MB/s: more than 4096 are on their way at once */

TEST(five_thousand_streams_copy_at_once)
{
	static CUstream streams[STREAMS];
	CUdeviceptr at;
	void *host;

	begin();
	OK(cuMemAlloc_v2(&at, BYTES));
	OK(cuMemAllocHost_v2(&host, BYTES));
	for (unsigned i = 0; i < STREAMS; i++) {
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		OK(cuMemcpyDtoHAsync_v2(host, at, BYTES, streams[i]));
	}
	OK(cuCtxSynchronize());
	for (unsigned i = 0; i < STREAMS; i++)
		OK(cuStreamDestroy(streams[i]));
	end();
}
