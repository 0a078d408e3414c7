/*
 * Adapters: the functions that replace the driver's in td_real once the program has moved to
 * another GPU. They replace the handles of the program's objects by those of their twins, by the
 * kinds in cuda/symbols.def, and replace them back in the driver's results. Structs that contain
 * handles (kind %) have adapters of their own, which work on a copy. Handles that belong to no
 * context (libraries, kernels, graphs, pools) are the same on each GPU.
 */
#include "preload/rehome/adapt.h"

#include <stdlib.h>
#include <string.h>

#include "preload/driver/real.h"
#include "preload/rehome/objects.h"

#define PARAMETERS_MAX 16 /* of a call of the driver; POINTERS() takes no more */

/* -- adapters by kinds of parameters -- */

/* Returns the twin of the program's context on the current GPU. */
static void *context_here(void *context)
{
	for (int h = 0; context && h < TD_HOMES_MAX; h++)
		if (td_rehome_context(h) == context)
			return td_rehome_context(td_rehome_here());
	return context;
}

/* Returns the program's own context for its twin. */
static void *context_shown(void *context)
{
	return td_rehome_program_context(context);
}

static bool is_default_stream(const void *stream)
{
	return (uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD;
}

static void *here(char kind, void *handle)
{
	switch (kind) {
	case 'c': return context_here(handle);
	case 's': return is_default_stream(handle) ? handle : td_twin_here(TD_TWIN_STREAM, handle);
	case 'e': return td_twin_here(TD_TWIN_EVENT, handle);
	case 'm': return td_twin_here(TD_TWIN_MODULE, handle);
	case 'f': return td_twin_here(TD_TWIN_FUNCTION, handle);
	default: return handle;
	}
}

static void *shown(char kind, void *handle)
{
	switch (kind) {
	case 'c': return context_shown(handle);
	case 's': return td_twin_program(TD_TWIN_STREAM, handle);
	case 'e': return td_twin_program(TD_TWIN_EVENT, handle);
	case 'm': return td_twin_program(TD_TWIN_MODULE, handle);
	case 'f': return td_twin_program(TD_TWIN_FUNCTION, handle);
	default: return handle;
	}
}

/* Does a device in this call mean the GPU on which the program's memory and code are? */
static bool follows(unsigned symbol)
{
	switch (symbol) {
#define FOLLOWS(symbol) case TD_SYMBOL_##symbol:
#define SHOWN(symbol)
#include "preload/rehome/follows.def"
#undef FOLLOWS
#undef SHOWN
		return true;
	default: return false;
	}
}

/* args[i] points to the adapter's copy of the i-th parameter, of a handle's size or less. */
static void replace(unsigned symbol, void *const *args)
{
	const char *kind = td_symbols[symbol].kinds;

	for (unsigned i = 0; *kind; kind++) {
		if (*kind == '*' || *kind == '&') {
			while (kind[1] == '*' || kind[1] == '&')
				kind++;
			kind++; /* the kind of what the pointer points to */
		} else if (strchr("csemf", *kind)) {
			*(void **)args[i] = here(*kind, *(void **)args[i]);
		} else if (*kind == 'D' && follows(symbol)) {
			*(CUdevice *)args[i] = td_rehome_device(*(CUdevice *)args[i]);
		}
		i++;
	}
}

/* Keeps the handles and devices that replace() changes, or puts them back. */
static void keep(unsigned symbol, void *const *args, void **kept, bool back)
{
	const char *kind = td_symbols[symbol].kinds;

	for (unsigned i = 0; *kind; kind++) {
		if (*kind == '*' || *kind == '&') {
			while (kind[1] == '*' || kind[1] == '&')
				kind++;
			kind++;
		} else if (strchr("csemf", *kind)) {
			memcpy(back ? args[i] : &kept[i], back ? &kept[i] : args[i],
				sizeof(void *));
		} else if (*kind == 'D') {
			memcpy(back ? args[i] : &kept[i], back ? &kept[i] : args[i],
				sizeof(CUdevice));
		}
		i++;
	}
}

/*
 * Replaces the handles that the call reads in place. If the program moves just then, it is done
 * again: a twin on one GPU would be used with another GPU's context, which the driver refuses.
 */
static void enter(unsigned symbol, void *const *args)
{
	void *kept[PARAMETERS_MAX];
	int home = td_rehome_here();

	keep(symbol, args, kept, false);
	td_rehome_sync();
	replace(symbol, args);
	while (home != td_rehome_here()) {
		home = td_rehome_here();
		keep(symbol, args, kept, true);
		td_rehome_sync();
		replace(symbol, args);
	}
}

static void leave(unsigned symbol, void *const *args, CUresult r)
{
	const char *kind = td_symbols[symbol].kinds;

	for (unsigned i = 0; !r && *kind; kind++, i++) {
		void **out;

		if (*kind != '*') {
			if (*kind == '&')
				kind++;
			continue;
		}
		kind++;
		out = *(void ***)args[i];
		if (out && strchr("csemf", *kind))
			*out = shown(*kind, *out);
		else if (out && *kind == 'D')
			*(CUdevice *)out = td_rehome_device_shown(*(CUdevice *)out);
	}
}

#define P0()
#define P1(a)       (void *)(uintptr_t) & (a),
#define P2(a, ...)  P1(a) P1(__VA_ARGS__)
#define P3(a, ...)  P1(a) P2(__VA_ARGS__)
#define P4(a, ...)  P1(a) P3(__VA_ARGS__)
#define P5(a, ...)  P1(a) P4(__VA_ARGS__)
#define P6(a, ...)  P1(a) P5(__VA_ARGS__)
#define P7(a, ...)  P1(a) P6(__VA_ARGS__)
#define P8(a, ...)  P1(a) P7(__VA_ARGS__)
#define P9(a, ...)  P1(a) P8(__VA_ARGS__)
#define P10(a, ...) P1(a) P9(__VA_ARGS__)
#define P11(a, ...) P1(a) P10(__VA_ARGS__)
#define P12(a, ...) P1(a) P11(__VA_ARGS__)
#define P13(a, ...) P1(a) P12(__VA_ARGS__)
#define P14(a, ...) P1(a) P13(__VA_ARGS__)
#define P15(a, ...) P1(a) P14(__VA_ARGS__)
#define P16(a, ...) P1(a) P15(__VA_ARGS__)
#define PICK(                                                                                      \
	none, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, name, ...)    \
	name
