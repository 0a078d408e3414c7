/*
 * Every way to a driver symbol ends in a wrapper of the library: the exported names, dlsym, dlvsym
 * and cuGetProcAddress. dlopen loses the flag that would bypass them (docs/decisions/0004).
 *
 * dlsym, dlvsym and dlopen are assembly, so that the real functions see their true caller:
 * RTLD_NEXT and a caller's RUNPATH keep their meaning. The C parts below only say whether a name is
 * hooked.
 */
#include <dlfcn.h>
#include <string.h>

#include "cuda/symbols.h"
#include "preload/base/page.h"
#include "preload/base/sizes.h"
#include "preload/driver/driver.h"
#include "preload/driver/real.h"
#include "preload/gate/gate.h"
#include "preload/gate/meter.h"
#include "preload/hooks/nvml.h"
#include "preload/outside/libraries.h"
#include "preload/outside/reach.h"
#include "preload/rehome/rehome.h"

#define EXPORT __attribute__((visibility("default")))

struct td_real td_real;
const struct td_real *td_true = &td_real;
void (*_Atomic td_real_sync)(void);

_Static_assert(
	sizeof(td_real) == TD_SYMBOL_N * sizeof(void (*)(void)), "one pointer for each symbol");

#define WRAPPED_SUBMIT(symbol, ...)      WRAPPER(symbol)
#define WRAPPED_SUBMIT_EX(symbol, ...)   WRAPPER(symbol)
#define WRAPPED_SUBMIT_WAIT(symbol, ...) WRAPPER(symbol)
#define WRAPPED_NAMES(symbol, ...)       WRAPPER(symbol)
/* These classes have no generated wrapper: only their symbols in hooks.def are hooked. */
#define WRAPPED_SUBMIT_GRAPH(...)
#define WRAPPED_NAMES_GRAPH(...)
#define WRAPPED_NAMES_NODE(...)
#define WRAPPED_ALLOC_ASYNC(...)
#define WRAPPED_FREE_ASYNC(...)
#define WRAPPED_COPY_WAIT(...)
#define WRAPPED_ORDER(...)
#define WRAPPED_WAIT(...)
#define WRAPPED_ALLOC(...)
#define WRAPPED_FREE(...)
#define WRAPPED_HOST(...)
#define WRAPPED_LOAD(...)
#define WRAPPED_UNLOAD(...)
#define WRAPPED_SHARE(...)
#define WRAPPED_VIEW(...)
#define WRAPPED_CONTEXT(...)
#define WRAPPED_STREAM(...)
#define WRAPPED_CAPTURE(...)
#define WRAPPED_LOOKUP(...)
#define WRAPPED_PASS(...)

#define SYMBOL(symbol, name, since, flavour, class, stream, kinds) WRAPPED_##class(symbol, )
#define HOOK(symbol)                                               WRAPPER(symbol)

#define THUNK(symbol)              WRAPPER(symbol)
#define BLOCKER(symbol, why, when) WRAPPER(symbol)

#define WRAPPER(symbol) EXPORT CUresult symbol TD_PARAMS_##symbol;
#include "cuda/symbols.def"
#include "preload/driver/hooks.def"
#include "preload/rehome/blockers.def"
#include "preload/rehome/thunks.def"
#undef WRAPPER

/* The wrappers by index in td_symbols; NULL: not hooked. */
static void *const wrappers[TD_SYMBOL_N] = {
#define WRAPPER(symbol) [TD_SYMBOL_##symbol] = (void *)symbol,
#include "cuda/symbols.def"
#include "preload/driver/hooks.def"
#include "preload/rehome/blockers.def"
#include "preload/rehome/thunks.def"
#undef WRAPPER
};
#undef SYMBOL
#undef HOOK
#undef THUNK
#undef BLOCKER

int td_real_load(void)
{
	/*
	 * 0: not tried; 1: loaded; -1: no driver. If two threads load at once, both get the same
	 * result.
	 */
	static _Atomic int state;
	static struct td_real driver;
	void **real = (void **)&td_real, *handle;

	if (state)
		return state > 0 ? 0 : -1;
	td_libc_find();
	handle = td_libc_dlopen ? td_libc_dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!handle) {
		state = -1;
		return -1;
	}
	for (size_t i = 0; i < TD_SYMBOL_N; i++)
		real[i] = td_libc_dlsym(handle, td_symbols[i].symbol);
	/* Copied once, before td_real gets other functions. */
	driver = td_real;
	td_true = &driver;
	if (!td_gate_disabled())
		td_rehome_load();
	td_driver_publish_real();
	state = 1;
	return 0;
}

