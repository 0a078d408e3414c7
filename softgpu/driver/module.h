/* What module.c and launch.c share. */
#pragma once

#include "softgpu/driver/graph.h"
#include "softgpu/ptx/ptx.h"

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

/* A function of a module of this context; NULL: none. */
struct CUfunc_st *sg_function_find(struct CUctx_st *context, CUfunction handle);
