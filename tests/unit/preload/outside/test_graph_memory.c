/*
 * The memory that a launch of a graph may take is requested before, by the driver's description of
 * the graph's allocation nodes. There is no daemon: the limit is this process's own. The driver
 * here keeps each graph's memory until it is trimmed, or lets one graph use memory that another one
 * keeps.
 */
#include "test.h"

#include <pthread.h>
#include <sched.h>

#include "base/time.h"
#include "cuda/objects.h"
#include "unit/preload/hooks_world.h"
#include "preload/base/backend.h"
#include "preload/base/settings.h"
#include "preload/gate/gate.h"
#include "preload/link/client_internal.h"
#include "preload/outside/graphs.h"

#define MIB    (1ull << 20)
#define STREAM ((CUstream)0x10)
#define GRAPHS 8
#define NODES  4

static struct graph {
	struct {
		CUdeviceptr address;
		size_t bytes;
	} nodes[NODES];
	uint64_t has;
} graphs[GRAPHS];
static _Atomic unsigned launches;
static bool shares, keeps;  /* keeps: all of it is in use */
static uint64_t too_much;   /* that the next launch takes */
static uintptr_t next_exec; /* 0: of the graph's number */

static void *graph_of(unsigned i)
{
	return (void *)(uintptr_t)(0x1000 + i * 0x100);
}

static void *exec_of(unsigned i)
{
	return (void *)(uintptr_t)(0x100000 + i * 0x100);
}

static unsigned number(const void *handle)
{
	return ((uintptr_t)handle & 0xfff) / 0x100;
}

static CUresult nodes_of(void *graph, void **ret, size_t *count)
{
	*count = NODES;
	for (unsigned i = 0; ret && i < NODES; i++)
		ret[i] = (char *)graph + i;
	return CUDA_SUCCESS;
}

static CUresult type_of(void *node, int *ret)
{
	(void)node;
	*ret = TD_NODE_ALLOC;
	return CUDA_SUCCESS;
}

static CUresult params_of(void *node, void *ret)
{
	const struct graph *g = &graphs[number(node)];
	unsigned i = (uintptr_t)node & 0xff;

	*(struct td_alloc_node *)ret =
		(struct td_alloc_node){.pool = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
			.bytes = g->nodes[i].bytes,
			.address = g->nodes[i].address};
	return CUDA_SUCCESS;
}

static CUresult instantiate(void **ret, void *graph, unsigned long long flags)
{
	(void)flags;
	*ret = exec_of(number(graph));
	if (next_exec)
		*ret = (void *)(next_exec += 0x1000);
	return CUDA_SUCCESS;
}

static uint64_t reserved(void)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < GRAPHS; i++)
		if (!shares)
			bytes += graphs[i].has;
		else if (graphs[i].has > bytes)
			bytes = graphs[i].has;
	return bytes;
}

/* Its nodes have addresses beside each other, or the same. */
static CUresult launch(void *exec, CUstream stream)
{
	struct graph *g = &graphs[number(exec)];
	uint64_t end = 0, from = UINT64_MAX;

	(void)stream;
	launches++;
	for (unsigned i = 0; i < NODES; i++) {
		if (!g->nodes[i].bytes)
			continue;
		from = g->nodes[i].address < from ? g->nodes[i].address : from;
		if (g->nodes[i].address + g->nodes[i].bytes > end)
			end = g->nodes[i].address + g->nodes[i].bytes;
	}
	g->has = end - from + too_much;
	too_much = 0;
	return CUDA_SUCCESS;
}

static CUresult attribute_of(CUdevice device, int attribute, void *ret)
{
	(void)device;
	*(uint64_t *)ret = attribute == TD_GRAPH_ATTR_RESERVED ? reserved() : 0;
	return CUDA_SUCCESS;
}

static _Atomic unsigned trims;

static CUresult trim(CUdevice device)
{
	trims++;
	(void)device;
	for (unsigned i = 0; !keeps && i < GRAPHS; i++)
		graphs[i].has = 0;
	return CUDA_SUCCESS;
}

static CUresult update(void *exec, void *graph, void *result)
{
	(void)result;
	if (memcmp(graphs[number(exec)].nodes, graphs[number(graph)].nodes, sizeof(graphs->nodes)))
		graphs[number(exec)].has = 0;
	memcpy(graphs[number(exec)].nodes, graphs[number(graph)].nodes, sizeof(graphs->nodes));
	return CUDA_SUCCESS;
}

