/*
 * Checks that each symbol of the table that is not only passed on honours its class. It is called
 * as a program gets it (cuGetProcAddress), over a driver that notes its callers: work passes the
 * gate, markers and waits do not, memory is counted, contexts and streams are known.
 *
 * The list is the table: a symbol whose class has no check of its own needs one by name, or the
 * first case fails.
 */
#include "noting_driver.h"

/* -- checks of whole classes -- */

struct behind_gate {
	void *function;
	CUresult r;
};

static void *call_in_thread(void *arg)
{
	struct behind_gate *call = arg;

	call->r = call_with_zeros(call->function);
	return NULL;
}

/* The driver does not hear of it before the gate opens. */
static void waits_at_a_closed_gate(int symbol, _Atomic unsigned *reached)
{
	struct behind_gate call = {got(symbol), -1};
	unsigned before = *reached;
	pthread_t thread;

	td_gate_write(TD_WORD_CLOSED);
	CHECK(!pthread_create(&thread, NULL, call_in_thread, &call));
	while (!td_client_has_waiters())
		sched_yield();
	EXPECT(symbol, *reached == before);
	td_gate_write(0);
	CHECK(!pthread_join(thread, NULL));
	EXPECT(symbol, *reached == before + 1);
	EXPECT(symbol, call.r == CUDA_SUCCESS);
}

static void submits(int symbol)
{
	uint64_t before = launches(), own = td_marker_self->own_stream_launches;
	unsigned reached = calls[symbol];

	OK(call_with_zeros(got(symbol)));
	EXPECT(symbol, calls[symbol] == reached + 1);
	EXPECT(symbol, inside[symbol]);
	EXPECT(symbol, launches() == before + 1);
	EXPECT(symbol, td_marker_self->depth == 0);
	/* NULL is the thread's own stream in these, so that a drain has to know of it. */
	EXPECT(symbol, td_marker_self->own_stream_launches ==
			       own + (td_symbols[symbol].flavour != TD_FLAVOUR_PLAIN));
	waits_at_a_closed_gate(symbol, &calls[symbol]);
}

/* Waits as work does, but is none. */
static void names_memory(int symbol)
{
	uint64_t before = launches();

	waits_at_a_closed_gate(symbol, &calls[symbol]);
	EXPECT(symbol, inside[symbol]);
	OK(call_with_zeros(got(symbol)));
	EXPECT(symbol, launches() == before);
	EXPECT(symbol, td_marker_self->depth == 0);
}

/*
 * Copies are submitted in their asynchronous form inside the gate and awaited outside, also while
 * something captures.
 */
static void copies_and_waits(int symbol)
{
	static const struct {
		int symbol, async, sync;
	} forms[] = {
#define ROW(s, a, w) {TD_SYMBOL_##s, TD_SYMBOL_##a, TD_SYMBOL_##w}
		ROW(cuMemcpyHtoD, cuMemcpyHtoDAsync, cuStreamSynchronize),
		ROW(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, cuStreamSynchronize),
		ROW(cuMemcpyHtoD_v2_ptds, cuMemcpyHtoDAsync_v2_ptsz, cuStreamSynchronize),
		ROW(cuMemcpyDtoH, cuMemcpyDtoHAsync, cuStreamSynchronize),
		ROW(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, cuStreamSynchronize),
		ROW(cuMemcpyDtoH_v2_ptds, cuMemcpyDtoHAsync_v2_ptsz, cuStreamSynchronize),
#undef ROW
	};
	size_t i = 0;

	while (i < sizeof(forms) / sizeof(forms[0]) && forms[i].symbol != symbol)
		i++;
	EXPECT(symbol, i < sizeof(forms) / sizeof(forms[0]));
	waits_at_a_closed_gate(symbol, &calls[forms[i].async]);
	EXPECT(symbol, inside[forms[i].async] && !inside[forms[i].sync]);
	td_context_capture_begin();
	OK(call_with_zeros(got(symbol)));
	td_context_capture_ended(NULL);
	EXPECT(symbol, calls[symbol] == 1 && inside[symbol]);
}

