/* What the files about code share: modules, functions, libraries, launches. */
#pragma once

#include "softgpu/driver/code/jit_options.h"
#include "softgpu/driver/graph/graph.h"
#include "softgpu/ptx/image/fatbin.h"
#include "softgpu/ptx/ptx.h"

struct CUfunc_st {
	uint64_t id; /* of it alone, when another lies where it was */
	struct CUmod_st *module;
	const struct sg_ptx_function *ptx;
	uint32_t dynamic_shared_max;
	struct {
		unsigned block[3], shared;
		uint32_t bytes;
		char *params;
	} legacy; /* what cuFuncSetBlockShape, cuParamSet* set for cuLaunch */
	struct CUfunc_st *next;
};

struct CUmod_st {
	uint64_t magic;
	struct td_list link; /* in context->modules; context->lock */
	struct CUctx_st *context;
	struct sg_ptx_module *ptx;
	struct CUfunc_st *functions; /* context->lock */
	uint64_t *variables;         /* addresses, by index */
	const uint64_t
		*managed; /* of a library: addresses that all its modules share, 0 where none */
	size_t variable_count;
};

/* -- module.c -- */
/* The PTX text in whatever image this is; the caller deinits *ret. */
int sg_image_text(const void *image, uint32_t sm, struct sg_fatbin_ptx *ret);
uint32_t sg_device_sm(uint32_t device);
/* *ret is NUL-terminated, to be freed. */
int sg_read_file(const char *path, char **ret);
/* For an architecture; jit may be NULL. INVALID_PTX, UNSUPPORTED_PTX_VERSION: the reason is in its log. */
int sg_ptx_load(const char *text, size_t len, uint32_t sm, const struct sg_jit *jit,
	struct sg_ptx_module **ret);
unsigned sg_ptx_function_count(const struct sg_ptx_module *ptx);
/* managed: NULL, or of a library: see CUmod_st. */
int sg_module_new(struct CUctx_st *context, const char *text, size_t len, const uint64_t *managed,
	const struct sg_jit *jit, struct CUmod_st **ret);
void sg_module_free(struct CUmod_st *module);
void sg_modules_context_gone(struct CUctx_st *context);
int sg_module_function(struct CUmod_st *module, const struct sg_ptx_function *ptx, CUfunction *ret);
int sg_module_variable(const struct CUmod_st *module, const char *name, bool managed,
	CUdeviceptr *address, size_t *bytes);

/* -- function.c: a function of a module of this context, also by the handle of a library's kernel; NULL: none -- */
int sg_function_find(struct CUctx_st *context, CUfunction handle, struct CUfunc_st **ret);

/* -- library.c -- */
/* The kernel's function in this context, loaded if need be; NULL: not a kernel, or not to be loaded. */
int sg_kernel_function(struct CUctx_st *context, const void *handle, CUfunction *ret);
void sg_library_context_gone(struct CUctx_st *context);
