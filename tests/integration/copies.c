/*
 * Every form of copy and set, with bytes of an allocation and with some outside it: a line for each
 * with the driver's result, which has to be the same under every backend (answers.py). Also in
 * graphs, and captured.
 *
 *   copies
 */
#define ALL_CALLS
#include "softgpu/cuda.h"

#include <stdio.h>
#include <stdlib.h>

#include "cuda/objects.h"

#define HOST_TYPE 1 /* CU_MEMORYTYPE_HOST */
#define ROOM      (8 * MIB)
#define MUST(call)                                                                                 \
	do {                                                                                       \
		CUresult must = (call);                                                            \
		if (must) {                                                                        \
			fprintf(stderr, "%s: %d\n", #call, must);                                  \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

static char host[ROOM];
static CUdeviceptr other; /* with room for all of them */
static CUstream stream;
static void *array; /* of bytes, ROOM / 256 of them */

/* -- one after the other -- */

#define FORM(name, call)                                                                           \
	static CUresult name(CUdeviceptr at, size_t n)                                             \
	{                                                                                          \
		return call;                                                                       \
	}

FORM(htod, cuMemcpyHtoD_v2(at, host, n))
FORM(htod_own, cuMemcpyHtoD_v2_ptds(at, host, n))
FORM(htod_async, cuMemcpyHtoDAsync_v2(at, host, n, stream))
FORM(htod_async_own, cuMemcpyHtoDAsync_v2_ptsz(at, host, n, stream))
FORM(dtoh, cuMemcpyDtoH_v2(host, at, n))
FORM(dtoh_own, cuMemcpyDtoH_v2_ptds(host, at, n))
FORM(dtoh_async, cuMemcpyDtoHAsync_v2(host, at, n, stream))
FORM(dtoh_async_own, cuMemcpyDtoHAsync_v2_ptsz(host, at, n, stream))
FORM(dtod_to, cuMemcpyDtoD_v2(at, other, n))
FORM(dtod_from, cuMemcpyDtoD_v2(other, at, n))
FORM(dtod_own, cuMemcpyDtoD_v2_ptds(other, at, n))
FORM(dtod_async, cuMemcpyDtoDAsync_v2(at, other, n, stream))
FORM(dtod_async_own, cuMemcpyDtoDAsync_v2_ptsz(other, at, n, stream))
FORM(any_to, cuMemcpy(at, (CUdeviceptr)host, n))
FORM(any_from, cuMemcpy((CUdeviceptr)host, at, n))
FORM(any_own, cuMemcpy_ptds(at, other, n))
FORM(any_async, cuMemcpyAsync(at, (CUdeviceptr)host, n, stream))
FORM(any_async_own, cuMemcpyAsync_ptsz(other, at, n, stream))
FORM(peer, cuMemcpyPeer(at, context, other, context, n))
FORM(peer_own, cuMemcpyPeer_ptds(other, context, at, context, n))
FORM(peer_async, cuMemcpyPeerAsync(other, context, at, context, n, stream))
FORM(peer_async_own, cuMemcpyPeerAsync_ptsz(at, context, other, context, n, stream))
FORM(set8, cuMemsetD8_v2(at, 1, n))
FORM(set8_own, cuMemsetD8_v2_ptds(at, 1, n))
FORM(set8_async, cuMemsetD8Async(at, 1, n, stream))
FORM(set8_async_own, cuMemsetD8Async_ptsz(at, 1, n, stream))
FORM(set16, cuMemsetD16_v2(at, 1, n / 2))
FORM(set16_own, cuMemsetD16_v2_ptds(at, 1, n / 2))
FORM(set16_async, cuMemsetD16Async(at, 1, n / 2, stream))
FORM(set16_async_own, cuMemsetD16Async_ptsz(at, 1, n / 2, stream))
FORM(set32, cuMemsetD32_v2(at, 1, n / 4))
FORM(set32_own, cuMemsetD32_v2_ptds(at, 1, n / 4))
FORM(set32_async, cuMemsetD32Async(at, 1, n / 4, stream))
FORM(set32_async_own, cuMemsetD32Async_ptsz(at, 1, n / 4, stream))
/* two rows, the second at the end */
FORM(rows8, cuMemsetD2D8_v2(at, n - 4, 1, 4, 2))
FORM(rows8_own, cuMemsetD2D8_v2_ptds(at, n - 4, 1, 4, 2))
FORM(rows8_async, cuMemsetD2D8Async(at, n - 4, 1, 4, 2, stream))
FORM(rows8_async_own, cuMemsetD2D8Async_ptsz(at, n - 4, 1, 4, 2, stream))
FORM(rows16, cuMemsetD2D16_v2(at, n - 4, 1, 2, 2))
FORM(rows16_own, cuMemsetD2D16_v2_ptds(at, n - 4, 1, 2, 2))
FORM(rows16_async, cuMemsetD2D16Async(at, n - 4, 1, 2, 2, stream))
FORM(rows16_async_own, cuMemsetD2D16Async_ptsz(at, n - 4, 1, 2, 2, stream))
FORM(rows32, cuMemsetD2D32_v2(at, n - 4, 1, 1, 2))
FORM(rows32_own, cuMemsetD2D32_v2_ptds(at, n - 4, 1, 1, 2))
FORM(rows32_async, cuMemsetD2D32Async(at, n - 4, 1, 1, 2, stream))
FORM(rows32_async_own, cuMemsetD2D32Async_ptsz(at, n - 4, 1, 1, 2, stream))

/* -- arrays: they have no more than ROOM / 256 bytes, so the last of the bytes are copied -- */

static size_t tail(size_t n)
{
	return n < ROOM / 256 ? n : ROOM / 256;
}

FORM(to_array, cuMemcpyDtoA_v2(array, 0, at + n - tail(n), tail(n)))
FORM(to_array_own, cuMemcpyDtoA_v2_ptds(array, 0, at + n - tail(n), tail(n)))
FORM(from_array, cuMemcpyAtoD_v2(at + n - tail(n), array, 0, tail(n)))
FORM(from_array_own, cuMemcpyAtoD_v2_ptds(at + n - tail(n), array, 0, tail(n)))

/* -- described by structs -- */

static struct td_copy2d rows(CUdeviceptr at, size_t n, bool to)
{
	struct td_copy2d_side there = {.type = TD_COPY_DEVICE, .device = at, .pitch = n - 4},
			      here = {.type = HOST_TYPE, .host = host, .pitch = n - 4};

	return (struct td_copy2d){to ? here : there, to ? there : here, 4, 2};
}

#define ROWS_FORM(name, to, call)                                                                  \
	static CUresult name(CUdeviceptr at, size_t n)                                             \
	{                                                                                          \
		struct td_copy2d copy = rows(at, n, to);                                           \
		return call;                                                                       \
	}

ROWS_FORM(copy_2d_to, true, cuMemcpy2D_v2(&copy))
ROWS_FORM(copy_2d_from, false, cuMemcpy2D_v2(&copy))
ROWS_FORM(copy_2d_own, true, cuMemcpy2D_v2_ptds(&copy))
ROWS_FORM(copy_2d_unaligned, true, cuMemcpy2DUnaligned_v2(&copy))
ROWS_FORM(copy_2d_unaligned_own, false, cuMemcpy2DUnaligned_v2_ptds(&copy))
ROWS_FORM(copy_2d_async, true, cuMemcpy2DAsync_v2(&copy, stream))
ROWS_FORM(copy_2d_async_own, false, cuMemcpy2DAsync_v2_ptsz(&copy, stream))

/* Two rows of two slices, which end with the bytes. */
static struct td_copy3d box(CUdeviceptr at, size_t n, bool to)
{
	struct td_copy3d_side there = {.x = (n - 20) % 16,
				      .type = TD_COPY_UNIFIED,
				      .device = at,
				      .context = context,
				      .pitch = 16,
				      .height = (n - 20) / 16},
			      here = there;

	here.device = other;
	return (struct td_copy3d){to ? here : there, to ? there : here, 4, 2, 2};
}

static struct td_copy3d without_contexts(struct td_copy3d copy)
{
	copy.from.context = copy.to.context = NULL;
	return copy;
}

#define BOX_FORM(name, to, call)                                                                   \
	static CUresult name(CUdeviceptr at, size_t n)                                             \
	{                                                                                          \
		struct td_copy3d peers = box(at, n, to), copy = without_contexts(peers);           \
		(void)copy, (void)peers;                                                           \
		return n < 52 ? CUDA_ERROR_INVALID_VALUE : call;                                   \
	}

BOX_FORM(copy_3d_to, true, cuMemcpy3D_v2(&copy))
BOX_FORM(copy_3d_from, false, cuMemcpy3D_v2(&copy))
BOX_FORM(copy_3d_own, true, cuMemcpy3D_v2_ptds(&copy))
BOX_FORM(copy_3d_async, false, cuMemcpy3DAsync_v2(&copy, stream))
BOX_FORM(copy_3d_async_own, true, cuMemcpy3DAsync_v2_ptsz(&copy, stream))
BOX_FORM(copy_3d_peer, true, cuMemcpy3DPeer(&peers))
BOX_FORM(copy_3d_peer_own, false, cuMemcpy3DPeer_ptds(&peers))
BOX_FORM(copy_3d_peer_async, true, cuMemcpy3DPeerAsync(&peers, stream))
BOX_FORM(copy_3d_peer_async_own, false, cuMemcpy3DPeerAsync_ptsz(&peers, stream))

/* -- batches: three copies, of which the second is the one in question -- */

struct attributes {
	int order;
	CUmemLocation hints[2];
	unsigned flags;
};

#define IN_STREAM_ORDER 1

#define BATCH_FORM(name, own)                                                                      \
	static CUresult name(CUdeviceptr at, size_t n)                                             \
	{                                                                                          \
		CUdeviceptr to[] = {other, at, other}, from[] = {other + 64, other, other + 64};   \
		size_t sizes[] = {4, n, 4}, first = 0, failed = 77;                                \
		struct attributes as = {.order = IN_STREAM_ORDER};                                 \
		CUresult r = cuMemcpyBatchAsync##own(                                              \
			to, from, sizes, 3, &as, &first, 1, &failed, stream);                      \
		printf("  fails at %zd\n", (ssize_t)failed);                                       \
		return r;                                                                          \
	}
#define BATCH_FORM_V2(name, own)                                                                   \
	static CUresult name(CUdeviceptr at, size_t n)                                             \
	{                                                                                          \
		CUdeviceptr to[] = {other, other, other}, from[] = {other + 64, at, other + 64};   \
		size_t sizes[] = {4, n, 4}, first = 0;                                             \
		struct attributes as = {.order = IN_STREAM_ORDER};                                 \
		return cuMemcpyBatchAsync_v2##own(to, from, sizes, 3, &as, &first, 1, stream);     \
	}

BATCH_FORM(batch, )
BATCH_FORM(batch_own, _ptsz)
BATCH_FORM_V2(batch_v2, )
BATCH_FORM_V2(batch_v2_own, _ptsz)

/* Two rows of two slices again; or the bytes into an array. */
static struct td_copy_op operation(CUdeviceptr at, size_t n, bool to_array_of_ours)
{
	struct td_copy_op op = {.from = {.type = TD_OPERAND_POINTER,
					.pointer = {at + (n - 20) % 16, 16, (n - 20) / 16, {0, 0}}},
		.to = {.type = TD_OPERAND_POINTER, .pointer = {other, 16, 2, {0, 0}}},
		.width = 4,
		.height = 2,
		.depth = 2,
		.order = IN_STREAM_ORDER};

	if (to_array_of_ours) {
		op.from.pointer.address = at + n - tail(n);
		op.from.pointer.row_length = op.from.pointer.layer_height = 0;
		op.to = (struct td_copy_operand){
			.type = TD_OPERAND_ARRAY, .array = {array, 0, 0, 0}};
		op.width = tail(n);
		op.height = op.depth = 1;
	}
	return op;
}

#define OPS_FORM(name, with_array, call)                                                           \
	static CUresult name(CUdeviceptr at, size_t n)                                             \
	{                                                                                          \
		struct td_copy_op ops[] = {                                                        \
			operation(other, 64, false), operation(at, n, with_array)};                \
		size_t failed = 77;                                                                \
		CUresult r = n < 52 ? CUDA_ERROR_INVALID_VALUE : call;                             \
		printf("  fails at %zd\n", (ssize_t)failed);                                       \
		return r;                                                                          \
	}

OPS_FORM(ops, false, cuMemcpy3DBatchAsync(2, ops, &failed, 0, stream))
OPS_FORM(ops_own, false, cuMemcpy3DBatchAsync_ptsz(2, ops, &failed, 0, stream))
OPS_FORM(ops_array, true, cuMemcpy3DBatchAsync(2, ops, &failed, 0, stream))
OPS_FORM(ops_v2, false, cuMemcpy3DBatchAsync_v2(2, ops, 0, stream))
OPS_FORM(ops_v2_own, true, cuMemcpy3DBatchAsync_v2_ptsz(2, ops, 0, stream))

/* -- in graphs -- */

static struct td_set set_of(CUdeviceptr at, size_t n)
{
	return (struct td_set){.address = at,
		.pitch = n - 4,
		.value = 1,
		.element_bytes = 2,
		.width = 2,
		.height = 2};
}

static struct td_node_params node_of(CUdeviceptr at, size_t n, bool set)
{
	struct td_node_params node = {.type = set ? TD_NODE_SET : TD_NODE_COPY};

	if (set) {
		node.set = set_of(at, n);
	} else {
		node.copy.copy = without_contexts(box(at, n, true));
		node.copy.context = context;
	}
	return node;
}

/* An executable graph can only be changed to copies of one row. */
static struct td_copy3d one_row(CUdeviceptr at, size_t n)
{
	return (struct td_copy3d){{.type = TD_COPY_DEVICE, .device = other},
		{.type = TD_COPY_DEVICE, .device = at}, n, 1, 1};
}

static struct td_set set_of_one_row(CUdeviceptr at, size_t n)
{
	return (struct td_set){
		.address = at, .value = 1, .element_bytes = 4, .width = n / 4, .height = 1};
}

static struct td_node_params node_of_one_row(CUdeviceptr at, size_t n, bool set)
{
	struct td_node_params node = node_of(at, n, set);

	if (set)
		node.set = set_of_one_row(at, n);
	else
		node.copy.copy = one_row(at, n);
	return node;
}

/* Into one of these, where something that is right was before. */
static void *graph, *copy_node, *set_node, *exec;

static void make_graph(void)
{
	struct td_copy3d copy = one_row(other, 64);
	struct td_set set = set_of_one_row(other, 64);

	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddMemcpyNode(&copy_node, graph, NULL, 0, &copy, context));
	MUST(cuGraphAddMemsetNode(&set_node, graph, NULL, 0, &set, context));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
}

#define GRAPH_FORM(name, set, call)                                                                \
	static CUresult name(CUdeviceptr at, size_t n)                                             \
	{                                                                                          \
		struct td_copy3d copy = without_contexts(box(at, n, true));                        \
		struct td_set params = set_of(at, n);                                              \
		struct td_copy3d row = one_row(at, n);                                             \
		struct td_set set_row = set_of_one_row(at, n);                                     \
		struct td_node_params node_params = node_of(at, n, set),                           \
				      row_params = node_of_one_row(at, n, set);                    \
		void *node = NULL;                                                                 \
		CUresult r = CUDA_ERROR_INVALID_VALUE;                                             \
		(void)copy, (void)params, (void)node_params, (void)node, (void)row, (void)set_row, \
			(void)row_params;                                                          \
		if (n < 52)                                                                        \
			return r;                                                                  \
		make_graph();                                                                      \
		r = call;                                                                          \
		MUST(cuGraphExecDestroy(exec));                                                    \
		MUST(cuGraphDestroy(graph));                                                       \
		return r;                                                                          \
	}

GRAPH_FORM(add_copy, false, cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context))
GRAPH_FORM(add_set, true, cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, context))
GRAPH_FORM(change_copy, false, cuGraphMemcpyNodeSetParams(copy_node, &copy))
GRAPH_FORM(change_set, true, cuGraphMemsetNodeSetParams(set_node, &params))
GRAPH_FORM(exec_copy, false, cuGraphExecMemcpyNodeSetParams(exec, copy_node, &row, context))
GRAPH_FORM(exec_set, true, cuGraphExecMemsetNodeSetParams(exec, set_node, &set_row, context))
GRAPH_FORM(any_copy, false, cuGraphAddNode(&node, graph, NULL, 0, &node_params))
GRAPH_FORM(any_copy_v2, false, cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &node_params))
GRAPH_FORM(any_set, true, cuGraphAddNode(&node, graph, NULL, 0, &node_params))
GRAPH_FORM(change_any_copy, false, cuGraphNodeSetParams(copy_node, &node_params))
GRAPH_FORM(change_any_set, true, cuGraphNodeSetParams(set_node, &node_params))
GRAPH_FORM(exec_any_copy, false, cuGraphExecNodeSetParams(exec, copy_node, &row_params))
GRAPH_FORM(exec_any_set, true, cuGraphExecNodeSetParams(exec, set_node, &row_params))

