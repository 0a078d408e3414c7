/*
 * Modules: images, their functions and variables. Functions are in function.c, libraries in
 * library.c, launches in launch.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "model/kernel.h"
#include "softgpu/driver/code/module.h"
#include "softgpu/ptx/image/cubin.h"
#include "softgpu/ptx/image/fatbin.h"
#include "softgpu/ptx/ptx.h"

#define MODULE_MAGIC 0x73676d6f64ull
#define PTX_VERSION  90u /* PTX 9.0 is the newest that CUDA 13.0 accepts */
#define ELF_MAGIC    "\177ELF"

/* Cubins contain machine code, which softgpu cannot run. */
static int refuse_cubin(const void *image)
{
	struct sg_cubin cubin;
	const char *kernel;

	if (!sg_cubin_read(image, SIZE_MAX, &cubin))
		return CUDA_ERROR_INVALID_IMAGE;
	kernel = sg_cubin_kernel(image, SIZE_MAX, 0);
	if (getenv("SOFTGPU_DEBUG"))
		fprintf(stderr, "softgpu: a cubin for sm_%u (%zu kernels: %s, ...) holds no PTX\n",
			cubin.sm, cubin.kernels, kernel ? kernel : "none");
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

int sg_image_text(const void *image, uint32_t sm, struct sg_fatbin_ptx *ret)
{
	const struct sg_fatbin_wrapper *wrapper = image;
	uint32_t magic;
	int r;

	memcpy(&magic, image, 4);
	if (magic == SG_FATBIN_WRAPPER_MAGIC) {
		r = sg_fatbin_wrapper_find_ptx(wrapper, 0, sm, ret);
	} else if (magic == SG_FATBIN_MAGIC) {
		r = sg_fatbin_find_ptx(image, SIZE_MAX, sm, ret);
	} else if (!memcmp(image, ELF_MAGIC, 4)) {
		return refuse_cubin(image);
	} else {
		*ret = (struct sg_fatbin_ptx){.text = image, .len = strlen(image)};
		return CUDA_SUCCESS;
	}
	switch (r) {
	case 0: return CUDA_SUCCESS;
	case -ENOMEM: return CUDA_ERROR_OUT_OF_MEMORY;
	case SG_FATBIN_COMPRESSED: return CUDA_ERROR_NOT_SUPPORTED;
	case SG_FATBIN_NO_BINARY: return CUDA_ERROR_NO_BINARY_FOR_GPU;
	default: return CUDA_ERROR_INVALID_IMAGE;
	}
}

uint32_t sg_device_sm(uint32_t device)
{
	const struct sg_gpu_info *info = &sg.devices[device].info;

	return info->compute_major * 10 + info->compute_minor;
}

static void free_module(struct CUmod_st *module)
{
	for (struct CUfunc_st *f = module->functions; f;) {
		struct CUfunc_st *next = f->next;

		free(f->legacy.params);
		free(f);
		f = next;
	}
	for (size_t i = 0; module->variables && i < module->variable_count; i++)
		if (module->variables[i] && !(module->managed && module->managed[i]))
			(void)sg_memory_release(module->context, module->variables[i]);
	free(module->variables);
	sg_ptx_module_free(module->ptx);
	module->magic = 0;
	free(module);
}

static int place_variable(struct CUmod_st *module, size_t i)
{
	const struct sg_ptx_variable *variable = sg_ptx_module_variable(module->ptx, i);
	uint64_t bytes = variable->size ? variable->size : 1;

	if (module->managed && module->managed[i]) {
		module->variables[i] = module->managed[i];
		return CUDA_SUCCESS;
	}
	return variable->managed
		       ? sg_managed_new(module->context->device, module->context, bytes,
				 &module->variables[i])
		       : sg_memory_alloc(module->context, bytes, true, &module->variables[i]);
}

static int fill_variable(const struct CUmod_st *module, size_t i)
{
	const struct sg_ptx_variable *variable = sg_ptx_module_variable(module->ptx, i);
	void *bytes;
	int r;

	if (module->managed && module->managed[i])
		return CUDA_SUCCESS; /* a library fills its managed variables when it is loaded */
	bytes = calloc(1, variable->size + 1);
	if (!bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sg_ptx_module_initial(module->ptx, i, bytes);
	r = sg_memory_copy(module->variables[i], (uint64_t)bytes, variable->size);
	free(bytes);
	return r;
}

/* Allocates each variable and copies its initial bytes. */
static int place_variables(struct CUmod_st *module)
{
	int r = CUDA_SUCCESS;

	while (sg_ptx_module_variable(module->ptx, module->variable_count))
		module->variable_count++;
	module->variables = calloc(module->variable_count + 1, sizeof(*module->variables));
	if (!module->variables)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; !r && i < module->variable_count; i++) {
		r = place_variable(module, i);
		if (!r)
			sg_ptx_module_bind(module->ptx, i, module->variables[i]);
	}
	for (size_t i = 0; !r && i < module->variable_count; i++)
		r = fill_variable(module, i);
	return r;
}

static int check_ptx(const struct sg_ptx_module *ptx, uint32_t sm, struct td_err *err)
{
	uint32_t version = sg_ptx_module_version(ptx), target = sg_ptx_module_target(ptx);

	if (version > PTX_VERSION) {
		(void)td_err_set(err, -ENOTSUP, "PTX version %u.%u is newer than %u.%u",
			version / 10, version % 10, PTX_VERSION / 10, PTX_VERSION % 10);
		return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
	}
	if (sg_ptx_module_fits(ptx, sm))
		return CUDA_SUCCESS;
	(void)td_err_set(err, -ENOTSUP, "the text is for sm_%u, the GPU is sm_%u", target, sm);
	return CUDA_ERROR_INVALID_PTX;
}

int sg_ptx_load(const char *text, size_t len, uint32_t sm, const struct sg_jit *jit,
	struct sg_ptx_module **ret)
{
	struct td_err err = {0};
	struct sg_ptx_module *ptx;
	int r = sg_ptx_module_new(text, len, &err, &ptx) ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;

	if (!r) {
		r = check_ptx(ptx, sm, &err);
		if (r)
			sg_ptx_module_free(ptx);
		else
			*ret = ptx;
	}
	if (!r)
		return CUDA_SUCCESS;
	sg_jit_say(jit, err.msg);
	if (getenv("SOFTGPU_DEBUG"))
		fprintf(stderr, "softgpu: %s\n", err.msg);
	return r;
}

int sg_module_new(struct CUctx_st *context, const char *text, size_t len, const uint64_t *managed,
	const struct sg_jit *jit, struct CUmod_st **ret)
{
	struct CUmod_st *module = calloc(1, sizeof(*module));
	int r;

	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->magic = MODULE_MAGIC;
	module->context = context;
	module->managed = managed;
	r = sg_ptx_load(text, len, sg_device_sm(context->device), jit, &module->ptx);
	if (r) {
		free(module);
		return r;
	}
	r = place_variables(module);
	if (r) {
		free_module(module);
		return r;
	}
	pthread_mutex_lock(&context->lock);
	td_list_append(&context->modules, &module->link);
	pthread_mutex_unlock(&context->lock);
	*ret = module;
	return CUDA_SUCCESS;
}

void sg_module_free(struct CUmod_st *module)
{
	pthread_mutex_lock(&module->context->lock);
	td_list_remove(&module->link);
	pthread_mutex_unlock(&module->context->lock);
	free_module(module);
}

void sg_modules_context_gone(struct CUctx_st *context)
{
	struct td_list *first;

	for (;;) {
		pthread_mutex_lock(&context->lock);
		first = context->modules.next;
		pthread_mutex_unlock(&context->lock);
		if (first == &context->modules)
			return;
		sg_module_free(td_container_of(first, struct CUmod_st, link));
	}
}

static int load(CUmodule *ret, const void *image, const struct sg_jit *jit)
{
	struct CUctx_st *context;
	struct sg_fatbin_ptx ptx;
	int r = sg_current_unsafe(&context);

	if (!r && (!ret || !image))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_image_text(image, sg_device_sm(context->device), &ptx);
	if (r)
		return r;
	r = sg_module_new(context, ptx.text, ptx.len, NULL, jit, ret);
	sg_fatbin_ptx_deinit(&ptx);
	return r;
}

API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return load(module, image, NULL);
}

