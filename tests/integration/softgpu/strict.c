/*
 * Calls that cuda.h refuses, sizes that overflow, and objects that end while others still need
 * them.
 */
#define ALL_CALLS
#include "cuda.h"

#include "softgpu/driver/copy/copy_abi.h"
#include "softgpu/driver/graph/graph_abi.h"

#include <limits.h>
#include <unistd.h>
#include <fcntl.h>
#include <pthread.h>

/* The signatures say const of what a call only reads. */
#define N(nodes) ((const void **)(nodes))

static CUdeviceptr word;
static CUstream stream;
static void *graph, *exec;

static void start(void)
{
	begin();
	OK(cuMemAlloc_v2(&word, 4096));
	OK(cuMemsetD32_v2(word, 0, 1024));
	OK(cuCtxSynchronize());
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuGraphCreate(&graph, 0));
}

static void instantiate(void)
{
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
}

static CUDA_KERNEL_NODE_PARAMS_v1 add_one(void)
{
	static void *params[] = {&word};

	return (CUDA_KERNEL_NODE_PARAMS_v1){kernel("add"), 1, 1, 1, 1, 1, 1, 0, params, NULL};
}

static CUDA_MEMCPY3D row_to(void *host, size_t bytes)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = word,
		.srcPitch = bytes,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = host,
		.dstPitch = bytes,
		.WidthInBytes = bytes,
		.Height = 1,
		.Depth = 1};
}

/* -- graphs -- */

TEST(a_node_keeps_its_context_and_the_graph_stays_usable)
{
	CUDA_KERNEL_NODE_PARAMS_v1 k;
	CUcontext other;
	void *node;
	int type;

	start();
	k = add_one();
	OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &k));
	instantiate();
	OK(cuCtxCreate_v2(&other, 0, 0));
	k = add_one();
	CHECK_EQ(cuGraphKernelNodeSetParams(node, &k), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuGraphExecKernelNodeSetParams(exec, node, &k), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphNodeGetType(node, &type)); /* hung when the lock was kept */
	OK(cuCtxDestroy_v2(other));
	end();
}