static CUresult destroy(void *handle)
{
	(void)handle;
	return CUDA_SUCCESS;
}

static CUresult refuse(void *handle)
{
	(void)handle;
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult refuse_pointer(CUdeviceptr *ret, void *pool, void *data)
{
	(void)ret;
	(void)pool;
	(void)data;
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult context_of(CUcontext *ret)
{
	*ret = (CUcontext)0xc0;
	return CUDA_SUCCESS;
}

static CUresult give(CUdeviceptr *ret, size_t bytes)
{
	(void)bytes;
	*ret = ADDRESS;
	return CUDA_SUCCESS;
}

static CUresult take_back(CUdeviceptr address)
{
	(void)address;
	return CUDA_SUCCESS;
}

static void begin(const char *limit)
{
	vmm_begin(64 * BYTES, 64 * BYTES);
	td_real.cuCtxGetCurrent = context_of;
	td_real.cuCtxSynchronize = (CUresult(*)(void))NULL;
	td_real.cuMemAlloc_v2 = give;
	td_real.cuMemFree_v2 = take_back;
	td_real.cuGraphGetNodes = nodes_of;
	td_real.cuGraphNodeGetType = type_of;
	td_real.cuGraphMemAllocNodeGetParams = params_of;
	td_real.cuGraphInstantiateWithFlags = instantiate;
	td_real.cuGraphExecUpdate_v2 = update;
	td_real.cuGraphExecDestroy = td_real.cuGraphDestroy = destroy;
	td_real.cuGraphLaunch = launch;
	td_real.cuDeviceGetGraphMemAttribute = attribute_of;
	td_real.cuDeviceGraphMemTrim = trim;
	hooks_begin(&td_backend_plain);
	td_graphs_forked();
	td_client_forked();
	strcpy(td_settings.mem, limit);
	memset(graphs, 0, sizeof(graphs));
	atomic_store(&launches, 0);
	shares = keeps = false;
	too_much = next_exec = 0;
}

static void *make(unsigned i)
{
	void *exec;

	CHECK_EQ(td_hook_cuGraphInstantiateWithFlags(&exec, graph_of(i), 0), CUDA_SUCCESS);
	return exec;
}

static void *graph_with(unsigned i, size_t bytes)
{
	graphs[i].nodes[0].address = (i + 1) * 1024 * MIB;
	graphs[i].nodes[0].bytes = bytes;
	return make(i);
}

TEST(nodes_at_the_same_addresses_take_their_memory_once)
{
	begin("8m");
	for (unsigned i = 0; i < NODES; i++) {
		/*
		 * 4 MiB each; the second and third at the first one's address, the fourth half
		 * behind it.
		 */
		graphs[0].nodes[i].address = 1024 * MIB + (i == 3 ? 2 * MIB : 0);
		graphs[0].nodes[i].bytes = 4 * MIB - 512;
	}
	CHECK_EQ(td_hook_cuGraphLaunch(make(0), STREAM), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 6 * MIB - 512);
	for (unsigned i = 0; i < NODES; i++)
		graphs[1].nodes[i].address = 1024 * MIB + i * 4 * MIB;
	for (unsigned i = 0; i < NODES; i++)
		graphs[1].nodes[i].bytes = 4 * MIB;
	CHECK_EQ(td_hook_cuGraphLaunch(make(1), STREAM), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(launches, 1);
}

TEST(what_the_driver_lets_another_graph_have_is_given_back_after_the_launch)
{
	begin("10m");
	shares = true;
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 4 * MIB), STREAM), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(1, 6 * MIB), STREAM), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 6 * MIB);
	CHECK_EQ(td_hook_cuGraphLaunch(exec_of(0), STREAM), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 6 * MIB);
}

TEST(what_others_keep_goes_before_a_launch_is_refused)
{
	begin("10m");
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 6 * MIB), STREAM), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(1, 6 * MIB), STREAM), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 6 * MIB);
	CHECK_EQ(td_hook_cuGraphLaunch(exec_of(0), STREAM), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 6 * MIB);
	CHECK_EQ(td_hook_cuGraphLaunch(exec_of(0), STREAM), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(2, 12 * MIB), STREAM), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(launches, 4);
}

