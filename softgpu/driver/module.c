/* Modules and functions, and what is asked about them. Launching is in launch.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "model/kernel.h"
#include "softgpu/driver/module.h"
#include "softgpu/ptx/cubin.h"
#include "softgpu/ptx/fatbin.h"
#include "softgpu/ptx/ptx.h"

#define MODULE_MAGIC   0x73676d6f64ull
#define FUNCTION_MAGIC 0x736766756eull
#define ELF_MAGIC      "\177ELF"

/* Machine code is for GPUs. */
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

/* The PTX text in whatever image this is; the caller deinits *ret. */
static int find_text(const void *image, uint32_t sm, struct sg_fatbin_ptx *ret)
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

static void free_module(struct CUmod_st *module)
{
	for (struct CUfunc_st *f = module->functions; f;) {
		struct CUfunc_st *next = f->next;

		f->magic = 0;
		free(f);
		f = next;
	}
	for (size_t i = 0; module->variables && i < module->variable_count; i++)
		if (module->variables[i])
			(void)sg_memory_release(module->context, module->variables[i]);
	free(module->variables);
	sg_ptx_module_free(module->ptx);
	module->magic = 0;
	free(module);
}

/* Gives each variable device memory and its initial bytes. */
static int place_variables(struct CUmod_st *module)
{
	const struct sg_ptx_variable *variable;
	int r = CUDA_SUCCESS;

	while (sg_ptx_module_variable(module->ptx, module->variable_count))
		module->variable_count++;
	module->variables = calloc(module->variable_count + 1, sizeof(*module->variables));
	if (!module->variables)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; !r && i < module->variable_count; i++) {
		variable = sg_ptx_module_variable(module->ptx, i);
		r = sg_memory_alloc(module->context, variable->size ? variable->size : 1,
			&module->variables[i]);
		if (!r)
			sg_ptx_module_bind(module->ptx, i, module->variables[i]);
	}
	for (size_t i = 0; !r && i < module->variable_count; i++) {
		void *bytes;

		variable = sg_ptx_module_variable(module->ptx, i);
		bytes = calloc(1, variable->size + 1);
		if (!bytes)
			return CUDA_ERROR_OUT_OF_MEMORY;
		sg_ptx_module_initial(module->ptx, i, bytes);
		r = sg_memory_copy(module->variables[i], (uint64_t)bytes, variable->size);
		free(bytes);
	}
	return r;
}

static int load(CUmodule *ret, const void *image)
{
	struct CUctx_st *context;
	struct CUmod_st *module;
	struct td_err err = {0};
	struct sg_fatbin_ptx ptx = {0};
	int r = sg_current_unsafe(&context);

	if (!r && (!ret || !image))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = find_text(image,
			sg.devices[context->device].info.compute_major * 10 +
				sg.devices[context->device].info.compute_minor,
			&ptx);
	if (r)
		return r;
	module = calloc(1, sizeof(*module));
	if (!module) {
		sg_fatbin_ptx_deinit(&ptx);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	module->magic = MODULE_MAGIC;
	module->context = context;
	r = sg_ptx_module_new(ptx.text, ptx.len, &err, &module->ptx);
	sg_fatbin_ptx_deinit(&ptx);
	if (r) {
		if (getenv("SOFTGPU_DEBUG"))
			fprintf(stderr, "softgpu: %s\n", err.msg);
		free(module);
		return CUDA_ERROR_INVALID_PTX;
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

API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return load(module, image);
}

API CUresult cuModuleLoadDataEx(
	CUmodule *module, const void *image, unsigned count, int *options, void **values)
{
	(void)count; /* hints to a compiler that is not there */
	(void)options;
	(void)values;
	return load(module, image);
}

API CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return load(module, image);
}

API CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	FILE *file = path ? fopen(path, "rbe") : NULL;
	char *image;
	long size;
	int r;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	rewind(file);
	image = size >= 4 ? calloc(1, (size_t)size + 1) : NULL;
	r = image && fread(image, 1, (size_t)size, file) == (size_t)size ? load(module, image)
									 : CUDA_ERROR_INVALID_IMAGE;
	free(image);
	fclose(file);
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
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sg_context_synchronize(context);
	pthread_mutex_lock(&context->lock);
	td_list_remove(&module->link);
	pthread_mutex_unlock(&context->lock);
	free_module(module);
	return r;
}