/* Reaches the driver whatever the gate says, and nothing is counted. */
static void is_not_held_up(int symbol)
{
	uint64_t before = launches(), bytes = counted();
	unsigned reached = calls[symbol];

	td_gate_write(TD_WORD_CLOSED);
	OK(call_with_zeros(got(symbol)));
	td_gate_write(0);
	EXPECT(symbol, calls[symbol] == reached + 1);
	EXPECT(symbol, !inside[symbol]);
	EXPECT(symbol, launches() == before);
	EXPECT(symbol, counted() == bytes);
}

static uint64_t take_from_pool(CUdeviceptr *ret)
{
	OK(VIA(cuMemAllocAsync)(ret, 2 * MIB, NULL));
	return counted();
}

static void empty_pool(CUdeviceptr address)
{
	OK(VIA(cuMemFreeAsync)(address, NULL));
	OK(VIA(cuMemPoolTrimTo)((void *)0x5000, 0));
	CHECK_EQ(counted(), 0);
}

/* Is not held up; afterwards it is known what pools have given back meanwhile. */
static void waits(int symbol)
{
	CUdeviceptr address;
	uint64_t bytes;

	is_not_held_up(symbol);
	bytes = take_from_pool(&address);
	pool_bytes = 0;
	EXPECT(symbol, counted() == bytes);
	OK(call_with_zeros(got(symbol)));
	EXPECT(symbol, counted() == 0);
	empty_pool(address);
}

#include "memory_checks.h"

/* -- graphs: two kernels and an allocation of 4 MiB -- */

static void graph_instantiated(int symbol)
{
	void *exec = (void *)0xc000, *graph = (void *)0xd000;
	uint64_t before;

	switch (symbol) {
	case TD_SYMBOL_cuGraphInstantiate:
		OK(VIA(cuGraphInstantiate)(&exec, graph, NULL, NULL, 0));
		break;
	case TD_SYMBOL_cuGraphInstantiate_v2:
		OK(VIA(cuGraphInstantiate_v2)(&exec, graph, NULL, NULL, 0));
		break;
	case TD_SYMBOL_cuGraphInstantiateWithParams:
		OK(VIA(cuGraphInstantiateWithParams)(&exec, graph, NULL));
		break;
	case TD_SYMBOL_cuGraphInstantiateWithParams_ptsz:
		OK(VIA(cuGraphInstantiateWithParams_ptsz)(&exec, graph, NULL));
		break;
	default: OK(VIA(cuGraphInstantiateWithFlags)(&exec, graph, 0));
	}
	if (symbol == TD_SYMBOL_cuGraphExecUpdate)
		OK(VIA(cuGraphExecUpdate)(exec, graph, NULL, NULL));
	if (symbol == TD_SYMBOL_cuGraphExecUpdate_v2)
		OK(VIA(cuGraphExecUpdate_v2)(exec, graph, NULL));
	EXPECT(symbol, counted() == 0);
	if (td_symbols[symbol].class == TD_CLASS_OF_NAMES_GRAPH)
		names_memory(symbol);
	before = launches();
	OK(VIA(cuGraphLaunch)(exec, NULL));
	EXPECT(symbol, launches() == before + 2);
	EXPECT(symbol, counted() == 4 * MIB);
	OK(VIA(cuGraphExecDestroy)(exec));
	OK(VIA(cuDeviceGraphMemTrim)(0));
	EXPECT(symbol, counted() == 0);
	before = launches();
	OK(VIA(cuGraphLaunch)(exec, NULL)); /* another graph's handle by now */
	EXPECT(symbol, launches() == before + 1);
	graph_bytes = 0;
	td_outside_refresh();
}