TEST(what_was_trimmed_is_asked_for_once_more)
{
	CUdeviceptr at;

	begin("8m");
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 6 * MIB), STREAM), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 0);
	CHECK_EQ(td_hook_cuMemAlloc_v2(&at, 4 * MIB), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuGraphLaunch(exec_of(0), STREAM), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(td_hook_cuMemFree_v2(at), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuGraphLaunch(exec_of(0), STREAM), CUDA_SUCCESS);
}

TEST(a_graph_that_is_changed_into_another_has_none_of_its_memory)
{
	char result[64];

	begin("8m");
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 2 * MIB), STREAM), CUDA_SUCCESS);
	graphs[1].nodes[0].address = 4096 * MIB;
	graphs[1].nodes[0].bytes = 10 * MIB;
	CHECK_EQ(td_hook_cuGraphExecUpdate_v2(exec_of(0), graph_of(1), result), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuGraphLaunch(exec_of(0), STREAM), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(launches, 1);
}

TEST(a_graph_that_is_changed_into_one_with_the_same_addresses_has_its_memory_still)
{
	char result[64];
	CUdeviceptr at;

	begin("8m");
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 6 * MIB), STREAM), CUDA_SUCCESS);
	keeps = true; /* it runs */
	for (unsigned i = 0; i < 3; i++) {
		CHECK_EQ(td_hook_cuGraphExecUpdate_v2(exec_of(0), graph_of(0), result),
			CUDA_SUCCESS);
		CHECK_EQ(td_hook_cuGraphLaunch(exec_of(0), STREAM), CUDA_SUCCESS);
	}
	keeps = false;
	/* Memory trimmed meanwhile does not count. */
	CHECK_EQ(td_hook_cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuGraphExecUpdate_v2(exec_of(0), graph_of(0), result), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuMemAlloc_v2(&at, 4 * MIB), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuGraphLaunch(exec_of(0), STREAM), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(what_a_destroyed_one_had_is_there_for_the_next_one_of_its_graph)
{
	CUdeviceptr at;

	begin("8m");
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 6 * MIB), STREAM), CUDA_SUCCESS);
	keeps = true; /* it runs */
	for (unsigned i = 0; i < 3; i++) {
		CHECK_EQ(td_hook_cuGraphExecDestroy(exec_of(0)), CUDA_SUCCESS);
		CHECK_EQ(td_hook_cuGraphLaunch(make(0), STREAM), CUDA_SUCCESS);
	}
	CHECK_EQ(demanded(), 6 * MIB);
	keeps = false;
	/* Memory trimmed meanwhile does not count. */
	CHECK_EQ(td_hook_cuGraphExecDestroy(exec_of(0)), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuMemAlloc_v2(&at, 4 * MIB), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuGraphLaunch(make(0), STREAM), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(launches, 4);
}

TEST(the_program_hears_what_the_driver_refuses)
{
	CUdeviceptr at;

	begin("8m");
	td_real.cuGraphExecDestroy = td_real.cuGraphDestroy = refuse;
	td_real.cuMemPoolImportPointer = refuse_pointer;
	CHECK_EQ(td_hook_cuGraphExecDestroy(exec_of(0)), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(td_hook_cuGraphDestroy(graph_of(0)), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(td_hook_cuMemPoolImportPointer(&at, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

TEST(what_one_had_whose_graph_is_destroyed_is_nobodys)
{
	for (unsigned graph_first = 0; graph_first < 2; graph_first++) {
		begin("8m");
		CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 6 * MIB), STREAM), CUDA_SUCCESS);
		keeps = true;
		if (graph_first)
			CHECK_EQ(td_hook_cuGraphDestroy(graph_of(0)), CUDA_SUCCESS);
		CHECK_EQ(td_hook_cuGraphExecDestroy(exec_of(0)), CUDA_SUCCESS);
		if (!graph_first)
			CHECK_EQ(td_hook_cuGraphDestroy(graph_of(0)), CUDA_SUCCESS);
		/* Another one with all that it had. */
		CHECK_EQ(td_hook_cuGraphLaunch(make(0), STREAM), CUDA_ERROR_OUT_OF_MEMORY);
		CHECK_EQ(launches, 1);
	}
}

/* Far more than the table of launches holds. */
TEST(of_any_number_of_graphs_each_one_asks_for_its_memory)
{
	begin("8m");
	next_exec = 0x1000000;
	for (unsigned i = 0; i < 3 * 4096; i++)
		CHECK(make(1) != NULL);
	CHECK_EQ(td_hook_cuGraphLaunch((void *)next_exec, STREAM), CUDA_SUCCESS);
	next_exec = 0;
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 10 * MIB), STREAM), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(2, 6 * MIB), STREAM), CUDA_SUCCESS);
	CHECK_EQ(demanded(), 6 * MIB);
	CHECK_EQ(launches, 2);
}

