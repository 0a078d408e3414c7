/*
 * Libraries: code that belongs to no context (cuLibrary*). A library is loaded as a module into
 * each context in which one of its kernels or variables is first used. Its managed variables exist
 * once and are shared by these modules.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/code/module.h"

struct CUkern_st {
	struct CUlib_st *library;
	const struct sg_ptx_function *ptx; /* points into library->ptx */
	int dynamic_shared[SG_GPU_MAX];    /* set for that device; -1: not set */
};

struct loaded {
	struct td_list link;
	struct CUctx_st *context;
	struct CUmod_st *module;
	bool waited;
};

struct CUlib_st {
	struct td_list link, loaded;
	char *text;
	size_t len;
	struct sg_ptx_module *ptx; /* for queries, never run */
	struct CUkern_st *kernels;
	unsigned kernel_count;
	uint64_t *managed; /* addresses by variable index; 0: not managed */
	size_t variable_count;
	bool unloading; /* it can no longer be found by its handle */
};

typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;

/* Lock order: sg_graph_lock > lock > context->lock. It is never held while waiting for work. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct td_list libraries = {&libraries, &libraries};

/* -- called with lock held -- */

static struct CUlib_st *find_library(CUlibrary handle)
{
	struct td_list *it;

	td_list_for_each (it, &libraries)
		if (td_container_of(it, struct CUlib_st, link) == handle)
			return handle->unloading ? NULL : handle;
	return NULL;
}

static struct CUkern_st *find_kernel(const void *handle)
{
	struct td_list *it;

	td_list_for_each (it, &libraries) {
		struct CUlib_st *library = td_container_of(it, struct CUlib_st, link);

		for (unsigned i = 0; i < library->kernel_count && !library->unloading; i++)
			if (&library->kernels[i] == handle)
				return &library->kernels[i];
	}
	return NULL;
}

static int module_of(struct CUlib_st *library, struct CUctx_st *context, struct CUmod_st **ret)
{
	struct loaded *loaded;
	struct td_list *it;
	int r;

	td_list_for_each (it, &library->loaded) {
		loaded = td_container_of(it, struct loaded, link);
		if (loaded->context == context) {
			*ret = loaded->module;
			return CUDA_SUCCESS;
		}
	}
	loaded = calloc(1, sizeof(*loaded));
	if (!loaded)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sg_module_new(context, library->text, library->len, library->managed, NULL, ret);
	if (r) {
		free(loaded);
		return r;
	}
	loaded->context = context;
	loaded->module = *ret;
	td_list_append(&library->loaded, &loaded->link);
	return CUDA_SUCCESS;
}

static int function_of(struct CUkern_st *kernel, struct CUctx_st *context, CUfunction *ret)
{
	struct CUmod_st *module;
	int bytes, r = module_of(kernel->library, context, &module);

	if (!r)
		r = sg_module_function(
			module, sg_ptx_module_find_function(module->ptx, kernel->ptx->name), ret);
	if (r)
		return r;
	bytes = kernel->dynamic_shared[context->device];
	if (bytes >= 0)
		(*ret)->dynamic_shared_max = (uint32_t)bytes;
	return CUDA_SUCCESS;
}

int sg_kernel_function(struct CUctx_st *context, const void *handle, CUfunction *ret)
{
	struct CUkern_st *kernel;
	int r = CUDA_ERROR_INVALID_HANDLE;

	pthread_mutex_lock(&lock);
	kernel = find_kernel(handle);
	if (kernel)
		r = function_of(kernel, context, ret);
	pthread_mutex_unlock(&lock);
	return r;
}

void sg_library_context_gone(struct CUctx_st *context)
{
	struct td_list *l, *it, *tmp;

	pthread_mutex_lock(&lock);
	td_list_for_each (l, &libraries) {
		td_list_for_each_safe (
			it, tmp, &td_container_of(l, struct CUlib_st, link)->loaded) {
			struct loaded *loaded = td_container_of(it, struct loaded, link);

			if (loaded->context != context)
				continue;
			td_list_remove(&loaded->link);
			free(loaded); /* the context frees the module with its other modules */
		}
	}
	pthread_mutex_unlock(&lock);
}

/* -- loading -- */

static void free_library(struct CUlib_st *library)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &library->loaded) {
		struct loaded *loaded = td_container_of(it, struct loaded, link);

		sg_module_free(loaded->module);
		free(loaded);
	}
	for (size_t i = 0; library->managed && i < library->variable_count; i++) {
		struct sg_allocation allocation;

		if (library->managed[i] && sg_allocation_remove(library->managed[i], &allocation))
			sg_managed_free(&allocation);
	}
	free(library->managed);
	free(library->kernels);
	sg_ptx_module_free(library->ptx);
	free(library->text);
	free(library);
}

