/* Shared by the files of libnvidia-ml.so.1. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "gpu/nvml_abi.h"
#include "softgpu/server/client.h"

#define API __attribute__((visibility("default")))

#define NVML(name, parameters) API nvmlReturn_t name parameters;
#include "gpu/nvml_functions.def"
#undef NVML

struct nvmlDevice_st {
	unsigned index;
	struct sg_gpu_info info;
};

/* -- nvml.c -- */
/*
 * Checks the parameters of a call. Returns NVML_SUCCESS, or the error for: not initialised, out is
 * NULL, no such device.
 */
int sg_nvml_check(nvmlDevice_t device, const void *out);
int sg_nvml_ready(void);
/* The server's answer about a device to a request without arguments. */
int sg_nvml_ask(nvmlDevice_t device, uint32_t type, struct sg_msg *msg, void *extra, size_t len);
nvmlDevice_t sg_nvml_device(unsigned index); /* returns NULL if there is none */

/* -- state.c: these return what sg_nvml_check() and sg_nvml_ask() do -- */
int sg_nvml_state(nvmlDevice_t device, const void *out, struct sg_gpu_state *ret);
/*
 * For figures of the last whole window and the clock, which programs read one after the other: an
 * answer serves the calls of a millisecond. NVML keeps such figures for longer.
 */
int sg_nvml_window(nvmlDevice_t device, const void *out, struct sg_gpu_state *ret);
void sg_nvml_forget(void); /* called when the server may be another one */

/* -- events.c: for sg_client_new_with_notices() -- */
void sg_nvml_notice(const struct sg_msg *msg);
