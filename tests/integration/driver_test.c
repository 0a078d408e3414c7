/*
 * The software driver called directly: its effects, and that it refuses what NVIDIA's refuses. Run
 * under `softgpu run`.
 */
#include "test.h"

#include "cuda/types.h"

CUresult cuInit(unsigned flags);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
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
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuGetProcAddress_v2(
	const char *name, void **ret, int version, uint64_t flags, int *status);
CUresult cuMulticastCreate(void);

#define MIB      (1ull << 20)
#define OK(call) CHECK_EQ(call, CUDA_SUCCESS)

/* Stores 7 at the address it is given. */
static const char store_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry store(.param .u64 p)\n{\n"
	".reg .u64 %a;\n.reg .u32 %v;\nld.param.u64 %a, [p];\nmov.u32 %v, 7;\nst.global.u32 [%a], "
	"%v;\nret;\n}\n";
static const char sleep_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nap()\n{\n"
	".reg .u32 %v;\nmov.u32 %v, 1000000;\nnanosleep.u32 %v;\nret;\n}\n";

static CUcontext context;

static void begin(void)
{
	OK(cuInit(0));
	OK(cuCtxCreate_v2(&context, 0, 0));
}

static void end(void)
{
	OK(cuCtxDestroy_v2(context));
}

static CUfunction load(const char *ptx, const char *name)
{
	CUmodule module;
	CUfunction function;

	OK(cuModuleLoadData(&module, ptx));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}

TEST(nothing_works_without_a_context)
{
	CUdeviceptr address;

	OK(cuInit(0));
	CHECK_EQ(cuMemAlloc_v2(&address, MIB), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(a_kernel_writes_and_the_host_reads_it_back)
{
	CUdeviceptr address;
	unsigned word = 0;
	void *params[] = {&address};

	begin();
	OK(cuMemAlloc_v2(&address, 100));
	OK(cuMemsetD32_v2(address, 1, 25));
	OK(cuLaunchKernel(load(store_ptx, "store"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	OK(cuMemcpyDtoH_v2(&word, address, 4));
	CHECK_EQ(word, 7);
	OK(cuMemcpyDtoH_v2(&word, address + 4, 4));
	CHECK_EQ(word, 1);
	OK(cuMemFree_v2(address));
	CHECK_EQ(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(an_unmapped_access_kills_its_context_and_no_other)
{
	CUdeviceptr bad = 0, good;
	void *params[] = {&bad};
	CUcontext other;

	begin();
	OK(cuMemAddressReserve(&bad, 2 * MIB, 0, 0, 0));
	OK(cuLaunchKernel(load(store_ptx, "store"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQ(cuMemAlloc_v2(&good, MIB), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuCtxCreate_v2(&other, 0, 0));
	OK(cuMemAlloc_v2(&good, MIB));
	OK(cuCtxDestroy_v2(other));
	end();
}

TEST(memory_ends_at_its_edge)
{
	size_t free_bytes, total;
	CUdeviceptr address;

	begin();
	OK(cuMemGetInfo_v2(&free_bytes, &total));
	CHECK_EQ(total, 64 * MIB);
	CHECK_EQ(free_bytes, 63 * MIB);
	CHECK_EQ(cuMemAlloc_v2(&address, 64 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc_v2(&address, 62 * MIB));
	OK(cuMemFree_v2(address));
	end();
}

TEST(virtual_memory_keeps_the_drivers_rules)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle first, second;
	unsigned out = 5, in = 0;
	CUdeviceptr at;

	begin();
	OK(cuMemAddressReserve(&at, 8 * MIB, 0, 0, 0));
	CHECK_EQ(cuMemCreate(&first, MIB, &prop, 0),
		CUDA_ERROR_INVALID_VALUE); /* not a multiple of the granularity */
	OK(cuMemCreate(&first, 4 * MIB, &prop, 0));
	OK(cuMemCreate(&second, 4 * MIB, &prop, 0));
	CHECK_EQ(
		cuMemMap(at, 2 * MIB, 2 * MIB, first, 0), CUDA_ERROR_INVALID_VALUE); /* an offset */
	OK(cuMemMap(at, 4 * MIB, 0, first, 0));
	CHECK_EQ(cuMemMap(at, 4 * MIB, 0, second, 0), CUDA_ERROR_INVALID_VALUE); /* twice */
	CHECK_EQ(cuMemMap(at + 6 * MIB, 4 * MIB, 0, second, 0),
		CUDA_ERROR_INVALID_VALUE); /* beyond the reservation */
	OK(cuMemMap(at + 4 * MIB, 4 * MIB, 0, second, 0));
	CHECK_EQ(cuMemUnmap(at, 2 * MIB), CUDA_ERROR_INVALID_VALUE); /* part of a mapping */
	OK(cuMemSetAccess(at, 8 * MIB, &access, 1));
	OK(cuMemcpyHtoD_v2(at + 3 * MIB, &out, 4));
	/* The bytes belong to the physical memory, not to the address. */
	OK(cuMemUnmap(at, 8 * MIB));
	CHECK_EQ(cuMemcpyDtoH_v2(&in, at + 3 * MIB, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemMap(at + 4 * MIB, 4 * MIB, 0, first, 0));
	OK(cuMemSetAccess(at + 4 * MIB, 4 * MIB, &access, 1));
	OK(cuMemcpyDtoH_v2(&in, at + 7 * MIB, 4));
	CHECK_EQ(in, 5);
	CHECK_EQ(cuMemAddressFree(at, 8 * MIB),
		CUDA_ERROR_INVALID_VALUE); /* something is mapped in it */
	OK(cuMemUnmap(at + 4 * MIB, 4 * MIB));
	OK(cuMemAddressFree(at, 8 * MIB));
	OK(cuMemRelease(first));
	OK(cuMemRelease(second));
	CHECK_EQ(cuMemRelease(second), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(launches_are_checked)
{
	CUdeviceptr address = 0;
	void *params[] = {&address};
	CUfunction store;

	begin();
	store = load(store_ptx, "store");
	CHECK_EQ(cuLaunchKernel(store, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuLaunchKernel(store, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 1u << 20, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuLaunchKernel((CUfunction)params, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, (CUstream)params, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	end();
}

TEST(events_measure_modelled_time)
{
	CUevent start, stop;
	CUstream stream;
	float ms = 0;

	begin();
	CUfunction nap = load(sleep_ptx, "nap");
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&start, 0));
	OK(cuEventCreate(&stop, 0));
	OK(cuLaunchKernel(nap, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	OK(cuEventRecord(start, stream));
	OK(cuLaunchKernel(nap, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	OK(cuEventRecord(stop, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuEventElapsedTime(&ms, start, stop));
	CHECK(ms >= 1.0f); /* a nap is 1 ms; the machine's time beyond the model is not asserted */
	end();
}

TEST(what_is_not_there_says_so)
{
	void *function;
	int status;

	CHECK_EQ(cuMulticastCreate(), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_EQ(cuGetProcAddress_v2("cuNoSuchThing", &function, 13000, 0, &status),
		CUDA_ERROR_NOT_FOUND);
	CHECK_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	OK(cuGetProcAddress_v2("cuMemAlloc", &function, 13000, 0, &status));
	CHECK(function != NULL);
	CHECK_EQ(cuGetProcAddress_v2("", &function, 0, 0, NULL), CUDA_ERROR_NOT_FOUND);
}
