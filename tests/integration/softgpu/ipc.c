/* Memory and events of another process: the test starts itself as that process. */
#define ALL_CALLS
#include "child.h"
#include "cuda.h"

#include <errno.h>
#include <signal.h>

struct handles {
	CUipcMemHandle memory;
	CUipcEventHandle event;
	unsigned value; /* what the other one stores */
};

/* Opens what it is sent, stores a value there, records the event, waits to be told to go. */
static void user(int fd)
{
	struct handles h;
	CUdeviceptr at, again;
	CUevent event;
	unsigned n = 2;
	void *params[] = {&at, &h.value}, *nap[] = {&n};
	char go;

	receive(fd, &h, sizeof(h));
	begin();
	OK(cuIpcOpenMemHandle_v2(&at, h.memory, 1));
	OK(cuIpcOpenMemHandle(&again, h.memory, 1));
	CHECK_EQ(at, again);
	CHECK_EQ(word_at(at), 1);
	CHECK_EQ(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE); /* not its own */
	OK(cuIpcOpenEventHandle(&event, h.event));
	OK(launch(kernel("nap"), NULL, nap));
	OK(launch(kernel("store"), NULL, params));
	OK(cuEventRecord(event, NULL));
	give(fd, "r", 1);
	receive(fd, &go, 1);
	OK(cuIpcCloseMemHandle(at));
	OK(cuIpcCloseMemHandle(at));
	CHECK_EQ(cuIpcCloseMemHandle(at), CUDA_ERROR_INVALID_VALUE);
	end();
	_exit(0);
}

