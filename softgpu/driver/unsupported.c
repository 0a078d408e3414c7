/* Every symbol of the driver exists; those that no other file defines say that they are not supported. None pretends. */
#include "softgpu/driver/driver.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult symbol(void);                                                                     \
	API __attribute__((weak)) CUresult symbol(void)                                            \
	{                                                                                          \
		return CUDA_ERROR_NOT_SUPPORTED;                                                   \
	}
#include "cuda/symbols.def"
#undef SYMBOL
