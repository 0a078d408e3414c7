/* Wrappers with a behaviour of their own: copies that wait, captures, streams, contexts. The table that names them is hooks.def. */
#include "preload/context.h"
#include "preload/gate.h"
#include "preload/real.h"

#define HOOK(symbol, lookup, since, flavour, parameters, arguments, body)                          \
	CUresult td_hook_##symbol parameters;
#include "preload/hooks.def"
#undef HOOK

/*
 * A copy between host and device that waits is submitted by its asynchronous form in the default stream and awaited outside the gate, so
 * that closing need not wait for it. Not while anything captures: the two forms differ there, so the program gets the one that it called. Not for
 * cuMemcpy either, which does not wait when both sides are on the device.
 */
#define WAITING_COPY(                                                                              \
	name, async, suffix, async_suffix, kind, stream, parameters, plain_arguments, ...)         \
	CUresult td_hook_##name##suffix parameters                                                 \
	{                                                                                          \
		struct td_slot *slot = td_gate_enter(stream, kind);                                \
		CUresult r;                                                                        \
		if (td_context_any_capture() || !td_real.async##async_suffix) {                    \
			r = td_real.name##suffix plain_arguments;                                  \
			td_gate_leave(slot);                                                       \
			return r;                                                                  \
		}                                                                                  \
		r = td_real.async##async_suffix(__VA_ARGS__, stream);                              \
		td_gate_leave(slot);                                                               \
		return r ? r : td_real.cuStreamSynchronize(stream);                                \
	}

#define BOTH(name, async, parameters, plain_arguments, ...)                                        \
	WAITING_COPY(                                                                              \
		name, async, , , 0, CU_STREAM_LEGACY, parameters, plain_arguments, __VA_ARGS__)    \
	WAITING_COPY(name, async, _ptds, _ptsz, TD_SUBMIT_OWN_NULL, CU_STREAM_PER_THREAD,          \
		parameters, plain_arguments, __VA_ARGS__)

BOTH(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes),
	(to, from, bytes), to, from, bytes)
BOTH(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes),
	(to, from, bytes), to, from, bytes)

/* -- captures -- */

#define BEGIN_CAPTURE(symbol, parameters, arguments)                                               \
	CUresult td_hook_##symbol parameters                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		td_context_capture_begin();                                                        \
		r = td_real.symbol arguments;                                                      \
		td_context_capture_begun(!r);                                                      \
		return r;                                                                          \
	}
#define END_CAPTURE(symbol, null_stream)                                                            \
	CUresult td_hook_##symbol(CUstream stream, void **graph)                                    \
	{                                                                                           \
		int before = 0, after = 0;                                                          \
		CUstream named = stream ? stream : null_stream;                                     \
		bool known = td_real.cuStreamIsCapturing &&                                         \
			     !td_real.cuStreamIsCapturing(named, &before);                          \
		CUresult r = td_real.symbol(stream, graph);                                         \
		/* A failed end can end a capture too (it was invalid), or not (there was none). */ \
		if (!r || (known && before && !td_real.cuStreamIsCapturing(named, &after) &&        \
				  !after))                                                          \
			td_context_capture_ended();                                                 \
		return r;                                                                           \
	}

BEGIN_CAPTURE(cuStreamBeginCapture, (CUstream stream), (stream))
BEGIN_CAPTURE(cuStreamBeginCapture_ptsz, (CUstream stream), (stream))
BEGIN_CAPTURE(cuStreamBeginCapture_v2, (CUstream stream, int mode), (stream, mode))
BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz, (CUstream stream, int mode), (stream, mode))
BEGIN_CAPTURE(cuStreamBeginCaptureToGraph,
	(CUstream stream, void *graph, const void *dependencies, const void *data, size_t count,
		int mode),
	(stream, graph, dependencies, data, count, mode))
BEGIN_CAPTURE(cuStreamBeginCaptureToGraph_ptsz,
	(CUstream stream, void *graph, const void *dependencies, const void *data, size_t count,
		int mode),
	(stream, graph, dependencies, data, count, mode))
END_CAPTURE(cuStreamEndCapture, CU_STREAM_LEGACY)
END_CAPTURE(cuStreamEndCapture_ptsz, CU_STREAM_PER_THREAD)

/* -- streams -- */

CUresult td_hook_cuStreamCreate(CUstream *stream, unsigned flags)
{
	CUresult r = td_real.cuStreamCreate(stream, flags);

	if (!r)
		td_context_stream_created(*stream);
	return r;
}

CUresult td_hook_cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
	CUresult r = td_real.cuStreamCreateWithPriority(stream, flags, priority);

	if (!r)
		td_context_stream_created(*stream);
	return r;
}

CUresult td_hook_cuStreamDestroy_v2(CUstream stream)
{
	td_context_stream_destroyed(stream);
	return td_real.cuStreamDestroy_v2(stream);
}

/* -- contexts: a thread that changes its own uses the new one from its next submission or allocation on -- */

CUresult td_hook_cuCtxSetCurrent(CUcontext context)
{
	CUresult r = td_real.cuCtxSetCurrent(context);

	if (!r)
		td_context_note(context, false);
	return r;
}

CUresult td_hook_cuCtxPushCurrent_v2(CUcontext context)
{
	CUresult r = td_real.cuCtxPushCurrent_v2(context);

	if (!r)
		td_context_note(context, false);
	return r;
}

#define CREATE_CONTEXT(symbol, parameters, arguments)                                              \
	CUresult td_hook_##symbol parameters                                                       \
	{                                                                                          \
		CUresult r = td_real.symbol arguments;                                             \
		if (!r)                                                                            \
			td_context_note(*context, true);                                           \
		return r;                                                                          \
	}

CREATE_CONTEXT(cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device),
	(context, flags, device))
CREATE_CONTEXT(cuCtxCreate_v3,
	(CUcontext * context, void *affinity, int count, unsigned flags, CUdevice device),
	(context, affinity, count, flags, device))
CREATE_CONTEXT(cuCtxCreate_v4,
	(CUcontext * context, void *parameters, unsigned flags, CUdevice device),
	(context, parameters, flags, device))

CUresult td_hook_cuCtxDestroy_v2(CUcontext context)
{
	td_context_gone(context);
	return td_real.cuCtxDestroy_v2(context);
}

/* The context may live on by other references: only the driver knows. */
static bool primary_is_gone(CUdevice device)
{
	unsigned flags;
	int active = 0;

	return !td_real.cuDevicePrimaryCtxGetState ||
	       td_real.cuDevicePrimaryCtxGetState(device, &flags, &active) || !active;
}

#define LEAVE_PRIMARY(symbol)                                                                      \
	CUresult td_hook_##symbol(CUdevice device)                                                 \
	{                                                                                          \
		CUcontext primary = td_context_leaving(device);                                    \
		CUresult r = td_real.symbol(device);                                               \
		td_context_left(primary, primary_is_gone(device));                                 \
		return r;                                                                          \
	}

LEAVE_PRIMARY(cuDevicePrimaryCtxRelease_v2)
LEAVE_PRIMARY(cuDevicePrimaryCtxReset_v2)
