/*
 * The driver for the library's own threads: the real functions, never our hooks. It is published
 * when the driver is loaded (driver_real.c); tests publish a fake.
 *
 * Handles are opaque here and results are CUresult values: 0 is success. No entry is NULL: a
 * function that the installed driver lacks returns an error.
 */
#pragma once

#include <stdint.h>

#define TD_STREAM_LEGACY     ((void *)0x1)
#define TD_STREAM_PER_THREAD ((void *)0x2)

/* CUresult values that the library reacts to. */
#define TD_CUDA_ERROR_DEINITIALIZED 4
#define TD_CUDA_ERROR_NOT_READY     600

#define TD_CUDA_EVENT_DISABLE_TIMING 2u
#define TD_CUDA_CAPTURE_RELAXED      2
#define TD_CUDA_ATTRIBUTE_MPS        133 /* CU_DEVICE_ATTRIBUTE_MPS_ENABLED */

struct td_driver {
	int (*ctx_get_current)(void **ret_context);
	int (*ctx_push_current)(void *context);
	int (*ctx_pop_current)(void **ret_context);
	int (*ctx_get_device)(int *ret_device);
	/* Gets how many SMs the kernels of the current context may use: under MPS its share. */
	int (*ctx_get_sms)(int *ret_count);
	int (*ctx_destroy)(void *context);
	int (*primary_ctx_reset)(int device);
	int (*ctx_synchronize)(void);
	int (*device_get_uuid)(uint8_t uuid[16], int device);
	int (*device_get_name)(char *name, int len, int device);
	int (*device_get_count)(int *ret_count);
	int (*device_get_attribute)(int *ret_value, int attribute, int device);
	/*
	 * Gets how many blocks of `threads` threads fit one SM together. function: a CUfunction or
	 * CUkernel.
	 */
	int (*occupancy)(int *ret_blocks, void *function, int threads, uint64_t shared_bytes);
	int (*device_total_mem)(uint64_t *ret_bytes, int device);
	int (*mem_get_info)(uint64_t *ret_free, uint64_t *ret_total);
	int (*stream_is_capturing)(void *stream, int *ret_status);
	int (*stream_synchronize)(void *stream);
	int (*stream_query)(void *stream);
	int (*thread_exchange_capture_mode)(int *mode);
	int (*event_create)(void **ret_event, unsigned flags);
	int (*event_record)(void *event, void *stream);
	int (*event_query)(void *event);
	int (*event_elapsed_ms)(float *ret_ms, void *start, void *end);
	int (*event_destroy)(void *event);
};

/*
 * Returns NULL until td_driver_set; nothing that needs the driver runs before. It is published with
 * release order.
 */
const struct td_driver *td_driver(void);
void td_driver_set(const struct td_driver *driver);

/* Called once libcuda.so.1 is loaded. */
void td_driver_publish_real(void);