/* The addresses of all parameters, each followed by a comma. */
#define POINTERS(...)                                                                              \
	PICK(0, ##__VA_ARGS__, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2,  \
		P1, P0)                                                                            \
	(__VA_ARGS__)

#define EXPAND(x) x

#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	static CUresult adapt_##symbol TD_PARAMS_##symbol                                          \
	{                                                                                          \
		void *const args[] = {EXPAND(POINTERS TD_ARGS_##symbol) NULL};                     \
		CUresult r;                                                                        \
		enter(TD_SYMBOL_##symbol, args);                                                   \
		r = td_true->symbol TD_ARGS_##symbol;                                              \
		leave(TD_SYMBOL_##symbol, args, r);                                                \
		return r;                                                                          \
	}
#include "cuda/symbols.def"
#undef SYMBOL

/*
 * -- calls with structs that contain handles: these get a copy with the twins' handles --
 *
 * enter() does not fill the copy again. It need not, because the program cannot move meanwhile:
 * launches, copies and nodes of any kind (class NAMES_NODE) are inside the gate, which a move
 * finds closed and empty; a captured launch passes a closed gate, but a capture is a reason not to
 * move, from before it begins; whoever has a graph for a kernel node has noted GRAPHS.
 */

/* At most this many launch attributes are read. CUDA 13 has fewer kinds. */
#define ATTRIBUTES_MAX       32
#define ATTRIBUTE_EVENT      7  /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT */
#define ATTRIBUTE_COMPLETION 12 /* CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT */

struct launch {
	CUlaunchConfig config;
	CUlaunchAttribute attributes[ATTRIBUTES_MAX];
};

/* Returns the launch config with the twins' handles; NULL: it has more attributes than are read. */
static const CUlaunchConfig *launch_here(const CUlaunchConfig *config, struct launch *copy)
{
	if (!config)
		return NULL;
	if (config->attrs && config->numAttrs > ATTRIBUTES_MAX)
		return NULL;
	copy->config = *config;
	copy->config.hStream = here('s', config->hStream);
	if (!config->attrs)
		return &copy->config;
	memcpy(copy->attributes, config->attrs, config->numAttrs * sizeof(*config->attrs));
	copy->config.attrs = copy->attributes;
	for (unsigned i = 0; i < config->numAttrs; i++) {
		CUlaunchAttribute *attribute = &copy->attributes[i];
		void *event;

		if (attribute->id != ATTRIBUTE_EVENT && attribute->id != ATTRIBUTE_COMPLETION)
			continue;
		memcpy(&event, attribute->value.bytes, sizeof(event));
		event = here('e', event);
		memcpy(attribute->value.bytes, &event, sizeof(event));
	}
	return &copy->config;
}

#define LAUNCH_EX(symbol)                                                                          \
	static CUresult struct_##symbol TD_PARAMS_##symbol                                         \
	{                                                                                          \
		const CUlaunchConfig *twins;                                                       \
		struct launch copy;                                                                \
		td_rehome_sync();                                                                  \
		twins = launch_here(config, &copy);                                                \
		if (config && !twins)                                                              \
			return CUDA_ERROR_NOT_SUPPORTED;                                           \
		return adapt_##symbol(twins, a1, a2, a3);                                          \
	}

LAUNCH_EX(cuLaunchKernelEx)
LAUNCH_EX(cuLaunchKernelEx_ptsz)

/* It launches on several GPUs, each with its own function and stream. */
static CUresult struct_cuLaunchCooperativeKernelMultiDevice(void *a0, unsigned a1, unsigned a2)
{
	(void)a0, (void)a1, (void)a2;
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* Replaces the handle at that offset of a struct. */
static void put_here(char kind, void *copy, size_t at)
{
	void *handle;

	memcpy(&handle, (char *)copy + at, sizeof(handle));
	handle = here(kind, handle);
	memcpy((char *)copy + at, &handle, sizeof(handle));
}

static void put_shown(char kind, void *out, size_t at)
{
	void *handle;

	memcpy(&handle, (char *)out + at, sizeof(handle));
	handle = shown(kind, handle);
	memcpy((char *)out + at, &handle, sizeof(handle));
}

/*
 * Sizes of CUDA_KERNEL_NODE_PARAMS, whose version 2 has a kernel and a context at the end, and of
 * CUDA_BATCH_MEM_OP_NODE_PARAMS, which begins with a context.
 */
#define KERNEL_V1          56
#define KERNEL_V2          72
#define OPERATIONS         32
#define KERNEL_FUNCTION    0
#define KERNEL_CONTEXT     64
#define OPERATIONS_CONTEXT 0

static void put_of_node(void (*put)(char kind, void *copy, size_t at), void *params, size_t bytes)
{
	if (bytes != OPERATIONS)
		put('f', params, KERNEL_FUNCTION);
	if (bytes != KERNEL_V1)
		put('c', params, bytes == OPERATIONS ? OPERATIONS_CONTEXT : KERNEL_CONTEXT);
}

static const void *node_params_here(const void *params, size_t bytes, char *copy)
{
	td_rehome_sync();
	if (!params)
		return NULL;
	memcpy(copy, params, bytes);
	put_of_node(put_here, copy, bytes);
	return copy;
}

static CUresult node_params_shown(CUresult r, void *params, size_t bytes)
{
	if (!r && params)
		put_of_node(put_shown, params, bytes);
	return r;
}

#define NODE_SET(symbol, bytes, params, ...)                                                       \
	static CUresult struct_##symbol TD_PARAMS_##symbol                                         \
	{                                                                                          \
		char copy[bytes];                                                                  \
		const void *twins = node_params_here(params, bytes, copy);                         \
		return adapt_##symbol(__VA_ARGS__);                                                \
	}
#define NODE_GET(symbol, bytes)                                                                    \
	static CUresult struct_##symbol TD_PARAMS_##symbol                                         \
	{                                                                                          \
		return node_params_shown(adapt_##symbol(a0, a1), a1, bytes);                       \
	}

NODE_SET(cuGraphAddKernelNode, KERNEL_V1, a4, a0, a1, a2, a3, twins)
NODE_SET(cuGraphAddKernelNode_v2, KERNEL_V2, a4, a0, a1, a2, a3, twins)
NODE_SET(cuGraphKernelNodeSetParams, KERNEL_V1, a1, a0, twins)
NODE_SET(cuGraphKernelNodeSetParams_v2, KERNEL_V2, a1, a0, twins)
NODE_SET(cuGraphExecKernelNodeSetParams, KERNEL_V1, a2, a0, a1, twins)
NODE_SET(cuGraphExecKernelNodeSetParams_v2, KERNEL_V2, a2, a0, a1, twins)
NODE_GET(cuGraphKernelNodeGetParams, KERNEL_V1)
NODE_GET(cuGraphKernelNodeGetParams_v2, KERNEL_V2)
NODE_SET(cuGraphAddBatchMemOpNode, OPERATIONS, a4, a0, a1, a2, a3, twins)
NODE_SET(cuGraphBatchMemOpNodeSetParams, OPERATIONS, a1, a0, twins)
NODE_SET(cuGraphExecBatchMemOpNodeSetParams, OPERATIONS, a2, a0, a1, twins)
NODE_GET(cuGraphBatchMemOpNodeGetParams, OPERATIONS)

/* CUgraphNodeParams: the kind of node first, its parameters from offset 16. */
#define NODE_BYTES  256
#define NODE_PARAMS 16
enum { NODE_KERNEL, NODE_MEMCPY, NODE_MEMSET, NODE_WAIT = 6, NODE_RECORD, NODE_OPERATIONS = 12 };
#define MEMCPY_CONTEXT 8
#define MEMSET_CONTEXT 40

/* A memory node uses the program's own struct, because the driver writes the address into it. */
static void *node_here(void *params, char *copy)
{
	int kind;

	td_rehome_sync();
	if (!params)
		return NULL;
	memcpy(copy, params, NODE_BYTES);
	memcpy(&kind, params, sizeof(kind));
	if (kind == NODE_KERNEL) {
		put_of_node(put_here, copy + NODE_PARAMS, KERNEL_V2);
	} else if (kind == NODE_OPERATIONS) {
		put_of_node(put_here, copy + NODE_PARAMS, OPERATIONS);
	} else if (kind == NODE_MEMCPY) {
		put_here('c', copy, NODE_PARAMS + MEMCPY_CONTEXT);
	} else if (kind == NODE_MEMSET) {
		put_here('c', copy, NODE_PARAMS + MEMSET_CONTEXT);
	} else if (kind == NODE_WAIT || kind == NODE_RECORD) {
		put_here('e', copy, NODE_PARAMS);
	} else {
		return params;
	}
	return copy;
}

#define NODE(symbol, params, ...)                                                                  \
	static CUresult struct_##symbol TD_PARAMS_##symbol                                         \
	{                                                                                          \
		char copy[NODE_BYTES];                                                             \
		void *twins = node_here(params, copy);                                             \
		return adapt_##symbol(__VA_ARGS__);                                                \
	}

NODE(cuGraphAddNode, a4, a0, a1, a2, a3, twins)
NODE(cuGraphAddNode_v2, a5, a0, a1, a2, a3, a4, twins)
NODE(cuGraphNodeSetParams, a1, a0, twins)
NODE(cuGraphExecNodeSetParams, a2, a0, a1, twins)

/* size of CUDA_MEMCPY3D_PEER */
#define PEER_BYTES 200
#define PEER_FROM  64
#define PEER_TO    152

static const void *peer_here(const void *params, char *copy)
{
	td_rehome_sync();
	if (!params)
		return NULL;
	memcpy(copy, params, PEER_BYTES);
	put_here('c', copy, PEER_FROM);
	put_here('c', copy, PEER_TO);
	return copy;
}

#define PEER_COPY(symbol, ...)                                                                     \
	static CUresult struct_##symbol TD_PARAMS_##symbol                                         \
	{                                                                                          \
		char copy[PEER_BYTES];                                                             \
		const void *twins = peer_here(a0, copy);                                           \
		return adapt_##symbol(__VA_ARGS__);                                                \
	}

PEER_COPY(cuMemcpy3DPeer, twins)
PEER_COPY(cuMemcpy3DPeer_ptds, twins)
PEER_COPY(cuMemcpy3DPeerAsync, twins, stream)
PEER_COPY(cuMemcpy3DPeerAsync_ptsz, twins, stream)

/*
 * -- locations: memory for the program's GPU belongs where its work now runs; see places.c --
 *
 * For the program cannot move meanwhile: the hook of cuMemCreate excludes it, a prefetch is inside
 * the gate, and memory that is mapped by the program, or unified, is a reason not to move.
 */

static CUresult struct_cuMemCreate(CUmemGenericAllocationHandle *a0, size_t a1,
	const CUmemAllocationProp *a2, unsigned long long a3)
{
	CUmemAllocationProp copy;

	if (!a2)
		return adapt_cuMemCreate(a0, a1, a2, a3);
	copy = *a2;
	copy.location = td_place_here(copy.location);
	return adapt_cuMemCreate(a0, a1, &copy, a3);
}

/* With more locations than there can be devices, each is passed alone. */
static CUresult struct_cuMemSetAccess(
	CUdeviceptr a0, size_t a1, const CUmemAccessDesc *a2, size_t a3)
{
	CUmemAccessDesc copy[TD_HOMES_MAX * 2];

	if (!a2 || a3 > sizeof(copy) / sizeof(*copy))
		return adapt_cuMemSetAccess(a0, a1, a2, a3);
	for (size_t i = 0; i < a3; i++) {
		copy[i] = a2[i];
		copy[i].location = td_place_here(a2[i].location);
	}
	return adapt_cuMemSetAccess(a0, a1, copy, a3);
}

static CUresult struct_cuMemGetAccess(
	unsigned long long *a0, const CUmemLocation *a1, CUdeviceptr a2)
{
	CUmemLocation copy = {0, 0};

	if (a1)
		copy = td_place_here(*a1);
	return adapt_cuMemGetAccess(a0, a1 ? &copy : NULL, a2);
}

#define PREFETCH(symbol)                                                                           \
	static CUresult struct_##symbol TD_PARAMS_##symbol                                         \
	{                                                                                          \
		return adapt_##symbol(a0, a1, td_place_here(a2), a3, stream);                      \
	}

PREFETCH(cuMemPrefetchAsync_v2)
PREFETCH(cuMemPrefetchAsync_v2_ptsz)

static CUresult struct_cuMemAdvise_v2(CUdeviceptr a0, size_t a1, int a2, CUmemLocation a3)
{
	return adapt_cuMemAdvise_v2(a0, a1, a2, td_place_here(a3));
}

/* -- events -- */

/* A move must not come in between: the event is recorded on the GPU that the table names. */
#define RECORD_EVENT(symbol, ...)                                                                  \
	static CUresult struct_##symbol TD_PARAMS_##symbol                                         \
	{                                                                                          \
		CUresult r;                                                                        \
		td_rehome_begin();                                                                 \
		r = adapt_##symbol(__VA_ARGS__);                                                   \
		if (!r)                                                                            \
			td_twin_set_recorded(a0, td_rehome_here());                                \
		td_rehome_end();                                                                   \
		return r;                                                                          \
	}

RECORD_EVENT(cuEventRecord, a0, stream)
RECORD_EVENT(cuEventRecord_ptsz, a0, stream)
RECORD_EVENT(cuEventRecordWithFlags, a0, stream, a2)
RECORD_EVENT(cuEventRecordWithFlags_ptsz, a0, stream, a2)

static CUresult twin_elapsed(float *ret_ms, CUevent start, CUevent end, bool v2)
{
	CUresult r;

	td_rehome_begin();
	td_rehome_sync();
	r = td_twin_elapsed(ret_ms, start, end, v2);
	td_rehome_end();
	return r;
}

static CUresult struct_cuEventElapsedTime(float *a0, CUevent a1, CUevent a2)
{
	return twin_elapsed(a0, a1, a2, false);
}

static CUresult struct_cuEventElapsedTime_v2(float *a0, CUevent a1, CUevent a2)
{
	return twin_elapsed(a0, a1, a2, true);
}

/* -- callbacks: they receive the program's own stream -- */

struct callback {
	CUstreamCallback call;
	CUstream stream;
	void *arg;
};

static void call_back(CUstream stream, CUresult status, void *arg)
{
	struct callback callback = *(struct callback *)arg;

	(void)stream;
	free(arg);
	callback.call(callback.stream, status, callback.arg);
}

#define ADD_CALLBACK(symbol)                                                                       \
	static CUresult struct_##symbol TD_PARAMS_##symbol                                         \
	{                                                                                          \
		struct callback *callback = a1 ? malloc(sizeof(*callback)) : NULL;                 \
		CUresult r;                                                                        \
		if (a1 && !callback)                                                               \
			return CUDA_ERROR_OUT_OF_MEMORY;                                           \
		if (callback)                                                                      \
			*callback = (struct callback){a1, stream, a2};                             \
		r = adapt_##symbol(stream, a1 ? call_back : NULL, callback, a3);                   \
		if (r)                                                                             \
			free(callback);                                                            \
		return r;                                                                          \
	}

ADD_CALLBACK(cuStreamAddCallback)
ADD_CALLBACK(cuStreamAddCallback_ptsz)

/* -- ids and names: those of the program's own objects -- */

static CUresult struct_cuCtxGetId(CUcontext a0, unsigned long long *a1)
{
	CUcontext now = NULL;

	td_rehome_sync();
	if (!a0 && td_true->cuCtxGetCurrent(&now))
		return td_true->cuCtxGetId(a0, a1);
	return td_true->cuCtxGetId(context_shown(a0 ? a0 : now), a1);
}

#define STREAM_ID(symbol)                                                                          \
	static CUresult struct_##symbol TD_PARAMS_##symbol                                         \
	{                                                                                          \
		td_rehome_sync();                                                                  \
		return td_true->symbol(shown('s', stream), a1);                                    \
	}

STREAM_ID(cuStreamGetId)
STREAM_ID(cuStreamGetId_ptsz)

/* -- the program ends its context: its twins end with it -- */

#define END_CONTEXT(symbol)                                                                        \
	static CUresult struct_##symbol TD_PARAMS_##symbol                                         \
	{                                                                                          \
		return td_true->symbol(context_shown(context_here(a0)));                           \
	}

END_CONTEXT(cuCtxDestroy)
END_CONTEXT(cuCtxDestroy_v2)
END_CONTEXT(cuCtxDetach)

/* -- installing the adapters -- */

#define STRUCTS(STRUCT)                                                                            \
	STRUCT(cuLaunchKernelEx)                                                                   \
	STRUCT(cuLaunchKernelEx_ptsz)                                                              \
	STRUCT(cuLaunchCooperativeKernelMultiDevice)                                               \
	STRUCT(cuGraphAddKernelNode)                                                               \
	STRUCT(cuGraphAddKernelNode_v2)                                                            \
	STRUCT(cuGraphKernelNodeSetParams)                                                         \
	STRUCT(cuGraphKernelNodeSetParams_v2)                                                      \
	STRUCT(cuGraphExecKernelNodeSetParams)                                                     \
	STRUCT(cuGraphExecKernelNodeSetParams_v2)                                                  \
	STRUCT(cuGraphKernelNodeGetParams)                                                         \
	STRUCT(cuGraphKernelNodeGetParams_v2)                                                      \
	STRUCT(cuGraphAddBatchMemOpNode)                                                           \
	STRUCT(cuGraphBatchMemOpNodeSetParams)                                                     \
	STRUCT(cuGraphExecBatchMemOpNodeSetParams)                                                 \
	STRUCT(cuGraphBatchMemOpNodeGetParams)                                                     \
	STRUCT(cuGraphAddNode)                                                                     \
	STRUCT(cuGraphAddNode_v2)                                                                  \
	STRUCT(cuGraphNodeSetParams)                                                               \
	STRUCT(cuGraphExecNodeSetParams)                                                           \
	STRUCT(cuMemcpy3DPeer)                                                                     \
	STRUCT(cuMemcpy3DPeer_ptds)                                                                \
	STRUCT(cuMemcpy3DPeerAsync)                                                                \
	STRUCT(cuMemcpy3DPeerAsync_ptsz)                                                           \
	STRUCT(cuMemCreate)                                                                        \
	STRUCT(cuMemSetAccess)                                                                     \
	STRUCT(cuMemGetAccess)                                                                     \
	STRUCT(cuMemPrefetchAsync_v2)                                                              \
	STRUCT(cuMemPrefetchAsync_v2_ptsz)                                                         \
	STRUCT(cuMemAdvise_v2)                                                                     \
	STRUCT(cuEventRecord)                                                                      \
	STRUCT(cuEventRecord_ptsz)                                                                 \
	STRUCT(cuEventRecordWithFlags)                                                             \
	STRUCT(cuEventRecordWithFlags_ptsz)                                                        \
	STRUCT(cuEventElapsedTime)                                                                 \
	STRUCT(cuEventElapsedTime_v2)                                                              \
	STRUCT(cuStreamAddCallback)                                                                \
	STRUCT(cuStreamAddCallback_ptsz)                                                           \
	STRUCT(cuCtxGetId)                                                                         \
	STRUCT(cuStreamGetId)                                                                      \
	STRUCT(cuStreamGetId_ptsz)                                                                 \
	STRUCT(cuCtxDestroy)                                                                       \
	STRUCT(cuCtxDestroy_v2)                                                                    \
	STRUCT(cuCtxDetach)

/*
 * Does this call stay with the driver's function? Calls about device numbers, or about no device,
 * do: the program goes on seeing the GPU that it has chosen.
 */
static bool stays(unsigned symbol)
{
	switch (symbol) {
	case TD_SYMBOL_cuInit:
	case TD_SYMBOL_cuDeviceGet:
	case TD_SYMBOL_cuDeviceGetByPCIBusId:
	case TD_SYMBOL_cuGetProcAddress:
	case TD_SYMBOL_cuGetProcAddress_v2:
	case TD_SYMBOL_cuGetExportTable:
	case TD_SYMBOL_cuGetErrorName:
	case TD_SYMBOL_cuGetErrorString: return true;
	default: return td_record_has(symbol);
	}
}

void td_adapt_install(void)
{
	static void *const adapters[TD_SYMBOL_N] = {
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	[TD_SYMBOL_##symbol] = (void *)adapt_##symbol,
#include "cuda/symbols.def"
#undef SYMBOL
	};
	static const struct {
		unsigned symbol;
		void *adapter;
	} structs[] = {
#define STRUCT(symbol) {TD_SYMBOL_##symbol, (void *)struct_##symbol},
		STRUCTS(STRUCT)
#undef STRUCT
	};
	void *const *driver = (void *const *)td_true;
	void **real = (void **)&td_real;

	for (unsigned i = 0; i < TD_SYMBOL_N; i++)
		if (driver[i] && !stays(i))
			__atomic_store_n(&real[i], adapters[i], __ATOMIC_RELEASE);
	for (unsigned i = 0; i < TD_SYMBOL_N; i++)
		if (driver[i] && td_place_adapter(i))
			__atomic_store_n(&real[i], td_place_adapter(i), __ATOMIC_RELEASE);
	for (size_t i = 0; i < sizeof(structs) / sizeof(*structs); i++)
		if (driver[structs[i].symbol])
			__atomic_store_n(
				&real[structs[i].symbol], structs[i].adapter, __ATOMIC_RELEASE);
}
