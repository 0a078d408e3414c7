/*
 * Hooks with a behaviour of their own: copies that wait, captures, streams, contexts. hooks.def
 * lists them.
 */
#include "cuda/symbols.h"
#include "preload/base/settings.h"
#include "preload/base/sizes.h"
#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/gate/gate.h"
#include "preload/gate/meter.h"
#include "preload/outside/outside.h"
#include "preload/outside/reach.h"
#include "preload/rehome/rehome.h"

/*
 * A waiting copy between host and device is submitted by its asynchronous form in the default
 * stream and awaited outside the gate, so that closing need not wait for it. While anything
 * captures, the two forms differ, so the program gets the form that it called. cuMemcpy is left out
 * because it does not wait when both sides are on the device.
 */
#define WAITING(symbol) (TD_SUBMIT_CALL | TD_SYMBOL_##symbol << TD_SUBMIT_WORK_SHIFT)
#define WAITING_COPY(symbol, async, own_stream, null_stream)                                       \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		struct td_marker *marker;                                                          \
		CUresult r;                                                                        \
		if (TD_REACHES(symbol)) {                                                          \
			r = td_reach_refuse(null_stream, own_stream, true);                        \
			if (r)                                                                     \
				return r;                                                          \
		}                                                                                  \
		marker = td_gate_enter(null_stream,                                                \
			(own_stream) | WAITING(symbol) | td_submit_size(TD_SIZE(symbol)));         \
		if (td_context_any_capture() || !td_real.async) {                                  \
			r = td_real.symbol TD_ARGS_##symbol;                                       \
			td_gate_leave(marker);                                                     \
			return r;                                                                  \
		}                                                                                  \
		r = td_real.async(a0, a1, a2, null_stream);                                        \
		td_gate_leave(marker);                                                             \
		return r ? r : td_real.cuStreamSynchronize(null_stream);                           \
	}

WAITING_COPY(cuMemcpyHtoD, cuMemcpyHtoDAsync, 0, CU_STREAM_LEGACY)
WAITING_COPY(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, 0, CU_STREAM_LEGACY)
WAITING_COPY(
	cuMemcpyHtoD_v2_ptds, cuMemcpyHtoDAsync_v2_ptsz, TD_SUBMIT_OWN_NULL, CU_STREAM_PER_THREAD)
WAITING_COPY(cuMemcpyDtoH, cuMemcpyDtoHAsync, 0, CU_STREAM_LEGACY)
WAITING_COPY(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, 0, CU_STREAM_LEGACY)
WAITING_COPY(
	cuMemcpyDtoH_v2_ptds, cuMemcpyDtoHAsync_v2_ptsz, TD_SUBMIT_OWN_NULL, CU_STREAM_PER_THREAD)

/* -- captures -- */

/* A move to another GPU must not come between the call and its record. */
#define BEGIN_CAPTURE(symbol)                                                                      \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		CUresult r;                                                                        \
		td_rehome_begin();                                                                 \
		td_context_capture_begin();                                                        \
		r = td_real.symbol TD_ARGS_##symbol;                                               \
		td_context_capture_begun(!r, stream);                                              \
		td_rehome_end();                                                                   \
		return r;                                                                          \
	}
/* The graph is a reason not to move before the capture is none any more. */
#define END_CAPTURE(symbol, null_stream)                                                           \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		int before = 0, after = 0;                                                         \
		CUstream named = stream ? stream : null_stream;                                    \
		bool known = td_real.cuStreamIsCapturing &&                                        \
			     !td_real.cuStreamIsCapturing(named, &before);                         \
		CUresult r = td_real.symbol TD_ARGS_##symbol;                                      \
		if (!r)                                                                            \
			td_unmovable_note(TD_UNMOVABLE(GRAPHS));                                   \
		/* A failed call may have ended an invalid capture, or found none. */              \
		if (!r || (known && before && !td_real.cuStreamIsCapturing(named, &after) &&       \
				  !after))                                                         \
			td_context_capture_ended(stream);                                          \
		return r;                                                                          \
	}

/* A stream that waits for an event of a capture joins that capture. */
#define MAY_JOIN(symbol)                                                                           \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		bool may_join = td_context_join_begin();                                           \
		CUresult r = td_real.symbol TD_ARGS_##symbol;                                      \
		if (may_join)                                                                      \
			td_context_join_end();                                                     \
		return r;                                                                          \
	}