API CUresult cuModuleGetFunction(CUfunction *ret, CUmodule handle, const char *name)
{
	const struct sg_ptx_function *ptx;
	struct CUctx_st *context;
	struct CUfunc_st *function;
	struct CUmod_st *module;
	int r = sg_current(&context);

	if (r)
		return r;
	if (!ret || !name)
		return CUDA_ERROR_INVALID_VALUE;
	module = find_module(context, handle);
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	ptx = sg_ptx_module_find_function(module->ptx, name);
	if (!ptx)
		return CUDA_ERROR_NOT_FOUND;
	for (function = module->functions; function && function->ptx != ptx;)
		function = function->next;
	if (!function) {
		function = calloc(1, sizeof(*function));
		if (!function)
			return CUDA_ERROR_OUT_OF_MEMORY;
		function->magic = FUNCTION_MAGIC;
		function->module = module;
		function->ptx = ptx;
		function->dynamic_shared_max =
			(48u << 10) -
			(ptx->shared_bytes < 48u << 10 ? ptx->shared_bytes : 48u << 10);
		pthread_mutex_lock(&context->lock);
		function->next = module->functions;
		module->functions = function;
		pthread_mutex_unlock(&context->lock);
	}
	*ret = function;
	return CUDA_SUCCESS;
}

API CUresult cuModuleGetGlobal_v2(
	CUdeviceptr *address, size_t *bytes, CUmodule handle, const char *name)
{
	struct CUctx_st *context;
	struct CUmod_st *module;
	long i;
	int r = sg_current(&context);

	if (r)
		return r;
	if (!name || (!address && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	module = find_module(context, handle);
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	i = sg_ptx_module_find_variable(module->ptx, name);
	if (i < 0)
		return CUDA_ERROR_NOT_FOUND;
	if (address)
		*address = module->variables[i];
	if (bytes)
		*bytes = sg_ptx_module_variable(module->ptx, (size_t)i)->size;
	return CUDA_SUCCESS;
}

API CUresult cuModuleGetLoadingMode(int *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = 1; /* eager */
	return CUDA_SUCCESS;
}

/* A function of a module of this context. */
struct CUfunc_st *sg_function_find(struct CUctx_st *context, CUfunction handle)
{
	struct td_list *it;
	struct CUfunc_st *found = NULL;

	pthread_mutex_lock(&context->lock);
	td_list_for_each (it, &context->modules)
		for (struct CUfunc_st *f = td_container_of(it, struct CUmod_st, link)->functions; f;
			f = f->next)
			if (f == handle)
				found = f;
	pthread_mutex_unlock(&context->lock);
	return found;
}

enum {
	FUNCTION_MAX_THREADS = 0,
	FUNCTION_SHARED = 1,
	FUNCTION_CONST = 2,
	FUNCTION_LOCAL = 3,
	FUNCTION_REGISTERS = 4,
	FUNCTION_PTX_VERSION = 5,
	FUNCTION_BINARY_VERSION = 6,
	FUNCTION_MAX_DYNAMIC_SHARED = 8,
};

API CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction handle)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = sg_current(&context);

	if (r)
		return r;
	function = sg_function_find(context, handle);
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case FUNCTION_MAX_THREADS: *value = (int)function->ptx->max_threads; break;
	case FUNCTION_SHARED: *value = (int)function->ptx->shared_bytes; break;
	case FUNCTION_LOCAL: *value = (int)function->ptx->local_bytes; break;
	case FUNCTION_REGISTERS: *value = (int)function->ptx->registers; break;
	case FUNCTION_PTX_VERSION:
	case FUNCTION_BINARY_VERSION:
		*value = (int)sg_ptx_module_target(function->module->ptx);
		break;
	case FUNCTION_MAX_DYNAMIC_SHARED: *value = (int)function->dynamic_shared_max; break;
	default: *value = 0; break;
	}
	return attribute >= 0 && attribute < 16 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	int r = sg_current(&context);

	if (r)
		return r;
	function = sg_function_find(context, handle);
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (attribute != FUNCTION_MAX_DYNAMIC_SHARED)
		return attribute == 9 ? CUDA_SUCCESS
				      : CUDA_ERROR_NOT_SUPPORTED; /* 9: a carve-out hint */
	if (value < 0 || (uint32_t)value + function->ptx->shared_bytes >
				 sg.devices[context->device].info.shared_per_block_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	function->dynamic_shared_max = (uint32_t)value;
	return CUDA_SUCCESS;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *blocks, CUfunction handle, int block_size, size_t shared)
{
	struct CUctx_st *context;
	struct CUfunc_st *function;
	struct td_block_needs needs;
	int r = sg_current(&context);

	if (r)
		return r;
	function = sg_function_find(context, handle);
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!blocks || block_size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	needs = (struct td_block_needs){(uint32_t)block_size, function->ptx->registers,
		function->ptx->shared_bytes + (uint32_t)shared};
	*blocks = (int)td_model_blocks_per_sm(&sg.devices[context->device].spec, &needs);
	return CUDA_SUCCESS;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *blocks, CUfunction f, int block_size, size_t shared, unsigned flags)
{
	return flags > 1
		       ? CUDA_ERROR_INVALID_VALUE
		       : cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, block_size, shared);
}