TEST(circles_are_seen_after_nodes_have_gone)
{
	void *a, *b, *c, *d, *e;
	void *both[2];

	start();
	OK(cuGraphAddEmptyNode(&a, graph, NULL, 0));
	OK(cuGraphAddEmptyNode(&b, graph, NULL, 0));
	OK(cuGraphAddEmptyNode(&c, graph, NULL, 0));
	OK(cuGraphDestroyNode(a));
	OK(cuGraphAddEmptyNode(&d, graph, N(&b), 1));
	both[0] = c;
	both[1] = d;
	OK(cuGraphAddEmptyNode(&e, graph, N(both), 2));
	CHECK_EQ(cuGraphAddDependencies(graph, N(&e), N(&b), 1), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(edges_that_are_not_there_are_told_as_null)
{
	void *a, *b, *from[3] = {&a, &a, &a}, *to[3] = {&a, &a, &a};
	size_t count = 3;

	start();
	OK(cuGraphAddEmptyNode(&a, graph, NULL, 0));
	OK(cuGraphAddEmptyNode(&b, graph, N(&a), 1));
	OK(cuGraphGetEdges(graph, from, to, &count));
	CHECK(count == 1 && from[0] == a && to[0] == b);
	CHECK(!from[1] && !to[1] && !from[2] && !to[2]);
	end();
}

TEST(an_executable_copy_stays_one_row_between_the_same_places)
{
	unsigned out[8], other[8];
	CUDA_MEMCPY3D copy, wrong;
	CUdeviceptr managed;
	void *node, *pinned;

	start();
	OK(cuMemAllocHost_v2(&pinned, 64));
	OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
	copy = row_to(out, 16);
	CHECK_EQ(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, (CUcontext)&copy),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
	instantiate();
	wrong = row_to(other, 8);
	wrong.Height = 2;
	CHECK_EQ(cuGraphExecMemcpyNodeSetParams(exec, node, &wrong, context),
		CUDA_ERROR_INVALID_VALUE);
	wrong = row_to(pinned, 16);
	CHECK_EQ(cuGraphExecMemcpyNodeSetParams(exec, node, &wrong, context),
		CUDA_ERROR_INVALID_VALUE);
	wrong = row_to(other, 16);
	wrong.srcMemoryType = CU_MEMORYTYPE_HOST;
	wrong.srcHost = out;
	CHECK_EQ(cuGraphExecMemcpyNodeSetParams(exec, node, &wrong, context),
		CUDA_ERROR_INVALID_VALUE);
	copy = row_to(other, 8);
	OK(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context));
	end();
}

TEST(an_executable_set_keeps_its_rows)
{
	CUDA_MEMSET_NODE_PARAMS set, wrong;
	CUgraphExecUpdateResultInfo info;
	void *node, *changed;

	start();
	set = (CUDA_MEMSET_NODE_PARAMS){word, 64, 1, 4, 4, 2};
	OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
	instantiate();
	wrong = set;
	wrong.width = 2;
	CHECK_EQ(cuGraphExecMemsetNodeSetParams(exec, node, &wrong, context),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphCreate(&changed, 0));
	OK(cuGraphAddMemsetNode(&node, changed, NULL, 0, &wrong, context));
	CHECK_EQ(cuGraphExecUpdate_v2(exec, changed, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
	CHECK(info.errorNode == node);
	end();
}

TEST(cooperation_is_an_attribute_that_parameters_leave_alone)
{
	CUDA_KERNEL_NODE_PARAMS_v1 k;
	CUgraphExecUpdateResultInfo info;
	union {
		char bytes[64];
		int number;
	} yes = {.number = 1}, told;
	void *node, *changed, *other;

	start();
	k = add_one();
	OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &k));
	OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &yes));
	OK(cuGraphKernelNodeSetParams(node, &k));
	OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &told));
	CHECK_EQ(told.number, 1);
	instantiate();
	OK(cuGraphCreate(&changed, 0));
	OK(cuGraphAddKernelNode(&other, changed, NULL, 0, &k));
	CHECK_EQ(cuGraphExecUpdate_v2(exec, changed, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	CHECK_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
	end();
}

TEST(a_node_of_an_unloaded_module_tells_nothing)
{
	CUDA_KERNEL_NODE_PARAMS_v1 k, told;
	CUmodule module;
	void *node;

	start();
	k = add_one();
	OK(cuFuncGetModule(&module, k.func));
	OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &k));
	OK(cuModuleUnload(module));
	CHECK_EQ(cuGraphKernelNodeGetParams(node, &told), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(flags_of_instantiation_that_need_more_are_refused)
{
	start();
	CHECK_EQ(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuGraphInstantiateWithFlags(&exec, graph,
			 CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
				 CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH),
		CUDA_ERROR_INVALID_VALUE);
	end();
}

/* -- memory of graphs -- */

static CUDA_MEM_ALLOC_NODE_PARAMS memory_of(size_t bytes)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
		.bytesize = bytes};
}

TEST(a_child_graph_takes_no_memory_nodes)
{
	CUDA_MEM_ALLOC_NODE_PARAMS memory = memory_of(4096);
	void *child, *node, *owned, *alloc;

	start();
	OK(cuGraphCreate(&child, 0));
	OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	OK(cuGraphChildGraphNodeGetGraph(node, &owned));
	CHECK_EQ(cuGraphAddMemAllocNode(&alloc, owned, NULL, 0, &memory), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	end();
}

/* Graphs come and go where others were: none is taken for one that is gone. */
TEST(memory_knows_its_graphs_apart)
{
	CUDA_MEM_ALLOC_NODE_PARAMS memory = memory_of(4096);
	void *alloc, *node, *again[16];

	start();
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &memory));
	instantiate();
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphDestroy(graph));
	for (int i = 0; i < 16; i++) { /* at the same place as the first, one of them */
		OK(cuGraphCreate(&again[i], 0));
		OK(cuGraphAddMemFreeNode(&node, again[i], NULL, 0, memory.dptr));
		if (i < 15)
			OK(cuGraphDestroy(again[i]));
	}
	OK(cuMemFree_v2(memory.dptr));
	end();
}

static void *write_word(void *arg)
{
	CUstream other;

	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuStreamWriteValue32_v2(other, *(CUdeviceptr *)arg, 1, 0));
	return NULL;
}

