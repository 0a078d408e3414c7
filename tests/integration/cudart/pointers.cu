/* The kind of an address: of the device, of the host, of both, of neither. */
#include "check.h"

static cudaPointerAttributes of(const void *p)
{
	cudaPointerAttributes at;

	CHECK(cudaPointerGetAttributes(&at, p));
	return at;
}

int main()
{
	char *device, *host, *managed, own[16];
	cudaPointerAttributes at;

	CHECK(cudaMalloc(&device, 4096));
	CHECK(cudaMallocHost(&host, 4096));
	CHECK(cudaMallocManaged(&managed, 4096));
	at = of(device + 100);
	EXPECT(at.type == cudaMemoryTypeDevice && at.device == 0 &&
		at.devicePointer == device + 100 && !at.hostPointer);
	at = of(host + 5);
	EXPECT(at.type == cudaMemoryTypeHost && at.hostPointer == host + 5 && at.devicePointer);
	at = of(managed);
	EXPECT(at.type == cudaMemoryTypeManaged && at.hostPointer == managed &&
		at.devicePointer == managed);
	at = of(own);
	EXPECT(at.type == cudaMemoryTypeUnregistered && !at.devicePointer);
	CHECK(cudaFree(device));
	at = of(device);
	EXPECT(at.type == cudaMemoryTypeUnregistered);
	EXPECT(cudaGetLastError() == cudaSuccess);
	EXPECT(cudaFree(device) != cudaSuccess);
	EXPECT(cudaGetLastError() != cudaSuccess);
	return passed();
}
