/*
 * Every symbol of the CUDA driver as a table: which one a look-up means, and what a program that stands between others and the GPU has
 * to do about it. The table is symbols.def, the signatures are in signatures.h; both are generated (tools/gen-symbols), so that nothing here needs
 * the CUDA toolkit.
 */
#pragma once

#include <stdint.h>

enum td_symbol_flavour {
	TD_FLAVOUR_PLAIN,
	TD_FLAVOUR_PTSZ, /* the default stream is the calling thread's: calls that name a stream */
	TD_FLAVOUR_PTDS, /* and calls that do not */
};

/* What each means, and why a symbol has its class: tools/symbol-classes.txt. */
#define TD_SYMBOL_CLASSES(X)                                                                       \
	X(SUBMIT)                                                                                  \
	X(SUBMIT_EX)                                                                               \
	X(SUBMIT_GRAPH)                                                                            \
	X(SUBMIT_WAIT)                                                                             \
	X(COPY_WAIT)                                                                               \
	X(ALLOC_ASYNC)                                                                             \
	X(FREE_ASYNC)                                                                              \
	X(NAMES)                                                                                   \
	X(NAMES_GRAPH)                                                                             \
	X(NAMES_NODE)                                                                              \
	X(ORDER)                                                                                   \
	X(WAIT)                                                                                    \
	X(ALLOC)                                                                                   \
	X(FREE)                                                                                    \
	X(HOST)                                                                                    \
	X(LOAD)                                                                                    \
	X(UNLOAD)                                                                                  \
	X(SHARE)                                                                                   \
	X(VIEW)                                                                                    \
	X(CONTEXT)                                                                                 \
	X(STREAM)                                                                                  \
	X(CAPTURE)                                                                                 \
	X(LOOKUP)                                                                                  \
	X(PASS)

enum td_symbol_class {
#define X(name) TD_CLASS_OF_##name,
	TD_SYMBOL_CLASSES(X)
#undef X
};

/* Index of each symbol in td_symbols. */
enum td_symbol_index {
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds) TD_SYMBOL_##symbol,
#include "cuda/symbols.def"
#undef SYMBOL
	TD_SYMBOL_N,
};

#define TD_SYMBOL_MAX 56 /* of a symbol and of its kinds, ends included */
#define TD_KINDS_MAX  24

/* Holds its text, not pointers to it: the table is in every program that runs, and should be neither relocated nor private there. */
struct td_symbol {
	char symbol
		[TD_SYMBOL_MAX];  /* as exported; a look-up calls it by the first name_len bytes */
	char kinds[TD_KINDS_MAX]; /* of the parameters, see symbols.def */
	uint16_t since;           /* CUDA version, 11040 for 11.4 */
	uint8_t flavour, class, name_len;
};

extern const struct td_symbol td_symbols[TD_SYMBOL_N];

/*
 * What cuGetProcAddress_v2(name, version, flags) finds: of this name, the newest that is not newer than version, in the calling thread's flavour if flags ask for it
 * (CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) and there is one. NULL: nothing.
 */
const struct td_symbol *td_symbol_find(const char *name, int version, uint64_t flags);

/* By the name that the driver exports; NULL if it exports none such. */
const struct td_symbol *td_symbol_by_export(const char *exported);