/* Trimming waits for nothing: memory that a launch still uses stays. */
TEST(trimming_leaves_what_is_scheduled)
{
	CUDA_MEM_ALLOC_NODE_PARAMS memory = memory_of(4096);
	CUDA_MEMSET_NODE_PARAMS set;
	CUdeviceptr flag;
	uint64_t reserved;
	void *alloc, *node, *release;
	pthread_t thread;

	start();
	OK(cuMemAllocHost_v2((void **)&flag, 64));
	*(unsigned *)flag = 0;
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &memory));
	set = (CUDA_MEMSET_NODE_PARAMS){
		.dst = memory.dptr, .value = 7, .elementSize = 4, .width = 64, .height = 1};
	OK(cuGraphAddMemsetNode(&node, graph, N(&alloc), 1, &set, context));
	OK(cuGraphAddMemFreeNode(&release, graph, N(&node), 1, memory.dptr));
	instantiate();
	OK(cuStreamWaitValue32_v2(stream, flag, 1, 1));
	OK(cuGraphLaunch(exec, stream));
	OK(cuDeviceGraphMemTrim(0));
	OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
	CHECK_EQ(reserved, 2 * MIB);
	CHECK_EQ(pthread_create(&thread, NULL, write_word, &flag), 0);
	OK(cuStreamSynchronize(stream));
	pthread_join(thread, NULL);
	OK(cuDeviceGraphMemTrim(0));
	OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
	CHECK_EQ(reserved, 0);
	end();
}

/* -- user objects -- */

static int destroyed, called;

static void destroy(void *arg)
{
	int type;

	__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
	called = (int)cuUserObjectRelease(arg, 1);
	called = called == (int)cuGraphNodeGetType(NULL, &type) ? called : -1;
}

TEST(a_destructor_that_calls_the_driver_is_refused)
{
	void *object;

	start();
	destroyed = 0;
	OK(cuUserObjectCreate(&object, NULL, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	OK(cuUserObjectRelease(object, 1));
	CHECK_EQ(destroyed, 1);
	CHECK_EQ(called, CUDA_ERROR_NOT_PERMITTED);
	end();
}

/* While its thread waits for another that is within a call of its own. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;

static void destroy_with_mutex(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&barrier);
	pthread_mutex_lock(&mutex);
	destroyed++;
	pthread_mutex_unlock(&mutex);
}

static void *call_with_mutex(void *arg)
{
	size_t count;

	pthread_mutex_lock(&mutex);
	pthread_barrier_wait(&barrier);
	OK(cuGraphGetNodes(arg, NULL, &count));
	pthread_mutex_unlock(&mutex);
	return NULL;
}

TEST(a_destructor_may_wait_for_a_thread_that_is_in_a_call)
{
	pthread_t thread;
	void *object;

	start();
	destroyed = 0;
	pthread_barrier_init(&barrier, NULL, 2);
	OK(cuUserObjectCreate(
		&object, NULL, destroy_with_mutex, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	CHECK_EQ(pthread_create(&thread, NULL, call_with_mutex, graph), 0);
	OK(cuUserObjectRelease(object, 1));
	pthread_join(thread, NULL);
	CHECK_EQ(destroyed, 1);
	end();
}

TEST(a_launch_keeps_what_its_graph_needed)
{
	CUdeviceptr flag;
	void *object, *child, *node;

	start();
	destroyed = 0;
	OK(cuMemAllocHost_v2((void **)&flag, 64));
	*(unsigned *)flag = 0;
	OK(cuUserObjectCreate(&object, NULL, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	OK(cuGraphCreate(&child, 0));
	OK(cuGraphRetainUserObject(child, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	instantiate();
	OK(cuGraphDestroy(child));
	OK(cuGraphDestroy(graph));
	CHECK_EQ(destroyed, 0); /* the executable graph's child has it */
	OK(cuStreamWaitValue32_v2(stream, flag, 1, 1));
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphExecDestroy(exec));
	CHECK_EQ(__atomic_load_n(&destroyed, __ATOMIC_RELAXED), 0); /* it is in flight */
	__atomic_store_n((unsigned *)flag, 1, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize(stream));
	CHECK_EQ(__atomic_load_n(&destroyed, __ATOMIC_RELAXED), 1);
	end();
}