/* -- while the stream captures -- */

#define CAPTURED_FORM(name, call)                                                                  \
	static CUresult name(CUdeviceptr at, size_t n)                                             \
	{                                                                                          \
		struct td_copy2d copy = rows(at, n, true);                                         \
		void *captured = NULL;                                                             \
		CUresult r;                                                                        \
		(void)copy;                                                                        \
		MUST(cuStreamBeginCapture_v2(stream, 0));                                          \
		r = call;                                                                          \
		printf("  capture ends: %d\n", cuStreamEndCapture(stream, &captured));             \
		if (captured)                                                                      \
			MUST(cuGraphDestroy(captured));                                            \
		return r;                                                                          \
	}

CAPTURED_FORM(captured_copy, cuMemcpyHtoDAsync_v2(at, host, n, stream))
CAPTURED_FORM(captured_rows, cuMemcpy2DAsync_v2(&copy, stream))
CAPTURED_FORM(captured_set, cuMemsetD8Async(at, 1, n, stream))
CAPTURED_FORM(waiting_copy, cuMemcpyHtoD_v2(at, host, n))
CAPTURED_FORM(waiting_rows, cuMemcpy2D_v2(&copy))

#define ROW(name)                                                                                  \
	{                                                                                          \
#name, name                                                                        \
	}

