/*
 * Fills the table of driver.h from the installed driver. A function that it lacks (very old
 * drivers) returns an error. Contexts, devices and events are the library's own, so they use the
 * real driver (td_true). Streams and functions are the program's, so they use td_real, which may
 * have to replace their handles after a move to another GPU.
 */
#include <stdatomic.h>

#include "preload/driver/driver.h"
#include "preload/driver/real.h"

#define ASK(symbol, ...) (td_true->symbol ? td_true->symbol(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND)
#define ASK_FOR_PROGRAM(symbol, ...)                                                               \
	(td_real.symbol ? td_real.symbol(__VA_ARGS__) : CUDA_ERROR_NOT_FOUND)

static void sync_thread(void)
{
	void (*sync)(void) = atomic_load_explicit(&td_real_sync, memory_order_acquire);

	if (__builtin_expect(sync != NULL, 0))
		sync();
}

static int ctx_get_current(void **ret_context)
{
	sync_thread();
	return ASK(cuCtxGetCurrent, (CUcontext *)ret_context);
}

static int ctx_push_current(void *context)
{
	return ASK(cuCtxPushCurrent_v2, context);
}

static int ctx_pop_current(void **ret_context)
{
	return ASK(cuCtxPopCurrent_v2, (CUcontext *)ret_context);
}

static int ctx_get_device(int *ret_device)
{
	sync_thread();
	return ASK(cuCtxGetDevice, ret_device);
}

static int ctx_destroy(void *context)
{
	return ASK(cuCtxDestroy_v2, context);
}

static int primary_ctx_reset(int device)
{
	return ASK(cuDevicePrimaryCtxReset_v2, device);
}

static int ctx_synchronize(void)
{
	return td_true->cuCtxSynchronize ? td_true->cuCtxSynchronize() : CUDA_ERROR_NOT_FOUND;
}

static int device_get_uuid(uint8_t uuid[16], int device)
{
	/* With _v2, a MIG instance has another UUID than its neighbours. */
	if (td_true->cuDeviceGetUuid_v2)
		return td_true->cuDeviceGetUuid_v2((CUuuid *)uuid, device);
	return ASK(cuDeviceGetUuid, (CUuuid *)uuid, device);
}

static int device_get_name(char *name, int len, int device)
{
	return ASK(cuDeviceGetName, name, len, device);
}

static int device_get_count(int *ret_count)
{
	return ASK(cuDeviceGetCount, ret_count);
}

static int device_get_attribute(int *ret_value, int attribute, int device)
{
	return ASK(cuDeviceGetAttribute, ret_value, attribute, device);
}

static int ctx_get_sms(int *ret_count)
{
	/* CUexecAffinityParam of cuda.h: the type, of which there is one, and the number of SMs */
	uint32_t share[2] = {0};
	int device, r = ctx_get_device(&device);

	if (!r)
		r = device_get_attribute(
			ret_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	/* With shares by context the attribute is that of the whole GPU. */
	if (!r && !ASK(cuCtxGetExecAffinity, share, 0) && share[1] &&
		share[1] < (uint32_t)*ret_count)
		*ret_count = (int)share[1];
	return r;
}

static int occupancy(int *ret_blocks, void *function, int threads, uint64_t shared_bytes)
{
	return ASK_FOR_PROGRAM(cuOccupancyMaxActiveBlocksPerMultiprocessor, ret_blocks, function,
		threads, shared_bytes);
}

static int device_total_mem(uint64_t *ret_bytes, int device)
{
	size_t bytes = 0;
	int r = ASK(cuDeviceTotalMem_v2, &bytes, device);

	*ret_bytes = bytes;
	return r;
}

static int mem_get_info(uint64_t *ret_free, uint64_t *ret_total)
{
	size_t free_bytes = 0, total = 0;
	int r = ASK(cuMemGetInfo_v2, &free_bytes, &total);

	*ret_free = free_bytes;
	*ret_total = total;
	return r;
}

static int stream_is_capturing(void *stream, int *ret_status)
{
	return ASK_FOR_PROGRAM(cuStreamIsCapturing, stream, ret_status);
}

static int stream_synchronize(void *stream)
{
	return ASK_FOR_PROGRAM(cuStreamSynchronize, stream);
}

static int stream_query(void *stream)
{
	return ASK(cuStreamQuery, stream);
}

static int thread_exchange_capture_mode(int *mode)
{
	return ASK(cuThreadExchangeStreamCaptureMode, mode);
}

static int event_create(void **ret_event, unsigned flags)
{
	return ASK(cuEventCreate, (CUevent *)ret_event, flags);
}

static int event_record(void *event, void *stream)
{
	return ASK_FOR_PROGRAM(cuEventRecord, event, stream);
}

static int event_query(void *event)
{
	return ASK(cuEventQuery, event);
}

static int event_elapsed_ms(float *ret_ms, void *start, void *end)
{
	return ASK(cuEventElapsedTime, ret_ms, start, end);
}

static int event_destroy(void *event)
{
	return ASK(cuEventDestroy_v2, event);
}

void td_driver_publish_real(void)
{
	static const struct td_driver real = {
		.ctx_get_current = ctx_get_current,
		.ctx_push_current = ctx_push_current,
		.ctx_pop_current = ctx_pop_current,
		.ctx_get_device = ctx_get_device,
		.ctx_get_sms = ctx_get_sms,
		.ctx_destroy = ctx_destroy,
		.primary_ctx_reset = primary_ctx_reset,
		.ctx_synchronize = ctx_synchronize,
		.device_get_uuid = device_get_uuid,
		.device_get_name = device_get_name,
		.device_get_count = device_get_count,
		.device_get_attribute = device_get_attribute,
		.occupancy = occupancy,
		.device_total_mem = device_total_mem,
		.mem_get_info = mem_get_info,
		.stream_is_capturing = stream_is_capturing,
		.stream_synchronize = stream_synchronize,
		.stream_query = stream_query,
		.thread_exchange_capture_mode = thread_exchange_capture_mode,
		.event_create = event_create,
		.event_record = event_record,
		.event_query = event_query,
		.event_elapsed_ms = event_elapsed_ms,
		.event_destroy = event_destroy,
	};

	td_driver_set(&real);
}