static void graph_launched(int symbol)
{
	void *exec = (void *)0xc000, *graph = (void *)0xd000;
	bool upload = symbol == TD_SYMBOL_cuGraphUpload || symbol == TD_SYMBOL_cuGraphUpload_ptsz;
	CUresult (*launch)(void *, CUstream);
	uint64_t before;

	*(void **)&launch = got(symbol);
	submits(symbol);
	OK(VIA(cuDeviceGraphMemTrim)(0));
	OK(VIA(cuGraphInstantiateWithFlags)(&exec, graph, 0));
	before = launches();
	refused = symbol;
	EXPECT(symbol, launch(exec, NULL) == CUDA_ERROR_UNKNOWN);
	EXPECT(symbol, counted() == 0);
	refused = -1;
	OK(launch(exec, NULL));
	EXPECT(symbol, inside[symbol]);
	EXPECT(symbol, launches() == before + (upload ? 2 : 4));
	EXPECT(symbol, counted() == 4 * MIB);
	OK(VIA(cuGraphExecDestroy)(exec));
	OK(VIA(cuDeviceGraphMemTrim)(0));
	EXPECT(symbol, counted() == 0);
}

/* -- contexts, streams, captures, look-ups -- */

static bool is_known(void *context)
{
	struct td_context contexts[TD_CONTEXT_MAX];
	unsigned n = td_context_list(contexts, TD_CONTEXT_MAX);

	for (unsigned i = 0; i < n; i++)
		if (contexts[i].handle == context)
			return true;
	return false;
}

static CUcontext first = (CUcontext)0x1000, second = (CUcontext)0x2000;

#define CREATED(symbol_, args)                                                                     \
	static void created_##symbol_(int symbol)                                                  \
	{                                                                                          \
		CUcontext context;                                                                 \
		OK(VIA(symbol_) args);                                                             \
		EXPECT(symbol, is_known(second));                                                  \
		OK(VIA(cuCtxDestroy_v2)(second));                                                  \
		EXPECT(symbol, !is_known(second));                                                 \
		current = first;                                                                   \
	}

CREATED(cuCtxCreate, (&context, 0, 0))
CREATED(cuCtxCreate_v2, (&context, 0, 0))
CREATED(cuCtxCreate_v3, (&context, NULL, 0, 0, 0))
CREATED(cuCtxCreate_v4, (&context, NULL, 0, 0))

static void made_current(int symbol)
{
	CUresult (*f)(CUcontext);

	*(void **)&f = got(symbol);
	current = second; /* the newer push is not answered */
	OK(f(second));
	EXPECT(symbol, is_known(second));
	OK(VIA(cuCtxDestroy)(second));
	EXPECT(symbol, !is_known(second));
	current = first;
}

/* Objects of a context end with it. */
static void ended(int symbol)
{
	CUresult (*f)(CUcontext);
	CUcontext context;
	void *array_in_it = (void *)0x9000;

	*(void **)&f = got(symbol);
	OK(VIA(cuCtxCreate_v2)(&context, 0, 0));
	OK(VIA(cuMemAlloc_v2)(&address, MIB));
	OK(VIA(cuArrayCreate_v2)(&array_in_it, &flat));
	EXPECT(symbol, counted() == 3 * MIB);
	OK(f(context));
	EXPECT(symbol, !is_known(context));
	EXPECT(symbol, counted() == 0);
	current = first;
}

static void green_ended(int symbol)
{
	void *green = (void *)0xe000;
	CUcontext context;

	OK(VIA(cuCtxFromGreenCtx)(&context, green));
	current = context;
	CHECK_EQ(td_context_use(), 0);
	EXPECT(symbol, is_known(context));
	OK(VIA(cuGreenCtxDestroy)(green));
	EXPECT(symbol, !is_known(context));
	current = first;
}

static void primary_left(int symbol)
{
	CUresult (*f)(CUdevice);

	*(void **)&f = got(symbol);
	CHECK_EQ(td_context_use(), 0);
	OK(VIA(cuMemAlloc_v2)(&address, MIB));
	active = true;
	if (symbol == TD_SYMBOL_cuDevicePrimaryCtxRelease ||
		symbol == TD_SYMBOL_cuDevicePrimaryCtxRelease_v2) {
		OK(f(0));
		EXPECT(symbol, is_known(first));
		EXPECT(symbol, counted() == MIB);
	}
	active = false;
	OK(f(0));
	EXPECT(symbol, !is_known(first));
	CHECK_EQ(td_context_use(), 0);
	EXPECT(symbol, counted() == 0);
	active = true;
}

