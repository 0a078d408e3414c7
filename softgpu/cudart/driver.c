/*
 * Finds the driver: libcuda.so.1 is opened once, and its functions are looked up when they are
 * first called.
 */
#include "softgpu/cudart/rt.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>

typedef CUresult (*get_proc_address_fn)(const char *, void **, int, uint64_t, int *);

static struct {
	pthread_once_t once;
	get_proc_address_fn find;
	int error; /* the error of cuInit, or the reason why there is no driver */
	_Atomic(void *) functions[TD_SYMBOL_N];
} driver = {.once = PTHREAD_ONCE_INIT};

/*
 * Stands in for functions that the driver lacks. It may have any parameters, since it does not use
 * them.
 */
static CUresult missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	driver.find = library ? (get_proc_address_fn)dlsym(library, "cuGetProcAddress_v2") : NULL;
	driver.error = driver.find ? CU(cuInit)(0) : cudaErrorInsufficientDriver;
}

int rt_driver_init(void)
{
	pthread_once(&driver.once, open_driver);
	return driver.error;
}

void *rt_driver(enum td_symbol_index index)
{
	void *function = atomic_load_explicit(&driver.functions[index], memory_order_acquire);
	const struct td_symbol *symbol = &td_symbols[index];
	char name[TD_SYMBOL_MAX];
	int status = 0;

	if (function)
		return function;
	snprintf(name, sizeof(name), "%.*s", symbol->name_len, symbol->symbol);
	if (!driver.find || driver.find(name, &function, symbol->since, 0, &status) || !function)
		function = (void *)missing;
	atomic_store_explicit(&driver.functions[index], function, memory_order_release);
	return function;
}
