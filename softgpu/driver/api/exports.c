/*
 * The exported symbols of libcuda.so.1. Each first checks for an injected fault, then calls the
 * implementation. The files of this folder define the implementations under other names
 * (tools/gen-driver-names); this file and table.c are compiled without that renaming.
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
