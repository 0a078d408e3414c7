/*
 * The driver's own functions: td_real.cuLaunchKernel(...) calls NVIDIA's, never our wrapper.
 * td_real_load() fills it at the first use; a symbol that the driver lacks is NULL.
 */
#pragma once

#include <stdbool.h>

#include "cuda/signatures.h"
#include "cuda/types.h"

/* The entries are in the order of cuda/symbols.h. */
struct td_real {
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult(*symbol) TD_PARAMS_##symbol;
#include "cuda/symbols.def"
#undef SYMBOL
};

extern struct td_real td_real;

/*
 * The driver's functions themselves, for the library's own objects and for memory, also after the
 * program has moved to another GPU (preload/rehome): td_real then exchanges the program's handles
 * for those of their twins.
 */
extern const struct td_real *td_true;

/*
 * Once the program has moved: makes the context of its present GPU current on the calling thread
 * where the thread works in that of an earlier one. NULL: it has not.
 */
extern void (*_Atomic td_real_sync)(void);

#define HOOK(symbol) CUresult td_hook_##symbol TD_PARAMS_##symbol;
#include "preload/driver/hooks.def"
#undef HOOK

/*
 * life.c: reads the settings, at load. A library whose own constructor uses the GPU may call it
 * earlier, by cuInit. No thread exists yet.
 */
void td_begin(void);
/* init.c */
void td_init_forked(void);

/*
 * 0 once libcuda.so.1 is loaded and its symbols are known; -1: there is no driver. Any thread may
 * call it, any number of times.
 */
int td_real_load(void);

/*
 * memory_hooks.c: while a stream captures, the driver may refuse calls such as cuMemAlloc and then
 * ends the capture. CUDA_SUCCESS: it would not.
 */
CUresult td_refused_by_capture(void);
/* Is this the result of a call that conflicts with a capture? */
bool td_is_capture_error(CUresult r);

/* libc's own, found without asking libc (elf.c). Set before anything of ours runs. */
extern void *(*td_libc_dlsym)(void *handle, const char *name);
extern void *(*td_libc_dlvsym)(void *handle, const char *name, const char *version);
extern void *(*td_libc_dlopen)(const char *name, int flags);
void td_libc_find(void);
/* Returns any other function of libc, or NULL. Not async-signal-safe. */
void *td_libc_symbol(const char *name);
/* signal_hooks.c: finds libc's sigaction(), signal() and so on, which ours hide. */
void td_signal_hooks_find(void);
/* strcmp(a, b) == 0, also where libc's may not be called yet. */
bool td_is_same(const char *a, const char *b);
