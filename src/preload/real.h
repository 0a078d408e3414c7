/*
 * The driver's own functions: td_real.cuLaunchKernel(...) calls NVIDIA's, never our wrapper. Filled by td_real_load() at the first use; a
 * symbol that the driver lacks is NULL.
 */
#pragma once

#include <stdbool.h>

#include "cuda/types.h"

struct td_real {
#define REAL(symbol, parameters) CUresult(*symbol) parameters;
#define HOOK(symbol, lookup, since, flavour, parameters, arguments, body)                          \
	CUresult(*symbol) parameters;
#include "preload/hooks.def"
#include "preload/real.def"
#undef HOOK
#undef REAL
};

extern struct td_real td_real;

/* 0 once libcuda.so.1 is loaded and its symbols are known; -1: there is no driver. Any thread, any number of times. */
int td_real_load(void);

/* libc's own, found without asking libc (elf.c). Set before anything of ours runs. */
extern void *(*td_libc_dlsym)(void *handle, const char *name);
extern void *(*td_libc_dlvsym)(void *handle, const char *name, const char *version);
extern void *(*td_libc_dlopen)(const char *name, int flags);
void td_libc_find(void);

/* Our wrapper for an exported name, or NULL. */
void *td_hook_find(const char *symbol);
/* Our wrapper for a look-up by name, version and flavour, or NULL. */
void *td_hook_lookup(const char *name, int version, bool per_thread);