static void stream_known(int symbol)
{
	CUstream streams[8], made = (CUstream)0xf000;
	unsigned n;

	switch (symbol) {
	case TD_SYMBOL_cuStreamCreateWithPriority:
		OK(VIA(cuStreamCreateWithPriority)(&made, 0, 0));
		break;
	case TD_SYMBOL_cuGreenCtxStreamCreate:
		OK(VIA(cuGreenCtxStreamCreate)(&made, NULL, 0, 0));
		break;
	default: OK(VIA(cuStreamCreate)(&made, 0));
	}
	EXPECT(symbol,
		td_context_streams(first, (void **)streams, 8, &n) && n == 1 && streams[0] == made);
	OK(symbol == TD_SYMBOL_cuStreamDestroy ? VIA(cuStreamDestroy)(made)
					       : VIA(cuStreamDestroy_v2)(made));
	EXPECT(symbol, td_context_streams(first, (void **)streams, 8, &n) && !n);
}

static void capture_known(int symbol)
{
	bool ends = symbol == TD_SYMBOL_cuStreamEndCapture ||
		    symbol == TD_SYMBOL_cuStreamEndCapture_ptsz;
	int begins = ends ? TD_SYMBOL_cuStreamBeginCapture : symbol;

	refused = begins;
	EXPECT(symbol, call_with_zeros(got(begins)) == CUDA_ERROR_UNKNOWN);
	EXPECT(symbol, !td_context_any_capture());
	refused = -1;
	OK(call_with_zeros(got(begins)));
	EXPECT(symbol, td_context_any_capture());
	OK(call_with_zeros(got(ends ? symbol : TD_SYMBOL_cuStreamEndCapture)));
	EXPECT(symbol, !td_context_any_capture());
}

static void gives_out_ours(int symbol)
{
	void *by_old = NULL, *by_new = NULL, *none = NULL;

	OK(cuGetProcAddress("cuLaunchKernel", &by_old, 4000, 0));
	OK(cuGetProcAddress_v2("cuLaunchKernel", &by_new, 4000, 0, NULL));
	EXPECT(symbol, by_old && by_old == by_new && by_old != (void *)td_real.cuLaunchKernel);
	/* It names a stream, which may move to another GPU. */
	OK(cuGetProcAddress_v2("cuStreamQuery", &by_new, 2000, 0, NULL));
	EXPECT(symbol, by_new && by_new != (void *)td_real.cuStreamQuery);
	OK(cuGetProcAddress_v2("cuDriverGetVersion", &by_new, 2020, 0, NULL));
	EXPECT(symbol, by_new == (void *)td_real.cuDriverGetVersion);
	OK(cuGetProcAddress_v2("", &none, 0, 0, NULL));
}

/* -- the list -- */

typedef void (*check_fn)(int symbol);

static const check_fn of_class[] = {
	[TD_CLASS_OF_SUBMIT] = submits,
	[TD_CLASS_OF_SUBMIT_EX] = submits,
	[TD_CLASS_OF_SUBMIT_WAIT] = submits,
	[TD_CLASS_OF_SUBMIT_GRAPH] = graph_launched,
	[TD_CLASS_OF_COPY_WAIT] = copies_and_waits,
	[TD_CLASS_OF_NAMES] = names_memory,
	[TD_CLASS_OF_NAMES_NODE] = names_memory,
	[TD_CLASS_OF_ORDER] = is_not_held_up,
	[TD_CLASS_OF_WAIT] = waits,
	[TD_CLASS_OF_HOST] = is_not_held_up,
	[TD_CLASS_OF_LOAD] = is_not_held_up,
	[TD_CLASS_OF_UNLOAD] = is_not_held_up,
	[TD_CLASS_OF_SHARE] = is_not_held_up,
	[TD_CLASS_OF_VIEW] = is_not_held_up,
	[TD_CLASS_OF_PASS] = NULL,
};

