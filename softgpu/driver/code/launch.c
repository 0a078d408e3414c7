/*
 * Kernel launches. The stream's worker interprets the kernel, while the server already counts its
 * modelled time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "model/kernel.h"
#include "model/memory.h"
#include "softgpu/driver/code/module.h"

#define PARAMS_MAX 32764u
#define PPM        1000000u

struct launch_work {
	struct sg_work work;
	struct CUfunc_st *function;
	uint64_t function_id;
	uint32_t grid[3], block[3], shared;
	bool cooperative;
	/* valid while it runs */
	struct CUctx_st *context;
	struct sg_touch *touches;
	size_t touch_count, touch_room;
	char params[];
};

/*
 * Records that a kernel accessed a managed page. Accesses to consecutive pages extend the last run.
 */
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

		/*
		 * without memory the paging model misses a page; the kernel's result is unaffected
		 */
		if (!bigger)
			return;
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
		ret->host = sg_memory_translate(
			launch->context, address & ~(GRANULE - 1), &last, &ret->is_remote);
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
	/* A managed page migrates to its home GPU only. Other GPUs access it across the link. */
	ret->is_remote = allocation.kind == SG_MEMORY_MANAGED &&
			 allocation.device != launch->context->device;
	if (allocation.kind == SG_MEMORY_MANAGED && !ret->is_remote) {
		first = (address - allocation.base) / page;
		note_touch(launch, allocation.range, first, access != SG_PTX_LOAD);
		ret->first = allocation.base + first * page;
		if (ret->last > ret->first + page - 1)
			ret->last = ret->first + page - 1;
		/*
		 * An aligned access across a page boundary is legal, so it gets a range that covers
		 * both pages.
		 */
		if (address + bytes - 1 > ret->last)
			ret->last = address + bytes - 1;
	}
	ret->host = (void *)ret->first;
	return true;
}

/*
 * A kernel that accesses host memory is synchronised with wall time: it sleeps if its virtual time
 * is ahead, and its virtual time jumps forward if it is behind.
 */
static uint64_t host_sync(void *arg, uint64_t virtual_ns)
{
	uint64_t now = td_time_now_ns();

	(void)arg;
	if (virtual_ns <= now)
		return now;
	td_time_sleep_until_ns(virtual_ns);
	return virtual_ns;
}

/* Kernel printf() writes to stdout, as in CUDA. */
static void print(void *arg, const char *text, size_t len)
{
	(void)arg;
	fwrite(text, 1, len, stdout);
}

