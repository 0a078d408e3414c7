/* Every symbol of the driver exists; those that no other file defines say that they are not supported. None pretends. */
#include "softgpu/driver/driver.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define SYMBOL(name)                                                                               \
	CUresult name(void);                                                                       \
	API __attribute__((weak)) CUresult name(void)                                              \
	{                                                                                          \
		return CUDA_ERROR_NOT_SUPPORTED;                                                   \
	}
#include "softgpu/driver/symbols.def"
#undef SYMBOL
