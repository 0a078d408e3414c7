/*
 * The functions that NVIDIA's library exports and this one does not implement. Each returns an
 * error.
 */
#include "softgpu/cudart/rt.h"

#define OWN(name)
#define FORWARD(name, symbol)
#define FORWARD_PTSZ(name, symbol)
#define REFUSED(name)                                                                              \
	API int name(void)                                                                         \
	{                                                                                          \
		return rt_refuse(#name);                                                           \
	}
#include "softgpu/cudart/symbols.def"