static void *wrapper_of(const struct td_symbol *symbol)
{
	return symbol ? wrappers[symbol - td_symbols] : NULL;
}

/*
 * A driver newer than the table may have a newer form of the symbol with other parameters; that
 * form is left alone.
 */
static bool is_known_form(
	const struct td_symbol *symbol, const char *name, int version, uint64_t flags, void *found)
{
	void *known = NULL;

	if (version <= TD_SYMBOLS_CUDA_VERSION ||
		found == ((void *const *)td_true)[symbol - td_symbols])
		return true;
	return td_real.cuGetProcAddress_v2 &&
	       !td_real.cuGetProcAddress_v2(name, &known, TD_SYMBOLS_CUDA_VERSION, flags, NULL) &&
	       known == found;
}

/*
 * The driver is asked first: a symbol that it lacks is not returned. cudart's first look-up has an
 * empty name and version 0.
 */
static CUresult answer(CUresult r, const char *name, void **ret, int version, uint64_t flags)
{
	const struct td_symbol *symbol;

	if (r || td_gate_disabled() || !name || !*name || !ret || !*ret)
		return r;
	symbol = td_symbol_find(name, version, flags);
	if (wrapper_of(symbol) && is_known_form(symbol, name, version, flags, *ret))
		*ret = wrapper_of(symbol);
	return r;
}

CUresult td_hook_cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags)
{
	return answer(
		td_real.cuGetProcAddress(name, ret, version, flags), name, ret, version, flags);
}

CUresult td_hook_cuGetProcAddress_v2(
	const char *name, void **ret, int version, uint64_t flags, int *status)
{
	return answer(td_real.cuGetProcAddress_v2(name, ret, version, flags, status), name, ret,
		version, flags);
}

/*
 * Each returns our function for this look-up, or NULL: then the real function is called unchanged.
 */
/*
 * A program that looks up cuGetProcAddress gets the library's, which calls the real one. Otherwise
 * its later look-ups would bypass the library.
 */
static void *lookup_of(const char *name)
{
	if (td_is_same(name, "dlsym"))
		return (void *)dlsym;
	if (td_is_same(name, "dlvsym"))
		return (void *)dlvsym;
	return td_is_same(name, "dlopen") ? (void *)dlopen : NULL;
}

__attribute__((used)) void *td_dlsym_ours(void *handle, const char *name);

__attribute__((used)) void *td_dlsym_ours(void *handle, const char *name)
{
	void *ours = NULL;

	td_libc_find();
	if (!name || handle == RTLD_NEXT)
		return NULL;
	if (name[0] == 'c' && name[1] == 'u')
		ours = wrapper_of(td_symbol_by_export(name));
	else if (name[0] == 'n' && name[1] == 'v')
		ours = td_nvml_wrapper(name);
	else
		ours = lookup_of(name);
	/* A symbol is replaced only if the object that is searched has it. */
	return ours && !td_gate_disabled() && td_libc_dlsym(handle, name) ? ours : NULL;
}

/*
 * Other interposers get the real dlsym by dlvsym: a look-up with a version skips definitions
 * without one, such as ours. So dlvsym is hooked too.
 */
__attribute__((used)) void *td_dlvsym_ours(void *handle, const char *name);

__attribute__((used)) void *td_dlvsym_ours(void *handle, const char *name)
{
	void *ours;

	td_libc_find();
	ours = name && handle == RTLD_NEXT ? lookup_of(name) : NULL;
	if (ours && !td_gate_disabled())
		return ours;
	return td_dlsym_ours(handle, name);
}

#if defined(__x86_64__)
/*
 * Saves the arguments and asks a C part. Returns its answer, or jumps to the real function with the
 * arguments restored.
 */
#define LOOKUP_STUB(name, ours, real)                                                              \
	__asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\n"                   \
		" endbr64\n"                                                                       \
		" push %rdi\n push %rsi\n push %rdx\n"                                             \
		" call " ours "\n"                                                                 \
		" pop %rdx\n pop %rsi\n pop %rdi\n"                                                \
		" test %rax, %rax\n jnz 1f\n"                                                      \
		" jmp *" real "(%rip)\n"                                                           \
		"1: ret\n.size " name ", .-" name "\n")