static void *launch_first(void *arg)
{
	*(CUresult *)arg = td_hook_cuGraphLaunch(exec_of(0), STREAM);
	return NULL;
}

TEST(a_launch_that_waited_at_the_gate_relies_on_nothing_that_is_gone)
{
	pthread_t thread;
	CUdeviceptr at;
	CUresult r = -1;

	begin("8m");
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 6 * MIB), STREAM), CUDA_SUCCESS);
	td_gate_write(TD_WORD_CLOSED);
	CHECK(!pthread_create(&thread, NULL, launch_first, &r));
	while (!td_client_has_waiters())
		sched_yield();
	CHECK_EQ(td_hook_cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuMemAlloc_v2(&at, 4 * MIB), CUDA_SUCCESS);
	td_gate_write(0);
	CHECK(!pthread_join(thread, NULL));
	CHECK_EQ(r, CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(launches, 1);
	CHECK_EQ(demanded(), 4 * MIB);
}

/* The limit goes by the graph's reported memory. */
/*
 * Trimming other graphs before it takes its own memory loses it nothing: it asks for nothing the
 * next time, and needs no trim.
 */
TEST(a_launch_that_waited_at_the_gate_has_lost_nothing_of_others)
{
	pthread_t thread;
	CUdeviceptr at;
	CUresult r = -1;
	unsigned before;

	begin("12m");
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(1, 4 * MIB), STREAM), CUDA_SUCCESS);
	graph_with(0, 4 * MIB);
	td_gate_write(TD_WORD_CLOSED);
	CHECK(!pthread_create(&thread, NULL, launch_first, &r));
	while (!td_client_has_waiters())
		sched_yield();
	CHECK_EQ(td_hook_cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
	td_gate_write(0);
	CHECK(!pthread_join(thread, NULL));
	CHECK_EQ(r, CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuMemAlloc_v2(&at, 8 * MIB), CUDA_SUCCESS);
	before = trims;
	CHECK_EQ(td_hook_cuGraphLaunch(exec_of(0), STREAM), CUDA_SUCCESS);
	CHECK_EQ(trims, before);
	CHECK_EQ(demanded(), 12 * MIB);
}

TEST(what_a_launch_takes_beyond_what_was_granted_is_asked_for_and_counts)
{
	struct td_memory_stats stats;
	CUdeviceptr at;

	begin("8m");
	keeps = true;
	too_much = 3 * MIB;
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 4 * MIB), STREAM), CUDA_SUCCESS);
	td_agent_stats(0, &stats);
	CHECK_EQ(stats.demanded_bytes, 7 * MIB);
	CHECK_EQ(stats.paged_bytes, 0);
	CHECK_EQ(td_hook_cuMemAlloc_v2(&at, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(td_hook_cuMemAlloc_v2(&at, MIB), CUDA_SUCCESS);
}

TEST(what_a_launch_takes_beyond_what_was_granted_is_told_apart)
{
	struct td_memory_stats stats;
	CUdeviceptr at;

	begin("6m");
	too_much = 3 * MIB;
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 4 * MIB), STREAM), CUDA_SUCCESS);
	td_agent_stats(0, &stats);
	/* It was freed by the time that it was counted, because nothing is in use here. */
	CHECK_EQ(stats.demanded_bytes + stats.paged_bytes, reserved());
	begin("6m");
	keeps = true;
	too_much = 3 * MIB;
	CHECK_EQ(td_hook_cuGraphLaunch(graph_with(0, 4 * MIB), STREAM), CUDA_SUCCESS);
	td_agent_stats(0, &stats);
	CHECK_EQ(stats.demanded_bytes, 4 * MIB);
	CHECK_EQ(stats.fixed_bytes, 4 * MIB);
	CHECK_EQ(stats.paged_bytes, 3 * MIB);
	CHECK_EQ(td_hook_cuMemAlloc_v2(&at, MIB), CUDA_ERROR_OUT_OF_MEMORY);
	keeps = false;
	CHECK_EQ(td_hook_cuMemAlloc_v2(&at, MIB), CUDA_SUCCESS);
	td_agent_stats(0, &stats);
	CHECK_EQ(stats.paged_bytes, 0);
}
