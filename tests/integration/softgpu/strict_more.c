/*
 * More calls that the driver refuses, and their traces: on a model of an older architecture, sm_75.
 */
#define ALL_CALLS
#include "cuda.h"
#include "softgpu/driver/graph/graph_abi.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

TEST(versions_beyond_the_drivers_have_no_symbols)
{
	void *found;
	int status, version;

	begin();
	OK(cuDriverGetVersion(&version));
	OK(cuGetProcAddress_v2("cuMemAlloc", &found, version, 0, &status));
	CHECK_EQ(cuGetProcAddress_v2("cuMemAlloc", &found, version + 10, 0, &status),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuGetProcAddress("cuMemAlloc", &found, version + 1000, 0),
		CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(what_is_registered_is_there_and_may_be_written)
{
	char *pages =
		mmap(NULL, 4 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned flags;

	CHECK(pages != MAP_FAILED);
	CHECK(!munmap(pages + (2 << 12), 1 << 12));
	begin();
	CHECK_EQ(cuMemHostRegister_v2(pages, 4 << 12, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(
		cuMemHostRegister_v2(pages, 1 << 12, 4), CUDA_ERROR_NOT_SUPPORTED); /* I/O memory */
	CHECK_EQ(cuMemHostRegister_v2(pages, 1 << 12, 8), CUDA_ERROR_NOT_SUPPORTED); /* read-only */
	OK(cuMemHostRegister_v2(pages, 2 << 12, 0));
	CHECK_EQ(cuMemHostGetFlags(&flags, pages), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemHostUnregister(pages));
	end();
}

TEST(flags_of_pinned_memory_are_told_again)
{
	unsigned flags;
	void *at;

	begin();
	OK(cuMemHostAlloc(&at, 4, 1 | 4));
	OK(cuMemHostGetFlags(&flags, at));
	CHECK_EQ(flags, 1 | 2 | 4); /* with one address space it is mapped too */
	OK(cuMemFreeHost(at));
	end();
}

TEST(pinned_memory_goes_with_its_context)
{
	static char own[64];
	CUcontext first;
	unsigned flags;
	void *at;

	begin();
	first = context;
	OK(cuMemAllocHost_v2(&at, 4096));
	OK(cuMemHostRegister_v2(own, sizeof(own), 0));
	begin();
	OK(cuMemHostGetFlags(&flags, at));
	OK(cuCtxDestroy(first));
	CHECK_EQ(cuMemHostGetFlags(&flags, at), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemFreeHost(at), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	own[0] = 1; /* the program's own stays */
	end();
}

static CUresult load(const char *head)
{
	char text[512], log[256] = "before", info[64] = "before";
	int options[] = {5, 6, 3,
		4}; /* CU_JIT_ERROR_LOG_BUFFER, its size, CU_JIT_INFO_LOG_BUFFER, its size */
	void *values[] = {log, (void *)sizeof(log), info, (void *)sizeof(info)};
	CUmodule module;
	CUresult r;

	snprintf(text, sizeof(text), "%s.address_size 64\n.visible .entry k()\n{\nret;\n}\n", head);
	r = cuModuleLoadDataEx(&module, text, 4, options, values);
	CHECK_EQ((size_t)values[3], 0);
	CHECK_STR(info, "");
	if (!r) {
		CHECK_STR(log, "");
		CHECK_EQ((size_t)values[1], 0);
		OK(cuModuleUnload(module));
	} else {
		CHECK_EQ((size_t)values[1], strlen(log) + 1);
		CHECK(*log && strcmp(log, "before"));
	}
	CHECK_EQ(cuModuleLoadData(&module, text), r);
	return r;
}

TEST(code_is_for_this_gpu_and_this_driver)
{
	void *state, *image;
	int bad = 35;
	static char newer[] =
		".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
	char log[256];
	int options[] = {5, 6};
	void *values[] = {log, (void *)sizeof(log)};
	CUmodule module;

	begin();
	OK(load(".version 6.3\n.target sm_75\n"));
	OK(load(".version 6.3\n.target sm_70\n"));
	CHECK_EQ(load(".version 7.0\n.target sm_80\n"), CUDA_ERROR_INVALID_PTX);
	CHECK_EQ(load(".version 8.0\n.target sm_90a\n"), CUDA_ERROR_INVALID_PTX);
	OK(load(".version 9.0\n.target sm_75\n"));
	CHECK_EQ(load(".version 9.1\n.target sm_75\n"), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
	CHECK_EQ(load(".version 6.3\n.target sm_75\nnonsense\n"), CUDA_ERROR_INVALID_PTX);
	CHECK_EQ(cuModuleLoadDataEx(&module, newer, 1, &bad, values), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuModuleLoadDataEx(&module, newer, 1, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuLinkCreate_v2(2, options, values, &state));
	OK(cuLinkAddData_v2(state, 1, newer, sizeof(newer), "k", 0, NULL, NULL));
	CHECK_EQ(cuLinkComplete(state, &image, NULL), CUDA_ERROR_INVALID_PTX);
	CHECK(strstr(log, "sm_80"));
	OK(cuLinkDestroy(state));
	end();
}

TEST(a_node_of_a_function_that_went_is_not_launched_as_another)
{
	CUmodule module;
	CUfunction function, again;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CUdeviceptr at;
	unsigned value = 3;
	void *args[] = {&at, &value};
	CUDA_KERNEL_NODE_PARAMS_v1 params = {NULL, 1, 1, 1, 1, 1, 1, 0, args, NULL};

	begin();
	OK(cuMemAlloc_v2(&at, 4));
	OK(cuMemsetD32_v2(at, 1, 1));
	OK(cuModuleLoadData(&module, kernels_ptx));
	OK(cuModuleGetFunction(&function, module, "store"));
	params.func = function;
	OK(cuGraphCreate((void **)&graph, 0));
	OK(cuGraphAddKernelNode((void **)&node, graph, NULL, 0, &params));
	OK(cuGraphInstantiateWithFlags((void **)&exec, graph, 0));
	OK(cuModuleUnload(module));
	/* Until another lies where it was. */
	for (unsigned i = 0; i < 64; i++) {
		OK(cuModuleLoadData(&module, kernels_ptx));
		OK(cuModuleGetFunction(&again, module, "add"));
		CHECK_EQ(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_HANDLE);
		CHECK_EQ(cuGraphKernelNodeGetParams(node, &params), CUDA_ERROR_INVALID_VALUE);
		if (again == function)
			break;
	}
	CHECK_EQ(word_at(at), 1);
	end();
}

TEST(a_launch_forgets_what_launches_of_cuda_3_had_set)
{
	CUdeviceptr at;
	unsigned value = 1;
	void *args[] = {&at, &value};
	CUfunction store;

	begin();
	store = kernel("store");
	OK(cuMemAlloc_v2(&at, 4));
	OK(cuFuncSetBlockShape(store, 1, 1, 1));
	OK(cuParamSetv(store, 0, &at, sizeof(at)));
	OK(cuParamSeti(store, 8, 5));
	OK(cuParamSetSize(store, 12));
	OK(cuLaunch(store));
	OK(cuLaunch(store));
	CHECK_EQ(word_at(at), 5);
	OK(launch(store, NULL, args));
	CHECK_EQ(cuLaunch(store), CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncSetBlockShape(store, 1, 1, 1));
	OK(cuLaunch(store));
	CHECK_EQ(word_at(at), 5);
	end();
}

TEST(a_variables_memory_is_not_the_programs_to_free)
{
	static const char text[] = PTX_HEAD ".visible .global .u32 count = 4;\n";
	CUmodule module;
	CUdeviceptr at;
	CUipcMemHandle handle;

	begin();
	OK(cuModuleLoadData(&module, text));
	OK(cuModuleGetGlobal_v2(&at, NULL, module, "count"));
	CHECK_EQ(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuIpcGetMemHandle(&handle, at), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(word_at(at), 4);
	OK(cuModuleUnload(module));
	end();
}

/* Memory that a pool caches is given up before an allocation fails. */
TEST(pools_give_back_what_others_need)
{
	size_t free_bytes, part;
	uint64_t all = UINT64_MAX;
	CUdeviceptr at;
	void *pool;

	begin();
	OK(cuMemGetInfo_v2(&free_bytes, NULL));
	part = free_bytes / 3 * 2 & ~(2 * MIB - 1);
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemPoolSetAttribute(pool, 4 /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */, &all));
	OK(cuMemAllocAsync(&at, part, NULL));
	OK(cuMemFreeAsync(at, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemGetInfo_v2(&free_bytes, NULL));
	CHECK(free_bytes < part);
	OK(cuMemAlloc_v2(&at, part));
	CHECK_EQ(cuMemAllocAsync(&at, part, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	all = 0;
	OK(cuMemPoolSetAttribute(pool, 4, &all));
	end();
}

TEST(there_are_more_addresses_than_memory)
{
	CUdeviceptr at, second;

	begin();
	OK(cuMemAddressReserve(&at, 200ull << 30, 0, 0, 0));
	OK(cuMemAddressReserve(&second, 200ull << 30, 0, 0, 0));
	CHECK(second >= at + (200ull << 30) || at >= second + (200ull << 30));
	OK(cuMemAddressFree(at, 200ull << 30));
	OK(cuMemAddressFree(second, 200ull << 30));
	end();
}

/*
 * Work that was submitted before a context is destroyed still happens: here in memory outside the
 * context.
 */
TEST(a_context_ends_when_its_work_has)
{
	CUdeviceptr at;
	void *pool;
	unsigned naps = 50, value = 8;
	void *nap_args[] = {&naps}, *store_args[] = {&at, &value};
	CUcontext first;

	begin();
	first = context;
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemAllocFromPoolAsync(&at, 4, pool, NULL));
	OK(cuMemsetD32_v2(at, 1, 1));
	OK(launch(kernel("nap"), NULL, nap_args));
	OK(launch(kernel("store"), NULL, store_args));
	OK(cuCtxDestroy(first));
	begin();
	CHECK_EQ(word_at(at), 8);
	OK(cuMemFree_v2(at));
	end();
}

static void *synchronise_elsewhere(void *arg)
{
	CUresult *r = arg;

	r[0] = cuCtxSetCurrent(context);
	r[1] = cuStreamQuery(NULL);
	return NULL;
}

TEST(a_context_that_was_destroyed_stays_current_elsewhere_and_says_so)
{
	CUresult r[2];
	pthread_t thread;

	begin();
	OK(cuCtxPushCurrent_v2(context));
	OK(cuCtxDestroy(context));
	CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED); /* it was there twice */
	CHECK(!pthread_create(&thread, NULL, synchronise_elsewhere, r));
	CHECK(!pthread_join(thread, NULL));
	CHECK_EQ(r[0], CUDA_ERROR_INVALID_CONTEXT);
	CHECK_EQ(r[1], CUDA_ERROR_INVALID_CONTEXT);
}