MAY_JOIN(cuStreamWaitEvent)
MAY_JOIN(cuStreamWaitEvent_ptsz)
BEGIN_CAPTURE(cuStreamBeginCapture)
BEGIN_CAPTURE(cuStreamBeginCapture_ptsz)
BEGIN_CAPTURE(cuStreamBeginCapture_v2)
BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz)
BEGIN_CAPTURE(cuStreamBeginCaptureToGraph)
BEGIN_CAPTURE(cuStreamBeginCaptureToGraph_ptsz)
END_CAPTURE(cuStreamEndCapture, CU_STREAM_LEGACY)
END_CAPTURE(cuStreamEndCapture_ptsz, CU_STREAM_PER_THREAD)

/* -- streams -- */

#define CREATE_STREAM(symbol)                                                                      \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		CUresult r = td_real.symbol TD_ARGS_##symbol;                                      \
		if (!r)                                                                            \
			td_context_stream_created(*a0);                                            \
		return r;                                                                          \
	}
/* The driver does not destroy a stream that is capturing. */
#define DESTROY_STREAM(symbol)                                                                     \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		void *context = td_context_stream_ends(stream);                                    \
		CUresult r = td_real.symbol TD_ARGS_##symbol;                                      \
		if (td_is_capture_error(r))                                                        \
			td_context_stream_stays(stream, context);                                  \
		return r;                                                                          \
	}

CREATE_STREAM(cuStreamCreate)
CREATE_STREAM(cuStreamCreateWithPriority)
CREATE_STREAM(cuGreenCtxStreamCreate)
DESTROY_STREAM(cuStreamDestroy)
DESTROY_STREAM(cuStreamDestroy_v2)

/*
 * -- contexts: after a thread has changed its context, its next submission or allocation uses the
 * new one --
 */

#define USE_CONTEXT(symbol)                                                                        \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		CUresult r = td_real.symbol TD_ARGS_##symbol;                                      \
		if (!r)                                                                            \
			td_context_note(a0, false);                                                \
		return r;                                                                          \
	}
#define CREATE_CONTEXT(symbol)                                                                     \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		CUresult r = td_real.symbol TD_ARGS_##symbol;                                      \
		if (!r)                                                                            \
			td_context_note(*a0, true);                                                \
		return r;                                                                          \
	}
/*
 * The steps around a call that may end a context. The driver is called before our records are
 * dropped, as it may refuse. The records are dropped before the daemon can hear that the process
 * has left the GPU. Thread cancellation is disabled meanwhile, since a cancelled thread would leave
 * the context marked as ending for ever.
 */
struct leaving {
	CUcontext context;
	uint64_t serial;
	int cancel;
};

static struct leaving begin_leaving(CUcontext context)
{
	struct leaving leaving = {.context = context, .cancel = td_thread_no_cancel()};

	leaving.serial = td_context_leaving(context);
	return leaving;
}

static CUresult end_leaving(const struct leaving *leaving, CUresult r, bool gone)
{
	bool ours = gone && td_context_ends(leaving->serial);

	if (ours) {
		td_rehome_wait(leaving->context);
		td_outside_context_ended(leaving->context);
		td_meter_forget();
		td_rehome_context_gone(leaving->context);
	}
	td_context_left(leaving->context, leaving->serial, ours);
	td_thread_may_cancel(leaving->cancel);
	return r;
}

/* Asks the real driver: after a move to another GPU, td_real would ask about the context's twin. */
static bool is_alive(CUcontext context)
{
	unsigned version;

	return context && td_true->cuCtxGetApiVersion &&
	       !td_true->cuCtxGetApiVersion(context, &version);
}

/*
 * The call may return an error of earlier work although the context has ended, so the driver is
 * asked. It is not asked about a context that we did not know, since another one may have that
 * handle now.
 */
#define DESTROY_CONTEXT(symbol)                                                                    \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		const struct leaving leaving = begin_leaving(a0);                                  \
		CUresult r = td_real.symbol TD_ARGS_##symbol;                                      \
		return end_leaving(&leaving, r, !r || !is_alive(a0));                              \
	}

USE_CONTEXT(cuCtxSetCurrent)
USE_CONTEXT(cuCtxPushCurrent)
USE_CONTEXT(cuCtxPushCurrent_v2)
CREATE_CONTEXT(cuCtxCreate)
CREATE_CONTEXT(cuCtxCreate_v2)
CREATE_CONTEXT(cuCtxCreate_v3)
CREATE_CONTEXT(cuCtxCreate_v4)
DESTROY_CONTEXT(cuCtxDestroy)
DESTROY_CONTEXT(cuCtxDestroy_v2)

