/*
 * The linker (cuLink*), for PTX only. Its inputs are concatenated, and the image it returns is PTX
 * too, as there is no machine code here. Inputs that need a compiler (NVVM) or are machine code
 * (cubins, objects) are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/code/module.h"

enum {
	CU_JIT_INPUT_CUBIN = 0,
	CU_JIT_INPUT_PTX = 1,
	CU_JIT_INPUT_FATBINARY = 2,
	CU_JIT_INPUT_TYPES = 6,
};

struct CUlinkState_st {
	struct td_list link;
	char *text;
	size_t len;
	bool complete; /* cuLinkComplete has returned text */
	struct sg_jit jit;
};
typedef struct CUlinkState_st *CUlinkState;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct td_list states = {&states, &states};

static bool is_live(CUlinkState state)
{
	struct td_list *it;

	td_list_for_each (it, &states)
		if (td_container_of(it, struct CUlinkState_st, link) == state)
			return true;
	return false;
}

/* Appends a PTX text with its header directives. The parser links several such texts (ptx.h). */
static int append(CUlinkState state, const char *text, size_t len)
{
	size_t n = strnlen(text, len);
	char *bigger = realloc(state->text, state->len + n + 2);

	if (!bigger)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(bigger + state->len, text, n);
	memcpy(bigger + state->len + n, "\n", 2);
	state->text = bigger;
	state->len += n + 1;
	return CUDA_SUCCESS;
}

/*
 * Adds an input after checking its format. The code is parsed at the end, because it may refer to
 * names in later inputs.
 */
static int add(CUlinkState state, int type, const void *data, size_t bytes)
{
	struct sg_fatbin_ptx ptx = {.text = data, .len = bytes};
	int r = CUDA_SUCCESS;

	if (!data || !bytes || type < 0 || type >= CU_JIT_INPUT_TYPES)
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_JIT_INPUT_CUBIN)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	if (type == CU_JIT_INPUT_FATBINARY)
		r = sg_image_text(data, sg_device_sm(0), &ptx);
	else if (type != CU_JIT_INPUT_PTX)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (r)
		return r;
	r = state->complete ? CUDA_ERROR_INVALID_VALUE : append(state, ptx.text, ptx.len);
	sg_fatbin_ptx_deinit(&ptx);
	return r;
}

API CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *ret)
{
	CUlinkState state;
	struct CUctx_st *context;
	struct sg_jit jit;
	int r = sg_current(&context);

	if (!r && !ret)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = sg_jit_read(count, options, values, &jit);
	if (r)
		return r;
	state = calloc(1, sizeof(*state));
	if (!state)
		return CUDA_ERROR_OUT_OF_MEMORY;
	state->jit = jit;
	pthread_mutex_lock(&lock);
	td_list_append(&states, &state->link);
	pthread_mutex_unlock(&lock);
	*ret = state;
	return CUDA_SUCCESS;
}

API CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t bytes,
	const char *name, unsigned count, int *options, void **values)
{
	struct sg_jit unused; /* errors are found by cuLinkComplete, when all inputs are there */
	int r = sg_ready();

	(void)name; /* only used in log messages, and none are written here */
	if (!r)
		r = sg_jit_read(count, options, values, &unused);
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	r = is_live(state) ? add(state, type, data, bytes) : CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_unlock(&lock);
	return r;
}

API CUresult cuLinkAddFile_v2(
	CUlinkState state, int type, const char *path, unsigned count, int *options, void **values)
{
	char *bytes;
	int r = sg_ready();

	if (!r)
		r = sg_read_file(path, &bytes);
	if (r)
		return r;
	r = cuLinkAddData_v2(state, type, bytes, strlen(bytes), path, count, options, values);
	free(bytes);
	return r;
}

/* cuda.h: "The memory for cubinOut is owned by the linker and freed by cuLinkDestroy." */
API CUresult cuLinkComplete(CUlinkState state, void **image, size_t *bytes)
{
	struct sg_ptx_module *ptx;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	if (!is_live(state))
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (!image || !state->text)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = sg_ptx_load(state->text, state->len, sg_device_sm(0), &state->jit, &ptx);
	if (!r) {
		sg_ptx_module_free(ptx);
		state->complete = true; /* adding more could move the text */
		*image = state->text;
		if (bytes)
			*bytes = state->len + 1;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

API CUresult cuLinkDestroy(CUlinkState state)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	if (is_live(state)) {
		td_list_remove(&state->link);
		free(state->text);
		free(state);
	} else {
		r = CUDA_ERROR_INVALID_HANDLE;
	}
	pthread_mutex_unlock(&lock);
	return r;
}
