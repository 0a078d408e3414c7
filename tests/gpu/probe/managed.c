/* Question 16: managed memory that fits. */
#include "probe.h"

const char probe_name[] = "managed";
const char probe_question[] =
	"What do prefetch and first touch of managed memory cost when it fits?";

void probe_run(void)
{
	static struct probe_series touch, prefetch, back;
	unsigned long long count;
	uint64_t bytes;
	CUdeviceptr at;
	void *params[] = {&at, &count};

	probe_begin();
	bytes = probe_within(
		probe_quick ? 4u << 20 : 1u << 30); /* a quarter of what is free at most */
	count = bytes / 16;
	for (int i = 0; i < (probe_quick ? 1 : 5); i++) {
		uint64_t t;

		MUST(cuMemAllocManaged, &at, bytes, CU_MEM_ATTACH_GLOBAL);
		for (uint64_t k = 0; k < bytes; k += 4096)
			if (probe_attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 1)
				*(volatile char *)(uintptr_t)(at + k) = 1;
		t = probe_now_ns();
		probe_must(probe_launch(probe_kernel("write_all"), 256, 256, NULL, params),
			"cuLaunchKernel");
		MUST(cuCtxSynchronize);
		probe_add(&touch, (double)bytes / probe_us_since(t) / 1e3);
		t = probe_now_ns();
		MUST(cuMemPrefetchAsync_v2, at, bytes,
			(CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0}, 0, NULL);
		MUST(cuCtxSynchronize);
		probe_add(&back, (double)bytes / probe_us_since(t) / 1e3);
		t = probe_now_ns();
		MUST(cuMemPrefetchAsync_v2, at, bytes,
			(CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, NULL);
		MUST(cuCtxSynchronize);
		probe_add(&prefetch, (double)bytes / probe_us_since(t) / 1e3);
		MUST(cuMemFree_v2, at);
	}
	probe_figure(&touch, "GB/s", "first touch by a kernel, from the host");
	probe_figure(&prefetch, "GB/s", "prefetch to the device");
	probe_figure(&back, "GB/s", "prefetch to the host");
	probe_answer("%llu MiB, well below what is free", (unsigned long long)bytes >> 20);
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