static int result_of(int outcome)
{
	switch (outcome) {
	case 0: return CUDA_SUCCESS;
	case SG_PTX_ILLEGAL_ADDRESS: return CUDA_ERROR_ILLEGAL_ADDRESS;
	case SG_PTX_MISALIGNED_ADDRESS: return CUDA_ERROR_MISALIGNED_ADDRESS;
	case SG_PTX_TRAP: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
	case SG_PTX_ASSERT: return CUDA_ERROR_ASSERT;
	case SG_PTX_UNSUPPORTED: return CUDA_ERROR_NOT_SUPPORTED;
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

/* The roofline model, extended by the link: remote accesses cannot be faster than the link. */
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

/* Returns how many blocks fit on one SM at the same time. */
static uint32_t blocks_per_sm(const struct sg_device *device, const struct launch_work *launch)
{
	const struct td_block_needs needs = {launch->block[0] * launch->block[1] * launch->block[2],
		launch->function->ptx->registers,
		launch->function->ptx->shared_bytes + launch->shared};
	uint32_t each = td_model_blocks_per_sm(&device->spec, &needs);

	return each ? each : 1;
}

static uint32_t slots_of(const struct sg_device *device, const struct launch_work *launch)
{
	return device->spec.sm_count * blocks_per_sm(device, launch);
}

static uint64_t block_count(const struct launch_work *launch)
{
	return (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

/* Returns part / whole in millionths, at least 1 and at most 1000000. */
static uint32_t ppm_of(uint64_t part, uint64_t whole)
{
	if (part >= whole)
		return PPM;
	return (uint32_t)((unsigned __int128)part * PPM / whole) + 1;
}

/* The share of the SMs that the blocks fill, which is what the kernel needs at least. */
static uint32_t need_of(const struct sg_device *device, const struct launch_work *launch)
{
	return ppm_of(block_count(launch), slots_of(device, launch));
}

/*
 * Returns the part of the GPU that the kernel takes for so many ns: SMs, by its blocks or by its
 * instructions, and memory bandwidth.
 */
static struct sg_load load_of(const struct sg_device *device, const struct launch_work *launch,
	const struct sg_ptx_result *result, uint64_t ns)
{
	uint64_t issue_ns = td_model_kernel_ns(&device->spec, 0, result->instructions, 0) -
			    device->spec.launch_latency_ns;
	uint64_t memory_ns =
		td_model_kernel_ns(&device->spec, 0, 0,
			result->load_bytes + result->store_bytes - result->remote_bytes) -
		device->spec.launch_latency_ns;
	struct sg_load load = {need_of(device, launch), ppm_of(memory_ns, ns)};
	uint32_t issue_ppm = ppm_of(issue_ns, ns);

	if (issue_ppm > load.need_ppm)
		load.need_ppm = issue_ppm;
	return load;
}

/* Returns the share of the SMs that get at least one block, in ppm. */
static uint32_t sms_of(const struct sg_device *device, const struct launch_work *launch)
{
	uint64_t blocks = block_count(launch), sms = device->info.sm_count;

	return blocks >= sms ? 1000000 : (uint32_t)(blocks * 1000000 / sms);
}

/*
 * Returns since when the kernel could have started on a GPU that fetches work from its queue
 * itself. 0 means now, or that it was too long ago. Work with dependencies, such as a graph's
 * launch, also returns 0, because their end is not known here.
 */
static uint64_t next_since_ns(const struct CUstream_st *stream, const struct sg_work *work)
{
	uint64_t since_ns =
		stream->last_end_ns > work->submit_ns ? stream->last_end_ns : work->submit_ns;

	if (!work->submit_ns || work->after_count || td_time_now_ns() > since_ns + SG_LATE_MAX_NS)
		return 0;
	return since_ns;
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
		.output = {NULL, print},
		.cooperative = launch->cooperative,
		.cancel = &context->cancel,
	};
	struct sg_op op;
	struct sg_load load;
	uint64_t since_ns, ns;
	int r, outcome;

	launch->context = context;
	memcpy(run.grid, launch->grid, sizeof(run.grid));
	memcpy(run.block, launch->block, sizeof(run.block));
	since_ns = next_since_ns(stream, work);
	if (sg_client_op_begin_kernel(sg.client, &op, context->device, context->id, since_ns,
		    need_of(device, launch)))
		return SG_LOST;
	run.time = (struct sg_ptx_time){
		.start_ns = since_ns ? since_ns : td_time_now_ns(),
		.instr_ps = device->info.instr_ps,
		.clock_mhz = device->info.clock_mhz,
		.slots = slots_of(device, launch),
		.sm_count = device->info.sm_count,
	};
	outcome = sg_ptx_run(&run, &result);
	ns = length_of(&device->spec, &result);
	load = load_of(device, launch, &result, ns);
	r = report_touches(&op, launch);
	if (r || sg_client_op_length(sg.client, &op, ns, sms_of(device, launch), &load) ||
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

/* Kernel parameters come as an array of pointers, or as one buffer in `extra`. */
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
	struct CUfunc_st *function;
	struct launch_work *work;
	size_t bytes;
	int r = sg_function_find(context, handle, &function);

	if (r)
		return r;
	if (function->ptx->refusal) {
		if (getenv("SOFTGPU_DEBUG"))
			fprintf(stderr, "softgpu: kernel %s: %s\n", function->ptx->name,
				function->ptx->refusal);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
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
	work->function_id = function->id;
	memcpy(work->grid, &config->gridDimX, sizeof(work->grid));
	memcpy(work->block, &config->blockDimX, sizeof(work->block));
	work->shared = config->sharedMemBytes;
	work->cooperative = cooperative;
	r = gather_params(function->ptx, params, extra, work->params);
	if (!r && cooperative &&
		block_count(work) >
			context->sm_count * blocks_per_sm(&sg.devices[context->device], work))
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

int sg_work_kernel_params(
	const struct sg_work *work, CUDA_KERNEL_NODE_PARAMS_v1 *ret, void ***ret_params)
{
	struct launch_work *launch = (struct launch_work *)work;
	const struct sg_ptx_function *ptx = launch->function->ptx;
	void **params;

	if (work->run != run_kernel)
		return CUDA_ERROR_INVALID_VALUE;
	params = calloc(ptx->param_count + 1, sizeof(void *));
	if (!params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < ptx->param_count; i++)
		params[i] = launch->params + ptx->params[i].offset;
	*ret = (CUDA_KERNEL_NODE_PARAMS_v1){launch->function, launch->grid[0], launch->grid[1],
		launch->grid[2], launch->block[0], launch->block[1], launch->block[2],
		launch->shared, params, NULL};
	*ret_params = params;
	return CUDA_SUCCESS;
}

bool *sg_work_cooperative(struct sg_work *work)
{
	return &((struct launch_work *)work)->cooperative;
}

bool sg_work_is_valid(struct CUctx_st *context, const struct sg_work *work)
{
	const struct launch_work *launch = (const struct launch_work *)work;
	struct CUfunc_st *function;

	if (work->run != run_kernel)
		return true;
	return !sg_function_find(context, launch->function, &function) &&
	       function->id == launch->function_id;
}

static int launch(const CUlaunchConfig *config, CUfunction handle, void **params, void **extra,
	bool cooperative, bool ptsz)
{
	struct CUstream_st *stream;
	struct sg_work *work;
	int r = sg_stream_find(config->hStream, ptsz, &stream);

	/*
	 * The context of a CUfunction must be the stream's. For a CUkernel cuda.h says: "the
	 * context to launch [a CUkernel] on will ... be taken from the specified stream"
	 * (cuLaunchKernel).
	 */
	if (!r && stream->context != sg_current_or_null())
		r = sg_kernel_function(stream->context, handle, &handle);
	if (!r)
		r = make_launch(stream->context, config, handle, params, extra, cooperative, &work);
	/*
	 * cuda.h: cuLaunchKernel "invalidates the persistent function state set through ...
	 * deprecated APIs", so cuLaunch needs it set again.
	 */
	if (!r)
		memset(((struct launch_work *)work)->function->legacy.block, 0,
			sizeof(((struct launch_work *)work)->function->legacy.block));
	return r ? r : sg_stream_submit(stream, work, NULL);
}

/*
 * Attributes that are only performance hints are ignored. Attributes that change behaviour and are
 * not implemented are refused.
 */
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
