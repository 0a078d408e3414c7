/* Shared by migrate_test.c and migrate_late.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cuda/objects.h"
#include "cuda/signatures.h"
#include "softgpu/driver/graph/graph_abi.h"

#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult symbol TD_PARAMS_##symbol;
#include "cuda/symbols.def"
#undef SYMBOL

#define KIB 1024u

#define WRITE_VALUE_32 2 /* CU_STREAM_MEM_OP_WRITE_VALUE_32 */

extern CUcontext context;
extern CUdevice device;
/* affine(p, n, m, c): word i * 1024 of n becomes m * word + c. */
extern const char ptx[];

/* The process ends with 5 if the call failed, with 4 if it is not so. */
void must_at(CUresult r, const char *call, int line);
void is_at(bool so, const char *what, int line);
#define MUST(call) must_at(call, #call, __LINE__)
#define IS(what)   is_at(what, #what, __LINE__)

/* Nodes that name the program's context; see there. */
void name_context(void);
/* Makes memory for the program's device, wherever its work is now, and asks about it. */
void make_late(void);