API CUresult cuModuleLoadDataEx(
	CUmodule *module, const void *image, unsigned count, int *options, void **values)
{
	struct sg_jit jit;
	int r = sg_jit_read(count, options, values, &jit);

	return r ? r : load(module, image, &jit);
}

API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return load(module, image, NULL);
}

int sg_read_file(const char *path, char **ret)
{
	FILE *file = path ? fopen(path, "rbe") : NULL;
	bool whole;
	char *bytes;
	long size;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	rewind(file);
	bytes = size >= 4 ? calloc(1, (size_t)size + 1) : NULL;
	whole = bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size;
	fclose(file);
	if (!whole) {
		free(bytes);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	*ret = bytes;
	return CUDA_SUCCESS;
}

API CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	char *image;
	int r = sg_read_file(path, &image);

	if (r)
		return r;
	r = load(module, image, NULL);
	free(image);
	return r;
}

static struct CUmod_st *find_module(struct CUctx_st *context, CUmodule handle)
{
	struct td_list *it;
	struct CUmod_st *found = NULL;

	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->modules)
		if (td_container_of(it, struct CUmod_st, link) == handle)
			found = handle;
	pthread_mutex_unlock(&context->lock);
	return found;
}

API CUresult cuModuleUnload(CUmodule handle)
{
	struct CUctx_st *context;
	struct CUmod_st *module;
	int r = sg_current_unsafe(&context);

	if (r)
		return r;
	module = find_module(context, handle);
	/* A library's module cannot be unloaded by itself (cuLibraryGetModule). */
	if (!module || module->managed)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_context_synchronize(context);
	sg_module_free(module);
	return r;
}

