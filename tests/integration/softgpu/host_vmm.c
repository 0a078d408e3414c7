/*
 * Host memory by cuMemCreate: kernels reach it across the link, and it takes none of the device's.
 * Also run where it is turned off.
 */
#include "cuda.h"

#include <setjmp.h>
#include <signal.h>

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t align, CUdeviceptr wanted,
	unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes);
CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes);
CUresult cuMemSetAccess(
	CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count);
CUresult cuMemGetAccess(
	unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address);

static const CUmemAllocationProp on_host = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}};
static const CUmemAccessDesc by_device = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
				     CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
			     by_host = {{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0},
				     CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static bool is_supported(void)
{
	int supported;

	OK(cuDeviceGetAttribute(
		&supported, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	return supported;
}

static sigjmp_buf fault;

static void faulted(int signal)
{
	(void)signal;
	siglongjmp(fault, 1);
}

static bool host_can_read(CUdeviceptr address)
{
	struct sigaction action = {.sa_handler = faulted}, before;
	volatile bool can = false;

	sigaction(SIGSEGV, &action, &before);
	if (!sigsetjmp(fault, 1)) {
		(void)*(volatile const char *)address;
		can = true;
	}
	sigaction(SIGSEGV, &before, NULL);
	return can;
}

TEST(where_it_is_turned_off_it_is_refused_and_the_attribute_says_so)
{
	CUmemGenericAllocationHandle handle;

	begin();
	if (is_supported())
		SKIP("this run has it");
	CHECK_EQ(cuMemCreate(&handle, 2 * MIB, &on_host, 0), CUDA_ERROR_NOT_SUPPORTED);
	end();
}

TEST(kernels_and_copies_reach_it_and_it_takes_no_device_memory)
{
	size_t before, after, total;
	CUmemGenericAllocationHandle handle;
	unsigned value = 7, in = 0;
	CUdeviceptr at, device;
	void *params[] = {&at, &value}, *add_params[] = {&at};

	begin();
	if (!is_supported())
		SKIP("turned off in this run");
	CUfunction store = kernel("store"), add = kernel("add");
	OK(cuMemGetInfo_v2(&before, &total));
	OK(cuMemAddressReserve(&at, 4 * MIB, 0, 0, 0));
	OK(cuMemCreate(&handle, 4 * MIB, &on_host, 0));
	OK(cuMemMap(at, 4 * MIB, 0, handle, 0));
	OK(cuMemSetAccess(at, 4 * MIB, &by_device, 1));
	OK(cuMemGetInfo_v2(&after, &total));
	CHECK_EQ(after, before);
	OK(launch(store, NULL, params));
	OK(launch(add, NULL, add_params));
	CHECK_EQ(word_at(at), 8);
	OK(cuMemAlloc_v2(&device, MIB));
	OK(cuMemcpyDtoD_v2(device, at, 4));
	CHECK_EQ(word_at(device), 8);
	/* The bytes stay with the memory when it is mapped elsewhere. */
	OK(cuMemUnmap(at, 4 * MIB));
	CHECK_EQ(cuMemcpyDtoH_v2(&in, at, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemMap(at, 4 * MIB, 0, handle, 0));
	OK(cuMemSetAccess(at, 4 * MIB, &by_device, 1));
	CHECK_EQ(word_at(at), 8);
	OK(cuMemUnmap(at, 4 * MIB));
	OK(cuMemRelease(handle));
	OK(cuMemAddressFree(at, 4 * MIB));
	end();
}

TEST(each_side_has_access_only_when_it_was_given)
{
	unsigned long long flags;
	CUmemGenericAllocationHandle handle;
	CUmemAccessDesc none = by_device;
	unsigned value = 5;
	CUdeviceptr at;
	void *params[] = {&at, &value};

	begin();
	if (!is_supported())
		SKIP("turned off in this run");
	OK(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
	OK(cuMemCreate(&handle, 2 * MIB, &on_host, 0));
	OK(cuMemMap(at, 2 * MIB, 0, handle, 0));
	CHECK(!host_can_read(at));
	OK(cuMemSetAccess(at, 2 * MIB, &by_device, 1));
	CHECK(!host_can_read(at));
	OK(launch(kernel("store"), NULL, params));
	OK(cuCtxSynchronize());
	OK(cuMemSetAccess(at, 2 * MIB, &by_host, 1));
	CHECK(host_can_read(at));
	CHECK_EQ(*(volatile unsigned *)at, 5);
	*(volatile unsigned *)at = 6;
	CHECK_EQ(word_at(at), 6); /* the device's access is as it was */
	OK(cuMemGetAccess(&flags, &by_host.location, at));
	CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	none.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	OK(cuMemSetAccess(at, 2 * MIB, &none, 1));
	OK(cuMemGetAccess(&flags, &by_device.location, at));
	CHECK_EQ(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(launch(kernel("store"), NULL, params));
	CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuMemUnmap(at, 2 * MIB));
	CHECK(!host_can_read(at));
	OK(cuMemRelease(handle));
	end();
}

TEST(locations_are_checked)
{
	CUmemAllocationProp prop = on_host;
	CUmemGenericAllocationHandle handle, device;
	CUdeviceptr at;

	begin();
	if (!is_supported())
		SKIP("turned off in this run");
	prop.location.id = 3;
	CHECK_EQ(cuMemCreate(&handle, 2 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST; /* its id is ignored */
	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	OK(cuMemRelease(handle));
	prop.requestedHandleTypes = 1;
	CHECK_EQ(cuMemCreate(&handle, 2 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	prop = on_host;
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	CHECK_EQ(cuMemCreate(&handle, 2 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemCreate(&handle, MIB, &on_host, 0), CUDA_ERROR_INVALID_VALUE);
	prop.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0};
	OK(cuMemCreate(&device, 2 * MIB, &prop, 0));
	OK(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
	OK(cuMemMap(at, 2 * MIB, 0, device, 0));
	/* The host does not get at device memory. */
	CHECK_EQ(cuMemSetAccess(at, 2 * MIB, &by_host, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemSetAccess(at, 2 * MIB, &by_device, 1));
	OK(cuMemUnmap(at, 2 * MIB));
	OK(cuMemRelease(device));
	end();
}

/*
 * The link of this run does 10 MB/s (meson.build): 1 MiB takes 105 ms, twice the kernel's own time.
 */
TEST(reading_it_takes_the_links_time)
{
	static const char read_ptx[] = PTX_HEAD
		".visible .entry read(.param .u64 p)\n{\n"
		".reg .u64 %a;\n.reg .u64 %e;\n.reg .u64 %v;\n.reg .pred %p;\nld.param.u64 %a, "
		"[p];\nadd.u64 %e, %a, 1048576;\n"
		"more:\nld.global.v2.u64 {%v, %v}, [%a];\nadd.u64 %a, %a, 16;\nsetp.lt.u64 %p, %a, "
		"%e;\n@%p bra more;\nret;\n}\n";
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	void *params[] = {&at};
	CUevent start, stop;
	float ms;

	begin();
	if (!is_supported())
		SKIP("turned off in this run");
	CUmodule module;
	CUfunction read;
	OK(cuModuleLoadData(&module, read_ptx));
	OK(cuModuleGetFunction(&read, module, "read"));
	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&stop, 0));
	OK(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
	OK(cuMemCreate(&handle, 2 * MIB, &on_host, 0));
	OK(cuMemMap(at, 2 * MIB, 0, handle, 0));
	OK(cuMemSetAccess(at, 2 * MIB, &by_device, 1));
	OK(cuEventRecord(start, NULL));
	OK(launch(read, NULL, params));
	OK(cuEventRecord(stop, NULL));
	OK(cuEventSynchronize(stop));
	OK(cuEventElapsedTime(&ms, start, stop));
	CHECK(ms >= 104);
	end();
}
