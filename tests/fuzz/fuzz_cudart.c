/*
 * Registers images and calls their contents, in any order and with any bytes: nothing crashes, and
 * only registered kernels are launched. This program is the driver: it takes any image, and hands
 * out functions by name.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cudart/rt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp_size);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
	size_t bytes, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext,
	size_t bytes, int constant, int global);
char __cudaInitModule(void **handle);
int cudaLaunchKernel(
	const void *key, dim3 grid, dim3 block, void **args, size_t shared, CUstream stream);
int cudaGetSymbolSize(size_t *bytes, const void *symbol);
int cudaDeviceReset(void);

/*
 * The library registers an exit handler for every image that is loaded; in millions of runs of one
 * process that would take all its memory.
 */
int atexit(void (*function)(void))
{
	(void)function;
	return 0;
}

/* -- the driver -- */

enum { VARIABLE_BYTES = 24 };
static char context, library, state, variable[VARIABLE_BYTES];
static CUcontext current;

static CUresult get_count(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

static CUresult get_current(CUcontext *ret)
{
	*ret = current;
	return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext to)
{
	current = to;
	return CUDA_SUCCESS;
}

static CUresult retain(CUcontext *ret, CUdevice device)
{
	(void)device;
	*ret = (CUcontext)&context;
	return CUDA_SUCCESS;
}

/* The library reads as much as the header states at most: here, the header. */
static CUresult load_data(void **ret, const void *image)
{
	if (!image || (image != &library && !rt_fatbin_bytes(image)))
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	*ret = &library;
	return CUDA_SUCCESS;
}

static CUresult get_kernel(void **ret, void *from, const char *name)
{
	if (from != &library || !*name)
		return CUDA_ERROR_NOT_FOUND;
	*ret = (void *)name;
	return CUDA_SUCCESS;
}

static CUresult get_variable(CUdeviceptr *address, size_t *bytes, void *from, const char *name)
{
	if (from != &library || !*name)
		return CUDA_ERROR_NOT_FOUND;
	*address = (CUdeviceptr)variable;
	if (bytes)
		*bytes = VARIABLE_BYTES;
	return CUDA_SUCCESS;
}

static CUresult link_create(unsigned count, int *options, void **values, void **ret)
{
	(void)count;
	(void)options;
	(void)values;
	*ret = &state;
	return CUDA_SUCCESS;
}

static CUresult link_complete(void *link, void **image, size_t *bytes)
{
	if (link != &state)
		abort();
	*image = &library;
	*bytes = 1;
	return CUDA_SUCCESS;
}

static CUresult yes(void)
{
	return CUDA_SUCCESS;
}

int rt_driver_init(void)
{
	return 0;
}

void *rt_driver(enum td_symbol_index index)
{
	switch ((int)index) {
	case TD_SYMBOL_cuDeviceGetCount: return (void *)get_count;
	case TD_SYMBOL_cuCtxGetCurrent: return (void *)get_current;
	case TD_SYMBOL_cuCtxSetCurrent: return (void *)set_current;
	case TD_SYMBOL_cuDevicePrimaryCtxRetain: return (void *)retain;
	case TD_SYMBOL_cuLibraryLoadData: return (void *)load_data;
	case TD_SYMBOL_cuLibraryGetKernel: return (void *)get_kernel;
	case TD_SYMBOL_cuLibraryGetGlobal:
	case TD_SYMBOL_cuLibraryGetManaged: return (void *)get_variable;
	case TD_SYMBOL_cuLinkCreate_v2: return (void *)link_create;
	case TD_SYMBOL_cuLinkComplete: return (void *)link_complete;
	default: return (void *)yes;
	}
}

/* -- the program -- */

enum { IMAGES = 4, KEYS = 8, HEADER = 16 };

struct program {
	struct rt_wrapper wrappers[IMAGES];
	const void *linked[IMAGES][3];
	_Alignas(8) uint8_t headers[IMAGES][HEADER];
	void **handles[IMAGES];
	void *managed[KEYS];
	int owner[KEYS]; /* the image that names the key last; -1: none */
	const char *names[KEYS];
};

/* The bytes of one operation: 0 behind the end. */
static uint8_t next(const uint8_t **at, const uint8_t *end)
{
	return *at < end ? *(*at)++ : 0;
}

static void add_image(struct program *p, unsigned i, const uint8_t **at, const uint8_t *end)
{
	struct rt_wrapper *w = &p->wrappers[i];
	uint8_t how = next(at, end);

	if (p->handles[i])
		return;
	for (unsigned k = 0; k < HEADER; k++)
		p->headers[i][k] = next(at, end);
	if (how & 1) /* else its magic and version are whatever the input says */
		memcpy(p->headers[i], &(uint64_t){0x00100001ba55ed50}, 8);
	p->linked[i][0] = how & 2 ? p->headers[i] : NULL;
	p->linked[i][1] = how & 4 ? p->headers[(i + 1) % IMAGES] : NULL;
	*w = (struct rt_wrapper){how & 8 ? 0x466243b1u : how,
		how & 16   ? 1
		: how & 32 ? 2
			   : how,
		how & 64 ? p->headers[i] : NULL, how & 128 ? p->linked[i] : NULL};
	p->handles[i] = __cudaRegisterFatBinary(how == 255 ? NULL : w);
}

static void remove_image(struct program *p, unsigned i)
{
	__cudaUnregisterFatBinary(p->handles[i]);
	p->handles[i] = NULL;
	for (unsigned k = 0; k < KEYS; k++)
		if (p->owner[k] == (int)i)
			p->owner[k] = -1;
}

/* Every key is registered once at a time, so that it is known what it stands for. */
static void name_key(struct program *p, unsigned i, unsigned key, unsigned kind)
{
	static const char *const names[] = {"", "kernel", "other"};
	const char *name = names[key % 3];

	if (p->owner[key] >= 0 || !p->handles[i])
		return;
	p->owner[key] = (int)i;
	p->names[key] = kind == 0 ? name : NULL;
	if (kind == 0)
		__cudaRegisterFunction(p->handles[i], (const char *)&p->owner[key], NULL, name, 0,
			NULL, NULL, NULL, NULL, NULL);
	else if (kind == 1)
		__cudaRegisterVar(p->handles[i], (char *)&p->owner[key], NULL, name, 0, 8, 0, 0);
	else
		__cudaRegisterManagedVar(p->handles[i], &p->managed[key], NULL, name, 0, 8, 0, 0);
}

static void use_key(struct program *p, unsigned key)
{
	dim3 one = {1, 1, 1};
	size_t bytes = 0;
	int error = cudaLaunchKernel(&p->owner[key], one, one, NULL, 0, NULL);

	if (!error && (p->owner[key] < 0 || !p->names[key] || !*p->names[key]))
		abort();
	error = cudaGetSymbolSize(&bytes, &p->owner[key]);
	if (!error && (p->owner[key] < 0 || p->names[key] || bytes != VARIABLE_BYTES))
		abort();
	if (p->managed[key] && p->managed[key] != variable)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data, *end = data + size;
	struct program p = {.owner = {-1, -1, -1, -1, -1, -1, -1, -1}};

	while (at < end) {
		uint8_t what = next(&at, end);
		unsigned i = what >> 3 & 3, key = next(&at, end) % KEYS;

		switch (what & 7) {
		case 0: add_image(&p, i, &at, end); break;
		case 1: remove_image(&p, i); break;
		case 2: name_key(&p, i, key, 0); break;
		case 3: name_key(&p, i, key, 1); break;
		case 4: name_key(&p, i, key, 2); break;
		case 5: (void)__cudaInitModule(p.handles[i]); break;
		case 6: use_key(&p, key); break;
		default: (void)cudaDeviceReset(); break;
		}
	}
	for (unsigned i = 0; i < IMAGES; i++)
		remove_image(&p, i);
	return 0;
}