static struct CUfunc_st *new_function(struct CUmod_st *module, const struct sg_ptx_function *ptx)
{
	static uint64_t last_id;
	struct CUfunc_st *function = calloc(1, sizeof(*function));

	if (!function)
		return NULL;
	function->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	function->module = module;
	function->ptx = ptx;
	function->dynamic_shared_max =
		(48u << 10) - (ptx->shared_bytes < 48u << 10 ? ptx->shared_bytes : 48u << 10);
	function->next = module->functions;
	module->functions = function;
	return function;
}

int sg_module_function(struct CUmod_st *module, const struct sg_ptx_function *ptx, CUfunction *ret)
{
	struct CUfunc_st *function;

	pthread_mutex_lock(&module->context->lock);
	for (function = module->functions; function && function->ptx != ptx;)
		function = function->next;
	if (!function)
		function = new_function(module, ptx);
	pthread_mutex_unlock(&module->context->lock);
	*ret = function;
	return function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Finds a module of the current context. */
static int named(CUmodule handle, struct CUmod_st **ret)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (r)
		return r;
	*ret = find_module(context, handle);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

API CUresult cuModuleGetFunction(CUfunction *ret, CUmodule handle, const char *name)
{
	const struct sg_ptx_function *ptx;
	struct CUmod_st *module;
	int r = named(handle, &module);

	if (!r && (!ret || !name))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	ptx = sg_ptx_module_find_function(module->ptx, name);
	return ptx ? sg_module_function(module, ptx, ret) : CUDA_ERROR_NOT_FOUND;
}

unsigned sg_ptx_function_count(const struct sg_ptx_module *ptx)
{
	unsigned n = 0;

	while (sg_ptx_module_function(ptx, n))
		n++;
	return n;
}

API CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule handle)
{
	struct CUmod_st *module;
	int r = named(handle, &module);

	if (!r && !count)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*count = sg_ptx_function_count(module->ptx);
	return r;
}

API CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned count, CUmodule handle)
{
	const struct sg_ptx_function *ptx;
	struct CUmod_st *module;
	int r = named(handle, &module);

	if (!r && !functions)
		r = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; !r && i < count; i++) {
		ptx = sg_ptx_module_function(module->ptx, i);
		if (!ptx)
			break;
		r = sg_module_function(module, ptx, &functions[i]);
	}
	return r;
}

/* Textures and surfaces are not supported, so no module has references to them. */
static int no_reference(void *ret, CUmodule handle, const char *name)
{
	struct CUmod_st *module;
	int r = named(handle, &module);

	if (r)
		return r;
	return ret && name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuModuleGetTexRef(void **ret, CUmodule handle, const char *name)
{
	return no_reference(ret, handle, name);
}

API CUresult cuModuleGetSurfRef(void **ret, CUmodule handle, const char *name)
{
	return no_reference(ret, handle, name);
}

int sg_module_variable(const struct CUmod_st *module, const char *name, bool managed,
	CUdeviceptr *address, size_t *bytes)
{
	const struct sg_ptx_variable *variable;
	long i = sg_ptx_module_find_variable(module->ptx, name);

	if (i < 0)
		return CUDA_ERROR_NOT_FOUND;
	variable = sg_ptx_module_variable(module->ptx, (size_t)i);
	if (managed && !variable->managed)
		return CUDA_ERROR_NOT_FOUND;
	if (address)
		*address = module->variables[i];
	if (bytes)
		*bytes = variable->size;
	return CUDA_SUCCESS;
}

API CUresult cuModuleGetGlobal_v2(
	CUdeviceptr *address, size_t *bytes, CUmodule handle, const char *name)
{
	struct CUmod_st *module;
	int r = named(handle, &module);

	if (!r && (!name || (!address && !bytes)))
		r = CUDA_ERROR_INVALID_VALUE;
	return r ? r : sg_module_variable(module, name, false, address, bytes);
}

API CUresult cuModuleGetLoadingMode(int *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = 1; /* modules are loaded eagerly */
	return CUDA_SUCCESS;
}
