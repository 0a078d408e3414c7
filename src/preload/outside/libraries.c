/*
 * The memory of libraries' variables. A library (cuLibraryLoadData) becomes a module of each
 * context that uses one of its kernels or variables. Each of these modules has its own copy of the
 * variables; managed variables exist once. The memory is asked for before the first call that may
 * load the variables:
 *
 * - if a context is current, when the library is loaded;
 * - otherwise when the program asks for one of its kernels or variables, or makes a function of a
 *   kernel;
 * - or at the first launch of a kernel by its own handle, or the first graph node of it, in any
 *   context.
 *
 * It counts until the library is unloaded or the context ends. Of the first libraries, up to
 * TD_LITTLE_BYTES in all, only the size is recorded: they count as code does, and launches do not
 * look for them. One thread at a time asks for a library's memory or unloads it, and the others
 * wait for the result. So nobody can load a library that is waiting for its grant or being
 * unloaded.
 */
#include "preload/outside/libraries.h"

#include <stdlib.h>

#include "cuda/objects.h"
#include "preload/base/futex.h"
#include "preload/base/lock.h"
#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/gate/gate.h"
#include "preload/gate/meter.h"
#include "preload/outside/modules.h"
#include "preload/outside/reach.h"

#define BUCKETS       256
#define LOOK_AGAIN_NS 10000000 /* poll interval, in case a wake-up is missed */

struct use {
	struct use *next;
	const void *context;
	uint64_t key;
};

struct library {
	struct library *next;
	void *handle;
	uint64_t serial; /* tells libraries apart whose handle was reused */
	struct td_image_data data;
	struct use *uses;     /* the contexts in which the library's device variables are counted */
	uint64_t managed_key; /* 0: its managed variables are not counted yet */
	bool busy;            /* a thread is asking for its memory, or unloading it */
};

/* A library whose variables are so small that they count as code. */
struct little {
	struct little *next;
	const void *handle;
	uint64_t bytes;
};

struct kernel {
	struct kernel *next;
	const void *handle, *library;
	uint64_t serial; /* serial of the library */
};

static struct td_lock lock = TD_LOCK_INIT(TD_RANK_BACKEND);
/* Guarded by lock. */
static struct library *libraries; /* those with variables */
static struct little *littles;
static uint64_t little_bytes; /* sum over all `littles` */
static struct kernel *kernels[BUCKETS];
static uint64_t last_key, last_serial;
static _Atomic uint32_t changes; /* futex; changes when a library is no longer busy, or gone */

static _Atomic uint32_t library_count, little_count;
_Atomic uint32_t td_library_kernels;

static struct library *find_library(const void *handle)
{
	struct library *l = libraries;

	while (l && l->handle != handle)
		l = l->next;
	return l;
}

/* -- kernels whose handles the program has -- */

static struct kernel **bucket(const void *kernel)
{
	return &kernels[((uintptr_t)kernel * 0x9e3779b97f4a7c15ull >> 40) % BUCKETS];
}

static const void *library_of(const void *kernel)
{
	const struct kernel *k = *bucket(kernel);

	while (k && k->handle != kernel)
		k = k->next;
	return k ? k->library : NULL;
}

static void note_kernels(void *const *handles, unsigned count, const void *library)
{
	const struct library *l;

	for (unsigned i = 0; i < count; i++) {
		struct kernel *fresh = handles[i] ? malloc(sizeof(*fresh)) : NULL;

		if (!fresh)
			continue;
		*fresh = (struct kernel){.handle = handles[i], .library = library};
		td_lock_take(&lock);
		l = find_library(library);
		if (l && !library_of(fresh->handle)) {
			fresh->serial = l->serial;
			fresh->next = *bucket(fresh->handle);
			*bucket(fresh->handle) = fresh;
			atomic_fetch_add(&td_library_kernels, 1);
			fresh = NULL;
		}
		td_lock_drop(&lock);
		free(fresh);
	}
}

/* The caller holds the lock. */
static void forget_kernels(uint64_t serial)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct kernel **at = &kernels[i];

		while (*at) {
			struct kernel *k = *at;

			if (k->serial != serial) {
				at = &k->next;
				continue;
			}
			*at = k->next;
			free(k);
			atomic_fetch_sub(&td_library_kernels, 1);
		}
	}
}

/* -- contexts that use a library -- */

