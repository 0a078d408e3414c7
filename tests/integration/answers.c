/*
 * The driver's answers about memory of cuMemAlloc, for right calls and wrong ones, a line for each.
 * answers.py runs it under two backends and compares the lines. Addresses are printed as distances.
 * Each part has a context of its own, so that no answer depends on an earlier one.
 *
 *   answers PART
 */
#define ALL_CALLS
#include "softgpu/cuda.h"

#include <stdio.h>
#include <stdlib.h>

#include "cuda/objects.h"

#define MUST(call)                                                                                 \
	do {                                                                                       \
		if (call) {                                                                        \
			fprintf(stderr, "%s failed\n", #call);                                     \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

static char host[8 << 20];

static void say(const char *what, int r)
{
	printf("%s: %d\n", what, r);
}

static void say_value(const char *what, int r, unsigned long long value)
{
	if (r)
		say(what, r);
	else
		printf("%s: 0 %llu\n", what, value);
}

static CUdeviceptr allocate(size_t bytes)
{
	CUdeviceptr address = 0;

	MUST(cuMemAlloc_v2(&address, bytes));
	return address;
}

static void ask_range(const char *what, CUdeviceptr address)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;
	CUresult r = cuMemGetAddressRange_v2(&base, &bytes, address);

	say_value(what, r, bytes);
	if (!r)
		say_value("  from", 0, address - base);
}

static void sizes(void)
{
	static const size_t bytes[] = {0, 1, 100, 512, 513, MIB, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1,
		3 * MIB, 1ull << 40, SIZE_MAX};

	for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		CUdeviceptr address = 0;
		CUresult r = cuMemAlloc_v2(&address, bytes[i]);

		printf("%zu: %d aligned %d\n", bytes[i], r, !(address % 512));
		if (r)
			continue;
		ask_range("  first", address);
		ask_range("  last", address + bytes[i] - 1);
		ask_range("  behind", address + bytes[i]);
		say("  freed", cuMemFree_v2(address));
		ask_range("  first", address);
		say("  again", cuMemFree_v2(address));
	}
	say("nowhere", cuMemAlloc_v2(NULL, 100));
	say("null", cuMemFree_v2(0));
	say("no address", cuMemFree_v2(12345));
}

static void pitches(void)
{
	static const size_t widths[] = {0, 1, 100, 512, 513, 1 << 20};

	for (unsigned i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		CUdeviceptr address = 0;
		size_t pitch = 0;
		CUresult r = cuMemAllocPitch_v2(&address, &pitch, widths[i], 3, 4);

		say_value("pitch", r, pitch);
		if (!r)
			ask_range("  all", address + 2 * pitch);
	}
}

static void inside(void)
{
	CUdeviceptr small = allocate(1000), large = allocate(5 * MIB);

	say("inside a small one", cuMemFree_v2(small + 8));
	say("inside a large one", cuMemFree_v2(large + 8));
	say("async", cuMemFreeAsync(large, NULL));
	say("async again", cuMemFreeAsync(large, NULL));
	say("async inside", cuMemFreeAsync(small + 8, NULL));
	say("async small", cuMemFreeAsync(small, NULL));
}

static void beyond(void)
{
	static const size_t bytes[] = {1000, 2 * MIB - 512, 2 * MIB, 3 * MIB + 1000};

	for (unsigned i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		CUdeviceptr at = allocate(bytes[i]);

		printf("%zu\n", bytes[i]);
		say("  in", cuMemcpyHtoD_v2(at, host, bytes[i]));
		say("  in, one more", cuMemcpyHtoD_v2(at, host, bytes[i] + 1));
		say("  in, much more", cuMemcpyHtoD_v2(at, host, bytes[i] + 4 * MIB));
		say("  out, one more", cuMemcpyDtoH_v2(host, at, bytes[i] + 1));
		say("  set, one more", cuMemsetD8_v2(at, 0, bytes[i] + 1));
		say("  set behind", cuMemsetD8_v2(at + bytes[i], 0, 1));
		say("  set", cuMemsetD8_v2(at, 0, bytes[i]));
	}
}

static void attributes(void)
{
	static const int which[] = {TD_POINTER_MEMORY_TYPE, TD_POINTER_DEVICE_ORDINAL,
		TD_POINTER_ACCESS_FLAGS, TD_POINTER_IS_MANAGED, TD_POINTER_IS_LEGACY_IPC_CAPABLE,
		TD_POINTER_MAPPED, TD_POINTER_RANGE_SIZE, TD_POINTER_ALLOWED_HANDLE_TYPES,
		TD_POINTER_MEMPOOL_HANDLE, TD_POINTER_HOST_POINTER, TD_POINTER_SYNC_MEMOPS};
	CUdeviceptr at[] = {allocate(1000), allocate(5 * MIB)};

	for (unsigned m = 0; m < 2; m++) {
		for (unsigned i = 0; i < sizeof(which) / sizeof(which[0]); i++) {
			unsigned long long value = 0;
			CUresult r = cuPointerGetAttribute(&value, which[i], at[m] + 8);

			printf("attribute %d: %d %llu\n", which[i], r, r ? 0 : value);
		}
	}
}

/* Calls for the program's own mappings, which this memory does not have. */
static void mappings(void)
{
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
	CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at = allocate(4 * MIB);
	unsigned long long flags = 0;

	say("retain", cuMemRetainAllocationHandle(&handle, (void *)at));
	say("get access", cuMemGetAccess(&flags, &here, at));
	say("set access", cuMemSetAccess(at, 4 * MIB, &access, 1));
	say("unmap", cuMemUnmap(at, 4 * MIB));
	say("give back addresses", cuMemAddressFree(at, 4 * MIB));
	say("used", cuMemsetD8_v2(at, 1, 4 * MIB));
	say("prefetch", cuMemPrefetchAsync(at, 4 * MIB, 0, NULL));
	say("register", cuMemHostRegister_v2((void *)at, 4096, 0));
	say("freed", cuMemFree_v2(at));
}

static void capture(int mode, const char *name)
{
	CUdeviceptr before = allocate(1000), large = allocate(4 * MIB), at = 0;
	CUstream stream;
	void *graph = NULL;

	printf("%s\n", name);
	MUST(cuStreamCreate(&stream, 1));
	MUST(cuStreamBeginCapture_v2(stream, mode));
	say("  small", cuMemAlloc_v2(&at, 1000));
	say("  large", cuMemAlloc_v2(&at, 4 * MIB));
	say("  free", cuMemFree_v2(before));
	say("  free large", cuMemFree_v2(large));
	say("  end", cuStreamEndCapture(stream, &graph));
	say("  free again", cuMemFree_v2(before));
	say("  free large again", cuMemFree_v2(large));
}

static void captures(void)
{
	capture(0, "global");
}

static void captures_of_threads(void)
{
	capture(1, "thread");
}

static void relaxed_captures(void)
{
	capture(2, "relaxed");
}

static void handles(void)
{
	CUdeviceptr small = allocate(1000), large = allocate(5 * MIB), at = 0;
	CUipcMemHandle handle;

	say("inside", cuIpcGetMemHandle(&handle, large + 8));
	say("small", cuIpcGetMemHandle(&handle, small));
	say("large", cuIpcGetMemHandle(&handle, large));
	say("opened here", cuIpcOpenMemHandle_v2(&at, handle, 1));
	say("closed", cuIpcCloseMemHandle(large));
	say("freed", cuMemFree_v2(large));
	say("of what is gone", cuIpcGetMemHandle(&handle, large));
}

static void contexts(void)
{
	CUdeviceptr here = allocate(1000), there;
	CUcontext second;

	MUST(cuCtxCreate_v2(&second, 0, 0));
	there = allocate(1000);
	say("another context's", cuMemFree_v2(here));
	MUST(cuCtxDestroy_v2(second));
	MUST(cuCtxSetCurrent(context));
	ask_range("of an ended context", there);
	say("freed", cuMemFree_v2(there));
}

/* How much the program can have in all. */
static void whole(void)
{
	size_t free_bytes = 0, total = 0, got = 0;
	CUdeviceptr at;

	MUST(cuMemGetInfo_v2(&free_bytes, &total));
	printf("total %zu\n", total >> 20);
	while (!cuMemAlloc_v2(&at, 4 * MIB))
		got += 4;
	MUST(cuMemGetInfo_v2(&free_bytes, &total));
	printf("got %zu, as it was said %d\n", got, free_bytes < 4 * MIB);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {{"sizes", sizes}, {"pitches", pitches}, {"inside", inside}, {"beyond", beyond},
		{"attributes", attributes}, {"mappings", mappings}, {"captures", captures},
		{"captures_of_threads", captures_of_threads},
		{"relaxed_captures", relaxed_captures}, {"handles", handles},
		{"contexts", contexts}, {"whole", whole}};

	for (unsigned i = 0; argc == 2 && i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(parts[i].name, argv[1]))
			continue;
		if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0))
			return 1;
		parts[i].run();
		return 0;
	}
	return 2;
}
