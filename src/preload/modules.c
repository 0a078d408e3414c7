/*
 * Modules and libraries: what their variables take of a device is asked for before they are loaded, as far as the image says it (image.h). Little of it counts as code
 * does, with what NVML tells (docs/decisions/0022): a program that has used its limit up can still load kernels.
 *
 * A library's variables exist in each context that one of its kernels or variables was asked for in. They count with the library where a context is current as it
 * is loaded, and else at the first of these calls, or where a kernel that was asked for before becomes a function; once for each device, until the context ends.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cuda/objects.h"
#include "preload/context.h"
#include "preload/image.h"
#include "preload/lock.h"
#include "preload/modules.h"
#include "preload/outside.h"
#include "preload/real.h"

#define LEAST_BYTES  (1ull << 20)
#define DEVICES      64
#define DEVICE_SHIFT 56 /* of a key: no handle is so large */

struct library {
	struct library *next;
	void *handle;
	uint64_t bytes;
	uint64_t devices; /* that it counts on, a bit each */
};

static struct td_lock lock = TD_LOCK_INIT(TD_RANK_BACKEND);
static struct library *libraries; /* guarded by lock: those with variables */
static _Atomic uint32_t library_count;

static uint64_t counted(uint64_t bytes)
{
	return bytes >= LEAST_BYTES ? bytes : 0;
}

static uint64_t image_bytes(const void *image)
{
	return counted(td_image_data_bytes(image, SIZE_MAX));
}

/* Not through libc, whose stat got its symbol only lately. Looked at before it is opened: a pipe is read by whoever opens it. */
static bool is_file(const char *path, struct stat *ret)
{
	return path && !syscall(SYS_stat, path, ret) && S_ISREG(ret->st_mode) && ret->st_size > 0;
}

/* 0 for what cannot be read: the driver says so. */
static uint64_t file_bytes(const char *path)
{
	struct stat st;
	int fd = is_file(path, &st) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	/* Not mapped: who cuts the file short meanwhile would end the program. */
	char *image = fd < 0 ? NULL : malloc((size_t)st.st_size);
	uint64_t bytes = 0;
	size_t has = 0;
	ssize_t n = image ? 1 : 0;

	while (n > 0 && has < (size_t)st.st_size) {
		n = read(fd, image + has, (size_t)st.st_size - has);
		has += n > 0 ? (size_t)n : 0;
	}
	if (has)
		bytes = counted(td_image_data_bytes(image, has));
	free(image);
	if (fd >= 0)
		close(fd);
	return bytes;
}

/* -- modules -- */

#define LOAD_MODULE(symbol, bytes)                                                                 \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		uint64_t wanted = a0 ? (bytes) : 0;                                                \
		struct td_outside_claim claim;                                                     \
		CUresult r;                                                                        \
		if (!wanted)                                                                       \
			return td_real.symbol TD_ARGS_##symbol;                                    \
		r = td_outside_claim(&claim, TD_DEVICE_CURRENT, TD_OUTSIDE_DATA, wanted);          \
		if (r)                                                                             \
			return r;                                                                  \
		do                                                                                 \
			r = td_real.symbol TD_ARGS_##symbol;                                       \
		while (td_outside_again(&claim, r));                                               \
		return td_outside_settle(&claim, r, TD_KEY_MODULE, r ? 0 : (uint64_t)*a0);         \
	}

LOAD_MODULE(cuModuleLoad, file_bytes(a1))
LOAD_MODULE(cuModuleLoadData, image_bytes(a1))
LOAD_MODULE(cuModuleLoadDataEx, image_bytes(a1))
LOAD_MODULE(cuModuleLoadFatBinary, image_bytes(a1))

CUresult td_hook_cuModuleUnload(CUmodule a0)
{
	struct td_key *key = td_outside_take(TD_KEY_MODULE, (uint64_t)a0);

	return td_outside_end(key, td_real.cuModuleUnload(a0));
}

/* -- libraries -- */

static uint64_t key_of(const void *library, CUdevice device)
{
	return (uint64_t)library | (uint64_t)device << DEVICE_SHIFT;
}

static struct library *find(const void *handle)
{
	struct library *l = libraries;

	while (l && l->handle != handle)
		l = l->next;
	return l;
}

/* What is to be asked for before the library is used on that device, and marks it; 0: nothing. */
static uint64_t begin_use(const void *handle, CUdevice device)
{
	uint64_t bit = 1ull << device, bytes = 0;
	struct library *l;

	td_lock_take(&lock);
	l = find(handle);
	if (l && !(l->devices & bit)) {
		l->devices |= bit;
		bytes = l->bytes;
	}
	td_lock_drop(&lock);
	return bytes;
}