static const struct form {
	const char *name;
	CUresult (*call)(CUdeviceptr at, size_t n);
} forms[] = {ROW(htod), ROW(htod_own), ROW(htod_async), ROW(htod_async_own), ROW(dtoh),
	ROW(dtoh_own), ROW(dtoh_async), ROW(dtoh_async_own), ROW(dtod_to), ROW(dtod_from),
	ROW(dtod_own), ROW(dtod_async), ROW(dtod_async_own), ROW(any_to), ROW(any_from),
	ROW(any_own), ROW(any_async), ROW(any_async_own), ROW(peer), ROW(peer_own), ROW(peer_async),
	ROW(peer_async_own), ROW(set8), ROW(set8_own), ROW(set8_async), ROW(set8_async_own),
	ROW(set16), ROW(set16_own), ROW(set16_async), ROW(set16_async_own), ROW(set32),
	ROW(set32_own), ROW(set32_async), ROW(set32_async_own), ROW(rows8), ROW(rows8_own),
	ROW(rows8_async), ROW(rows8_async_own), ROW(rows16), ROW(rows16_own), ROW(rows16_async),
	ROW(rows16_async_own), ROW(rows32), ROW(rows32_own), ROW(rows32_async),
	ROW(rows32_async_own), ROW(to_array), ROW(to_array_own), ROW(from_array),
	ROW(from_array_own), ROW(copy_2d_to), ROW(copy_2d_from), ROW(copy_2d_own),
	ROW(copy_2d_unaligned), ROW(copy_2d_unaligned_own), ROW(copy_2d_async),
	ROW(copy_2d_async_own), ROW(copy_3d_to), ROW(copy_3d_from), ROW(copy_3d_own),
	ROW(copy_3d_async), ROW(copy_3d_async_own), ROW(copy_3d_peer), ROW(copy_3d_peer_own),
	ROW(copy_3d_peer_async), ROW(copy_3d_peer_async_own), ROW(batch), ROW(batch_own),
	ROW(batch_v2), ROW(batch_v2_own), ROW(ops), ROW(ops_own), ROW(ops_array), ROW(ops_v2),
	ROW(ops_v2_own), ROW(add_copy), ROW(add_set), ROW(change_copy), ROW(change_set),
	ROW(exec_copy), ROW(exec_set), ROW(any_copy), ROW(any_copy_v2), ROW(any_set),
	ROW(change_any_copy), ROW(change_any_set), ROW(exec_any_copy), ROW(exec_any_set),
	ROW(captured_copy), ROW(captured_rows), ROW(captured_set), ROW(waiting_copy),
	ROW(waiting_rows)};

