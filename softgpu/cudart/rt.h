/*
 * Internals of libcudart.so.13 for the software GPU: it turns calls of the runtime into calls of
 * the driver.
 *
 * Everything goes through the public driver API, found as any program finds it (dlopen,
 * cuGetProcAddress). Error numbers are the same in both APIs. Handles of streams, events, graphs,
 * pools and arrays are the driver's own. The runtime adds the current device of a thread, whose
 * primary context is made at first use; the last error of a thread; and kernels and variables by
 * their address in the program.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "cuda/signatures.h"
#include "cuda/symbols.h"
#include "softgpu/cudart/abi.h"

#define API __attribute__((visibility("default")))

/* -- driver.c -- */
/*
 * Yields the driver's function with that export name, or one that returns NOT_SUPPORTED if the
 * driver lacks it.
 */
#define CU(symbol) ((CUresult(*) TD_PARAMS_##symbol)rt_driver(TD_SYMBOL_##symbol))
void *rt_driver(enum td_symbol_index index);
/* Loads and initialises the driver, once. Returns cudaErrorInsufficientDriver if there is none. */
int rt_driver_init(void);

/* -- error.c -- */
/* Every entry point ends with this: it stores an error for cudaGetLastError(), and returns it. */
#define rt_done(error) rt_done_in(__func__, error)
int rt_done_in(const char *name, int error);
/* Forgets all errors after the device was reset, even those that otherwise stay. */
void rt_error_reset(void);
/* Ends a call that softgpu refuses: stores cudaErrorNotSupported and returns it. */
int rt_refuse(const char *name);

/* -- context.c -- */
#define RT_DEVICE_MAX 64
/*
 * Initialises the driver and makes a context current: the thread's, or the primary one of its
 * device.
 */
int rt_enter(void);
/* Calls rt_enter() and returns the current context. */
int rt_current(CUcontext *ret);
/* Returns the primary context of a device, which stays retained until cudaDeviceReset. */
int rt_primary(int device, CUcontext *ret);
/* Returns an error unless there is a device with that ordinal. */
int rt_check_device(int device);

/*
 * Replaces the default stream by the calling thread's own, for symbols that end in _ptsz or _ptds.
 */
static inline CUstream rt_per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/*
 * Defines name and its per-thread twin. `call` is an expression that refers to the stream as
 * ON(stream), or to the flag ptsz; it runs in a current context.
 */
#define ON(stream) (ptsz ? rt_per_thread(stream) : (stream))
#define BOTH(name, suffix, parameters, call)                                                       \
	API int name parameters                                                                    \
	{                                                                                          \
		const bool ptsz = false;                                                           \
		int error = rt_enter();                                                            \
                                                                                                   \
		(void)ptsz;                                                                        \
		return rt_done(error ? error : (call));                                            \
	}                                                                                          \
	API int name##suffix parameters                                                            \
	{                                                                                          \
		const bool ptsz = true;                                                            \
		int error = rt_enter();                                                            \
                                                                                                   \
		(void)ptsz;                                                                        \
		return rt_done(error ? error : (call));                                            \
	}
/* Defines a call without a per-thread twin. */
#define ONE(name, parameters, call)                                                                \
	API int name parameters                                                                    \
	{                                                                                          \
		int error = rt_enter();                                                            \
                                                                                                   \
		return rt_done(error ? error : (call));                                            \
	}

/* -- registry.c: what nvcc's host code registers -- */
struct rt_image;
enum rt_symbol_kind {
	RT_FUNCTION,
	RT_VARIABLE,
	RT_MANAGED,
	RT_DRIVER_FUNCTION, /* a CUfunction */
	RT_DRIVER_KERNEL    /* a CUkernel, which belongs to no context */
};
/* The kernel or variable behind an address in the program or behind a handle. */
struct rt_symbol {
	const void *key;
	enum rt_symbol_kind kind;
	struct rt_image *image;
	const char *name; /* its name on the device; the string is the program's */
	size_t bytes;
	void **managed; /* where the program keeps the address of the managed memory */
	void *kernel;   /* NULL: not looked up yet */
	struct rt_symbol *next;
};
/* Returns false if nothing is registered at that address. */
bool rt_symbol_find(const void *key, struct rt_symbol *ret);
/* Finds a variable by the address of its managed memory. */
bool rt_symbol_find_managed(const void *address, struct rt_symbol *ret);
void rt_symbol_cache(const void *key, void *kernel);
/* Registers a handle of the driver's as a kernel. */
int rt_symbol_add_handle(const void *handle, enum rt_symbol_kind kind);
/* Returns the program's address of a function that it used, or NULL. */
const void *rt_symbol_of_function(CUfunction function);
/* Sets the addresses of an image's managed variables after it was loaded. */
void rt_registry_managed(struct rt_image *image, void *library);

/* -- symbol.c -- */
/*
 * Finds the kernel to launch for a host function or for a kernel's handle. Returns
 * InvalidDeviceFunction if there is none.
 */
int rt_kernel(const void *key, void **ret);
/* Like rt_kernel(), but returns the kernel's function in the current context. */
int rt_function(const void *key, CUfunction *ret);
/* Returns the device address and the size of a registered variable, or InvalidSymbol. */
int rt_variable(const void *key, CUdeviceptr *ret, size_t *ret_bytes);
/*
 * Returns the device address of a range within a variable, or InvalidValue if it is not all inside.
 */
int rt_symbol_range(const void *symbol, size_t offset, size_t bytes, CUdeviceptr *ret);

/* -- image.c -- */
struct rt_wrapper {
	uint32_t magic, version;
	const void *data;
	const void *const *linked; /* version 2 (-rdc): fat binaries; NULL ends the list */
};
/*
 * Makes an image. A malformed one is kept too, and its use returns InvalidKernelImage. Returns NULL
 * if memory is short.
 */
struct rt_image *rt_image_new(const struct rt_wrapper *wrapper);
void rt_image_free(struct rt_image *image);
/* These link images into the registry's list. */
struct rt_image *rt_image_next(const struct rt_image *image);
void rt_image_link(struct rt_image *image, struct rt_image *next);
/* Returns the driver's library, which is loaded at first use. A context must be current. */
int rt_image_library(struct rt_image *image, void **ret);
/* Returns the bytes of a fat binary with its header; 0 if it is not one. */
uint64_t rt_fatbin_bytes(const void *fatbin);

/* -- launch.c -- */
CUlaunchConfig rt_launch_config(const struct cudaLaunchConfig_st *config);

/* -- copy3d.c -- */
struct rt_copy3d { /* CUDA_MEMCPY3D of cuda.h */
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	void *srcArray, *srcContext;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	void *dstArray, *dstContext;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
};
_Static_assert(sizeof(struct rt_copy3d) == 200, "CUDA_MEMCPY3D of cuda.h");
int rt_copy3d_from(const struct cudaMemcpy3DParms *params, struct rt_copy3d *ret);
void rt_copy3d_to(const struct rt_copy3d *copy, struct cudaMemcpy3DParms *ret);
/* Makes a copy of one row. */
int rt_copy1d(void *dst, const void *src, size_t bytes, int kind, struct rt_copy3d *ret);

/* -- array.c -- */
/* These convert between the runtime's descriptors and cuda.h's format and channels. */
int rt_format_from(
	const struct cudaChannelFormatDesc *desc, int *ret_format, unsigned *ret_channels);
int rt_format_to(int format, unsigned channels, struct cudaChannelFormatDesc *ret);
/* Returns the bytes of an element of an array; 0 if the driver does not tell. */
size_t rt_element_bytes(void *array);
