/* Question 2: host memory by cuMemCreate within the device's reach. */
#include "probe.h"

const char probe_name[] = "host_numa";
const char probe_question[] = "Can memory of the host (cuMemCreate HOST_NUMA) be mapped at device "
			      "addresses, and how fast do kernels read and write it?";

void probe_run(void)
{
	uint64_t bytes = probe_quick ? 4u << 20 : 256u << 20;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}};
	const CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	static struct probe_series read_rate, write_rate;
	unsigned long long count = bytes / 16;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at, sink;
	int node;
	void *read_params[] = {&at, &count, &sink}, *write_params[] = {&at, &count};

	probe_begin();
	node = probe_attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
	prop.location.id = node > 0 ? node : 0;
	MUST(cuMemCreate, &handle, bytes, &prop, 0);
	MUST(cuMemAddressReserve, &at, bytes, 0, 0, 0);
	MUST(cuMemMap, at, bytes, 0, handle, 0);
	MUST(cuMemSetAccess, at, bytes, &access, 1);
	MUST(cuMemAlloc_v2, &sink, 256);
	for (unsigned i = 0; i < (probe_quick ? 2u : 12u); i++) {
		uint64_t t = probe_now_ns();

		probe_must(probe_launch(probe_kernel("write_all"), 256, 256, NULL, write_params),
			"cuLaunchKernel");
		MUST(cuCtxSynchronize);
		if (i)
			probe_add(&write_rate, (double)bytes / probe_us_since(t) / 1e3);
		t = probe_now_ns();
		probe_must(probe_launch(probe_kernel("read_all"), 256, 256, NULL, read_params),
			"cuLaunchKernel");
		MUST(cuCtxSynchronize);
		if (i)
			probe_add(&read_rate, (double)bytes / probe_us_since(t) / 1e3);
	}
	probe_figure(&read_rate, "GB/s", "kernel reads");
	probe_figure(&write_rate, "GB/s", "kernel writes");
	probe_answer("yes, on node %d; attributes: HOST_NUMA_ID %d, HOST_NUMA_VMM %d, HOST_VMM %d",
		prop.location.id, node,
		probe_attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
		probe_attribute(CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
