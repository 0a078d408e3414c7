/*
 * Graphs: a launch counts as the kernels that it holds, and takes the memory of its allocation nodes.
 *
 * The table of executable graphs is read by every launch, so it is fixed in size and read without a lock: a graph stands at one of PROBES places
 * from where its handle hashes to. One that finds no place counts as one kernel, and its memory once it is there.
 */
#include "preload/graphs.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/objects.h"
#include "preload/context.h"
#include "preload/gate.h"
#include "preload/lock.h"
#include "preload/outside.h"
#include "preload/real.h"

#define PLACES    4096
#define PROBES    32
#define DEPTH_MAX 8 /* of graphs in graphs */

struct exec {
	_Atomic uintptr_t handle; /* 0: free. Written last, and cleared first */
	_Atomic uint32_t kernels;
	_Atomic uint64_t memory_bytes;
};

static struct td_lock lock = TD_LOCK_INIT(TD_RANK_BACKEND); /* of writers */
static struct exec execs[PLACES];

static struct exec *place(uintptr_t handle, unsigned probe)
{
	return &execs[((handle * 0x9e3779b97f4a7c15ull >> 40) + probe) % PLACES];
}

static struct exec *find(uintptr_t handle)
{
	for (unsigned i = 0; i < PROBES; i++)
		if (atomic_load_explicit(&place(handle, i)->handle, memory_order_acquire) == handle)
			return place(handle, i);
	return NULL;
}

struct td_graph_weight td_graph_weight(const void *exec)
{
	const struct exec *known = exec ? find((uintptr_t)exec) : NULL;

	if (!known)
		return (struct td_graph_weight){0};
	return (struct td_graph_weight){atomic_load_explicit(&known->kernels, memory_order_relaxed),
		atomic_load_explicit(&known->memory_bytes, memory_order_relaxed)};
}

static void remember(void *handle, struct td_graph_weight weight)
{
	struct exec *at;

	td_lock_take(&lock);
	at = find((uintptr_t)handle);
	for (unsigned i = 0; !at && i < PROBES; i++)
		if (!place((uintptr_t)handle, i)->handle)
			at = place((uintptr_t)handle, i);
	if (at) {
		atomic_store(&at->kernels, weight.kernels);
		atomic_store(&at->memory_bytes, weight.memory_bytes);
		atomic_store_explicit(&at->handle, (uintptr_t)handle, memory_order_release);
	}
	td_lock_drop(&lock);
}

static void forget(const void *handle)
{
	struct exec *at;

	td_lock_take(&lock);
	at = find((uintptr_t)handle);
	if (at)
		atomic_store(&at->handle, 0);
	td_lock_drop(&lock);
}

static void add_graph(struct td_graph_weight *sum, void *graph, unsigned depth);

static void add_node(struct td_graph_weight *sum, void *node, unsigned depth)
{
	struct td_alloc_node alloc;
	void *inside;
	int type;

	if (td_real.cuGraphNodeGetType(node, &type))
		return;
	if (type == TD_NODE_KERNEL)
		sum->kernels++;
	else if (type == TD_NODE_GRAPH && td_real.cuGraphChildGraphNodeGetGraph &&
		 !td_real.cuGraphChildGraphNodeGetGraph(node, &inside))
		add_graph(sum, inside, depth + 1);
	else if (type == TD_NODE_ALLOC && td_real.cuGraphMemAllocNodeGetParams &&
		 !td_real.cuGraphMemAllocNodeGetParams(node, &alloc))
		sum->memory_bytes += alloc.bytes;
}

static void add_graph(struct td_graph_weight *sum, void *graph, unsigned depth)
{
	size_t count = 0;
	void **nodes;

	if (depth == DEPTH_MAX || !td_real.cuGraphGetNodes || !td_real.cuGraphNodeGetType ||
		td_real.cuGraphGetNodes(graph, NULL, &count) || !count)
		return;
	nodes = calloc(count, sizeof(*nodes));
	if (nodes && !td_real.cuGraphGetNodes(graph, nodes, &count))
		for (size_t i = 0; i < count; i++)
			add_node(sum, nodes[i], depth);
	free(nodes);
}