static struct use **find_use(struct library *l, const void *context)
{
	struct use **at = &l->uses;

	while (*at && (*at)->context != context)
		at = &(*at)->next;
	return at;
}

/*
 * Returns the library once no other thread is busy with it, or NULL if it is not known or was
 * unloaded meanwhile. The caller holds the lock.
 */
static struct library *find_free(const void *handle)
{
	struct library *l;

	while ((l = find_library(handle)) && l->busy) {
		uint32_t seen = atomic_load(&changes);

		td_lock_drop(&lock);
		td_futex_wait(&changes, seen, LOOK_AGAIN_NS, false);
		td_lock_take(&lock);
	}
	return l;
}

/* Wakes threads that wait for a busy library. The caller does not hold the lock. */
static void tell_waiters(void)
{
	atomic_fetch_add(&changes, 1);
	td_futex_wake_all(&changes, false);
}

static void end_busy(struct library *l)
{
	td_lock_take(&lock);
	l->busy = false;
	td_lock_drop(&lock);
	tell_waiters();
}

/*
 * Begins the use of a library in a context. Returns 0 if no memory has to be asked for. Otherwise
 * returns the use's key with the sizes in *ret, and marks the library as busy.
 */
static uint64_t begin_use(const void *handle, const void *context, struct td_image_data *ret,
	struct library **ret_busy)
{
	struct use *fresh = malloc(sizeof(*fresh));
	struct library *l;
	uint64_t key = 0;

	*ret = (struct td_image_data){0};
	td_lock_take(&lock);
	l = find_free(handle);
	if (l && fresh && l->data.device_bytes && !*find_use(l, context)) {
		key = ++last_key;
		*fresh = (struct use){l->uses, context, key};
		l->uses = fresh;
		fresh = NULL;
		ret->device_bytes = l->data.device_bytes;
	}
	if (l && l->data.managed_bytes && !l->managed_key) {
		key = key ? key : ++last_key;
		l->managed_key = key;
		ret->managed_bytes = l->data.managed_bytes;
	}
	if (key) {
		l->busy = true;
		*ret_busy = l;
	}
	td_lock_drop(&lock);
	free(fresh);
	return key;
}

void td_library_gone(uint64_t key)
{
	struct use *gone = NULL;

	td_lock_take(&lock);
	for (struct library *l = libraries; l; l = l->next) {
		struct use **at = &l->uses;

		while (*at && (*at)->key != key)
			at = &(*at)->next;
		if (*at) {
			gone = *at;
			*at = gone->next;
		}
		if (l->managed_key == key)
			l->managed_key = 0;
		if (gone)
			break;
	}
	td_lock_drop(&lock);
	free(gone);
}

static const void *current_context(void)
{
	CUcontext context = NULL;

	return td_context_use() >= 0 && !td_real.cuCtxGetCurrent(&context) ? context : NULL;
}

/*
 * Has the driver load the variables. Granted memory may still be on its way from other processes,
 * so after CUDA_ERROR_OUT_OF_MEMORY, and only then, it makes sense to try again.
 */
static CUresult bring(const void *library)
{
	CUmodule module;
	CUresult r;
	int before;

	if (!td_real.cuLibraryGetModule)
		return CUDA_SUCCESS;
	before = td_context_relax();
	r = td_real.cuLibraryGetModule(&module, (void *)library);
	td_context_unrelax(before);
	return r == CUDA_ERROR_OUT_OF_MEMORY ? r : CUDA_SUCCESS;
}

static CUresult ask_for(const void *library, uint64_t key, const struct td_image_data *data)
{
	struct td_data_claim claim;
	CUresult r = td_data_claim(&claim, data);

	if (r) {
		td_library_gone(key);
		return r;
	}
	do
		r = bring(library);
	while (td_data_again(&claim, r));
	if (r)
		td_library_gone(key);
	return td_data_settle(&claim, r, TD_KEY_LIBRARY, TD_KEY_LIBRARY_MANAGED, key);
}

/* Called before a call that may load the library's variables into the current context. */
static CUresult use(const void *library)
{
	const void *context = atomic_load_explicit(&library_count, memory_order_relaxed) && library
				      ? current_context()
				      : NULL;
	int cancel = context ? td_thread_no_cancel() : 0;
	struct td_image_data data;
	CUresult r = CUDA_SUCCESS;
	struct library *l;
	uint64_t key;

	if (!context)
		return r;
	key = begin_use(library, context, &data, &l);
	if (key) {
		r = ask_for(library, key, &data);
		end_busy(l);
	}
	td_thread_may_cancel(cancel);
	return r;
}

