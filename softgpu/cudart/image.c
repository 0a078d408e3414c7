/*
 * A registered fat binary, and the modules that it became: one for each context that used it. Of a program built with -rdc the parts are linked here, by the driver.
 */
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "softgpu/cudart/rt.h"

#define WRAPPER_MAGIC  0x466243b1u
#define WRAPPER_LINKED 2u
#define FATBIN_MAGIC   0xBA55ED50u
#define LINKED_MAX     65536u
#define JIT_FATBINARY  2 /* CU_JIT_INPUT_FATBINARY of cuda.h */

struct loaded {
	struct td_list link;
	CUcontext context;
	CUmodule module;
};

struct rt_image {
	const struct rt_wrapper *wrapper; /* NULL: malformed */
	pthread_mutex_t lock;
	struct td_list loaded; /* lock */
	struct rt_image *next; /* the registry's lock */
};

uint64_t rt_fatbin_bytes(const void *fatbin)
{
	struct {
		uint32_t magic;
		uint16_t version, header_bytes;
		uint64_t bytes;
	} header;

	memcpy(&header, fatbin, sizeof(header));
	if (header.magic != FATBIN_MAGIC || header.version != 1 ||
		header.header_bytes < sizeof(header) || header.bytes > UINT64_MAX / 2)
		return 0;
	return header.header_bytes + header.bytes;
}

static bool is_whole(const struct rt_wrapper *wrapper)
{
	if (!wrapper || wrapper->magic != WRAPPER_MAGIC)
		return false;
	if (wrapper->version == WRAPPER_LINKED)
		return wrapper->linked;
	return wrapper->version == 1 && wrapper->data && rt_fatbin_bytes(wrapper->data);
}

struct rt_image *rt_image_new(const struct rt_wrapper *wrapper)
{
	struct rt_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->wrapper = is_whole(wrapper) ? wrapper : NULL;
	pthread_mutex_init(&image->lock, NULL);
	td_list_init(&image->loaded);
	return image;
}

struct rt_image *rt_image_next(const struct rt_image *image)
{
	return image->next;
}

void rt_image_link(struct rt_image *image, struct rt_image *next)
{
	image->next = next;
}

/* Only what lies in a primary context of ours: of others nobody can know whether they still exist. */
static void unload(const struct loaded *loaded)
{
	CUcontext popped;

	if (!rt_is_primary(loaded->context) || CU(cuCtxPushCurrent_v2)(loaded->context))
		return;
	(void)CU(cuModuleUnload)(loaded->module);
	(void)CU(cuCtxPopCurrent_v2)(&popped);
}

void rt_image_free(struct rt_image *image)
{
	struct td_list *it, *next;

	td_list_for_each_safe (it, next, &image->loaded) {
		unload(td_container_of(it, struct loaded, link));
		free(td_container_of(it, struct loaded, link));
	}
	pthread_mutex_destroy(&image->lock);
	free(image);
}

void rt_image_forget(struct rt_image *image, CUcontext context)
{
	struct td_list *it, *next;

	pthread_mutex_lock(&image->lock);
	td_list_for_each_safe (it, next, &image->loaded) {
		struct loaded *loaded = td_container_of(it, struct loaded, link);

		if (loaded->context != context)
			continue;
		td_list_remove(it);
		free(loaded);
	}
	pthread_mutex_unlock(&image->lock);
}

/* The driver links what nvcc left apart, and compiles it if it is PTX. */
static int load_linked(const void *const *parts, CUmodule *ret)
{
	void *state = NULL, *image = NULL;
	size_t bytes;
	int error = CU(cuLinkCreate_v2)(0, NULL, NULL, &state);

	for (size_t i = 0; !error && i < LINKED_MAX && parts[i]; i++) {
		bytes = rt_fatbin_bytes(parts[i]);
		error = bytes ? CU(cuLinkAddData_v2)(state, JIT_FATBINARY, (void *)parts[i], bytes,
					"", 0, NULL, NULL)
			      : cudaErrorInvalidKernelImage;
		/* A library's part may have no code for this device. Who needs it fails when it is complete. */
		if (error == CUDA_ERROR_NO_BINARY_FOR_GPU)
			error = 0;
	}
	if (!error)
		error = CU(cuLinkComplete)(state, &image, &bytes);
	if (!error)
		error = CU(cuModuleLoadData)(ret, image);
	if (state)
		(void)CU(cuLinkDestroy)(state);
	return error;
}

static int load(const struct rt_wrapper *wrapper, CUmodule *ret)
{
	int error = CUDA_ERROR_NO_BINARY_FOR_GPU;
	bool linked = wrapper->version == WRAPPER_LINKED;

	if (!linked || (wrapper->data && rt_fatbin_bytes(wrapper->data) > 16))
		error = CU(cuModuleLoadData)(ret, wrapper->data);
	if (linked && error == CUDA_ERROR_NO_BINARY_FOR_GPU)
		error = load_linked(wrapper->linked, ret);
	return error;
}

static struct loaded *find(struct rt_image *image, CUcontext context)
{
	struct td_list *it;

	td_list_for_each (it, &image->loaded)
		if (td_container_of(it, struct loaded, link)->context == context)
			return td_container_of(it, struct loaded, link);
	return NULL;
}

/* Loading late is no part of a capture that is going on. */
static int load_into(struct rt_image *image, CUcontext context, struct loaded **ret)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED, error;
	struct loaded *loaded = calloc(1, sizeof(*loaded));

	if (!loaded)
		return cudaErrorMemoryAllocation;
	(void)CU(cuThreadExchangeStreamCaptureMode)(&mode);
	error = load(image->wrapper, &loaded->module);
	(void)CU(cuThreadExchangeStreamCaptureMode)(&mode);
	if (error) {
		free(loaded);
		return error;
	}
	loaded->context = context;
	td_list_append(&image->loaded, &loaded->link);
	*ret = loaded;
	return 0;
}

int rt_image_module(struct rt_image *image, CUmodule *ret)
{
	struct loaded *loaded;
	CUcontext context;
	bool fresh = false;
	int error = rt_current(&context);

	if (error)
		return error;
	if (!image->wrapper)
		return cudaErrorInvalidKernelImage;
	pthread_mutex_lock(&image->lock);
	loaded = find(image, context);
	if (!loaded) {
		error = load_into(image, context, &loaded);
		fresh = !error;
	}
	if (!error)
		*ret = loaded->module;
	pthread_mutex_unlock(&image->lock);
	if (fresh)
		rt_registry_managed(image, context, *ret);
	return error;
}