/* References of cuCtxAttach may keep the context alive; only the driver knows. */
CUresult td_hook_cuCtxDetach(CUcontext a0)
{
	const struct leaving leaving = begin_leaving(a0);
	CUresult r = td_real.cuCtxDetach(a0);

	return end_leaving(&leaving, r, !is_alive(a0));
}

/* The context that was made of a green context (cuCtxFromGreenCtx) ends with it. */
#define GREEN_MAX 64
static struct {
	_Atomic(void *) green;
	_Atomic(void *) context;
} greens[GREEN_MAX];

static void remember_green(void *green, void *context)
{
	for (unsigned i = 0; i < GREEN_MAX; i++) {
		void *free = NULL;

		if (!atomic_compare_exchange_strong(&greens[i].green, &free, green) &&
			free != green)
			continue;
		atomic_store(&greens[i].context, context);
		break;
	}
}

/* Returns the context that was made of this green context, or NULL, and forgets it. */
static void *forget_green(void *green)
{
	void *context = NULL;

	for (unsigned i = 0; green && i < GREEN_MAX; i++) {
		if (atomic_load(&greens[i].green) != green)
			continue;
		context = atomic_exchange(&greens[i].context, NULL);
		atomic_store(&greens[i].green, NULL);
	}
	return context;
}

CUresult td_hook_cuCtxFromGreenCtx(CUcontext *a0, void *a1)
{
	CUresult r = td_real.cuCtxFromGreenCtx(a0, a1);

	if (!r && a0)
		remember_green(a1, *a0);
	return r;
}

CUresult td_hook_cuGreenCtxDestroy(void *a0)
{
	const struct leaving leaving = begin_leaving(forget_green(a0));
	CUresult r = td_real.cuGreenCtxDestroy(a0);
	bool gone = !r || !is_alive(leaving.context);

	if (!gone)
		remember_green(a0, leaving.context);
	return end_leaving(&leaving, r, gone);
}

/* Returns the driver's id of the context, which is never reused in a process; 0: not known. */
static unsigned long long id_of(CUcontext context)
{
	unsigned long long id = 0;

	return context && td_real.cuCtxGetId && !td_real.cuCtxGetId(context, &id) ? id : 0;
}

/*
 * Returns whether the primary context has ended. Only the driver knows: other references may keep
 * it, or a new one may exist already.
 */
static bool primary_is_gone(CUdevice device, CUcontext primary, unsigned long long id)
{
	unsigned flags;
	int active = 0;

	return !td_real.cuDevicePrimaryCtxGetState ||
	       td_real.cuDevicePrimaryCtxGetState(device, &flags, &active) || !active ||
	       id_of(primary) != id;
}

#define LEAVE_PRIMARY(symbol, for_all)                                                             \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		const struct leaving leaving = begin_leaving(td_context_primary(a0));              \
		unsigned long long id = id_of(leaving.context);                                    \
		CUresult r = td_real.symbol TD_ARGS_##symbol;                                      \
		bool gone = (for_all && !r) || primary_is_gone(a0, leaving.context, id);           \
		return end_leaving(&leaving, r, gone);                                             \
	}

LEAVE_PRIMARY(cuDevicePrimaryCtxRelease, false)
LEAVE_PRIMARY(cuDevicePrimaryCtxRelease_v2, false)
LEAVE_PRIMARY(cuDevicePrimaryCtxReset, true)
LEAVE_PRIMARY(cuDevicePrimaryCtxReset_v2, true)

/* -- the SMs -- */

/*
 * Returns the SMs that the program can use, as MPS does for a share of the whole process. A share
 * of each context, as tandem gives it, is not in the driver's answer, and a cooperative launch for
 * all SMs would fail.
 */
CUresult td_hook_cuDeviceGetAttribute(int *ret_value, int attribute, CUdevice device)
{
	CUresult r = td_real.cuDeviceGetAttribute(ret_value, attribute, device);
	uint32_t affinity[2] = {0}; /* CUexecAffinityParam: its type, and the number of SMs */
	bool is_per_context = td_settings.sm_share_ppm && !td_settings.sm_share_most_ppm;
	uint64_t sms;
	int current;

	if (r || attribute != CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT || *ret_value < 1 ||
		!is_per_context || td_gate_disabled())
		return r;
	sms = (uint64_t)*ret_value * td_settings.sm_share_ppm / TD_PPM;
	if (td_real.cuCtxGetExecAffinity && !td_real.cuCtxGetDevice(&current) &&
		current == device && !td_real.cuCtxGetExecAffinity(affinity, 0) && affinity[1])
		sms = affinity[1];
	if (sms < (uint64_t)*ret_value)
		*ret_value = sms ? (int)sms : 1;
	return r;
}