static int place_managed(struct CUlib_st *library)
{
	const struct sg_ptx_variable *variable;
	int r = CUDA_SUCCESS;

	while (sg_ptx_module_variable(library->ptx, library->variable_count))
		library->variable_count++;
	library->managed = calloc(library->variable_count + 1, sizeof(*library->managed));
	if (!library->managed)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; !r && i < library->variable_count; i++) {
		variable = sg_ptx_module_variable(library->ptx, i);
		if (!variable->managed)
			continue;
		r = sg_managed_new(
			0, NULL, variable->size ? variable->size : 1, &library->managed[i]);
		if (!r)
			sg_ptx_module_initial(library->ptx, i, (void *)library->managed[i]);
	}
	return r;
}

static int list_kernels(struct CUlib_st *library)
{
	library->kernel_count = sg_ptx_function_count(library->ptx);
	library->kernels = calloc(library->kernel_count + 1, sizeof(*library->kernels));
	if (!library->kernels)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < library->kernel_count; i++) {
		library->kernels[i].library = library;
		library->kernels[i].ptx = sg_ptx_module_function(library->ptx, i);
		for (int d = 0; d < SG_GPU_MAX; d++)
			library->kernels[i].dynamic_shared[d] = -1;
	}
	return CUDA_SUCCESS;
}