/* -- copies and arrays -- */

TEST(offsets_that_wrap_around_are_outside)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {
		.Width = 16, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
	unsigned out[4] = {0};
	CUDA_MEMCPY3D copy;
	void *array;

	start();
	OK(cuArray3DCreate_v2((void *)&array, (void *)&d));
	copy = row_to(out, 8);
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = array;
	OK(cuMemcpy3D_v2((void *)&copy));
	copy.srcXInBytes = -(size_t)8;
	CHECK_EQ(cuMemcpy3D_v2((void *)&copy), CUDA_ERROR_INVALID_VALUE);
	copy.srcXInBytes = 0;
	copy.srcY = -(size_t)1;
	CHECK_EQ(cuMemcpy3D_v2((void *)&copy), CUDA_ERROR_INVALID_VALUE);
	copy = row_to(out, 8);
	copy.srcDevice = word + 64;
	copy.srcXInBytes = -(size_t)16;
	CHECK_EQ(cuMemcpy3D_v2((void *)&copy), CUDA_ERROR_INVALID_VALUE);
	copy = row_to(out, 8);
	copy.srcPitch = 4; /* "must be greater than or equal to WidthInBytes + srcXInBytes" */
	CHECK_EQ(cuMemcpy3D_v2((void *)&copy), CUDA_ERROR_INVALID_VALUE);
	copy = row_to(out, 8);
	copy.Depth = 2;
	copy.srcHeight = copy.dstHeight = 1ull << 61; /* the slices' distance is 0 modulo 2^64 */
	CHECK_EQ(cuMemcpy3D_v2((void *)&copy), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSynchronize());
	end();
}

TEST(arrays_that_do_not_fit_are_refused)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 1,
		.Height = 1,
		.Depth = (6ull << 55) + 6,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED};
	void *array;

	start();
	CHECK_EQ(cuArray3DCreate_v2((void *)&array, (void *)&d), CUDA_ERROR_INVALID_VALUE);
	d.Depth = 12;
	OK(cuArray3DCreate_v2((void *)&array, (void *)&d));
	d = (CUDA_ARRAY3D_DESCRIPTOR){.Width = 4,
		.Height = 4,
		.Depth = 4,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_TEXTURE_GATHER};
	CHECK_EQ(cuArray3DCreate_v2((void *)&array, (void *)&d), CUDA_ERROR_INVALID_VALUE);
	end();
}

TEST(arrays_go_with_their_context)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 16,
					.Format = CU_AD_FORMAT_UNSIGNED_INT8,
					.NumChannels = 1},
				square = d;
	void *array, *mipmap, *level;
	unsigned char out[16];

	begin();
	square.Height = 16;
	OK(cuArray3DCreate_v2((void *)&array, (void *)&d));
	OK(cuMipmappedArrayCreate(&mipmap, (void *)&square, 3));
	OK(cuMipmappedArrayGetLevel((void *)&level, mipmap, 1));
	end();
	begin();
	CHECK_EQ(cuMemcpyAtoH_v2(out, array, 0, 16), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuArray3DGetDescriptor_v2((void *)&d, level), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxSynchronize()); /* the context is whole */
	end();
}