/* context NULL: the current one. */
static CUresult use_in(const void *library, CUcontext context)
{
	CUcontext now, popped;
	CUresult r;

	if (!context || td_real.cuCtxGetCurrent(&now) || now == context ||
		td_real.cuCtxPushCurrent_v2(context))
		return use(library);
	r = use(library);
	(void)td_real.cuCtxPopCurrent_v2(&popped);
	return r;
}

static const void *known_library(const void *kernel)
{
	const void *library;

	td_lock_take(&lock);
	library = library_of(kernel);
	td_lock_drop(&lock);
	return library;
}

/* CUDA's documentation of cuLaunchKernel says that the kernel runs in the stream's context. */
CUresult td_library_launches(const void *function, void *stream)
{
	const void *library = known_library(function);

	return library ? use_in(library, td_context_of_stream(stream)) : CUDA_SUCCESS;
}

/* -- small libraries -- */

/* The caller holds the lock. */
static void link_little(struct little *l)
{
	l->next = littles;
	littles = l;
	little_bytes += l->bytes;
	atomic_fetch_add(&little_count, 1);
}

/* Records a small library. Returns false if it is too large to count as code does. */
static bool note_little(const void *handle, const struct td_image_data *data)
{
	uint64_t bytes = data->device_bytes;
	struct little *fresh;
	bool fits;

	if (__builtin_add_overflow(bytes, data->managed_bytes, &bytes) || bytes > TD_LITTLE_BYTES)
		return false;
	fresh = malloc(sizeof(*fresh));
	if (!fresh)
		return false;
	*fresh = (struct little){NULL, handle, bytes};
	td_lock_take(&lock);
	fits = bytes <= TD_LITTLE_BYTES - little_bytes;
	if (fits)
		link_little(fresh);
	td_lock_drop(&lock);
	if (!fits)
		free(fresh);
	return fits;
}

/*
 * Takes a library off the list of those with so small variables that they count as code. Returns
 * its record, or NULL if it is not in the list.
 */
static struct little *take_little(const void *handle)
{
	struct little **at = &littles, *l;

	if (!atomic_load_explicit(&little_count, memory_order_relaxed))
		return NULL;
	td_lock_take(&lock);
	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	l = *at;
	if (l) {
		*at = l->next;
		little_bytes -= l->bytes;
		atomic_fetch_sub(&little_count, 1);
	}
	td_lock_drop(&lock);
	return l;
}

static void end_little(struct little *l, CUresult r)
{
	if (!l)
		return;
	if (!r) {
		free(l);
		return;
	}
	td_lock_take(&lock);
	link_little(l);
	td_lock_drop(&lock);
}

/* -- loading and unloading -- */

static void remember(void *handle, const struct td_image_data *data)
{
	struct library *l = calloc(1, sizeof(*l));

	if (!l)
		return;
	td_lock_take(&lock);
	*l = (struct library){
		.next = libraries, .handle = handle, .serial = ++last_serial, .data = *data};
	libraries = l;
	atomic_fetch_add(&library_count, 1);
	td_lock_drop(&lock);
}

/*
 * Removes a library from the table. Either this thread has marked it as busy, or no other thread
 * knows it yet.
 */
static void forget_library(struct library *l)
{
	struct library **at = &libraries;

	td_lock_take(&lock);
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	atomic_fetch_sub(&library_count, 1);
	forget_kernels(l->serial);
	td_lock_drop(&lock);
}

/* Frees the record and ends its counts. Called after the library was unloaded. */
static void free_library(struct library *l)
{
	if (!l)
		return;
	td_outside_gone(td_outside_take(TD_KEY_LIBRARY_MANAGED, l->managed_key));
	while (l->uses) {
		struct use *u = l->uses;

		l->uses = u->next;
		td_outside_gone(td_outside_take(TD_KEY_LIBRARY, u->key));
		free(u);
	}
	free(l);
}

/*
 * Called after a load, when the handle is known. If the memory is refused, the library is unloaded
 * again.
 */