static void end_use(const void *handle, CUdevice device)
{
	struct library *l;

	td_lock_take(&lock);
	l = find(handle);
	if (l)
		l->devices &= ~(1ull << device);
	td_lock_drop(&lock);
}

void td_modules_library_gone(uint64_t key)
{
	end_use((const void *)(key & ((1ull << DEVICE_SHIFT) - 1)),
		(CUdevice)(key >> DEVICE_SHIFT));
}

static bool current_device(CUdevice *ret)
{
	return td_context_use() >= 0 && td_real.cuCtxGetDevice && !td_real.cuCtxGetDevice(ret) &&
	       *ret >= 0 && *ret < DEVICES;
}

/* Before a call that may bring the library's variables into the current context. */
static CUresult use(const void *library)
{
	struct td_outside_claim claim;
	CUdevice device;
	uint64_t bytes;
	CUresult r;

	if (!atomic_load_explicit(&library_count, memory_order_relaxed) || !current_device(&device))
		return CUDA_SUCCESS;
	bytes = begin_use(library, device);
	if (!bytes)
		return CUDA_SUCCESS;
	r = td_outside_claim(&claim, TD_DEVICE_CURRENT, TD_OUTSIDE_DATA, bytes);
	if (r)
		end_use(library, device);
	else
		(void)td_outside_settle(&claim, r, TD_KEY_LIBRARY, key_of(library, device));
	return r;
}

static void remember(void *handle, uint64_t bytes)
{
	struct library *l = calloc(1, sizeof(*l));

	if (!l)
		return;
	td_lock_take(&lock);
	*l = (struct library){libraries, handle, bytes, 0};
	libraries = l;
	atomic_fetch_add(&library_count, 1);
	td_lock_drop(&lock);
}

/* The devices that it counted on. */
static uint64_t forget(const void *handle)
{
	struct library **at = &libraries, *l;
	uint64_t devices = 0;

	td_lock_take(&lock);
	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	l = *at;
	if (l) {
		devices = l->devices;
		*at = l->next;
		atomic_fetch_sub(&library_count, 1);
	}
	td_lock_drop(&lock);
	free(l);
	return devices;
}

/* The handle is known by now: a load that is refused is taken back. */
static CUresult loaded(CUresult r, void **library, uint64_t bytes)
{
	if (r || !bytes)
		return r;
	remember(*library, bytes);
	r = use(*library);
	if (r) {
		(void)forget(*library);
		(void)td_real.cuLibraryUnload(*library);
	}
	return r;
}

#define LOAD_LIBRARY(symbol, bytes)                                                                \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		uint64_t wanted = a0 ? (bytes) : 0;                                                \
		return loaded(td_real.symbol TD_ARGS_##symbol, a0, wanted);                        \
	}

LOAD_LIBRARY(cuLibraryLoadData, image_bytes(a1))
LOAD_LIBRARY(cuLibraryLoadFromFile, file_bytes(a1))

#define USE_LIBRARY(symbol, library)                                                               \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		CUresult r = use(library);                                                         \
		return r ? r : td_real.symbol TD_ARGS_##symbol;                                    \
	}

/* NULL: the driver does not say. */
static const void *library_of(void *kernel)
{
	void *library;

	if (!atomic_load_explicit(&library_count, memory_order_relaxed) ||
		!td_real.cuKernelGetLibrary || td_real.cuKernelGetLibrary(&library, kernel))
		return NULL;
	return library;
}

USE_LIBRARY(cuLibraryGetKernel, a1)
USE_LIBRARY(cuLibraryEnumerateKernels, a2)
USE_LIBRARY(cuKernelGetFunction, library_of(a1))
USE_LIBRARY(cuLibraryGetModule, a1)
USE_LIBRARY(cuLibraryGetGlobal, a2)
USE_LIBRARY(cuLibraryGetUnifiedFunction, a1)

CUresult td_hook_cuLibraryUnload(void *a0)
{
	uint64_t devices =
		atomic_load_explicit(&library_count, memory_order_relaxed) ? forget(a0) : 0;
	CUresult r = td_real.cuLibraryUnload(a0);

	for (; devices; devices &= devices - 1)
		td_outside_gone(
			td_outside_take(TD_KEY_LIBRARY, key_of(a0, __builtin_ctzll(devices))));
	return r;
}

void td_modules_forked(void)
{
	td_lock_reset(&lock);
	libraries = NULL;
	atomic_store(&library_count, 0);
}
