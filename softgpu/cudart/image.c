/*
 * A registered fat binary, and the driver's library that it becomes at first use: one for all
 * contexts. The parts of a program built with -rdc are linked here, by the driver.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cudart/rt.h"

#define WRAPPER_MAGIC  0x466243b1u
#define WRAPPER_LINKED 2u
#define FATBIN_MAGIC   0xBA55ED50u
#define LINKED_MAX     65536u
#define JIT_FATBINARY  2 /* CU_JIT_INPUT_FATBINARY of cuda.h */

struct rt_image {
	const struct rt_wrapper *wrapper; /* NULL: the image is malformed */
	pthread_mutex_t lock;
	void *library;         /* NULL: not loaded; guarded by lock */
	struct rt_image *next; /* guarded by the registry's lock */
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

/*
 * Set at exit. A program that ends does not wait for its kernels, as unloading a library would. The
 * handler is registered when an image is loaded, after the program's constructors have registered
 * their own, so it runs before those.
 */
static atomic_bool exiting;

static void note_exit(void)
{
	atomic_store(&exiting, true);
}

void rt_image_free(struct rt_image *image)
{
	if (image->library && !atomic_load(&exiting))
		(void)CU(cuLibraryUnload)(image->library);
	pthread_mutex_destroy(&image->lock);
	free(image);
}

static int load_library(const void *image, void **ret)
{
	return CU(cuLibraryLoadData)(ret, image, NULL, NULL, 0, NULL, NULL, 0);
}

/* Lets the driver link the parts that nvcc -rdc left apart, and compile them if they are PTX. */
static int load_linked(const void *const *parts, void **ret)
{
	void *state = NULL, *image = NULL;
	size_t bytes;
	int error = CU(cuLinkCreate_v2)(0, NULL, NULL, &state);

	for (size_t i = 0; !error && i < LINKED_MAX && parts[i]; i++) {
		bytes = rt_fatbin_bytes(parts[i]);
		error = bytes ? CU(cuLinkAddData_v2)(state, JIT_FATBINARY, (void *)parts[i], bytes,
					"", 0, NULL, NULL)
			      : cudaErrorInvalidKernelImage;
		/*
		 * A part of a library may have no code for this device. If its code is needed,
		 * cuLinkComplete() fails.
		 */
		if (error == CUDA_ERROR_NO_BINARY_FOR_GPU)
			error = 0;
	}
	if (!error)
		error = CU(cuLinkComplete)(state, &image, &bytes);
	if (!error)
		error = load_library(image, ret);
	if (state)
		(void)CU(cuLinkDestroy)(state);
	return error;
}

static int load(const struct rt_wrapper *wrapper, void **ret)
{
	int error = CUDA_ERROR_NO_BINARY_FOR_GPU;
	bool linked = wrapper->version == WRAPPER_LINKED;

	if (!linked || (wrapper->data && rt_fatbin_bytes(wrapper->data) > 16))
		error = load_library(wrapper->data, ret);
	if (linked && error == CUDA_ERROR_NO_BINARY_FOR_GPU)
		error = load_linked(wrapper->linked, ret);
	return error;
}

/*
 * Loads the image. If a stream capture is going on, that must not affect it, so the capture mode is
 * relaxed.
 */
static int load_apart(const struct rt_wrapper *wrapper, void **ret)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED, error;

	(void)CU(cuThreadExchangeStreamCaptureMode)(&mode);
	error = load(wrapper, ret);
	(void)CU(cuThreadExchangeStreamCaptureMode)(&mode);
	return error;
}

int rt_image_library(struct rt_image *image, void **ret)
{
	bool fresh = false;
	int error = rt_enter();

	if (error)
		return error;
	if (!image->wrapper)
		return cudaErrorInvalidKernelImage;
	pthread_mutex_lock(&image->lock);
	if (!image->library) {
		error = load_apart(image->wrapper, &image->library);
		fresh = !error;
		if (fresh)
			(void)atexit(note_exit);
	}
	if (error)
		image->library = NULL;
	else
		*ret = image->library;
	pthread_mutex_unlock(&image->lock);
	if (fresh)
		rt_registry_managed(image, *ret);
	return error;
}