/*
 * A driver may check either of two reasons first: a capture that forbids the call, or an invalid
 * address.
 */
static bool is_twice_wrong(const struct form *form, size_t offset, size_t bytes)
{
	return offset >= bytes && (form->call == waiting_copy || form->call == waiting_rows);
}

static void try(const struct form *form, CUdeviceptr at, size_t bytes)
{
	const struct {
		const char *name;
		size_t offset, bytes;
	} spans[] = {{"all", 0, bytes}, {"four more", 0, bytes + 4}, {"four too late", 4, bytes},
		{"behind", bytes, 4}, {"far behind", 0, bytes + 4 * MIB}, {"nothing", 0, 0},
		{"more than there can be", 0, SIZE_MAX / 4 * 4 - 4096}};

	for (unsigned i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		CUresult r;

		if (is_twice_wrong(form, spans[i].offset, bytes))
			continue;
		r = form->call(at + spans[i].offset, spans[i].bytes);
		printf("%s %zu %s: %d\n", form->name, bytes, spans[i].name, r);
		MUST(cuCtxSynchronize());
	}
}

int main(void)
{
	static const size_t sizes[] = {1000, 2 * MIB - 512, 2 * MIB, 3 * MIB + 1000};
	struct td_array2d shape = {ROOM / 256, 0, 1, 1};

	MUST(cuInit(0));
	MUST(cuCtxCreate_v2(&context, 0, 0));
	MUST(cuMemAlloc_v2(&other, ROOM));
	MUST(cuStreamCreate(&stream, 1));
	MUST(cuArrayCreate_v2(&array, &shape));
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		CUdeviceptr at;

		MUST(cuMemAlloc_v2(&at, sizes[i]));
		for (unsigned f = 0; f < sizeof(forms) / sizeof(forms[0]); f++)
			try(&forms[f], at, sizes[i]);
		MUST(cuMemFree_v2(at));
	}
	return 0;
}
