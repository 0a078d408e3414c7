/*
 * The driver's own functions: td_real.cuLaunchKernel(...) calls NVIDIA's, never our wrapper.
 * td_real_load() fills it at the first use; a symbol that the driver lacks is NULL.
 */
#pragma once

#include <stdbool.h>

#include "cuda/signatures.h"
#include "cuda/types.h"

/* The driver's functions, in the order of cuda/symbols.h. */
struct td_real {
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	CUresult(*symbol) TD_PARAMS_##symbol;
#include "cuda/symbols.def"
#undef SYMBOL
};

extern struct td_real td_real;

/*
 * The driver's functions without any exchange of handles. The library uses them for its own objects
 * and for memory. td_real differs once the program has moved to another GPU (preload/rehome): it
 * replaces the program's handles by those of their twins.
 */
extern const struct td_real *td_true;

/*
 * If the program has moved, makes the context of its present GPU current on the calling thread,
 * where an earlier one was current. NULL: it has not moved.
 */
extern void (*_Atomic td_real_sync)(void);

#define HOOK(symbol) CUresult td_hook_##symbol TD_PARAMS_##symbol;
#include "preload/driver/hooks.def"
#undef HOOK

/*
 * life.c: reads the settings. Called at load, while there are no other threads. If a library's
 * constructor uses the GPU first, cuInit calls it earlier.
 */
void td_begin(void);
/* init.c: called in a forked child. */
void td_init_forked(void);

/*
 * Returns 0 once libcuda.so.1 is loaded and its symbols are known, or -1 if there is no driver. Any
 * thread may call it, any number of times.
 */
int td_real_load(void);

/*
 * memory_hooks.c: the driver may refuse calls such as cuMemAlloc while a stream captures, and then
 * the capture ends. Returns the driver's error, or CUDA_SUCCESS if it would not refuse.
 */
CUresult td_refused_by_capture(void);
/* Returns whether the driver gives this result to a call that a capture does not allow. */
bool td_is_capture_error(CUresult r);

/*
 * libc's own dlsym, found without calling libc (elf.c). Set before any other code of the library
 * runs.
 */
extern void *(*td_libc_dlsym)(void *handle, const char *name);
extern void *(*td_libc_dlvsym)(void *handle, const char *name, const char *version);
extern void *(*td_libc_dlopen)(const char *name, int flags);
void td_libc_find(void);
/* Returns any other function of libc, or NULL. Not async-signal-safe. */
void *td_libc_symbol(const char *name);
/* signal_hooks.c: finds libc's sigaction(), signal() and so on, which our functions hide. */
void td_signal_hooks_find(void);
/* Returns whether the strings are equal. Works also where libc's strcmp cannot be called yet. */
bool td_is_same(const char *a, const char *b);
