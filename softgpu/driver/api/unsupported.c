/*
 * Every symbol of the driver API is exported. Those that no other file defines return
 * NOT_SUPPORTED; none pretends success. refused.txt has the reasons.
 */
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/driver/driver.h"

static CUresult refuse(const char *symbol)
{
	if (getenv("SOFTGPU_DEBUG"))
		fprintf(stderr, "softgpu: %s is not supported\n", symbol);
	return CUDA_ERROR_NOT_SUPPORTED;
}

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult symbol(void);                                                                     \
	API __attribute__((weak)) CUresult symbol(void)                                            \
	{                                                                                          \
		return refuse(#symbol);                                                            \
	}
#include "cuda/symbols.def"
#undef SYMBOL
