/*
 * Contexts: created and primary ones, the per-thread stack, errors that kill a context,
 * destruction.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "softgpu/driver/copy/copy.h"
#include "softgpu/driver/device/fault.h"
#include "softgpu/driver/device/mps.h"
#include "softgpu/driver/memory/ipc.h"
#include "softgpu/driver/code/module.h"

#define MAGIC     0x7367637478ull
#define STACK_MAX 32
/* CUexecAffinityParam and CUctxCreateParams of cuda.h */
struct exec_affinity {
	int type; /* 0 is CU_EXEC_AFFINITY_TYPE_SM_COUNT, the only type */
	uint32_t sm_count;
};
struct create_params {
	const struct exec_affinity *affinity;
	int affinity_count;
	const void *graphics;
};

/* The time that queued work has to end when its context is destroyed. */
#define DRAIN_NS (10 * TD_NS_PER_S)

static _Thread_local struct {
	struct CUctx_st *entry[STACK_MAX];
	unsigned depth;
} stack;

bool sg_context_is_live(const struct CUctx_st *context)
{
	struct td_list *it;
	bool live = false;

	pthread_mutex_lock(&sg.lock);
	td_list_for_each (it, &sg.contexts)
		live |= td_container_of(it, struct CUctx_st, link) == context;
	pthread_mutex_unlock(&sg.lock);
	return live;
}

struct CUctx_st *sg_current_or_null(void)
{
	return stack.depth ? stack.entry[stack.depth - 1] : NULL;
}

int sg_context_check(struct CUctx_st *context)
{
	int r;

	if (!sg_context_is_live(context))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	r = sg_fault_of_device(context->device);
	if (r)
		sg_context_kill(context, r);
	return __atomic_load_n(&context->error, __ATOMIC_ACQUIRE);
}

int sg_current(struct CUctx_st **ret)
{
	struct CUctx_st *context = sg_current_or_null();
	int r = sg_ready();

	if (r)
		return r;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = sg_context_check(context);
	if (!r)
		*ret = context;
	return r;
}

int sg_current_unsafe(struct CUctx_st **ret)
{
	int r = sg_current(ret);

	return r ? r : sg_capture_check_unsafe();
}

/*
 * Returns the XID that the kernel driver would log: 31 for an MMU fault, 13 for an exception of the
 * graphics engine. 0 means nothing is logged here; injected faults log their own.
 */
static uint32_t xid_of(int error)
{
	switch (error) {
	case CUDA_ERROR_ILLEGAL_ADDRESS: return 31;
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_LAUNCH_FAILED: return 13;
	default: return 0;
	}
}

/* Tells whether a kernel caused an error from which the GPU cannot go on. */
static bool is_fatal(int error)
{
	return xid_of(error) || error == CUDA_ERROR_ASSERT;
}

