/*
 * Memory that one process made and another one maps: it is on the GPU as long as any of them has
 * it, counts once, and NVML shows its owner. The test starts itself as the maker.
 */
#define ALL_CALLS
#include "child.h"
#include "cuda.h"

#include <dlfcn.h>
#include <signal.h>

#include "gpu/nvml_abi.h"
#include "tests/integration/descriptors.h"

#define BYTES   (8 * MIB)
#define CONTEXT MIB /* what one takes */

static const CUmemAllocationProp exportable = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = 1,
	.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc both_ways = {
	{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

/* -- what NVML says -- */

#define CALL(name, ...) ((name##_fn)find(#name))(__VA_ARGS__)

static void *find(const char *name)
{
	static void *library;
	void *function;

	if (!library)
		library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	function = library ? dlsym(library, name) : NULL;
	if (!function)
		test_fail(__FILE__, __LINE__, "%s", dlerror());
	return function;
}

static nvmlDevice_t first(void)
{
	nvmlDevice_t device;

	OK(CALL(nvmlInit_v2));
	OK(CALL(nvmlDeviceGetHandleByIndex_v2, 0u, &device));
	return device;
}

/* 0: it is not listed. */
static uint64_t used_by(pid_t pid)
{
	nvmlDevice_t device = first();
	nvmlProcessInfo_v2_t rows[8];
	unsigned count = 8;

	OK(CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, rows));
	for (unsigned i = 0; i < count; i++)
		if (rows[i].pid == (unsigned)pid)
			return rows[i].usedGpuMemory;
	return 0;
}

static uint64_t used_by_all(void)
{
	nvmlDevice_t device = first();
	nvmlMemory_t memory;

	OK(CALL(nvmlDeviceGetMemoryInfo, device, &memory));
	return memory.used;
}

/* -- the maker -- */

static int make(CUmemGenericAllocationHandle *ret)
{
	int file;

	OK(cuMemCreate(ret, BYTES, &exportable, 0));
	OK(cuMemExportToShareableHandle(&file, *ret, 1, 0));
	return file;
}

/* Makes it, maps it, sends it; then releases, unmaps, and ends, each when it is told. */
static void maker(int fd)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	char go;
	int file;

	begin();
	file = make(&handle);
	OK(cuMemAddressReserve(&at, BYTES, 0, 0, 0));
	OK(cuMemMap(at, BYTES, 0, handle, 0));
	OK(cuMemSetAccess(at, BYTES, &both_ways, 1));
	OK(cuMemsetD32_v2(at, 77, 1));
	OK(cuCtxSynchronize());
	CHECK_EQ(send_file(fd, file), 0);
	close(file);
	receive(fd, &go, 1);
	OK(cuMemRelease(handle));
	give(fd, "r", 1);
	receive(fd, &go, 1);
	OK(cuMemUnmap(at, BYTES));
	give(fd, "u", 1);
	receive(fd, &go, 1);
	end();
	_exit(0);
}

__attribute__((constructor)) static void play_role(void)
{
	if (!getenv("IPC_ROLE"))
		return;
	if (!setjmp(test_exit))
		maker(atoi(getenv("IPC_FD")));
	_exit(1);
}

static void tell(int fd)
{
	char done;

	give(fd, "g", 1);
	receive(fd, &done, 1);
}

/* Mapped with access; the descriptor is closed. */
static CUdeviceptr import(int file, CUmemGenericAllocationHandle *ret)
{
	CUdeviceptr at;

	OK(cuMemImportFromShareableHandle(ret, (void *)(intptr_t)file, 1));
	close(file);
	OK(cuMemAddressReserve(&at, BYTES, 0, 0, 0));
	OK(cuMemMap(at, BYTES, 0, *ret, 0));
	OK(cuMemSetAccess(at, BYTES, &both_ways, 1));
	return at;
}