LOOKUP_STUB("dlsym", "td_dlsym_ours", "td_libc_dlsym");
LOOKUP_STUB("dlvsym", "td_dlvsym_ours", "td_libc_dlvsym");

/* The flag RTLD_DEEPBIND (8) is removed: it would make a library find the driver before us. */
__asm__(".text\n.globl dlopen\n.type dlopen, @function\ndlopen:\n"
	" endbr64\n"
	" push %rdi\n push %rsi\n sub $8, %rsp\n"
	" call td_libc_find\n"
	" add $8, %rsp\n pop %rsi\n pop %rdi\n"
	" and $~8, %esi\n"
	" jmp *td_libc_dlopen(%rip)\n.size dlopen, .-dlopen\n");
#else
#error "dlsym, dlvsym and dlopen need a stub for this processor: see LOOKUP_STUB"
#endif

/* -- the exported wrappers -- */

/* Without a driver, cuInit has already returned the error that the program would have got. */
#define READY(symbol) (td_real.symbol || (!td_real_load() && td_real.symbol))

#define KIND_PLAIN 0
#define KIND_PTSZ  TD_SUBMIT_OWN_NULL
#define KIND_PTDS  TD_SUBMIT_OWN_NULL

/*
 * Returns the kind bit of a programmatic dependent launch, which starts before the launch before it
 * has ended.
 */
static uint32_t attributes_kind(const CUlaunchConfig *config)
{
	for (unsigned i = 0; config && config->attrs && i < config->numAttrs; i++)
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
			return TD_SUBMIT_DEPENDENT;
	return 0;
}

/* Returns whether all blocks of the launch have to fit at once. */
static bool is_cooperative(const CUlaunchConfig *config)
{
	for (unsigned i = 0; config && config->attrs && i < config->numAttrs; i++)
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
			config->attrs[i].value.cooperative)
			return true;
	return false;
}

/*
 * Called before a cooperative launch comes to the gate: the share of the SMs that it was made for
 * must not change while it waits there.
 */
static void note_cooperative(bool is)
{
	if (is)
		td_unmovable_note(TD_UNMOVABLE(COOPERATIVE));
}

static __attribute__((noinline, cold)) void meter(struct td_marker *marker, void *stream,
	uint32_t kind, const void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared_bytes)
{
	td_meter_launch(marker, stream, kind,
		&(const struct td_shape){function, {gx, gy, gz}, {bx, by, bz}, shared_bytes});
}

#define UNPACK(...) __VA_ARGS__
/* Picks the function or kernel of a launch from the arguments; NULL in all other calls. */
#define FIRST(function, ...) ((const void *)(function))
#define FUNCTION(work)       FIRST work
/*
 * Whether this launch may be of a kernel of a library (cuLibraryLoadData), which is named by a
 * handle of its own.
 */
#define LAUNCHES(symbol, work) (FUNCTION(work) && td_library_has_kernels())
/* Prepares the facts of a kernel that the meter needs; compiled away in all other calls. */
#define METER(marker, stream, kind, work, block)                                                   \
	do {                                                                                       \
		if (FIRST work && __builtin_expect(td_meter_is_on(marker), 0))                     \
			meter(marker, (void *)(stream), kind, UNPACK work, UNPACK block);          \
	} while (0)
