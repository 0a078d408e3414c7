/* Types and functions that the files about modules, functions, libraries and launches share. */
#pragma once

#include "softgpu/driver/code/jit_options.h"
#include "softgpu/driver/graph/graph.h"
#include "softgpu/ptx/image/fatbin.h"
#include "softgpu/ptx/ptx.h"

struct CUfunc_st {
	uint64_t id; /* unique; tells functions at the same address apart */
	struct CUmod_st *module;
	const struct sg_ptx_function *ptx;
	uint32_t dynamic_shared_max;
	struct {
		unsigned block[3], shared;
		uint32_t bytes;
		char *params;
	} legacy; /* set by cuFuncSetBlockShape and cuParamSet* for cuLaunch */
	struct CUfunc_st *next;
};

struct CUmod_st {
	uint64_t magic;
	struct td_list link; /* in context->modules; context->lock */
	struct CUctx_st *context;
	struct sg_ptx_module *ptx;
	struct CUfunc_st *functions; /* context->lock */
	uint64_t *variables;         /* device addresses, by the variable's index */
	/*
	 * In a library's module: addresses of managed variables, which all its modules share; 0 if
	 * not managed.
	 */
	const uint64_t *managed;
	size_t variable_count;
};

/* -- module.c -- */
/* Finds the PTX text in an image of any supported format. The caller deinits *ret. */
int sg_image_text(const void *image, uint32_t sm, struct sg_fatbin_ptx *ret);
uint32_t sg_device_sm(uint32_t device);
/* Reads a whole file. *ret is NUL-terminated and must be freed. */
int sg_read_file(const char *path, char **ret);
/*
 * Parses PTX for the architecture sm. jit may be NULL. On INVALID_PTX and UNSUPPORTED_PTX_VERSION
 * the reason is in its log.
 */
int sg_ptx_load(const char *text, size_t len, uint32_t sm, const struct sg_jit *jit,
	struct sg_ptx_module **ret);
unsigned sg_ptx_function_count(const struct sg_ptx_module *ptx);
/* managed is NULL except for a library's module: see CUmod_st. */
int sg_module_new(struct CUctx_st *context, const char *text, size_t len, const uint64_t *managed,
	const struct sg_jit *jit, struct CUmod_st **ret);
void sg_module_free(struct CUmod_st *module);
void sg_modules_context_gone(struct CUctx_st *context);
int sg_module_function(struct CUmod_st *module, const struct sg_ptx_function *ptx, CUfunction *ret);
int sg_module_variable(const struct CUmod_st *module, const char *name, bool managed,
	CUdeviceptr *address, size_t *bytes);

/* -- function.c -- */
/*
 * Finds a function of a module of this context. The handle may also be that of a library's kernel.
 * Returns INVALID_HANDLE if it is neither.
 */
int sg_function_find(struct CUctx_st *context, CUfunction handle, struct CUfunc_st **ret);

/* -- library.c -- */
/*
 * Finds the function in this context of a library's kernel, and loads the library's module if
 * necessary. Returns INVALID_HANDLE if the handle is not a kernel, or the error of the load.
 */
int sg_kernel_function(struct CUctx_st *context, const void *handle, CUfunction *ret);
void sg_library_context_gone(struct CUctx_st *context);