TEST(what_its_maker_gives_up_counts_for_who_has_it_mapped)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	pid_t pid;
	int fd;

	pid = start_child("maker", &fd);
	begin();
	at = import(receive_file(fd), &handle);
	CHECK_EQ(used_by(pid), CONTEXT + BYTES);
	CHECK_EQ(used_by(getpid()), CONTEXT);
	CHECK_EQ(used_by_all(), 2 * CONTEXT + BYTES);
	tell(fd);
	CHECK_EQ(used_by(pid), CONTEXT + BYTES); /* it has it mapped */
	tell(fd);
	CHECK_EQ(used_by(pid), CONTEXT);
	CHECK_EQ(used_by(getpid()), CONTEXT + BYTES);
	CHECK_EQ(used_by_all(), 2 * CONTEXT + BYTES);
	CHECK_EQ(word_at(at), 77);
	OK(cuMemRelease(handle));
	CHECK_EQ(used_by(getpid()), CONTEXT + BYTES);
	OK(cuMemUnmap(at, BYTES));
	CHECK_EQ(used_by(getpid()), CONTEXT);
	CHECK_EQ(used_by_all(), 2 * CONTEXT);
	give(fd, "g", 1);
	end_child(pid, fd, 0);
	end();
}

TEST(it_outlives_a_maker_that_is_killed_and_ends_with_who_has_it_then)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	int fd, status;
	pid_t pid;

	pid = start_child("maker", &fd);
	begin();
	at = import(receive_file(fd), &handle);
	OK(cuMemRelease(handle));
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	close(fd);
	while (used_by(pid)) /* its connection is closed by the kernel, a moment later */
		;
	CHECK_EQ(used_by(getpid()), CONTEXT + BYTES);
	CHECK_EQ(used_by_all(), CONTEXT + BYTES);
	CHECK_EQ(word_at(at), 77);
	OK(cuMemUnmap(at, BYTES));
	CHECK_EQ(used_by_all(), CONTEXT);
	end();
}

TEST(what_is_made_and_exported_and_given_up_and_imported_again_fills_the_gpu)
{
	CUmemGenericAllocationHandle handle, imported[16];
	size_t free_bytes;
	unsigned n = 0;
	int file;

	begin();
	OK(cuMemGetInfo_v2(&free_bytes, NULL));
	for (; n < 16 && (n + 1) * BYTES <= free_bytes; n++) {
		file = make(&handle);
		OK(cuMemImportFromShareableHandle(&imported[n], (void *)(intptr_t)file, 1));
		close(file);
		OK(cuMemRelease(handle));
		CHECK_EQ(used_by(getpid()), CONTEXT + (n + 1) * BYTES);
	}
	CHECK_EQ(cuMemCreate(&handle, BYTES, &exportable, 0), CUDA_ERROR_OUT_OF_MEMORY);
	while (n--)
		OK(cuMemRelease(imported[n]));
	CHECK_EQ(used_by(getpid()), CONTEXT);
	end();
}

/* A driver would keep it there: docs/softgpu.md. */
TEST(a_descriptor_alone_keeps_the_bytes_and_not_their_place_on_the_gpu)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at, taken;
	size_t free_bytes;
	int file;

	begin();
	file = make(&handle);
	OK(cuMemAddressReserve(&at, BYTES, 0, 0, 0));
	OK(cuMemMap(at, BYTES, 0, handle, 0));
	OK(cuMemSetAccess(at, BYTES, &both_ways, 1));
	OK(cuMemsetD32_v2(at, 5, 1));
	OK(cuCtxSynchronize());
	OK(cuMemUnmap(at, BYTES));
	OK(cuMemRelease(handle));
	OK(cuMemGetInfo_v2(&free_bytes, NULL));
	OK(cuMemAlloc_v2(&taken, free_bytes - BYTES + MIB));
	CHECK_EQ(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file, 1),
		CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree_v2(taken));
	at = import(file, &handle);
	CHECK_EQ(word_at(at), 5);
	CHECK_EQ(used_by(getpid()), CONTEXT + BYTES);
	OK(cuMemUnmap(at, BYTES));
	OK(cuMemRelease(handle));
	end();
}

/* Handles to it count once, however many. */
TEST(a_process_that_imports_what_it_has_made_has_it_until_both_are_gone)
{
	CUmemGenericAllocationHandle handle, imported, again;
	int file;

	begin();
	file = make(&handle);
	OK(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file, 1));
	OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)file, 1));
	close(file);
	CHECK_EQ(used_by(getpid()), CONTEXT + BYTES);
	OK(cuMemRelease(handle));
	OK(cuMemRelease(imported));
	CHECK_EQ(used_by(getpid()), CONTEXT + BYTES);
	OK(cuMemRelease(again));
	CHECK_EQ(used_by(getpid()), CONTEXT);
	end();
}