static CUresult instantiated(CUresult r, void **exec, void *graph)
{
	struct td_graph_weight sum = {0};

	if (r || !exec || !*exec)
		return r;
	(void)td_context_use();
	add_graph(&sum, graph, 0);
	remember(*exec, sum);
	return r;
}

#define INSTANTIATE(symbol)                                                                        \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		struct td_slot *slot = td_gate_enter_naming();                                     \
		CUresult r = td_real.symbol TD_ARGS_##symbol;                                      \
		td_gate_leave(slot);                                                               \
		return instantiated(r, a0, a1);                                                    \
	}

INSTANTIATE(cuGraphInstantiate)
INSTANTIATE(cuGraphInstantiate_v2)
INSTANTIATE(cuGraphInstantiateWithFlags)
INSTANTIATE(cuGraphInstantiateWithParams)
INSTANTIATE(cuGraphInstantiateWithParams_ptsz)

CUresult td_hook_cuGraphExecDestroy(void *a0)
{
	CUresult r;

	/* First: the handle may be another's as soon as the driver has it back. */
	forget(a0);
	r = td_real.cuGraphExecDestroy(a0);
	td_outside_refresh();
	return r;
}

/* Of a graph with allocation nodes. One pool for each device, which is asked what it holds. */
static CUresult claim(struct td_outside_claim *ret, uint64_t bytes, CUstream stream)
{
	struct td_object *pool;
	CUdevice device;

	memset(ret, 0, sizeof(*ret));
	if (!bytes || td_context_use() < 0 || td_real.cuCtxGetDevice(&device) ||
		td_context_is_capturing(stream))
		return CUDA_SUCCESS;
	/* No handle of a pool is so small. */
	pool = td_outside_pool((uint64_t)device + 1, device, TD_OUTSIDE_GRAPH);
	return pool ? td_outside_claim_growth(ret, pool, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
}

#define WITH_GRAPH(symbol, own_stream, null_stream, is_launch)                                     \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		struct td_graph_weight weight = td_graph_weight(a0);                               \
		struct td_outside_claim growth = {0};                                              \
		CUresult r = weight.memory_bytes ? claim(&growth, weight.memory_bytes,             \
							   stream ? stream : null_stream)          \
						 : CUDA_SUCCESS;                                   \
		if (r)                                                                             \
			return r;                                                                  \
		do {                                                                               \
			struct td_slot *slot =                                                     \
				td_gate_enter(stream, (own_stream) | td_submit_work(a0, 0, 0, 0)); \
			if (is_launch && weight.kernels > 1 &&                                     \
				!td_context_is_capturing(stream ? stream : null_stream))           \
				td_gate_count(slot, weight.kernels - 1);                           \
			r = td_real.symbol TD_ARGS_##symbol;                                       \
			td_gate_leave(slot);                                                       \
		} while (td_outside_again(&growth, r));                                            \
		return td_outside_settle(&growth, r, TD_KEY_ADDRESS, 0);                           \
	}

WITH_GRAPH(cuGraphLaunch, 0, CU_STREAM_LEGACY, true)
WITH_GRAPH(cuGraphLaunch_ptsz, TD_SUBMIT_OWN_NULL, CU_STREAM_PER_THREAD, true)
WITH_GRAPH(cuGraphUpload, 0, CU_STREAM_LEGACY, false)
WITH_GRAPH(cuGraphUpload_ptsz, TD_SUBMIT_OWN_NULL, CU_STREAM_PER_THREAD, false)

/* What it sums up goes with the graphs of the process. */
void td_graphs_forked(void)
{
	td_lock_reset(&lock);
	memset(execs, 0, sizeof(execs));
}
