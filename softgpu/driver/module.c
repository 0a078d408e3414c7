/* Modules, functions, launches. A kernel is interpreted by its stream's worker while the server already counts its time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/time.h"
#include "model/kernel.h"
#include "model/memory.h"
#include "softgpu/driver/graph.h"
#include "softgpu/ptx/fatbin.h"
#include "softgpu/ptx/ptx.h"

#define MODULE_MAGIC   0x73676d6f64ull
#define FUNCTION_MAGIC 0x736766756eull
#define PARAMS_MAX     32764u
#define ELF_MAGIC      "\177ELF"

struct CUfunc_st {
	uint64_t magic;
	struct CUmod_st *module;
	const struct sg_ptx_function *ptx;
	uint32_t dynamic_shared_max;
	struct CUfunc_st *next;
};

struct CUmod_st {
	uint64_t magic;
	struct td_list link; /* in context->modules; context->lock */
	struct CUctx_st *context;
	struct sg_ptx_module *ptx;
	struct CUfunc_st *functions;
	uint64_t *variables; /* device addresses, by index */
	size_t variable_count;
	unsigned busy; /* kernels queued; context->lock */
};

/* The PTX text in whatever image this is. */
static int find_text(const void *image, uint32_t sm, const char **ret, size_t *ret_len)
{
	const struct sg_fatbin_wrapper *wrapper = image;
	struct sg_fatbin_ptx ptx;
	uint32_t magic;
	int r;

	memcpy(&magic, image, 4);
	if (magic == SG_FATBIN_WRAPPER_MAGIC) {
		r = sg_fatbin_wrapper_find_ptx(wrapper, 0, sm, &ptx);
	} else if (magic == SG_FATBIN_MAGIC) {
		r = sg_fatbin_find_ptx(image, SIZE_MAX, sm, &ptx);
	} else if (!memcmp(image, ELF_MAGIC, 4)) {
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	} else {
		*ret = image;
		*ret_len = strlen(image);
		return CUDA_SUCCESS;
	}
	switch (r) {
	case 0:
		*ret = ptx.text;
		*ret_len = ptx.len;
		return CUDA_SUCCESS;
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
	const char *text;
	size_t len;
	int r = sg_current_unsafe(&context);

	if (!r && (!ret || !image))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = find_text(image,
			sg.devices[context->device].info.compute_major * 10 +
				sg.devices[context->device].info.compute_minor,
			&text, &len);
	if (r)
		return r;
	module = calloc(1, sizeof(*module));
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->magic = MODULE_MAGIC;
	module->context = context;
	r = sg_ptx_module_new(text, len, &err, &module->ptx);
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
static struct CUfunc_st *find_function(struct CUctx_st *context, CUfunction handle)
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
	function = find_function(context, handle);
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
	function = find_function(context, handle);
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
	function = find_function(context, handle);
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

/* -- launches -- */

struct launch_work {
	struct sg_work work;
	struct CUfunc_st *function;
	uint32_t grid[3], block[3], shared;
	bool cooperative;
	/* while running */
	struct CUctx_st *context;
	struct sg_touch *touches;
	size_t touch_count, touch_room;
	char params[];
};

/* Notes the managed page of an access; the last run grows when pages follow each other. */
static void note_touch(struct launch_work *launch, uint32_t range, uint64_t page, bool write)
{
	struct sg_touch *last =
		launch->touch_count ? &launch->touches[launch->touch_count - 1] : NULL;

	if (last && last->range == range && last->write == write &&
		page == last->first + last->count) {
		last->count++;
		return;
	}
	if (last && last->range == range && last->write == write && page >= last->first &&
		page < last->first + last->count)
		return;
	if (launch->touch_count == launch->touch_room) {
		size_t room = launch->touch_room ? 2 * launch->touch_room : 64;
		struct sg_touch *bigger = realloc(launch->touches, room * sizeof(*bigger));

		if (!bigger)
			return; /* a page less in the model, none in the effect */
		launch->touches = bigger;
		launch->touch_room = room;
	}
	launch->touches[launch->touch_count++] = (struct sg_touch){range, write, page, 1};
}

static bool translate(void *arg, uint64_t address, uint32_t bytes, enum sg_ptx_access access,
	struct sg_ptx_range *ret)
{
	struct launch_work *launch = arg;
	struct sg_allocation allocation;
	uint64_t last, page = sg.devices[launch->context->device].info.managed_page_bytes, first;

	if (sg_is_device_address(address)) {
		ret->host = sg_memory_translate(address & ~(GRANULE - 1), &last, &ret->is_remote);
		ret->first = address & ~(GRANULE - 1);
		ret->last = ret->first + GRANULE - 1;
		ret->is_host = false;
		return ret->host && address + bytes - 1 <= ret->last;
	}
	if (!sg_memory_find(address, bytes, &allocation))
		return false;
	ret->is_host = allocation.kind == SG_MEMORY_PINNED;
	ret->first = allocation.base;
	ret->last = allocation.base + allocation.bytes - 1;
	if (allocation.kind == SG_MEMORY_MANAGED) {
		first = (address - allocation.base) / page;
		note_touch(launch, allocation.range, first, access != SG_PTX_LOAD);
		ret->first = allocation.base + first * page;
		if (ret->last > ret->first + page - 1)
			ret->last = ret->first + page - 1;
		/* An access across a page's end is within the allocation: let it see both. */
		if (address + bytes - 1 > ret->last)
			ret->last = address + bytes - 1;
	}
	ret->host = (void *)ret->first;
	return true;
}

/* A kernel that looks at host memory runs on the wall clock: it waits when it is ahead and catches up when it is behind. */
static uint64_t host_sync(void *arg, uint64_t virtual_ns)
{
	uint64_t now = td_time_now_ns();

	(void)arg;
	if (virtual_ns <= now)
		return now;
	td_time_sleep_until_ns(virtual_ns);
	return virtual_ns;
}

static int result_of(int outcome)
{
	switch (outcome) {
	case 0: return CUDA_SUCCESS;
	case SG_PTX_ILLEGAL_ADDRESS: return CUDA_ERROR_ILLEGAL_ADDRESS;
	case SG_PTX_MISALIGNED_ADDRESS: return CUDA_ERROR_MISALIGNED_ADDRESS;
	case SG_PTX_TRAP: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
	case SG_PTX_ASSERT: return CUDA_ERROR_ASSERT;
	case SG_PTX_STACK_OVERFLOW: return CUDA_ERROR_HARDWARE_STACK_ERROR;
	default: return CUDA_ERROR_LAUNCH_FAILED;
	}
}

static int report_touches(struct sg_op *op, const struct launch_work *launch)
{
	for (size_t i = 0; i < launch->touch_count; i += SG_TOUCH_MAX) {
		size_t n = launch->touch_count - i < SG_TOUCH_MAX ? launch->touch_count - i
								  : SG_TOUCH_MAX;

		if (sg_client_op_touch(sg.client, op, launch->touches + i, (uint32_t)n))
			return SG_LOST;
	}
	return CUDA_SUCCESS;
}

/* Roofline over the link too: what a kernel reads and writes across it cannot go faster. */
static uint64_t length_of(const struct td_gpu_spec *spec, const struct sg_ptx_result *result)
{
	const struct td_moves moves = {.remote_bytes = result->remote_bytes};
	uint64_t own_ns = td_model_kernel_ns(spec, result->makespan_ns, result->instructions,
		result->load_bytes + result->store_bytes - result->remote_bytes);
	uint64_t link_ns = result->remote_bytes
				   ? spec->launch_latency_ns + td_model_moves_ns(spec, &moves)
				   : 0;

	return own_ns > link_ns ? own_ns : link_ns;
}

static uint32_t slots_of(const struct sg_device *device, const struct launch_work *launch)
{
	const struct td_block_needs needs = {launch->block[0] * launch->block[1] * launch->block[2],
		launch->function->ptx->registers,
		launch->function->ptx->shared_bytes + launch->shared};
	uint32_t each = td_model_blocks_per_sm(&device->spec, &needs);

	return device->spec.sm_count * (each ? each : 1);
}

static int run_kernel(struct CUstream_st *stream, struct sg_work *work)
{
	struct launch_work *launch = (struct launch_work *)work;
	struct CUctx_st *context = stream->context;
	const struct sg_device *device = &sg.devices[context->device];
	struct sg_ptx_result result = {0};
	struct sg_ptx_launch run = {
		.module = launch->function->module->ptx,
		.function = launch->function->ptx,
		.dynamic_shared_bytes = launch->shared,
		.params = launch->params,
		.memory = {launch, translate, host_sync},
		.cooperative = launch->cooperative,
		.cancel = &context->cancel,
	};
	struct sg_op op;
	int r, outcome;

	launch->context = context;
	memcpy(run.grid, launch->grid, sizeof(run.grid));
	memcpy(run.block, launch->block, sizeof(run.block));
	if (sg_client_op_begin(
		    sg.client, &op, context->device, context->id, SG_ENGINE_COMPUTE, 0, 0))
		return SG_LOST;
	run.time = (struct sg_ptx_time){
		.start_ns = td_time_now_ns(),
		.instr_ps = device->info.instr_ps,
		.clock_mhz = device->info.clock_mhz,
		.slots = slots_of(device, launch),
		.sm_count = device->info.sm_count,
	};
	outcome = sg_ptx_run(&run, &result);
	r = report_touches(&op, launch);
	if (r || sg_client_op_length(sg.client, &op, length_of(&device->spec, &result)) ||
		sg_client_op_wait(sg.client, &op))
		return SG_LOST;
	stream->last_end_ns = op.end_ns;
	if (outcome && getenv("SOFTGPU_DEBUG"))
		fprintf(stderr, "softgpu: kernel %s: %s at %#llx, line %u\n",
			launch->function->ptx->name, sg_ptx_outcome_name(outcome),
			(unsigned long long)result.fault_address, result.fault_line);
	return result_of(outcome);
}

static int check_dimensions(
	const struct CUctx_st *context, const struct CUfunc_st *function, const CUlaunchConfig *c)
{
	const struct sg_gpu_info *info = &sg.devices[context->device].info;
	uint64_t threads = (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ;

	if (!c->gridDimX || !c->gridDimY || !c->gridDimZ || !threads || c->gridDimX > INT32_MAX ||
		c->gridDimY > 65535 || c->gridDimZ > 65535 || c->blockDimX > 1024 ||
		c->blockDimY > 1024 || c->blockDimZ > 64 || threads > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads > function->ptx->max_threads)
		return CUDA_ERROR_INVALID_VALUE;
	if (c->sharedMemBytes > function->dynamic_shared_max ||
		c->sharedMemBytes + function->ptx->shared_bytes > info->shared_per_block_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads * function->ptx->registers > info->registers_per_sm)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	return CUDA_SUCCESS;
}

/* Parameters come as an array of pointers, or as one buffer named in `extra`. */
static int gather_params(
	const struct sg_ptx_function *function, void **params, void **extra, char *out)
{
	const void *buffer = NULL;
	const size_t *bytes = NULL;

	if (!function->param_count)
		return CUDA_SUCCESS;
	if (params && !extra) {
		for (uint32_t i = 0; i < function->param_count; i++) {
			if (!params[i])
				return CUDA_ERROR_INVALID_VALUE;
			memcpy(out + function->params[i].offset, params[i],
				function->params[i].size);
		}
		return CUDA_SUCCESS;
	}
	if (params || !extra)
		return CUDA_ERROR_INVALID_VALUE;
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			bytes = extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (!buffer || !bytes || *bytes < function->param_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(out, buffer, function->param_bytes);
	return CUDA_SUCCESS;
}

static void release_launch(struct sg_work *work)
{
	free(((struct launch_work *)work)->touches);
}

static int make_launch(struct CUctx_st *context, const CUlaunchConfig *config, CUfunction handle,
	void **params, void **extra, bool cooperative, struct sg_work **ret)
{
	struct CUfunc_st *function = find_function(context, handle);
	struct launch_work *work;
	size_t bytes;
	int r;

	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	r = check_dimensions(context, function, config);
	if (r)
		return r;
	if (function->ptx->param_bytes > PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	bytes = sizeof(*work) + function->ptx->param_bytes + 16;
	work = calloc(1, bytes);
	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->work.bytes = bytes;
	work->work.node = CU_GRAPH_NODE_TYPE_KERNEL + 1;
	work->work.release = release_launch;
	work->work.run = run_kernel;
	work->function = function;
	memcpy(work->grid, &config->gridDimX, sizeof(work->grid));
	memcpy(work->block, &config->blockDimX, sizeof(work->block));
	work->shared = config->sharedMemBytes;
	work->cooperative = cooperative;
	r = gather_params(function->ptx, params, extra, work->params);
	if (!r && cooperative &&
		(uint64_t)work->grid[0] * work->grid[1] * work->grid[2] >
			slots_of(&sg.devices[context->device], work))
		r = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	if (r)
		free(work);
	else
		*ret = &work->work;
	return r;
}

int sg_work_kernel(
	struct CUctx_st *context, const CUDA_KERNEL_NODE_PARAMS_v1 *p, struct sg_work **ret)
{
	const CUlaunchConfig config = {p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX,
		p->blockDimY, p->blockDimZ, p->sharedMemBytes, NULL, NULL, 0};

	return make_launch(context, &config, p->func, p->kernelParams, p->extra, false, ret);
}

bool sg_work_is_valid(struct CUctx_st *context, const struct sg_work *work)
{
	return work->run != run_kernel ||
	       find_function(context, ((const struct launch_work *)work)->function);
}

static int launch(const CUlaunchConfig *config, CUfunction handle, void **params, void **extra,
	bool cooperative, bool ptsz)
{
	struct CUctx_st *context;
	struct CUstream_st *stream;
	struct sg_work *work;
	int r = sg_current(&context);

	if (!r)
		r = sg_stream_find(context, config->hStream, ptsz, &stream);
	if (!r)
		r = make_launch(context, config, handle, params, extra, cooperative, &work);
	return r ? r : sg_stream_submit(stream, work, NULL);
}

/* Attributes that only say how to be faster change nothing here; those that change what happens and are not there are refused. */
static int read_attributes(const CUlaunchConfig *config, bool *ret_cooperative)
{
	*ret_cooperative = false;
	if (config->numAttrs && !config->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < config->numAttrs; i++) {
		switch (config->attrs[i].id) {
		case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
			*ret_cooperative = config->attrs[i].value.cooperative != 0;
			break;
		case CU_LAUNCH_ATTRIBUTE_IGNORE:
		case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
		case CU_LAUNCH_ATTRIBUTE_PRIORITY: break;
		default: return CUDA_ERROR_NOT_SUPPORTED;
		}
	}
	return CUDA_SUCCESS;
}

static int launch_ex(
	const CUlaunchConfig *config, CUfunction f, void **params, void **extra, bool ptsz)
{
	bool cooperative;
	int r = config ? read_attributes(config, &cooperative) : CUDA_ERROR_INVALID_VALUE;

	return r ? r : launch(config, f, params, extra, cooperative, ptsz);
}

#define CONFIG                                                                                     \
	(CUlaunchConfig)                                                                           \
	{                                                                                          \
		gx, gy, gz, bx, by, bz, shared, stream, NULL, 0                                    \
	}

#define LAUNCH(suffix, ptsz)                                                                       \
	API CUresult cuLaunchKernel##suffix(CUfunction f, unsigned gx, unsigned gy, unsigned gz,   \
		unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream,           \
		void **params, void **extra)                                                       \
	{                                                                                          \
		return launch(&CONFIG, f, params, extra, false, ptsz);                             \
	}                                                                                          \
	API CUresult cuLaunchCooperativeKernel##suffix(CUfunction f, unsigned gx, unsigned gy,     \
		unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,               \
		CUstream stream, void **params)                                                    \
	{                                                                                          \
		return launch(&CONFIG, f, params, NULL, true, ptsz);                               \
	}                                                                                          \
	API CUresult cuLaunchKernelEx##suffix(                                                     \
		const CUlaunchConfig *config, CUfunction f, void **params, void **extra)           \
	{                                                                                          \
		return launch_ex(config, f, params, extra, ptsz);                                  \
	}

LAUNCH(, false)
LAUNCH(_ptsz, true)
