/*
 * The table of all symbols of the CUDA driver: which symbol a look-up means, and what the
 * interposer has to do about it. symbols.def holds the table and signatures.h the signatures. Both
 * are committed (tools/gen-symbols makes them), so the build needs no CUDA toolkit.
 */
#pragma once

#include <stdint.h>

enum td_symbol_flavour {
	TD_FLAVOUR_PLAIN,
	TD_FLAVOUR_PTSZ, /* default stream is per thread; for calls that take a stream */
	TD_FLAVOUR_PTDS, /* default stream is per thread; for calls that take no stream */
};

/* tools/symbol-classes.txt says what each class means and why a symbol is in it. */
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

#define TD_SYMBOL_MAX 56 /* longest symbol name and string of kinds, with the NUL */
#define TD_KINDS_MAX  24

/*
 * Text is stored in the row, not pointed to. A table of pointers would be relocated, and thereby
 * copied, in every program that the library is loaded into.
 */
struct td_symbol {
	/* The name as the driver exports it; its first name_len bytes are the name to look up. */
	char symbol[TD_SYMBOL_MAX];
	char kinds[TD_KINDS_MAX]; /* one per parameter, see symbols.def */
	uint16_t since;           /* CUDA version that introduced it; 11040 means 11.4 */
	uint8_t flavour, class, name_len;
};

extern const struct td_symbol td_symbols[TD_SYMBOL_N];

/*
 * Finds what cuGetProcAddress_v2(name, version, flags) would: the newest symbol of the name that is
 * not newer than version. With CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM the per-thread flavour
 * is preferred. Returns NULL if there is none.
 */
const struct td_symbol *td_symbol_find(const char *name, int version, uint64_t flags);

/* Finds a row by the driver's export name; NULL if there is none. */
const struct td_symbol *td_symbol_by_export(const char *exported);
