/*
 * Every way to a driver symbol ends in our wrapper: the exported names themselves, dlsym, dlvsym, cuGetProcAddress; and dlopen loses the
 * flag that would hide us (docs/decisions/0006-interception.md).
 *
 * dlsym, dlvsym and dlopen are assembly, so that the real ones see their true caller: RTLD_NEXT and a caller's RUNPATH mean what they
 * should. The C parts below only say whether a name is ours.
 */
#include <dlfcn.h>
#include <string.h>

#include "preload/driver.h"
#include "preload/gate.h"
#include "preload/real.h"

#define EXPORT __attribute__((visibility("default")))

struct td_real td_real;

enum { PLAIN, THREAD };

struct row {
	const char *symbol, *lookup;
	int since, flavour;
	void *wrapper, **real;
};

#define HOOK(symbol, lookup, since, flavour, parameters, arguments, body)                          \
	EXPORT CUresult symbol parameters;
#include "preload/hooks.def"
#undef HOOK

static const struct row rows[] = {
#define HOOK(symbol, lookup, since, flavour, parameters, arguments, body)                          \
	{#symbol, lookup, since, flavour, (void *)symbol, (void **)&td_real.symbol},
#include "preload/hooks.def"
#undef HOOK
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

int td_real_load(void)
{
	static int
		state; /* 0 not tried, 1 loaded, -1 none; a race loads twice with the same result */
	void *handle;

	if (state)
		return state > 0 ? 0 : -1;
	td_libc_find();
	handle = td_libc_dlopen ? td_libc_dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!handle) {
		state = -1;
		return -1;
	}
	for (size_t i = 0; i < ROWS; i++)
		*rows[i].real = td_libc_dlsym(handle, rows[i].symbol);
#define REAL(symbol, parameters) *(void **)&td_real.symbol = td_libc_dlsym(handle, #symbol);
#include "preload/real.def"
#undef REAL
	td_driver_publish_real();
	state = 1;
	return 0;
}

void *td_hook_find(const char *symbol)
{
	for (size_t i = 0; i < ROWS; i++)
		if (!strcmp(rows[i].symbol, symbol))
			return rows[i].wrapper;
	return NULL;
}

void *td_hook_lookup(const char *name, int version, bool per_thread)
{
	const struct row *best = NULL;

	/* The thread's own flavour where there is one; a call without streams has none. */
	for (size_t i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];

		if (row->since > version || strcmp(row->lookup, name) ||
			(row->flavour == THREAD && !per_thread))
			continue;
		if (!best || row->flavour > best->flavour ||
			(row->flavour == best->flavour && row->since > best->since))
			best = row;
	}
	return best ? best->wrapper : NULL;
}

/* The driver answers first: what it does not have, we do not offer. The first look-up of cudart has an empty name and version 0. */
static CUresult answer(CUresult r, const char *name, void **ret, int version, uint64_t flags)
{
	void *ours;

	if (r || td_gate_disabled() || !name || !*name || !ret || !*ret)
		return r;
	ours = td_hook_lookup(name, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	if (ours)
		*ret = ours;
	return r;
}

CUresult td_hook_cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags);
CUresult td_hook_cuGetProcAddress_v2(
	const char *name, void **ret, int version, uint64_t flags, int *status);

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

/* Ours for this look-up, or NULL: then the real function goes on as if we were not there. */
__attribute__((used)) void *td_dlsym_ours(void *handle, const char *name);

__attribute__((used)) void *td_dlsym_ours(void *handle, const char *name)
{
	void *ours;

	td_libc_find();
	if (!name || name[0] != 'c' || name[1] != 'u' || handle == RTLD_NEXT || td_gate_disabled())
		return NULL;
	ours = td_hook_find(name);
	/* Only where the object that is asked has the symbol at all. */
	return ours && td_libc_dlsym(handle, name) ? ours : NULL;
}