#define AT(symbol, check) [TD_SYMBOL_##symbol] = check
static const check_fn by_name[TD_SYMBOL_N] = {
	AT(cuMemAlloc_v2, plain_memory),
	AT(cuMemAllocPitch_v2, plain_memory),
	AT(cuMemFree_v2, plain_memory),
	AT(cuMemAllocManaged, managed),
	AT(cuMemAlloc, legacy),
	AT(cuMemAllocPitch, legacy_pitch),
	AT(cuMemFree, legacy),
	AT(cuMemCreate, created),
	AT(cuMemRelease, host_vmm),
	AT(cuMemUnmap, mapped),
	AT(cuMulticastCreate, multicast),
	AT(cuMemImportFromShareableHandle, imported),
	AT(cuArrayCreate, array_v1),
	AT(cuArrayCreate_v2, array),
	AT(cuArray3DCreate, array3d_v1),
	AT(cuArray3DCreate_v2, array3d),
	AT(cuArrayDestroy, array_deferred),
	AT(cuMipmappedArrayCreate, mipmap),
	AT(cuMipmappedArrayDestroy, mipmap),
	AT(cuImportExternalMemory, external),
	AT(cuDestroyExternalMemory, external),
	AT(cuIpcGetMemHandle, handed_out),
	AT(cuIpcOpenMemHandle, shared_by_ipc),
	AT(cuIpcOpenMemHandle_v2, shared_by_ipc),
	AT(cuIpcCloseMemHandle, shared_by_ipc),
	AT(cuMemAllocAsync, pooled),
	AT(cuMemAllocAsync_ptsz, pooled_ptsz),
	AT(cuMemAllocFromPoolAsync, from_pool),
	AT(cuMemAllocFromPoolAsync_ptsz, from_pool_ptsz),
	AT(cuMemFreeAsync, pooled),
	AT(cuMemFreeAsync_ptsz, pooled_ptsz),
	AT(cuMemPoolDestroy, pool_destroyed),
	AT(cuMemPoolTrimTo, pooled),
	AT(cuMemPoolImportPointer, imported_at),
	AT(cuMemPoolImportFromShareableHandle, imported_pool),
	AT(cuGraphInstantiate, graph_instantiated),
	AT(cuGraphInstantiate_v2, graph_instantiated),
	AT(cuGraphInstantiateWithFlags, graph_instantiated),
	AT(cuGraphInstantiateWithParams, graph_instantiated),
	AT(cuGraphInstantiateWithParams_ptsz, graph_instantiated),
	AT(cuGraphExecUpdate, graph_instantiated),
	AT(cuGraphExecUpdate_v2, graph_instantiated),
	AT(cuGraphExecDestroy, graph_instantiated),
	AT(cuDeviceGraphMemTrim, graph_instantiated),
	AT(cuMemGetInfo, tells_the_programs_share),
	AT(cuMemGetInfo_v2, tells_the_programs_share),
	AT(cuDeviceTotalMem, tells_the_programs_share),
	AT(cuDeviceTotalMem_v2, tells_the_programs_share),
	AT(cuMemGetAddressRange_v2, tells_the_programs_range),
	AT(cuCtxCreate, created_cuCtxCreate),
	AT(cuCtxCreate_v2, created_cuCtxCreate_v2),
	AT(cuCtxCreate_v3, created_cuCtxCreate_v3),
	AT(cuCtxCreate_v4, created_cuCtxCreate_v4),
	AT(cuCtxDestroy, ended),
	AT(cuCtxDestroy_v2, ended),
	AT(cuCtxDetach, ended),
	AT(cuCtxFromGreenCtx, green_ended),
	AT(cuGreenCtxDestroy, green_ended),
	AT(cuCtxSetCurrent, made_current),
	AT(cuCtxPushCurrent, made_current),
	AT(cuCtxPushCurrent_v2, made_current),
	AT(cuDevicePrimaryCtxRelease, primary_left),
	AT(cuDevicePrimaryCtxRelease_v2, primary_left),
	AT(cuDevicePrimaryCtxReset, primary_left),
	AT(cuDevicePrimaryCtxReset_v2, primary_left),
	/* Contexts that they make current or hold are known from their first use on. */
	AT(cuCtxAttach, is_not_held_up),
	AT(cuCtxPopCurrent, is_not_held_up),
	AT(cuCtxPopCurrent_v2, is_not_held_up),
	AT(cuDevicePrimaryCtxRetain, is_not_held_up),
	AT(cuGreenCtxCreate, is_not_held_up),
	AT(cuStreamCreate, stream_known),
	AT(cuStreamCreateWithPriority, stream_known),
	AT(cuGreenCtxStreamCreate, stream_known),
	AT(cuStreamDestroy, stream_known),
	AT(cuStreamDestroy_v2, stream_known),
	AT(cuStreamBeginCapture, capture_known),
	AT(cuStreamBeginCapture_ptsz, capture_known),
	AT(cuStreamBeginCapture_v2, capture_known),
	AT(cuStreamBeginCapture_v2_ptsz, capture_known),
	AT(cuStreamBeginCaptureToGraph, capture_known),
	AT(cuStreamBeginCaptureToGraph_ptsz, capture_known),
	AT(cuStreamEndCapture, capture_known),
	AT(cuStreamEndCapture_ptsz, capture_known),
	AT(cuThreadExchangeStreamCaptureMode, is_not_held_up),
	AT(cuGetProcAddress, gives_out_ours),
	AT(cuGetProcAddress_v2, gives_out_ours),
	AT(cuGetExportTable, is_not_held_up),
};