TEST(memory_and_events_are_shared_with_another_process)
{
	struct handles h = {.value = 99};
	CUdeviceptr small, at;
	CUstream stream;
	CUevent event, plain;
	char recorded;
	pid_t pid;
	int fd;

	pid = start_child("user", &fd);
	begin();
	OK(cuMemAlloc_v2(&small, 512)); /* not the first in its granule */
	OK(cuMemAlloc_v2(&at, 4096));
	OK(cuMemsetD32_v2(at, 1, 1));
	OK(cuCtxSynchronize());
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK_EQ(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	CHECK_EQ(cuIpcGetEventHandle(&h.event, plain), CUDA_ERROR_INVALID_VALUE);
	OK(cuIpcGetEventHandle(&h.event, event));
	CHECK_EQ(cuIpcGetMemHandle(&h.memory, at + 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuIpcGetMemHandle(&h.memory, at));
	CHECK_EQ(cuIpcOpenMemHandle_v2(&small, h.memory, 1), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuEventQuery(event)); /* never recorded */
	give(fd, &h, sizeof(h));
	receive(fd, &recorded, 1);
	/* A stream here waits for the other's kernel. */
	OK(cuStreamWaitEvent(stream, event, 0));
	OK(cuMemcpyDtoDAsync_v2(at + 64, at, 4, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuEventQuery(event));
	OK(cuEventSynchronize(event));
	CHECK_EQ(word_at(at + 64), 99);
	give(fd, "g", 1);
	end_child(pid, fd, 0);
	end();
}

static void dies(int fd)
{
	struct handles h;
	CUdeviceptr at;
	CUevent event;

	begin();
	OK(cuMemAlloc_v2(&at, 4096));
	OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	OK(cuIpcGetMemHandle(&h.memory, at));
	OK(cuIpcGetEventHandle(&h.event, event));
	give(fd, &h, sizeof(h));
	receive(fd, &h, 1);
	raise(SIGKILL);
}

/* Gives out a handle of memory that it then frees; another allocation lies there. */
static void frees(int fd)
{
	struct handles h;
	CUdeviceptr at, again;
	char go;

	begin();
	OK(cuMemAlloc_v2(&at, 4096));
	OK(cuIpcGetMemHandle(&h.memory, at));
	OK(cuMemFree_v2(at));
	OK(cuMemAlloc_v2(&again, 4096));
	CHECK_EQ(at, again);
	give(fd, &h, sizeof(h));
	OK(cuIpcGetMemHandle(&h.memory, again));
	give(fd, &h, sizeof(h));
	receive(fd, &go, 1);
	end();
	_exit(0);
}

#define LEFT (8 * MIB)

/* Gives out a handle of memory that it then frees, or dies with. */
static void leaves(int fd)
{
	struct handles h;
	CUdeviceptr at;
	char go;

	begin();
	OK(cuMemAlloc_v2(&at, LEFT));
	OK(cuIpcGetMemHandle(&h.memory, at));
	give(fd, &h, sizeof(h));
	receive(fd, &go, 1);
	if (go == 'k')
		raise(SIGKILL);
	OK(cuMemFree_v2(at));
	give(fd, "f", 1);
	receive(fd, &go, 1);
	end();
	_exit(0);
}

/* Before main(): a role runs no tests. */
__attribute__((constructor)) static void play_role(void)
{
	const char *role = getenv("IPC_ROLE");

	if (!role)
		return;
	if (!setjmp(test_exit)) {
		if (!strcmp(role, "user"))
			user(atoi(getenv("IPC_FD")));
		else if (!strcmp(role, "frees"))
			frees(atoi(getenv("IPC_FD")));
		else if (!strcmp(role, "leaves"))
			leaves(atoi(getenv("IPC_FD")));
		else
			dies(atoi(getenv("IPC_FD")));
	}
	_exit(1);
}

TEST(a_handle_of_a_dead_process_opens_nothing)
{
	struct handles h;
	CUdeviceptr at;
	CUevent event;
	pid_t pid;
	int fd, status;

	pid = start_child("dies", &fd);
	begin();
	receive(fd, &h, sizeof(h));
	give(fd, "d", 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	close(fd);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&at, h.memory, 1), CUDA_ERROR_MAP_FAILED);
	CHECK_EQ(cuIpcOpenEventHandle(&event, h.event), CUDA_ERROR_MAP_FAILED);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&at, h.memory, 0), CUDA_ERROR_INVALID_VALUE);
	memset(&h, 0, sizeof(h));
	CHECK_EQ(cuIpcOpenMemHandle_v2(&at, h.memory, 1), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(a_handle_is_good_while_its_memory_is)
{
	struct handles freed, fresh;
	CUdeviceptr at;
	pid_t pid;
	int fd;

	pid = start_child("frees", &fd);
	begin();
	receive(fd, &freed, sizeof(freed));
	receive(fd, &fresh, sizeof(fresh));
	CHECK_EQ(cuIpcOpenMemHandle_v2(&at, freed.memory, 1), CUDA_ERROR_INVALID_HANDLE);
	OK(cuIpcOpenMemHandle_v2(&at, fresh.memory, 1));
	OK(cuIpcCloseMemHandle(at));
	give(fd, "g", 1);
	end_child(pid, fd, 0);
	end();
}

static size_t free_now(void)
{
	size_t bytes;

	OK(cuMemGetInfo_v2(&bytes, NULL));
	return bytes;
}

/* How much becomes free as the owner frees it, and as it is closed then. */
static void check_left(size_t by_free, size_t by_close)
{
	struct handles h;
	CUdeviceptr at;
	size_t before;
	char freed;
	pid_t pid;
	int fd;

	pid = start_child("leaves", &fd);
	begin();
	receive(fd, &h, sizeof(h));
	before = free_now();
	OK(cuIpcOpenMemHandle_v2(&at, h.memory, 1));
	CHECK_EQ(free_now(), before); /* charged once */
	give(fd, "g", 1);
	receive(fd, &freed, 1);
	CHECK_EQ(free_now(), before + by_free);
	OK(cuMemsetD32_v2(at, 1, 1)); /* it is mapped */
	OK(cuCtxSynchronize());
	OK(cuIpcCloseMemHandle(at));
	CHECK_EQ(free_now(), before + by_free + by_close);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&at, h.memory, 1), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(free_now(), before + LEFT);
	give(fd, "g", 1);
	end_child(pid, fd, 0);
	end();
}

TEST(what_its_owner_frees_stays_until_the_last_one_has_closed_it)
{
	check_left(0, LEFT);
}

TEST(what_its_owner_frees_is_gone_where_that_is_modelled)
{
	check_left(LEFT, 0);
}

TEST(what_its_owner_dies_with_stays_until_the_last_one_has_closed_it)
{
	struct handles h;
	CUdeviceptr at;
	size_t before;
	pid_t pid;
	int fd, status;

	pid = start_child("leaves", &fd);
	begin();
	receive(fd, &h, sizeof(h));
	OK(cuIpcOpenMemHandle_v2(&at, h.memory, 1));
	before = free_now();
	give(fd, "k", 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	close(fd);
	while (free_now() == before) /* its context goes */
		;
	before = free_now();
	OK(cuIpcCloseMemHandle(at));
	CHECK_EQ(free_now(), before + LEFT);
	end();
}

TEST(what_is_not_from_cuMemAlloc_has_no_handle)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUipcMemHandle ipc;
	CUdeviceptr at, managed, pooled;
	int fd;

	begin();
	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	CHECK_EQ(cuMemExportToShareableHandle(&fd, handle, 1, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
	OK(cuMemMap(at, 2 * MIB, 0, handle, 0));
	OK(cuMemSetAccess(at, 2 * MIB, &access, 1));
	CHECK_EQ(cuIpcGetMemHandle(&ipc, at), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	CHECK_EQ(cuIpcGetMemHandle(&ipc, managed), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAllocAsync(&pooled, 4096, NULL));
	CHECK_EQ(cuIpcGetMemHandle(&ipc, pooled), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(memory_by_handle_is_shared_as_a_file)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = 1,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle, imported;
	CUdeviceptr at, other;
	size_t before, after;
	int fd;

	begin();
	OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
	OK(cuMemExportToShareableHandle(&fd, handle, 1, 0));
	CHECK_EQ(cuMemExportToShareableHandle(&fd, handle, 8, 0), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemGetInfo_v2(&before, NULL));
	OK(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd, 1));
	OK(cuMemGetInfo_v2(&after, NULL));
	CHECK_EQ(before, after); /* charged once */
	CHECK_EQ(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)0, 1),
		CUDA_ERROR_INVALID_VALUE); /* stdin is no memory */
	OK(cuMemAddressReserve(&at, 4 * MIB, 0, 0, 0));
	other = at + 2 * MIB;
	OK(cuMemMap(at, 2 * MIB, 0, handle, 0));
	OK(cuMemMap(other, 2 * MIB, 0, imported, 0));
	OK(cuMemSetAccess(at, 4 * MIB, &access, 1));
	OK(cuMemsetD32_v2(at, 12, 1));
	OK(cuCtxSynchronize());
	CHECK_EQ(word_at(other), 12);
	OK(cuMemUnmap(at, 4 * MIB));
	OK(cuMemRelease(handle));
	OK(cuMemRelease(imported));
	OK(cuMemGetInfo_v2(&after, NULL));
	/*
	 * The memory counts once here, too. Under tandem the memory of contexts is found with a
	 * delay: that of the last case's may have been counted until now.
	 */
	CHECK(after >= before + 2 * MIB && after < before + 4 * MIB);
	close(fd);
	end();
}
