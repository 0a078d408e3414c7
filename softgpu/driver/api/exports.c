/*
 * What programs see: every symbol of the driver, each a look at injected faults and the call behind it. The files of this folder define the
 * calls under other names (tools/gen-driver-names); this one and table.c are compiled without that.
 */
#include "cuda/signatures.h"
#include "cuda/symbols.h"
#include "softgpu/driver/device/fault.h"

#define API __attribute__((visibility("default")))

#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult sg_call_##symbol TD_PARAMS_##symbol;                                              \
	API CUresult symbol TD_PARAMS_##symbol;                                                    \
	API CUresult symbol TD_PARAMS_##symbol                                                     \
	{                                                                                          \
		int r = __atomic_load_n(&sg_faults_armed, __ATOMIC_RELAXED)                        \
				? sg_fault_of_call(TD_SYMBOL_##symbol)                             \
				: CUDA_SUCCESS;                                                    \
                                                                                                   \
		return r ? r : sg_call_##symbol TD_ARGS_##symbol;                                  \
	}
#include "cuda/symbols.def"
#undef SYMBOL
