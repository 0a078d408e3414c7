/*
 * Graphs made node by node of nodes that name memory, with pauses between the calls: at any of them
 * the process may lose its GPU, and with it the memory that the next call names.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "block.h"
#include "calls.h"

#define WRITE_VALUE_32 2 /* CU_STREAM_MEM_OP_WRITE_VALUE_32 */

struct plan {
	struct lane *lane;
	struct block *b;
	CUcontext context;
	CUgraph graph;
	CUgraphNode last;
	uint32_t m, c, kernels;
};

static void linger(struct lane *lane)
{
	struct timespec t = {0, lane_below(lane, 4) * 1000000l};

	if (lane_below(lane, 4) == 0)
		nanosleep(&t, NULL);
}

static CUDA_MEMSET_NODE_PARAMS fill_of(const struct block *b, uint32_t value)
{
	return (CUDA_MEMSET_NODE_PARAMS){.dst = b->address,
		.value = value,
		.elementSize = 4,
		.width = b->words,
		.height = 1};
}

static CUDA_MEMCPY3D copy_of(const struct block *to, const struct block *from)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from->address,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to->address,
		.WidthInBytes = (size_t)to->words * 4,
		.Height = 1,
		.Depth = 1};
}

/* The first node: the block's new words. */
static void add_copy(struct plan *p, const struct block *from)
{
	CUDA_MEMCPY3D copy = copy_of(p->b, from);
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
		.memcpy = {.copyCtx = p->context, .copyParams = copy}};

	if (lane_below(p->lane, 2))
		MUST(cuGraphAddNode(&p->last, p->graph, NULL, 0, &params));
	else
		MUST(cuGraphAddMemcpyNode(&p->last, p->graph, NULL, 0, &copy, p->context));
	block_copy(p->b, from);
}

static void add_fill(struct plan *p)
{
	uint32_t value = lane_below(p->lane, UINT32_MAX);
	CUDA_MEMSET_NODE_PARAMS set = fill_of(p->b, value);
	CUgraphNodeParams params = {
		.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = {.v1 = set, .ctx = p->context}};

	if (lane_below(p->lane, 2)) {
		MUST(cuGraphAddNode(&p->last, p->graph, NULL, 0, &params));
	} else {
		set.value = ~value;
		MUST(cuGraphAddMemsetNode(&p->last, p->graph, NULL, 0, &set, p->context));
		linger(p->lane);
		set.value = value;
		MUST(cuGraphMemsetNodeSetParams(p->last, &set));
	}
	block_fill(p->b, value, false);
}

static void add_kernel(struct plan *p)
{
	uint32_t n = (p->b->words + BLOCK_STRIDE - 1) / BLOCK_STRIDE;
	void *params[] = {&p->b->address, &n, &p->m, &p->c};
	CUDA_KERNEL_NODE_PARAMS_v1 kernel = {.func = p->lane->affine,
		.gridDimX = (n + 63) / 64,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 64,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params};

	MUST(cuGraphAddKernelNode(&p->last, p->graph, &p->last, 1, &kernel));
	block_apply(p->b, p->m, p->c);
}

/*
 * Writes the first word with its own value. CUDA has no such operations on unified memory, which is
 * all that there is under the backend managed.
 */
static void add_operation(struct plan *p)
{
	const char *backend = getenv("TANDEM_BACKEND");
	CUstreamBatchMemOpParams operation = {.operation = WRITE_VALUE_32,
		.address = p->b->address,
		.value64 = block_word(p->b, 0)};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {
		.ctx = p->context, .count = 1, .paramArray = &operation};

	if (p->b->kind == BLOCK_MANAGED || (backend && !strcmp(backend, "managed")))
		return;
	MUST(cuGraphAddBatchMemOpNode(&p->last, p->graph, &p->last, 1, &params));
}

static CUresult update(struct plan *p, CUgraphExec exec, CUgraphNode first,
	const struct block *from, uint32_t value)
{
	CUgraphExecUpdateResultInfo result;
	CUDA_MEMCPY3D copy;
	CUDA_MEMSET_NODE_PARAMS set;

	if (lane_below(p->lane, 2))
		return cuGraphExecUpdate_v2(exec, p->graph, &result);
	if (from) {
		copy = copy_of(p->b, from);
		return cuGraphExecMemcpyNodeSetParams(exec, first, &copy, p->context);
	}
	set = fill_of(p->b, value);
	return cuGraphExecMemsetNodeSetParams(exec, first, &set, p->context);
}

/*
 * Sets an executable graph's first node, or all of it, to its present value: each of these calls
 * looks at the memory again. Under swap it may lie on the host by now, and a copy cannot change its
 * place (docs/decisions/0008). Then, as after any refused update, the graph is instantiated anew.
 */
static void renew(struct plan *p, CUgraphExec *exec, CUgraphNode first, const struct block *from,
	uint32_t value)
{
	const char *backend = getenv("TANDEM_BACKEND");
	CUresult r;

	linger(p->lane);
	r = update(p, *exec, first, from, value);
	if (!r)
		return;
	if (!backend || (strcmp(backend, "swap") != 0 && strcmp(backend, "auto") != 0) ||
		(r != CUDA_ERROR_INVALID_VALUE && r != CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE))
		MUST(r);
	MUST(cuGraphExecDestroy(*exec));
	MUST(cuGraphInstantiateWithFlags(exec, p->graph, 0));
}

void lane_build_graph(struct lane *lane, struct block *b, const struct block *from)
{
	struct plan p = {.lane = lane,
		.b = b,
		.m = lane_below(lane, UINT32_MAX) | 1,
		.c = lane_below(lane, UINT32_MAX),
		.kernels = lane_below(lane, 3)};
	CUgraphNode first;
	CUgraphExec exec;
	uint32_t value;

	if (!from->address || from == b || from->words < b->words)
		from = NULL;
	MUST(cuCtxGetCurrent(&p.context));
	MUST(cuGraphCreate(&p.graph, 0));
	linger(lane);
	if (from)
		add_copy(&p, from);
	else
		add_fill(&p);
	first = p.last;
	value = b->value;
	for (uint32_t k = 0; k < p.kernels; k++)
		add_kernel(&p);
	linger(lane);
	add_operation(&p);
	linger(lane);
	MUST(cuGraphInstantiateWithFlags(&exec, p.graph, 0));
	for (uint32_t times = 1 + lane_below(lane, 2); times; times--) {
		renew(&p, &exec, first, from, value);
		MUST(cuGraphLaunch(exec, lane->stream));
	}
	lane->launches += p.kernels;
	MUST(cuStreamSynchronize(lane->stream));
	MUST(cuGraphExecDestroy(exec));
	MUST(cuGraphDestroy(p.graph));
}