#define WORK(symbol, work)                                                                         \
	(td_submit_kind(TD_SYMBOL_##symbol, UNPACK work) | td_submit_size(TD_SIZE(symbol)))

#define IS_COOPERATIVE(symbol)                                                                     \
	(TD_SYMBOL_##symbol == TD_SYMBOL_cuLaunchCooperativeKernel ||                              \
		TD_SYMBOL_##symbol == TD_SYMBOL_cuLaunchCooperativeKernel_ptsz)

/* waits: whether the call itself waits for its work. cooperative: see note_cooperative(). */
#define SUBMITTING(symbol, stream, kind, waits, cooperative)                                       \
	EXPORT CUresult symbol TD_PARAMS_##symbol                                                  \
	{                                                                                          \
		struct td_marker *marker;                                                          \
		CUresult r;                                                                        \
		if (!READY(symbol))                                                                \
			return CUDA_ERROR_NOT_FOUND;                                               \
		if (TD_REACHES(symbol)) {                                                          \
			r = td_reach_refuse((void *)(stream), kind, waits);                        \
			if (r)                                                                     \
				return r;                                                          \
		}                                                                                  \
		if (LAUNCHES(symbol, TD_WORK_##symbol)) {                                          \
			r = td_library_launches(FUNCTION(TD_WORK_##symbol), (void *)(stream));     \
			if (r)                                                                     \
				return r;                                                          \
		}                                                                                  \
		note_cooperative(cooperative);                                                     \
		marker = td_gate_enter((void *)(stream), (kind) | WORK(symbol, TD_WORK_##symbol)); \
		METER(marker, stream, kind, TD_WORK_##symbol, TD_BLOCK_##symbol);                  \
		r = td_real.symbol TD_ARGS_##symbol;                                               \
		td_gate_leave(marker);                                                             \
		return r;                                                                          \
	}

#define NAMING(symbol)                                                                             \
	EXPORT CUresult symbol TD_PARAMS_##symbol                                                  \
	{                                                                                          \
		struct td_marker *marker;                                                          \
		CUresult r;                                                                        \
		if (!READY(symbol))                                                                \
			return CUDA_ERROR_NOT_FOUND;                                               \
		if (TD_REACHES(symbol))                                                            \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		marker = td_gate_enter_naming();                                                   \
		r = td_real.symbol TD_ARGS_##symbol;                                               \
		/* Texture objects cannot move; no move can begin before this has been noted. */   \
		if (TD_SYMBOL_##symbol == TD_SYMBOL_cuTexObjectCreate && !r)                       \
			td_unmovable_note(TD_UNMOVABLE(ARRAYS));                                   \
		td_gate_leave(marker);                                                             \
		return r;                                                                          \
	}

#undef WRAPPED_SUBMIT
#undef WRAPPED_SUBMIT_EX
#undef WRAPPED_SUBMIT_WAIT
#undef WRAPPED_NAMES
#define WRAPPED_SUBMIT(symbol, stream, flavour)                                                    \
	SUBMITTING(symbol, stream, KIND_##flavour, false, IS_COOPERATIVE(symbol))
#define WRAPPED_SUBMIT_EX(symbol, stream, flavour)                                                 \
	SUBMITTING(symbol, stream, KIND_##flavour | attributes_kind(config), false,                \
		is_cooperative(config))
#define WRAPPED_SUBMIT_WAIT(symbol, stream, flavour)                                               \
	SUBMITTING(symbol, stream, KIND_##flavour, true, false)
#define WRAPPED_NAMES(symbol, ...) NAMING(symbol)

#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	WRAPPED_##class(symbol, stream, flavour)
#define HOOK(symbol)                                                                               \
	EXPORT CUresult symbol TD_PARAMS_##symbol                                                  \
	{                                                                                          \
		if (!READY(symbol))                                                                \
			return CUDA_ERROR_NOT_FOUND;                                               \
		return td_gate_disabled() ? td_real.symbol TD_ARGS_##symbol                        \
					  : td_hook_##symbol TD_ARGS_##symbol;                     \
	}
/*
 * Calls the driver's function or, once the program has moved to another GPU, its adapter
 * (rehome.h).
 */
#define THUNK(symbol)                                                                              \
	EXPORT CUresult symbol TD_PARAMS_##symbol                                                  \
	{                                                                                          \
		if (__builtin_expect(!td_real.symbol, 0) && !READY(symbol))                        \
			return CUDA_ERROR_NOT_FOUND;                                               \
		return td_real.symbol TD_ARGS_##symbol;                                            \
	}
#define BLOCKER(symbol, why, when)                                                                 \
	EXPORT CUresult symbol TD_PARAMS_##symbol                                                  \
	{                                                                                          \
		CUresult r;                                                                        \
		if (!READY(symbol))                                                                \
			return CUDA_ERROR_NOT_FOUND;                                               \
		/* A move to another GPU must not come between the call and its record. */         \
		td_rehome_begin();                                                                 \
		r = td_real.symbol TD_ARGS_##symbol;                                               \
		if (!r && (when))                                                                  \
			td_unmovable_note(TD_UNMOVABLE(why));                                      \
		td_rehome_end();                                                                   \
		return r;                                                                          \
	}
#include "cuda/symbols.def"
#include "preload/driver/hooks.def"
#include "preload/rehome/blockers.def"
#include "preload/rehome/thunks.def"