void sg_context_kill(struct CUctx_st *context, int error)
{
	int none = CUDA_SUCCESS;

	/*
	 * No work of this context has an effect any more, so kernels that run or poll in its other
	 * streams are cancelled.
	 */
	__atomic_store_n(&context->cancel, 1, __ATOMIC_RELAXED);
	if (!__atomic_compare_exchange_n(
		    &context->error, &none, error, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return;
	if (xid_of(error))
		sg_client_xid(sg.client, context->device, xid_of(error));
	if (is_fatal(error))
		sg_mps_context_died(context, error);
}

/* Called with context->lock held. */
static bool is_busy(const struct CUctx_st *context)
{
	bool busy = false;
	struct td_list *it;

	td_list_for_each (it, &context->streams) {
		const struct CUstream_st *stream = td_container_of(it, struct CUstream_st, link);

		busy |= stream->completed < stream->submitted;
	}
	return busy;
}

/*
 * A snapshot of the work that was submitted before a moment: a ticket for each stream. For streams
 * beyond SNAPSHOT_MAX all work is waited for.
 */
#define SNAPSHOT_MAX 64
struct snapshot {
	size_t count;
	struct {
		const struct CUstream_st *stream;
		uint64_t ticket;
	} of[SNAPSHOT_MAX];
};

static void take_snapshot(const struct CUctx_st *context, struct snapshot *ret)
{
	struct td_list *it;

	ret->count = 0;
	td_list_for_each (it, &context->streams) {
		const struct CUstream_st *stream = td_container_of(it, struct CUstream_st, link);

		if (stream->completed == stream->submitted || ret->count == SNAPSHOT_MAX)
			continue;
		ret->of[ret->count].stream = stream;
		ret->of[ret->count++].ticket = stream->submitted;
	}
}

/* A stream that no longer exists has ended its work, so only existing streams are checked. */
static bool is_in_progress(const struct CUctx_st *context, const struct snapshot *snapshot)
{
	struct td_list *it;

	if (snapshot->count == SNAPSHOT_MAX)
		return is_busy(context);
	td_list_for_each (it, &context->streams) {
		const struct CUstream_st *stream = td_container_of(it, struct CUstream_st, link);

		for (size_t i = 0; i < snapshot->count; i++)
			if (snapshot->of[i].stream == stream &&
				stream->completed < snapshot->of[i].ticket)
				return true;
	}
	return false;
}

/*
 * Waits for "all preceding requested tasks" (cuda.h), but not for tasks that other threads request
 * meanwhile.
 */
int sg_context_synchronize(struct CUctx_st *context)
{
	struct snapshot snapshot;

	pthread_mutex_lock(&context->lock);
	take_snapshot(context, &snapshot);
	while (is_in_progress(context, &snapshot))
		sg_bell_wait(&context->changed, &context->lock);
	pthread_mutex_unlock(&context->lock);
	sg_pools_synchronized();
	return __atomic_load_n(&context->error, __ATOMIC_ACQUIRE);
}

static void wait_until_idle(struct CUctx_st *context)
{
	pthread_mutex_lock(&context->lock);
	while (is_busy(context))
		sg_bell_wait(&context->changed, &context->lock);
	pthread_mutex_unlock(&context->lock);
	sg_pools_synchronized();
}

/* Waits for queued work, but at most DRAIN_NS. */
static void drain(struct CUctx_st *context)
{
	uint64_t until_ns = td_time_now_ns() + DRAIN_NS;

	pthread_mutex_lock(&context->lock);
	while (is_busy(context) && sg_bell_wait_until(&context->changed, &context->lock, until_ns))
		continue;
	pthread_mutex_unlock(&context->lock);
}

void sg_contexts_synchronize(void)
{
	struct CUctx_st **all;
	struct td_list *it;
	size_t n = 0;

	pthread_mutex_lock(&sg.lock);
	td_list_for_each (it, &sg.contexts)
		n++;
	all = calloc(n + 1, sizeof(struct CUctx_st *));
	n = 0;
	td_list_for_each (it, &sg.contexts)
		if (all)
			all[n++] = td_container_of(it, struct CUctx_st, link);
	pthread_mutex_unlock(&sg.lock);
	/* a destroyed context has no work, and its struct is never freed */
	for (size_t i = 0; i < n; i++)
		(void)sg_context_synchronize(all[i]);
	free(all);
}

/*
 * sms is how many SMs the program asked for; 0: no number. sg.lock must not be held, because this
 * asks the server.
 */
static int new_context(
	unsigned device, unsigned flags, bool primary, uint32_t sms, struct CUctx_st **ret)
{
	uint32_t sm_count = sg_mps_context_sms(device, sms);
	struct sg_msg msg = {
		.type = SG_CONTEXT_NEW, .gpu = device, .value = sg_mps_ppm(device, sm_count)};
	struct CUctx_st *context;

	if (sg_client_request(sg.client, &msg, NULL, 0, NULL))
		return SG_LOST;
	if (msg.error)
		return sg_mps_result(msg.error);
	context = calloc(1, sizeof(*context));
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->magic = MAGIC;
	context->device = device;
	context->flags = flags;
	context->id = (uint32_t)msg.value;
	context->sm_count = sm_count;
	context->primary = primary;
	pthread_mutex_init(&context->lock, NULL);
	sg_context_defaults(context);
	td_list_init(&context->streams);
	td_list_init(&context->events);
	td_list_init(&context->modules);
	context->legacy = sg_stream_new(context, CU_STREAM_DEFAULT, 0);
	if (!context->legacy) {
		free(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_lock(&sg.lock);
	td_list_append(&sg.contexts, &context->link);
	pthread_mutex_unlock(&sg.lock);
	*ret = context;
	return CUDA_SUCCESS;
}

/*
 * Like the real driver, destruction waits for queued work. A kernel that runs longer than DRAIN_NS
 * is cancelled, so that nothing hangs. The struct is never freed, because a handle that is used
 * later must be refused and not crash.
 */
static void destroy(struct CUctx_st *context)
{
	struct sg_msg msg = {
		.type = SG_CONTEXT_FREE, .gpu = context->device, .context = context->id};

	sg_capture_context_gone(context);
	drain(context);
	__atomic_store_n(&context->cancel, 1, __ATOMIC_RELAXED);
	wait_until_idle(context);
	pthread_mutex_lock(&sg.lock);
	td_list_remove(&context->link);
	pthread_mutex_unlock(&sg.lock);
	sg_context_kill(context, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	sg_streams_context_gone(context);
	sg_events_context_gone(context);
	sg_library_context_gone(context);
	sg_modules_context_gone(context);
	sg_ipc_context_gone(context);
	sg_array_context_gone(context);
	sg_memory_context_gone(context);
	sg_pinned_context_gone(context);
	(void)sg_client_request(sg.client, &msg, NULL, 0, NULL);
}

static int push(struct CUctx_st *context)
{
	if (stack.depth == STACK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	stack.entry[stack.depth++] = context;
	return CUDA_SUCCESS;
}

static int create(CUcontext *ret, unsigned flags, uint32_t sms, CUdevice device)
{
	struct CUctx_st *context;
	int r = sg_ready();

	if (r)
		return r;
	if (!ret || !sg_context_flags_are_good(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	r = new_context((unsigned)device, flags, false, sms, &context);
	if (r)
		return r;
	r = push(context);
	if (r)
		destroy(context);
	else
		*ret = context;
	return r;
}

API CUresult cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice device)
{
	return create(ret, flags, 0, device);
}

/* cuda.h: an SM limit "is only supported under Volta+ MPS"; of two limits the last one counts. */
static int read_affinity(const struct exec_affinity *affinity, int count, uint32_t *ret_sms)
{
	*ret_sms = 0;
	if (count < 0 || (count && !affinity))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < count; i++) {
		if (affinity[i].type || !sg_mps_server())
			return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
		if (!affinity[i].sm_count)
			return CUDA_ERROR_INVALID_VALUE;
		*ret_sms = affinity[i].sm_count;
	}
	return CUDA_SUCCESS;
}

API CUresult cuCtxCreate_v3(
	CUcontext *ret, void *affinity, int count, unsigned flags, CUdevice device)
{
	uint32_t sms;
	int r = read_affinity(affinity, count, &sms);

	return r ? r : create(ret, flags, sms, device);
}

API CUresult cuCtxCreate_v4(CUcontext *ret, void *params, unsigned flags, CUdevice device)
{
	const struct create_params *p = params;
	uint32_t sms = 0;
	int r = CUDA_SUCCESS;

	if (p && p->graphics)
		r = CUDA_ERROR_NOT_SUPPORTED;
	else if (p)
		r = read_affinity(p->affinity, p->affinity_count, &sms);
	return r ? r : create(ret, flags, sms, device);
}

API CUresult cuCtxDestroy_v2(CUcontext context)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!context || !sg_context_is_live(context) || context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	destroy(context);
	if (sg_current_or_null() == context)
		stack.depth--;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	int r = sg_ready();

	if (r)
		return r;
	return context && sg_context_is_live(context) ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

API CUresult cuCtxPopCurrent_v2(CUcontext *ret)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!stack.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.depth--;
	if (ret)
		*ret = stack.entry[stack.depth];
	return CUDA_SUCCESS;
}

API CUresult cuCtxSetCurrent(CUcontext context)
{
	int r = sg_ready();

	if (r)
		return r;
	if (context && !sg_context_is_live(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack.depth)
		stack.depth--;
	return context ? push(context) : CUDA_SUCCESS;
}

API CUresult cuCtxGetCurrent(CUcontext *ret)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = sg_current_or_null();
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetDevice(CUdevice *device)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (!r && !device)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*device = (CUdevice)context->device;
	return r;
}

API CUresult cuCtxGetFlags(unsigned *flags)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (!r && !flags)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*flags = context->flags;
	return r;
}

API CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	if (context && !sg_context_is_live(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	*version = 3020;
	return CUDA_SUCCESS;
}

API CUresult cuCtxSynchronize(void)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (!r)
		r = sg_capture_check_context(context);
	return r ? r : sg_context_synchronize(context);
}

API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (!r && least)
		*least = 0;
	if (!r && greatest)
		*greatest = -5;
	return r;
}

/*
 * Serialises the creation of primary contexts. A second context that is created and dropped again
 * would still need memory for a moment, which there may not be.
 */
static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;

/* The caller has already counted its reference in primary_refs. */
static int find_primary(struct sg_device *device, unsigned number, CUcontext *ret)
{
	struct CUctx_st *fresh = NULL;
	int r = 0;

	pthread_mutex_lock(&primary_lock);
	pthread_mutex_lock(&sg.lock);
	*ret = device->primary;
	pthread_mutex_unlock(&sg.lock);
	if (!*ret)
		r = new_context(number, device->primary_flags, true, 0, &fresh);
	pthread_mutex_lock(&sg.lock);
	if (r)
		device->primary_refs--;
	else if (fresh)
		*ret = device->primary = fresh;
	pthread_mutex_unlock(&sg.lock);
	pthread_mutex_unlock(&primary_lock);
	return r;
}

API CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice number)
{
	struct sg_device *device;
	CUcontext context;
	int r = sg_ready();

	if (r)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (number < 0 || number >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	device = &sg.devices[number];
	pthread_mutex_lock(&sg.lock);
	device->primary_refs++;
	pthread_mutex_unlock(&sg.lock);
	r = find_primary(device, (unsigned)number, &context);
	if (!r)
		*ret = context;
	return r;
}

static int release_primary(CUdevice number, bool reset)
{
	struct CUctx_st *context = NULL;
	struct sg_device *device;
	int r = sg_ready();

	if (r)
		return r;
	if (number < 0 || number >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	device = &sg.devices[number];
	pthread_mutex_lock(&sg.lock);
	if (!reset && !device->primary_refs)
		r = CUDA_ERROR_INVALID_CONTEXT;
	else if (reset || --device->primary_refs == 0) {
		context = device->primary;
		device->primary = NULL;
	}
	pthread_mutex_unlock(&sg.lock);
	if (context)
		destroy(context);
	return r;
}

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return release_primary(device, false);
}

API CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	return release_primary(device, false);
}

API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	return release_primary(device, true);
}

API CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	return release_primary(device, true);
}

API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	int r = sg_ready();

	if (r)
		return r;
	if (device < 0 || device >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!sg_context_flags_are_good(flags))
		return CUDA_ERROR_INVALID_VALUE;
	sg.devices[device].primary_flags = flags;
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = sg.devices[device].primary_flags;
	*active = sg.devices[device].primary != NULL;
	return CUDA_SUCCESS;
}