#if defined(__x86_64__)
/* Saves the arguments, asks td_dlsym_ours; returns its answer, or jumps to the real function with the arguments restored. */
#define LOOKUP_STUB(name, real)                                                                    \
	__asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\n"                   \
		"	endbr64\n"                                                                       \
		"	push %rdi\n	push %rsi\n	push %rdx\n"                                             \
		"	call td_dlsym_ours\n"                                                            \
		"	pop %rdx\n	pop %rsi\n	pop %rdi\n"                                                \
		"	test %rax, %rax\n	jnz 1f\n"                                                      \
		"	jmp *" real "(%rip)\n"                                                     \
		"1:	ret\n.size " name ", .-" name "\n")

LOOKUP_STUB("dlsym", "td_libc_dlsym");
LOOKUP_STUB("dlvsym", "td_libc_dlvsym");

/* RTLD_DEEPBIND (8) would make a library find the driver before us. */
__asm__(".text\n.globl dlopen\n.type dlopen, @function\ndlopen:\n"
	"	endbr64\n"
	"	push %rdi\n	push %rsi\n	sub $8, %rsp\n"
	"	call td_libc_find\n"
	"	add $8, %rsp\n	pop %rsi\n	pop %rdi\n"
	"	and $~8, %esi\n"
	"	jmp *td_libc_dlopen(%rip)\n.size dlopen, .-dlopen\n");
#else
#error "dlsym, dlvsym and dlopen need a stub for this processor: see LOOKUP_STUB"
#endif

/* -- the exported wrappers -- */

#define HOOK(symbol, lookup, since, flavour, parameters, arguments, body)                          \
	CUresult td_hook_##symbol parameters;
#define REAL(symbol, parameters)
#define CALL
#define SUBMIT(stream)
#define SUBMIT_EX(config)
#include "preload/hooks.def"
#undef HOOK
#undef CALL
#undef SUBMIT
#undef SUBMIT_EX

/* No driver: what the program would have got without us cannot be had; cuInit has told it so already. */
#define READY() (td_real_load() == 0)

#define KIND_PLAIN  0
#define KIND_THREAD TD_SUBMIT_OWN_NULL

/* A programmatic dependent launch starts before the launch in front of it has ended. */
static uint32_t attribute_kind(const CUlaunchConfig *config)
{
	for (unsigned i = 0; config && config->attrs && i < config->numAttrs; i++)
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
			return TD_SUBMIT_DEPENDENT;
	return 0;
}

#define BODY_SUBMIT(symbol, arguments, stream, kind)                                               \
	struct td_slot *slot;                                                                      \
	CUresult r;                                                                                \
	if (!td_real.symbol && (!READY() || !td_real.symbol))                                      \
		return CUDA_ERROR_NOT_FOUND;                                                       \
	slot = td_gate_enter((void *)(stream), kind);                                              \
	r = td_real.symbol arguments;                                                              \
	td_gate_leave(slot);                                                                       \
	return r;

#define BODY_CALL(symbol, arguments)                                                               \
	if (!READY() || !td_real.symbol)                                                           \
		return CUDA_ERROR_NOT_FOUND;                                                       \
	return td_gate_disabled() ? td_real.symbol arguments : td_hook_##symbol arguments;

#define CALL              , CALL_BODY, 0
#define SUBMIT(stream)    , SUBMIT_BODY, stream
#define SUBMIT_EX(config) , SUBMIT_EX_BODY, config
#define HOOK(symbol, lookup, since, flavour, parameters, arguments, body)                          \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		SELECT(symbol, flavour, arguments body)                                            \
	}
#define SELECT(...)                                       SELECT_(__VA_ARGS__)
#define SELECT_(symbol, flavour, arguments, kind, stream) kind(symbol, flavour, arguments, stream)
#define CALL_BODY(symbol, flavour, arguments, stream)     BODY_CALL(symbol, arguments)
#define SUBMIT_BODY(symbol, flavour, arguments, stream)                                            \
	BODY_SUBMIT(symbol, arguments, stream, KIND_##flavour)
#define SUBMIT_EX_BODY(symbol, flavour, arguments, config)                                         \
	BODY_SUBMIT(symbol, arguments, config ? config->hStream : NULL,                            \
		KIND_##flavour | attribute_kind(config))
#include "preload/hooks.def"