static CUresult loaded(CUresult r, void **library, const struct td_image_data *data)
{
	if (r || !(data->device_bytes || data->managed_bytes) || note_little(*library, data))
		return r;
	remember(*library, data);
	r = use(*library);
	if (r)
		(void)td_hook_cuLibraryUnload(*library);
	return r;
}

#define LOAD_LIBRARY(symbol, data_of)                                                              \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		struct td_image_data data = a0 ? data_of(a1) : (struct td_image_data){0};          \
		return loaded(td_real.symbol TD_ARGS_##symbol, a0, &data);                         \
	}

LOAD_LIBRARY(cuLibraryLoadData, td_data_of_image)
LOAD_LIBRARY(cuLibraryLoadFromFile, td_data_of_file)

/*
 * Marks the library as busy, so that no other thread uses it meanwhile. Returns NULL if the handle
 * is not known.
 */
static struct library *begin_unload(const void *handle)
{
	struct library *l;

	td_lock_take(&lock);
	l = find_free(handle);
	if (l)
		l->busy = true;
	td_lock_drop(&lock);
	return l;
}

/* During a capture the driver may refuse to unload; then nothing has changed. */
CUresult td_hook_cuLibraryUnload(void *a0)
{
	int cancel = td_thread_no_cancel();
	struct library *l = atomic_load_explicit(&library_count, memory_order_relaxed)
				    ? begin_unload(a0)
				    : NULL;
	struct little *little = take_little(a0);
	CUresult r = td_real.cuLibraryUnload(a0);

	td_meter_forget();
	end_little(little, r);
	if (l && !r) {
		forget_library(l);
		free_library(l);
		tell_waiters();
	} else if (l) {
		end_busy(l);
	}
	td_thread_may_cancel(cancel);
	return r;
}

/* -- calls that use a library -- */

/* Returns the library of a kernel; NULL: the driver does not tell. */
static const void *ask_library(void *kernel)
{
	void *library;

	if (!atomic_load_explicit(&library_count, memory_order_relaxed) ||
		!td_real.cuKernelGetLibrary || td_real.cuKernelGetLibrary(&library, kernel))
		return NULL;
	return library;
}

#define USE_LIBRARY(symbol, library)                                                               \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		CUresult r = use(library);                                                         \
		return r ? r : td_real.symbol TD_ARGS_##symbol;                                    \
	}

USE_LIBRARY(cuKernelGetFunction, ask_library(a1))
USE_LIBRARY(cuLibraryGetModule, a1)
USE_LIBRARY(cuLibraryGetGlobal, a2)
USE_LIBRARY(cuLibraryGetManaged, a2)
USE_LIBRARY(cuLibraryGetUnifiedFunction, a1)

CUresult td_hook_cuLibraryGetKernel(void **a0, void *a1, const char *a2)
{
	CUresult r = use(a1);

	r = r ? r : td_real.cuLibraryGetKernel(a0, a1, a2);
	if (!r && a0 && atomic_load_explicit(&library_count, memory_order_relaxed))
		note_kernels(a0, 1, a1);
	return r;
}

CUresult td_hook_cuLibraryEnumerateKernels(void **a0, unsigned a1, void *a2)
{
	unsigned count = 0;
	CUresult r = use(a2);

	r = r ? r : td_real.cuLibraryEnumerateKernels(a0, a1, a2);
	if (r || !a0 || !atomic_load_explicit(&library_count, memory_order_relaxed))
		return r;
	/* The driver returns at most as many as there are. */
	if (!td_real.cuLibraryGetKernelCount || td_real.cuLibraryGetKernelCount(&count, a2))
		count = 0;
	note_kernels(a0, a1 < count ? a1 : count, a2);
	return r;
}

/* A query about a kernel by its own handle may make the driver load the variables. */
#define ASK_FUNCTION(symbol, function)                                                             \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		CUresult r = td_library_has_kernels() ? td_library_launches(function, NULL)        \
						      : CUDA_SUCCESS;                              \
		return r ? r : td_real.symbol TD_ARGS_##symbol;                                    \
	}

