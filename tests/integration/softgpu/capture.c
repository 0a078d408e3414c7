/* The rules of stream capture, each with the error that breaking it gives. */
#include "graph_calls.h"

#include <pthread.h>

static CUdeviceptr word;
static CUstream first, second;
static CUfunction add;
static CUgraph graph;
static void *add_params[] = {&word};

static void start(void)
{
	begin();
	add = kernel("add");
	OK(cuMemAlloc_v2(&word, 64));
	OK(cuMemsetD32_v2(word, 0, 16));
	OK(cuCtxSynchronize());
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
}

static int status_of(CUstream stream)
{
	int status = -1;

	OK(cuStreamIsCapturing(stream, &status));
	return status;
}

/* After a forbidden call the capture is invalid until its end, which gives no graph. */
static void check_spoilt(CUstream stream)
{
	CHECK_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	CHECK_EQ(launch(add, stream, add_params), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	graph = (CUgraph)&graph;
	CHECK_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(!graph);
	CHECK_EQ(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
}

static void run(void)
{
	CUgraphExec exec;

	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, first));
	OK(cuStreamSynchronize(first));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

TEST(what_is_captured_does_not_run_until_the_graph_does)
{
	const CUgraphNode *nodes;
	CUgraphNode listed[8];
	uint64_t id, next_id;
	size_t count;
	unsigned five = 5;
	int status;

	start();
	CHECK_EQ(status_of(first), CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	CHECK_EQ(status_of(first), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuMemcpyHtoDAsync_v2(word, &five, 4, first));
	OK(launch(add, first, add_params));
	OK(cuStreamGetCaptureInfo_v2(first, &status, &id, &graph, &nodes, &count));
	CHECK_EQ(count, 1);
	CHECK_EQ(cuGraphDestroy(graph), CUDA_ERROR_ILLEGAL_STATE);
	OK(cuStreamEndCapture(first, &graph));
	CHECK_EQ(word_at(word), 0);
	count = 8;
	OK(cuGraphGetNodes(graph, listed, &count));
	CHECK_EQ(count, 2);
	five = 50; /* pageable memory is read when the graph runs */
	run();
	CHECK_EQ(word_at(word), 51);
	OK(cuStreamBeginCapture_v2(first, GLOBAL));
	OK(cuStreamGetCaptureInfo_v2(first, &status, &next_id, NULL, NULL, NULL));
	CHECK(next_id != id);
	OK(cuStreamEndCapture(first, &graph));
	OK(cuGraphDestroy(graph));
	end();
}

TEST(beginning_and_ending_are_checked)
{
	start();
	CHECK_EQ(cuStreamEndCapture(first, &graph), CUDA_ERROR_ILLEGAL_STATE);
	CHECK_EQ(cuStreamBeginCapture_v2(NULL, GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK_EQ(cuStreamBeginCapture_v2(first, 3), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamBeginCapture_v2(first, GLOBAL));
	CHECK_EQ(cuStreamBeginCapture_v2(first, GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
	OK(cuStreamEndCapture(first, &graph));
	OK(cuGraphDestroy(graph));
	end();
}

TEST(streams_fork_and_join_by_events)
{
	CUgraphNode from[8], to[8];
	CUevent fork, joined;
	size_t count = 8;

	start();
	OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
	OK(cuStreamBeginCapture_v2(first, GLOBAL));
	OK(launch(add, first, add_params));
	OK(cuEventRecord(fork, first));
	OK(cuStreamWaitEvent(second, fork, 0));
	CHECK_EQ(status_of(second), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(launch(add, second, add_params));
	OK(launch(add, first, add_params));
	OK(cuEventRecord(joined, second));
	OK(cuStreamWaitEvent(first, joined, 0));
	OK(launch(add, first, add_params));
	CHECK_EQ(cuStreamEndCapture(second, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	OK(cuStreamEndCapture(first, &graph));
	CHECK_EQ(status_of(second), CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuGraphGetEdges(graph, from, to, &count));
	CHECK_EQ(count, 4); /* a diamond */
	CHECK_EQ(cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
	run();
	CHECK_EQ(word_at(word), 4);
	OK(cuEventRecord(fork, first)); /* recorded outside it is an event again */
	OK(cuEventSynchronize(fork));
	end();
}

TEST(a_fork_that_is_not_joined_has_no_graph)
{
	CUevent fork;

	start();
	OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	OK(cuStreamBeginCapture_v2(first, GLOBAL));
	OK(launch(add, first, add_params));
	OK(cuEventRecord(fork, first));
	OK(cuStreamWaitEvent(second, fork, 0));
	OK(launch(add, second, add_params));
	CHECK_EQ(cuStreamEndCapture(first, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	CHECK(!graph);
	CHECK_EQ(status_of(first), CU_STREAM_CAPTURE_STATUS_NONE);
	CHECK_EQ(status_of(second), CU_STREAM_CAPTURE_STATUS_NONE);
	end();
}

TEST(captures_neither_merge_nor_depend_on_what_is_outside)
{
	CUevent inside, outside, never;

	start();
	OK(cuEventCreate(&inside, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&never, CU_EVENT_DISABLE_TIMING));
	OK(cuEventRecord(outside, second));
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	OK(cuStreamWaitEvent(first, never, 0));
	CHECK_EQ(cuStreamWaitEvent(first, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	check_spoilt(first);
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	OK(cuEventRecord(inside, first));
	OK(cuStreamBeginCapture_v2(second, RELAXED));
	CHECK_EQ(cuStreamWaitEvent(second, inside, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
	check_spoilt(first);
	check_spoilt(second);
	end();
}

TEST(a_capturing_stream_cannot_be_looked_at)
{
	CUevent event;

	start();
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	CHECK_EQ(cuStreamSynchronize(first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_spoilt(first);
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	CHECK_EQ(cuStreamQuery(first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_spoilt(first);
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_spoilt(first);
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	OK(cuEventRecord(event, first));
	CHECK_EQ(cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT);
	check_spoilt(first);
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	CHECK_EQ(cuStreamDestroy_v2(first), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_spoilt(first);
	end();
}

TEST(the_legacy_stream_is_closed_while_a_blocking_stream_captures)
{
	CUstream blocking;
	int status;

	start();
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuStreamBeginCapture_v2(blocking, RELAXED));
	CHECK_EQ(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	CHECK_EQ(status_of(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE); /* asking spoils nothing */
	CHECK_EQ(launch(add, NULL, add_params), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	check_spoilt(blocking);
	/* A stream that does not block has nothing to do with it. */
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	OK(launch(add, NULL, add_params));
	OK(cuStreamEndCapture(first, &graph));
	OK(cuGraphDestroy(graph));
	end();
}

TEST(unsafe_calls_are_refused_by_the_modes_of_capture_and_thread)
{
	int mode = RELAXED;
	CUdeviceptr address;

	start();
	OK(cuStreamBeginCapture_v2(first, GLOBAL));
	CHECK_EQ(cuMemAlloc_v2(&address, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_spoilt(first);
	OK(cuStreamBeginCapture_v2(first, LOCAL));
	CHECK_EQ(cuMemFree_v2(word), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_spoilt(first);
	OK(cuStreamBeginCapture_v2(first, GLOBAL));
	CHECK_EQ(cuStreamSynchronize(second), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_spoilt(first);
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	OK(cuMemAlloc_v2(&address, 4));
	OK(cuStreamSynchronize(second));
	OK(cuStreamEndCapture(first, &graph));
	OK(cuGraphDestroy(graph));
	/* A relaxed thread may do so during its own capture too. */
	OK(cuStreamBeginCapture_v2(first, GLOBAL));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK_EQ(mode, GLOBAL);
	OK(cuMemFree_v2(address));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	CHECK_EQ(mode, RELAXED);
	OK(cuStreamEndCapture(first, &graph));
	OK(cuGraphDestroy(graph));
	mode = 9;
	CHECK_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
	end();
}

CUresult cuCtxSetCurrent(CUcontext current);

struct visitor {
	int mode, alloc, end;
};

static void *visit(void *arg)
{
	struct visitor *visitor = arg;
	CUdeviceptr address;
	CUgraph none;

	(void)cuCtxSetCurrent(context);
	(void)cuThreadExchangeStreamCaptureMode(&visitor->mode);
	visitor->alloc = cuMemAlloc_v2(&address, 4);
	visitor->end = cuStreamEndCapture(first, &none);
	return NULL;
}

static struct visitor another_thread(int mode)
{
	struct visitor visitor = {mode, -1, -1};
	pthread_t thread;

	pthread_create(&thread, NULL, visit, &visitor);
	pthread_join(thread, NULL);
	return visitor;
}

TEST(other_threads_are_bound_by_global_captures_only_and_may_not_end_them)
{
	struct visitor visitor;

	start();
	OK(cuStreamBeginCapture_v2(first, LOCAL));
	visitor = another_thread(GLOBAL);
	CHECK_EQ(visitor.alloc, CUDA_SUCCESS);
	CHECK_EQ(visitor.end, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	OK(cuStreamEndCapture(first, &graph));
	OK(cuStreamBeginCapture_v2(first, GLOBAL));
	CHECK_EQ(another_thread(LOCAL).alloc, CUDA_SUCCESS);
	CHECK_EQ(another_thread(RELAXED).alloc, CUDA_SUCCESS);
	CHECK_EQ(another_thread(GLOBAL).alloc, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	check_spoilt(first);
	/* A relaxed capture may be ended by anybody. */
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	visitor = another_thread(GLOBAL);
	CHECK_EQ(visitor.alloc, CUDA_SUCCESS);
	CHECK_EQ(visitor.end, CUDA_SUCCESS);
	CHECK_EQ(status_of(first), CU_STREAM_CAPTURE_STATUS_NONE);
	end();
}

TEST(external_events_become_nodes_and_mean_nothing_outside)
{
	CUgraphNode listed[4];
	CUevent event;
	size_t count = 4;
	int type;

	start();
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CHECK_EQ(cuEventRecordWithFlags(event, first, CU_EVENT_RECORD_EXTERNAL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuStreamWaitEvent(first, event, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamBeginCapture_v2(first, RELAXED));
	OK(launch(add, first, add_params));
	OK(cuEventRecordWithFlags(event, first, CU_EVENT_RECORD_EXTERNAL));
	OK(cuStreamEndCapture(first, &graph));
	OK(cuGraphGetNodes(graph, listed, &count));
	CHECK_EQ(count, 2);
	OK(cuGraphNodeGetType(listed[1], &type));
	CHECK_EQ(type, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
	run();
	OK(cuEventQuery(event));
	end();
}

TEST(a_context_can_go_while_it_captures)
{
	start();
	OK(cuStreamBeginCapture_v2(first, GLOBAL));
	OK(launch(add, first, add_params));
	end();
	/* Nothing of it binds anybody. */
	begin();
	OK(cuMemAlloc_v2(&word, 4));
	end();
}