static check_fn check_of(int symbol)
{
	unsigned class = td_symbols[symbol].class;

	if (by_name[symbol])
		return by_name[symbol];
	return class < sizeof(of_class) / sizeof(of_class[0]) ? of_class[class] : NULL;
}

TEST(every_symbol_that_is_not_only_passed_on_has_a_check)
{
	for (int i = 0; i < TD_SYMBOL_N; i++)
		EXPECT(i, td_symbols[i].class == TD_CLASS_OF_PASS || check_of(i));
}

TEST(each_symbols_class_is_honoured)
{
	start();
	for (int i = 0; i < TD_SYMBOL_N; i++)
		if (td_symbols[i].class != TD_CLASS_OF_PASS)
			check_of(i)(i);
}

/* Another thread reuses handles and addresses as soon as they are given back, as a driver does. */
static void *take_and_give(void *arg)
{
	uintptr_t seed = (uintptr_t)arg;

	for (unsigned i = 0; i < 2000; i++) {
		CUmemGenericAllocationHandle h = 0x8000 + (i * seed) % 7;
		CUdeviceptr at = (0x100 + seed) * 1024 * MIB + i % 5 * 4 * MIB, plain;
		void *in_thread = (void *)(0x9000 + (i + seed) % 5);

		(void)VIA(cuMemCreate)(&h, 4 * MIB, &on_device, 0);
		(void)VIA(cuMemMap)(at, 4 * MIB, 0, h, 0);
		(void)VIA(cuMemRelease)(h);
		(void)VIA(cuArrayCreate_v2)(&in_thread, &flat);
		(void)VIA(cuMemAlloc_v2)(&plain, MIB);
		(void)VIA(cuMemFree_v2)(plain);
		(void)VIA(cuMemUnmap)(at, 4 * MIB);
		(void)VIA(cuArrayDestroy)(in_thread);
		td_outside_refresh();
	}
	return NULL;
}

TEST(threads_that_take_and_give_at_once_leave_nothing_counted)
{
	pthread_t threads[4];

	start();
	CHECK_EQ(counted(), 0);
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, take_and_give, (void *)(i + 1)));
	for (unsigned i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK_EQ(counted(), 0);
	for (int kind = 0; kind < TD_OUTSIDE_N; kind++)
		CHECK_EQ(td_outside_bytes(0, kind), 0);
}