TEST(batches_of_memory_operations_are_shorter_than_256)
{
	CUstreamBatchMemOpParams ops[256];

	start();
	for (int i = 0; i < 256; i++)
		ops[i] = (CUstreamBatchMemOpParams){
			.operation = 2, .address = word + 4 * i, .value64 = 5};
	CHECK_EQ(cuStreamBatchMemOp_v2(stream, 256, (void *)ops, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamBatchMemOp_v2(stream, 255, (void *)ops, 0));
	OK(cuStreamSynchronize(stream));
	end();
}

/* -- code -- */

/* keep(a..h): seen = a | ... | h */
static const char keep_ptx[] = PTX_HEAD
	".visible .global .u64 seen;\n"
	".visible .entry keep(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n"
	".reg .u64 %v;\n.reg .u64 %w;\nld.param.u64 %v, [a];\nld.param.u64 %w, [b];\n"
	"or.b64 %v, %v, %w;\nld.param.u64 %w, [c];\nor.b64 %v, %v, %w;\n"
	"ld.param.u64 %w, [d];\nor.b64 %v, %v, %w;\nst.global.u64 [seen], %v;\nret;\n}\n";

TEST(parameters_that_were_never_set_are_zero)
{
	CUdeviceptr seen;
	CUfunction keep;
	CUmodule module;
	uint64_t value;
	size_t bytes;

	start();
	OK(cuModuleLoadData(&module, keep_ptx));
	OK(cuModuleGetFunction(&keep, module, "keep"));
	OK(cuModuleGetGlobal_v2(&seen, &bytes, module, "seen"));
	OK(cuMemsetD32_v2(seen, 5, 2));
	OK(cuFuncSetBlockShape(keep, 1, 1, 1));
	OK(cuParamSetSize(keep, 32));
	OK(cuLaunch(keep));
	OK(cuMemcpyDtoH_v2(&value, seen, 8));
	CHECK_EQ(value, 0);
	end();
}

TEST(no_block_has_four_gigabytes_of_shared_memory)
{
	int grid, block;

	start();
	CHECK_EQ(
		cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel("add"), NULL, 1ull << 32, 0),
		CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
	end();
}

TEST(an_image_that_was_given_out_stays_as_it_is)
{
	void *state, *image, *again, *library;
	int option = 2; /* there are two */
	void *value = NULL;

	start();
	OK(cuLinkCreate_v2(0, NULL, NULL, &state));
	CHECK_EQ(
		cuLinkAddData_v2(state, 1, (void *)keep_ptx, sizeof(keep_ptx), NULL, 1, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuLinkAddData_v2(state, 1, (void *)keep_ptx, sizeof(keep_ptx), NULL, 0, NULL, NULL));
	OK(cuLinkComplete(state, &image, NULL));
	CHECK_EQ(cuLinkAddData_v2(
			 state, 1, (void *)kernels_ptx, sizeof(kernels_ptx), NULL, 0, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuLinkComplete(state, &again, NULL));
	CHECK(again == image);
	CHECK_EQ(cuLibraryLoadData(&library, image, NULL, NULL, 0, (void *)&option, &value, 1),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuLinkDestroy(state));
	CHECK_EQ(cuLibraryUnload(state), CUDA_ERROR_INVALID_VALUE);
	end();
}

/* -- contexts and events -- */

TEST(contexts_have_flags_that_are_there)
{
	CUcontext other;

	start();
	CHECK_EQ(cuCtxCreate_v2(&other, 3, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuCtxCreate_v2(&other, 0x100, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuDevicePrimaryCtxSetFlags_v2(0, 0x100), CUDA_ERROR_INVALID_VALUE);
	OK(cuDevicePrimaryCtxSetFlags_v2(0, 4));
	OK(cuDevicePrimaryCtxSetFlags_v2(0, 0));
	end();
}

/* A stream that waits for a word, and a kernel that faults in another. */
TEST(a_wait_ends_when_its_context_does)
{
	CUdeviceptr flag, nowhere = 8;
	unsigned n = 50;
	void *nap[] = {&n}, *store[] = {&nowhere, &n};
	CUstream other;

	start();
	OK(cuMemAllocHost_v2((void **)&flag, 64));
	*(unsigned *)flag = 0;
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuStreamWaitValue32_v2(stream, flag, 1, 1));
	OK(launch(kernel("nap"), other, nap));
	OK(launch(kernel("store"), other, store));
	CHECK_EQ(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	end();
}

static unsigned open_files(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 512; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

TEST(events_of_several_processes_give_their_files_back)
{
	unsigned before, after = UINT_MAX;
	CUevent event;

	start();
	before = open_files();
	for (int i = 0; i < 32; i++) {
		OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
		OK(cuEventDestroy_v2(event));
	}
	/* Another thread, such as a preloaded library's, may have a file open for a moment. */
	for (int i = 0; i < 200; i++) {
		after = open_files();
		if (after <= before)
			break;
		usleep(10000);
	}
	CHECK(after <= before);
	end();
}