/* All devices of a server have the same architecture, so code for the first one serves all. */
static int load(CUlibrary *ret, const void *image, const struct sg_jit *jit)
{
	struct CUlib_st *library;
	struct sg_fatbin_ptx ptx;
	int r = sg_ready();

	if (!r && (!ret || !image))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_capture_check_unsafe();
	if (!r)
		r = sg_image_text(image, sg_device_sm(0), &ptx);
	if (r)
		return r;
	library = calloc(1, sizeof(*library));
	if (!library) {
		sg_fatbin_ptx_deinit(&ptx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	td_list_init(&library->loaded);
	library->text = strndup(ptx.text, ptx.len);
	library->len = ptx.len;
	sg_fatbin_ptx_deinit(&ptx);
	r = library->text
		    ? sg_ptx_load(library->text, library->len, sg_device_sm(0), jit, &library->ptx)
		    : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r)
		r = list_kernels(library);
	if (!r)
		r = place_managed(library);
	if (r) {
		free_library(library);
		return r;
	}
	pthread_mutex_lock(&lock);
	td_list_append(&libraries, &library->link);
	pthread_mutex_unlock(&lock);
	*ret = library;
	return CUDA_SUCCESS;
}

#define OPTION_N 2 /* CU_LIBRARY_NUM_OPTIONS */

/* The options of cuda.h are accepted; they are hints and have no effect. Others are refused. */
static int check_options(const int *options, void *const *values, unsigned count)
{
	if (count && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		if (options[i] < 0 || options[i] >= OPTION_N)
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

API CUresult cuLibraryLoadData(CUlibrary *ret, const void *image, int *jit_options,
	void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)
{
	struct sg_jit jit;
	int r = check_options(options, values, count);

	if (!r)
		r = sg_jit_read(jit_count, jit_options, jit_values, &jit);
	return r ? r : load(ret, image, &jit);
}

API CUresult cuLibraryLoadFromFile(CUlibrary *ret, const char *path, int *jit_options,
	void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)
{
	struct sg_jit jit;
	char *image;
	int r = check_options(options, values, count);

	if (!r)
		r = sg_jit_read(jit_count, jit_options, jit_values, &jit);
	if (!r)
		r = sg_read_file(path, &image);
	if (r)
		return r;
	r = load(ret, image, &jit);
	free(image);
	return r;
}

/*
 * Called with lock held. Returns a context that has the library loaded and was not waited for yet,
 * or NULL.
 */
static struct CUctx_st *take_unwaited(struct CUlib_st *library)
{
	struct td_list *it;

	td_list_for_each (it, &library->loaded) {
		struct loaded *loaded = td_container_of(it, struct loaded, link);

		if (loaded->waited)
			continue;
		loaded->waited = true;
		return loaded->context;
	}
	return NULL;
}

/*
 * The handle becomes invalid first. Then the work of each context that has the library is waited
 * for, without the lock, because host functions in that work may use other libraries. A context
 * that is destroyed meanwhile frees its module; its struct stays.
 */
API CUresult cuLibraryUnload(CUlibrary handle)
{
	struct CUlib_st *library;
	struct CUctx_st *context;
	int r = sg_ready();

	if (!r)
		r = sg_capture_check_unsafe();
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	library = find_library(handle);
	if (library)
		library->unloading = true;
	while (library && (context = take_unwaited(library))) {
		pthread_mutex_unlock(&lock);
		(void)sg_context_synchronize(context);
		pthread_mutex_lock(&lock);
	}
	if (library) {
		td_list_remove(&library->link);
		free_library(library);
	}
	pthread_mutex_unlock(&lock);
	return library ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/*
 * -- queries of a library: ask() runs with lock held, and gets the current context if it needs one
 * --
 */

struct question {
	struct CUctx_st *context; /* the current context, if needed */
	const char *name;
	void *out;
	CUdeviceptr *address;
	size_t *bytes;
	unsigned count;
};

static int ask_library(CUlibrary handle, struct question *q,
	int (*ask)(struct CUlib_st *library, struct question *q))
{
	struct CUlib_st *library;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	library = find_library(handle);
	r = library ? ask(library, q) : CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_unlock(&lock);
	return r;
}

/* Finds the context first, because sg.lock must be taken before lock. */
static int ask_in_context(CUlibrary handle, struct question *q,
	int (*ask)(struct CUlib_st *library, struct question *q))
{
	int r = sg_current(&q->context);

	return r ? r : ask_library(handle, q, ask);
}

static int get_kernel(struct CUlib_st *library, struct question *q)
{
	if (!q->out || !q->name)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < library->kernel_count; i++) {
		if (strcmp(library->kernels[i].ptx->name, q->name))
			continue;
		*(CUkernel *)q->out = &library->kernels[i];
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

API CUresult cuLibraryGetKernel(CUkernel *ret, CUlibrary handle, const char *name)
{
	return ask_library(handle, &(struct question){.name = name, .out = ret}, get_kernel);
}

static int get_count(struct CUlib_st *library, struct question *q)
{
	if (!q->out)
		return CUDA_ERROR_INVALID_VALUE;
	*(unsigned *)q->out = library->kernel_count;
	return CUDA_SUCCESS;
}

API CUresult cuLibraryGetKernelCount(unsigned *count, CUlibrary handle)
{
	return ask_library(handle, &(struct question){.out = count}, get_count);
}

static int enumerate(struct CUlib_st *library, struct question *q)
{
	if (!q->out)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < q->count && i < library->kernel_count; i++)
		((CUkernel *)q->out)[i] = &library->kernels[i];
	return CUDA_SUCCESS;
}

API CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary handle)
{
	return ask_library(handle, &(struct question){.out = kernels, .count = count}, enumerate);
}

static int get_module(struct CUlib_st *library, struct question *q)
{
	return q->out ? module_of(library, q->context, q->out) : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuLibraryGetModule(CUmodule *ret, CUlibrary handle)
{
	return ask_in_context(handle, &(struct question){.out = ret}, get_module);
}

static int get_global(struct CUlib_st *library, struct question *q)
{
	struct CUmod_st *module;
	int r = CUDA_SUCCESS;

	if (!q->name || (!q->address && !q->bytes))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = module_of(library, q->context, &module);
	return r ? r : sg_module_variable(module, q->name, false, q->address, q->bytes);
}

API CUresult cuLibraryGetGlobal(
	CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name)
{
	return ask_in_context(handle,
		&(struct question){.name = name, .address = address, .bytes = bytes}, get_global);
}

static int get_managed(struct CUlib_st *library, struct question *q)
{
	long i;

	if (!q->name || (!q->address && !q->bytes))
		return CUDA_ERROR_INVALID_VALUE;
	i = sg_ptx_module_find_variable(library->ptx, q->name);
	if (i < 0 || !library->managed[i])
		return CUDA_ERROR_NOT_FOUND;
	if (q->address)
		*q->address = library->managed[i];
	if (q->bytes)
		*q->bytes = sg_ptx_module_variable(library->ptx, (size_t)i)->size;
	return CUDA_SUCCESS;
}

API CUresult cuLibraryGetManaged(
	CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name)
{
	return ask_library(handle,
		&(struct question){.name = name, .address = address, .bytes = bytes}, get_managed);
}

/* -- kernels -- */

struct kernel_question {
	struct CUctx_st *context;
	void *out;
	int attribute, value;
	size_t index, *offset, *bytes;
	CUdevice device;
};

static int ask_kernel(CUkernel handle, struct kernel_question *q,
	int (*ask)(struct CUkern_st *kernel, struct kernel_question *q))
{
	struct CUkern_st *kernel;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	kernel = find_kernel(handle);
	r = kernel ? ask(kernel, q) : CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_unlock(&lock);
	return r;
}

static int kernel_function(struct CUkern_st *kernel, struct kernel_question *q)
{
	return q->out ? function_of(kernel, q->context, q->out) : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuKernelGetFunction(CUfunction *ret, CUkernel handle)
{
	struct kernel_question q = {.out = ret};
	int r = sg_current(&q.context);

	return r ? r : ask_kernel(handle, &q, kernel_function);
}

static int kernel_library(struct CUkern_st *kernel, struct kernel_question *q)
{
	if (!q->out)
		return CUDA_ERROR_INVALID_VALUE;
	*(CUlibrary *)q->out = kernel->library;
	return CUDA_SUCCESS;
}

API CUresult cuKernelGetLibrary(CUlibrary *ret, CUkernel handle)
{
	return ask_kernel(handle, &(struct kernel_question){.out = ret}, kernel_library);
}

static int kernel_name(struct CUkern_st *kernel, struct kernel_question *q)
{
	if (!q->out)
		return CUDA_ERROR_INVALID_VALUE;
	*(const char **)q->out = kernel->ptx->name;
	return CUDA_SUCCESS;
}

API CUresult cuKernelGetName(const char **ret, CUkernel handle)
{
	return ask_kernel(handle, &(struct kernel_question){.out = ret}, kernel_name);
}

static int kernel_param(struct CUkern_st *kernel, struct kernel_question *q)
{
	if (!q->offset || q->index >= kernel->ptx->param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*q->offset = kernel->ptx->params[q->index].offset;
	if (q->bytes)
		*q->bytes = kernel->ptx->params[q->index].size;
	return CUDA_SUCCESS;
}

API CUresult cuKernelGetParamInfo(CUkernel handle, size_t index, size_t *offset, size_t *bytes)
{
	return ask_kernel(handle,
		&(struct kernel_question){.index = index, .offset = offset, .bytes = bytes},
		kernel_param);
}

/* Attribute numbers as in function.c. */
static int kernel_get(struct CUkern_st *kernel, struct kernel_question *q)
{
	const struct sg_ptx_function *ptx = kernel->ptx;
	int *value = q->out, set;

	if (!value || q->attribute < 0 || q->attribute >= 16)
		return CUDA_ERROR_INVALID_VALUE;
	if (q->device < 0 || q->device >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	set = kernel->dynamic_shared[q->device];
	switch (q->attribute) {
	case 0: *value = (int)ptx->max_threads; break;
	case 1: *value = (int)ptx->shared_bytes; break;
	case 3: *value = (int)ptx->local_bytes; break;
	case 4: *value = (int)ptx->registers; break;
	case 5:
	case 6: *value = (int)sg_ptx_module_target(kernel->library->ptx); break;
	case 8: *value = set >= 0 ? set : (48 << 10) - (int)ptx->shared_bytes; break;
	case 9: *value = -1; break;
	default: *value = 0; break;
	}
	return CUDA_SUCCESS;
}

API CUresult cuKernelGetAttribute(int *value, int attribute, CUkernel handle, CUdevice device)
{
	return ask_kernel(handle,
		&(struct kernel_question){.out = value, .attribute = attribute, .device = device},
		kernel_get);
}

static int kernel_set(struct CUkern_st *kernel, struct kernel_question *q)
{
	if (q->device < 0 || q->device >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (q->attribute == 9)
		return q->value < -1 || q->value > 100 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (q->attribute != 8)
		return q->attribute < 7 || q->attribute >= 16 ? CUDA_ERROR_INVALID_VALUE
							      : CUDA_ERROR_NOT_SUPPORTED;
	if (q->value < 0 || (uint32_t)q->value + kernel->ptx->shared_bytes >
				    sg.devices[q->device].info.shared_per_block_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	kernel->dynamic_shared[q->device] = q->value;
	return CUDA_SUCCESS;
}

API CUresult cuKernelSetAttribute(int attribute, int value, CUkernel handle, CUdevice device)
{
	return ask_kernel(handle,
		&(struct kernel_question){.attribute = attribute, .value = value, .device = device},
		kernel_set);
}

static int kernel_cache(struct CUkern_st *kernel, struct kernel_question *q)
{
	(void)kernel;
	if (q->device < 0 || q->device >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	return q->value < 0 || q->value > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

API CUresult cuKernelSetCacheConfig(CUkernel handle, int config, CUdevice device)
{
	return ask_kernel(
		handle, &(struct kernel_question){.value = config, .device = device}, kernel_cache);
}
