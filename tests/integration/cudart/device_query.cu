/* The runtime's figures of devices agree with each other. */
#include "check.h"

static int attribute(cudaDeviceAttr which)
{
	int value;

	CHECK(cudaDeviceGetAttribute(&value, which, 0));
	return value;
}

static void properties()
{
	cudaDeviceProp p;

	CHECK(cudaGetDeviceProperties(&p, 0));
	EXPECT(strlen(p.name) > 0 && strlen(p.name) < sizeof(p.name));
	EXPECT(p.totalGlobalMem >= 16 << 20);
	EXPECT(p.warpSize == 32 && p.warpSize == attribute(cudaDevAttrWarpSize));
	EXPECT(p.major == attribute(cudaDevAttrComputeCapabilityMajor));
	EXPECT(p.minor == attribute(cudaDevAttrComputeCapabilityMinor));
	EXPECT(p.multiProcessorCount == attribute(cudaDevAttrMultiProcessorCount));
	EXPECT((int)p.sharedMemPerBlock == attribute(cudaDevAttrMaxSharedMemoryPerBlock));
	EXPECT((int)p.sharedMemPerBlockOptin == attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
	EXPECT(p.maxThreadsDim[2] == attribute(cudaDevAttrMaxBlockDimZ));
	EXPECT(p.maxGridSize[0] == 0x7fffffff);
	EXPECT(p.maxThreadsPerMultiProcessor == attribute(cudaDevAttrMaxThreadsPerMultiProcessor));
	EXPECT(p.unifiedAddressing == 1 && p.managedMemory == 1);
	EXPECT(p.maxBlocksPerMultiProcessor == attribute(cudaDevAttrMaxBlocksPerMultiprocessor));
	for (int word : p.reserved)
		EXPECT(word == 0);
	EXPECT_ERROR(cudaGetDeviceProperties(&p, 1000), cudaErrorInvalidDevice);
}

int main()
{
	int count, device = -1, driver, runtime, least, greatest;
	cudaDeviceProp wish = {};
	char id[32];
	size_t free, total;
	unsigned flags;

	CHECK(cudaGetDeviceCount(&count));
	EXPECT(count == 1);
	CHECK(cudaDriverGetVersion(&driver));
	CHECK(cudaRuntimeGetVersion(&runtime));
	EXPECT(runtime == CUDART_VERSION && driver >= 12000);
	CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	CHECK(cudaGetDevice(&device));
	EXPECT(device == 0);
	properties();
	CHECK(cudaDeviceGetPCIBusId(id, sizeof(id), 0));
	device = -1;
	CHECK(cudaDeviceGetByPCIBusId(&device, id));
	EXPECT(device == 0);
	wish.major = 7;
	CHECK(cudaChooseDevice(&device, &wish));
	EXPECT(device == 0);
	CHECK(cudaInitDevice(0, 0, 0));
	CHECK(cudaSetDevice(0));
	CHECK(cudaGetDeviceFlags(&flags));
	EXPECT((flags & cudaDeviceScheduleMask) == cudaDeviceScheduleBlockingSync);
	CHECK(cudaMemGetInfo(&free, &total));
	EXPECT(free > 0 && free < total);
	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	EXPECT(least == 0 && greatest <= least);
	return passed();
}
