/*
 * A CUDA program that follows commands, so that a test can play several against each other: one
 * command a line on stdin, one answer "RESULT VALUE" a line on stdout. RESULT is the CUresult.
 * Memory is named by the number that alloc or open gave.
 *
 *   alloc BYTES   free N   set N WORD VALUE   get N WORD
 *   add N (by a kernel, at its first word)
 *   export N   open HANDLE   close N   range N   used
 *   fork (a child that does nothing until it is killed)
 *   device D (uses that GPU from now on)
 *   peer D (lets the GPU in use into memory of that one)   unpeer D
 *   access N   sync_memops N
 *   load PATH (a shared library)   open_file PATH
 *   context (a second one on the GPU in use; the first is what GPU 0 began with)   end_first
 */
#define ALL_CALLS
#include "softgpu/cuda.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "cuda/objects.h"

#define MEMORY_MAX 4096
#define GPU_MAX    4

static CUdeviceptr memory[MEMORY_MAX];
static unsigned memory_count;
static CUcontext contexts[GPU_MAX];
static CUfunction adds[GPU_MAX];
static int gpu;

static CUresult use(int device)
{
	CUmodule module;
	CUresult r;

	if (device < 0 || device >= GPU_MAX)
		return CUDA_ERROR_INVALID_DEVICE;
	gpu = device;
	if (contexts[device])
		return cuCtxSetCurrent(contexts[device]);
	r = cuCtxCreate_v2(&contexts[device], 0, device);
	if (!r)
		r = cuModuleLoadData(&module, kernels_ptx);
	return r ? r : cuModuleGetFunction(&adds[device], module, "add");
}

/* Returns its number, or the error. */
static CUresult keep(CUresult r, CUdeviceptr address, unsigned long long *ret)
{
	if (!r && memory_count < MEMORY_MAX) {
		*ret = memory_count;
		memory[memory_count++] = address;
	}
	return r;
}

static CUdeviceptr at(const char *number)
{
	unsigned long n = strtoul(number, NULL, 10);

	return n < memory_count ? memory[n] : 0;
}

static CUresult print_handle(CUdeviceptr address)
{
	CUipcMemHandle handle;
	CUresult r = cuIpcGetMemHandle(&handle, address);

	printf("%d ", r);
	for (unsigned i = 0; !r && i < sizeof(handle); i++)
		printf("%02x", (unsigned char)handle.reserved[i]);
	printf("\n");
	return r;
}

static CUresult open_handle(const char *hex, unsigned long long *ret)
{
	CUipcMemHandle handle;
	CUdeviceptr address = 0;
	unsigned byte;
	CUresult r;

	for (unsigned i = 0; i < sizeof(handle); i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return CUDA_ERROR_INVALID_HANDLE;
		handle.reserved[i] = (char)byte;
	}
	r = cuIpcOpenMemHandle_v2(&address, handle, 1);
	return keep(r, address, ret);
}

static CUresult set_word(CUdeviceptr address, unsigned long word, unsigned value)
{
	CUresult r = cuMemsetD32_v2(address + 4 * word, value, 1);

	return r ? r : cuCtxSynchronize();
}

static CUresult add(CUdeviceptr address)
{
	void *args[] = {&address};
	CUresult r = cuLaunchKernel(adds[gpu], 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);

	return r ? r : cuCtxSynchronize();
}

static unsigned long long fork_idle(void)
{
	pid_t pid = fork();

	if (pid)
		return (unsigned long long)pid;
	/* Who talks to its parent is to see that one end. */
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	for (;;)
		pause();
}

static CUresult allocate(const char *bytes, unsigned long long *ret)
{
	CUdeviceptr address = 0;
	CUresult r = cuMemAlloc_v2(&address, strtoull(bytes, NULL, 10));

	return keep(r, address, ret);
}

static CUresult obey(char words[4][160], unsigned long long *value)
{
	size_t free_bytes, total;
	unsigned word = 0, on = 1;
	CUdeviceptr base;
	CUresult r;

	if (!strcmp(words[0], "alloc"))
		return allocate(words[1], value);
	if (!strcmp(words[0], "free"))
		return cuMemFree_v2(at(words[1]));
	if (!strcmp(words[0], "set"))
		return set_word(at(words[1]), strtoul(words[2], NULL, 10),
			(unsigned)strtoul(words[3], NULL, 10));
	if (!strcmp(words[0], "get")) {
		r = cuMemcpyDtoH_v2(&word, at(words[1]) + 4 * strtoull(words[2], NULL, 10), 4);
		*value = word;
		return r;
	}
	if (!strcmp(words[0], "add"))
		return add(at(words[1]));
	if (!strcmp(words[0], "open"))
		return open_handle(words[1], value);
	if (!strcmp(words[0], "close"))
		return cuIpcCloseMemHandle(at(words[1]));
	if (!strcmp(words[0], "range")) {
		size_t bytes = 0;

		r = cuMemGetAddressRange_v2(&base, &bytes, at(words[1]));
		*value = bytes;
		return r ? r : base == at(words[1]) ? 0 : -1;
	}
	if (!strcmp(words[0], "used")) {
		r = cuMemGetInfo_v2(&free_bytes, &total);
		*value = total - free_bytes;
		return r;
	}
	if (!strcmp(words[0], "fork")) {
		*value = fork_idle();
		return CUDA_SUCCESS;
	}
	if (!strcmp(words[0], "device"))
		return use(atoi(words[1]));
	if (!strcmp(words[0], "peer"))
		return cuCtxEnablePeerAccess(contexts[atoi(words[1]) % GPU_MAX], 0);
	if (!strcmp(words[0], "unpeer"))
		return cuCtxDisablePeerAccess(contexts[atoi(words[1]) % GPU_MAX]);
	if (!strcmp(words[0], "context")) {
		CUcontext second;

		return cuCtxCreate_v2(&second, 0, gpu);
	}
	if (!strcmp(words[0], "end_first"))
		return cuCtxDestroy_v2(contexts[0]);
	if (!strcmp(words[0], "access"))
		return cuPointerGetAttribute(value, TD_POINTER_ACCESS_FLAGS, at(words[1]));
	if (!strcmp(words[0], "load"))
		return dlopen(words[1], RTLD_NOW) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
	if (!strcmp(words[0], "suspend")) {
		r = cuCheckpointProcessLock(atoi(words[1]), NULL);
		return r ? r : cuCheckpointProcessCheckpoint(atoi(words[1]), NULL);
	}
	if (!strcmp(words[0], "resume")) {
		r = cuCheckpointProcessRestore(atoi(words[1]), NULL);
		return r ? r : cuCheckpointProcessUnlock(atoi(words[1]), NULL);
	}
	if (!strcmp(words[0], "open_file"))
		return open(words[1], O_RDWR) >= 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
	if (!strcmp(words[0], "sync_memops"))
		return cuPointerSetAttribute(&on, TD_POINTER_SYNC_MEMOPS, at(words[1]));
	return -1;
}

TEST(it_does_what_it_is_told)
{
	char line[512], words[4][160];

	if (isatty(0))
		SKIP("for a test to talk to");
	OK(cuInit(0));
	OK(use(0));
	while (fgets(line, sizeof(line), stdin)) {
		unsigned long long value = 0;
		CUresult r;

		memset(words, 0, sizeof(words));
		(void)sscanf(
			line, "%159s %159s %159s %159s", words[0], words[1], words[2], words[3]);
		if (!strcmp(words[0], "export")) {
			(void)print_handle(at(words[1]));
		} else {
			r = obey(words, &value);
			printf("%d %llu\n", r, value);
		}
		fflush(stdout);
	}
}