ASK_FUNCTION(cuFuncGetAttribute, a2)
ASK_FUNCTION(cuFuncGetModule, a1)
ASK_FUNCTION(cuFuncGetName, a1)
ASK_FUNCTION(cuFuncGetParamInfo, a0)
ASK_FUNCTION(cuFuncIsLoaded, a1)
ASK_FUNCTION(cuFuncLoad, a0)
ASK_FUNCTION(cuFuncSetAttribute, a0)
ASK_FUNCTION(cuFuncSetBlockShape, a0)
ASK_FUNCTION(cuFuncSetCacheConfig, a0)
ASK_FUNCTION(cuFuncSetSharedMemConfig, a0)
ASK_FUNCTION(cuFuncSetSharedSize, a0)
ASK_FUNCTION(cuParamSetf, a0)
ASK_FUNCTION(cuParamSeti, a0)
ASK_FUNCTION(cuParamSetSize, a0)
ASK_FUNCTION(cuParamSetTexRef, a0)
ASK_FUNCTION(cuParamSetv, a0)
ASK_FUNCTION(cuOccupancyAvailableDynamicSMemPerBlock, a1)
ASK_FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor, a1)
ASK_FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, a1)
ASK_FUNCTION(cuOccupancyMaxActiveClusters, a1)
ASK_FUNCTION(cuOccupancyMaxPotentialBlockSize, a2)
ASK_FUNCTION(cuOccupancyMaxPotentialBlockSizeWithFlags, a2)
ASK_FUNCTION(cuOccupancyMaxPotentialClusterSize, a1)

/*
 * -- graph nodes: the driver may load a kernel's variables when its node is made or changed, as in
 * a captured launch --
 */

/* Version 1 of the structure has a function, which may also be a kernel's handle. */
static CUresult node_uses_function(const struct td_kernel_node *params)
{
	return params ? td_library_launches(params->function, NULL) : CUDA_SUCCESS;
}

/*
 * The structure also names a context, which cuda.h says is ignored if func is set. Some drivers use
 * it nevertheless and load the variables there.
 */
static CUresult node_uses(const struct td_kernel_node *params)
{
	const void *library =
		params ? known_library(params->function ? params->function : params->kernel) : NULL;
	CUresult r;

	if (!library)
		return CUDA_SUCCESS;
	r = params->function ? use(library) : CUDA_SUCCESS;
	return r ? r : use_in(library, params->context);
}

static CUresult any_node_uses(const struct td_node_params *params)
{
	return params && params->type == TD_NODE_KERNEL ? node_uses(&params->kernel) : CUDA_SUCCESS;
}

#define KERNEL_NODE(symbol, uses, params)                                                          \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		CUresult r = td_library_has_kernels() ? uses(params) : CUDA_SUCCESS;               \
		return r ? r : td_real.symbol TD_ARGS_##symbol;                                    \
	}

KERNEL_NODE(cuGraphAddKernelNode, node_uses_function, a4)
KERNEL_NODE(cuGraphAddKernelNode_v2, node_uses, a4)
KERNEL_NODE(cuGraphKernelNodeSetParams, node_uses_function, a1)
KERNEL_NODE(cuGraphKernelNodeSetParams_v2, node_uses, a1)
KERNEL_NODE(cuGraphExecKernelNodeSetParams, node_uses_function, a2)
KERNEL_NODE(cuGraphExecKernelNodeSetParams_v2, node_uses, a2)

/* Nodes of other kinds (copies, memsets) name memory, which must be mapped during the call. */
#define ANY_NODE(symbol, params)                                                                   \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		struct td_marker *marker;                                                          \
		CUresult r;                                                                        \
		if (TD_REACHES(symbol))                                                            \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		r = td_library_has_kernels() ? any_node_uses(params) : CUDA_SUCCESS;               \
		if (r)                                                                             \
			return r;                                                                  \
		marker = td_gate_enter_naming();                                                   \
		r = td_real.symbol TD_ARGS_##symbol;                                               \
		td_gate_leave(marker);                                                             \
		return r;                                                                          \
	}

ANY_NODE(cuGraphAddNode, a4)
ANY_NODE(cuGraphAddNode_v2, a5)
ANY_NODE(cuGraphNodeSetParams, a1)
ANY_NODE(cuGraphExecNodeSetParams, a2)

void td_libraries_forked(void)
{
	td_lock_reset(&lock);
	libraries = NULL;
	littles = NULL;
	little_bytes = 0;
	for (unsigned i = 0; i < BUCKETS; i++)
		kernels[i] = NULL;
	atomic_store(&library_count, 0);
	atomic_store(&little_count, 0);
	atomic_store(&td_library_kernels, 0);
}
