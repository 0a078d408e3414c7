/*
 * Calls that only forward to the driver, in a current context; the table symbols.def names them.
 * Parameters have the same types in both APIs, which a test checks.
 */
#include "softgpu/cudart/rt.h"

#define OWN(name)
#define REFUSED(name)
#define FORWARD(name, symbol)                                                                      \
	API int name TD_PARAMS_##symbol                                                            \
	{                                                                                          \
		int error = rt_enter();                                                            \
                                                                                                   \
		return rt_done(error ? error : CU(symbol) TD_ARGS_##symbol);                       \
	}
#define FORWARD_PTSZ(name, symbol)                                                                 \
	API int name TD_PARAMS_##symbol                                                            \
	{                                                                                          \
		int error = rt_enter();                                                            \
                                                                                                   \
		stream = rt_per_thread(stream);                                                    \
		return rt_done(error ? error : CU(symbol) TD_ARGS_##symbol);                       \
	}
#include "softgpu/cudart/symbols.def"
