/* Wrappers with a behaviour of their own: copies that wait, captures, contexts. The table that names them is hooks.def. */
#include "preload/client.h"
#include "preload/gate.h"
#include "preload/real.h"

#define HOOK(symbol, lookup, since, flavour, parameters, arguments, body)                          \
	CUresult td_hook_##symbol parameters;
#include "preload/hooks.def"
#undef HOOK

/*
 * A copy that waits is submitted by its asynchronous form in the default stream and awaited outside the gate, so that closing need not
 * wait for it. Not while anything captures: the two forms differ there, so the program gets the one that it called.
 */
#define WAITING_COPY(                                                                              \
	name, async, suffix, async_suffix, per_thread, stream, parameters, plain_arguments, ...)   \
	CUresult td_hook_##name##suffix parameters                                                 \
	{                                                                                          \
		struct td_slot *slot;                                                              \
		CUresult r;                                                                        \
		if (td_client_captures() || !td_real.async##async_suffix)                          \
			return td_real.name##suffix plain_arguments;                               \
		slot = td_gate_enter(stream, per_thread);                                          \
		r = td_real.async##async_suffix(__VA_ARGS__, stream);                              \
		td_gate_leave(slot);                                                               \
		return r ? r : td_real.cuStreamSynchronize(stream);                                \
	}

#define BOTH(name, async, parameters, plain_arguments, ...)                                        \
	WAITING_COPY(name, async, , , false, CU_STREAM_LEGACY, parameters, plain_arguments,        \
		__VA_ARGS__)                                                                       \
	WAITING_COPY(name, async, _ptds, _ptsz, true, CU_STREAM_PER_THREAD, parameters,            \
		plain_arguments, __VA_ARGS__)

BOTH(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes),
	(to, from, bytes), to, from, bytes)
BOTH(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes),
	(to, from, bytes), to, from, bytes)
BOTH(cuMemcpy, cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes),
	to, from, bytes)

#define CAPTURE(suffix)                                                                            \
	CUresult td_hook_cuStreamBeginCapture_v2##suffix(CUstream stream, int mode)                \
	{                                                                                          \
		CUresult r;                                                                        \
		/* Counted before, so that nobody synchronises in between. */                      \
		td_client_capture_began();                                                         \
		r = td_real.cuStreamBeginCapture_v2##suffix(stream, mode);                         \
		if (r)                                                                             \
			td_client_capture_ended();                                                 \
		return r;                                                                          \
	}                                                                                          \
	CUresult td_hook_cuStreamEndCapture##suffix(CUstream stream, void **graph)                 \
	{                                                                                          \
		CUresult r = td_real.cuStreamEndCapture##suffix(stream, graph);                    \
		td_client_capture_ended();                                                         \
		return r;                                                                          \
	}

CAPTURE()
CAPTURE(_ptsz)

CUresult td_hook_cuCtxSetCurrent(CUcontext context)
{
	td_client_context_changed();
	return td_real.cuCtxSetCurrent(context);
}

CUresult td_hook_cuCtxPushCurrent_v2(CUcontext context)
{
	td_client_context_changed();
	return td_real.cuCtxPushCurrent_v2(context);
}

CUresult td_hook_cuCtxPopCurrent_v2(CUcontext *context)
{
	td_client_context_changed();
	return td_real.cuCtxPopCurrent_v2(context);
}

CUresult td_hook_cuCtxDestroy_v2(CUcontext context)
{
	td_client_context_gone(context);
	return td_real.cuCtxDestroy_v2(context);
}

/* The primary context may live on, by other references: it is found again at the next use. */
static void forget_primary(CUdevice device)
{
	CUcontext context = NULL;
	CUdevice current;

	if (!td_real.cuCtxGetCurrent(&context) && context && !td_real.cuCtxGetDevice(&current) &&
		current == device)
		td_client_context_gone(context);
	else
		td_client_context_changed();
}

CUresult td_hook_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	forget_primary(device);
	return td_real.cuDevicePrimaryCtxRelease_v2(device);
}

CUresult td_hook_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	forget_primary(device);
	return td_real.cuDevicePrimaryCtxReset_v2(device);
}
