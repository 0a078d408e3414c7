/*
 * Moves the program to another GPU, or gives it another share of its GPU's SMs: checks, twins,
 * memory, the switch. See move.h; agent/moves.h has the stages and rehome.h the twins. For another
 * share no memory moves: it is mapped for the device, not for a context. If anything fails before
 * the switch, the program is unchanged: memory on the target is freed, and twins stay for the next
 * attempt. After the switch nothing can fail.
 */
#include "preload/move/move.h"

#include <stdatomic.h>
#include <string.h>

#include "base/parse.h"
#include "base/time.h"
#include "cuda/movable.h"
#include "preload/agent/clean_exit.h"
#include "preload/agent/moves.h"
#include "preload/base/settings.h"
#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"
#include "preload/driver/real.h"
#include "preload/link/client_internal.h"
#include "preload/outside/outside.h"
#include "preload/rehome/rehome.h"
#include "preload/swap/swap.h"

/*
 * Calls that make or end objects get this long to finish. They wait only for the driver: an
 * allocation that waits for the daemon ends, and is tried again after the move.
 */
#define CLOSE_NS (500 * TD_NS_PER_MS)

/* The last preparation. Used by the agent and by the thread that prepares. */
static struct {
	int home;
	CUcontext context;  /* NULL: none is needed, as the program has share_ppm already */
	uint32_t share_ppm; /* 0: it goes to another GPU */
	CUdevice device;
	unsigned slot, from;
	CUstream stream; /* a stream in that context, for copies */
} next;
static void *_Atomic prepared; /* next.context, published for the other of these two threads */

/* -- reasons -- */

static const struct {
	enum td_outside_kind kind;
	uint64_t why;
} kinds[] = {
	{TD_OUTSIDE_MANAGED, TD_UNMOVABLE(UNIFIED)},
	{TD_OUTSIDE_LEGACY, TD_UNMOVABLE(PLAIN)},
	{TD_OUTSIDE_VMM, TD_UNMOVABLE(VMM)},
	{TD_OUTSIDE_EXPORTABLE, TD_UNMOVABLE(VMM)},
	{TD_OUTSIDE_ARRAY, TD_UNMOVABLE(ARRAYS)},
	{TD_OUTSIDE_POOL, TD_UNMOVABLE(POOLS)},
	{TD_OUTSIDE_GRAPH, TD_UNMOVABLE(GRAPHS)},
	{TD_OUTSIDE_EXTERNAL, TD_UNMOVABLE(EXTERNAL)},
	{TD_OUTSIDE_SHARED, TD_UNMOVABLE(IPC)},
	{TD_OUTSIDE_OPENED, TD_UNMOVABLE(IPC)},
	{TD_OUTSIDE_HANDED, TD_UNMOVABLE(IPC)},
	{TD_OUTSIDE_IMPORTED, TD_UNMOVABLE(IPC)},
};

/*
 * Finds the context that the program works in (*ret) and its GPU. Its twins on other GPUs do not
 * count. Returns reasons not to move.
 */
static uint64_t find_context(const void *twin, struct td_context *ret, struct td_gpu_info *ret_gpu)
{
	struct td_context list[TD_CONTEXT_MAX];
	unsigned count = td_context_list(list, TD_CONTEXT_MAX), found = 0;
	uint64_t reasons = 0;

	for (unsigned i = 0; i < count; i++) {
		if (list[i].left || list[i].leaving || list[i].handle == twin)
			continue;
		if (found && list[i].slot != ret->slot)
			reasons |= TD_UNMOVABLE(SEVERAL_GPUS);
		else if (found)
			reasons |= TD_UNMOVABLE(CONTEXTS);
		if (!found++)
			*ret = list[i];
	}
	if (!found || !td_context_gpu(ret->slot, ret_gpu))
		reasons |= TD_UNMOVABLE(FAILED);
	return reasons;
}

/* Returns the reasons not to move. twin: the prepared context; NULL: none. */
static uint64_t reasons_of(const void *twin, struct td_context *ret, struct td_gpu_info *ret_gpu)
{
	uint64_t reasons = td_rehome_reasons();
	struct td_memory_stats stats;

	if (!td_swap_is_used())
		reasons |= TD_UNMOVABLE(BACKEND);
	if (td_swap.stays)
		reasons |= TD_UNMOVABLE(HARDWARE);
	if (td_context_any_capture())
		reasons |= TD_UNMOVABLE(CAPTURE);
	reasons |= find_context(twin, ret, ret_gpu);
	if (reasons & TD_UNMOVABLE(FAILED))
		return reasons;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (td_outside_bytes(ret_gpu->device, kinds[i].kind))
			reasons |= kinds[i].why;
	if (td_exit_is_mps(ret_gpu))
		reasons |= TD_UNMOVABLE(MPS);
	td_agent_stats(ret->slot, &stats);
	return stats.failed ? reasons | TD_UNMOVABLE(FAILED) : reasons;
}

/*
 * Converts a share of the GPU into SMs, or back. The program sees what its percentage leaves of the
 * GPU, unless that is one for each of its contexts.
 */
static uint64_t seen_sms(CUdevice device)
{
	int count = 0;

	(void)td_driver()->device_get_attribute(
		&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	return count > 0 ? (uint64_t)count : 1;
}

static uint32_t most_ppm(void)
{
	return td_settings.sm_share_most_ppm ? td_settings.sm_share_most_ppm : TD_PPM;
}

static uint32_t sms_of_share(CUdevice device, uint32_t ppm)
{
	uint64_t sms = seen_sms(device) * ppm / most_ppm();

	return sms ? (uint32_t)sms : 1;
}

/* Returns the share that the context at the home has: that which was asked for, if it is that. */
static uint32_t share_at(int home, CUdevice device, uint32_t asked_ppm)
{
	uint32_t sms = td_rehome_sms(home);
	uint64_t ppm = (uint64_t)sms * most_ppm() / seen_sms(device);

	if (td_rehome_is_for(home, sms_of_share(device, asked_ppm)))
		return asked_ppm;
	return ppm < TD_PPM ? (uint32_t)ppm : TD_PPM;
}

/*
 * Returns what of the reasons counts where the share changes, and more that does then, or what
 * counts where the program is to go to another GPU.
 */
static uint64_t reasons_for(bool share, uint64_t reasons, const struct td_gpu_info *gpu)
{
	if (!share)
		return reasons & ~TD_UNMOVABLE_TO_SHARE;
	if (!(reasons & TD_UNMOVABLE(FAILED)) && !td_rehome_has_shares(gpu->device))
		reasons |= TD_UNMOVABLE(NO_SHARES);
	return reasons & ~TD_UNMOVABLE_TO_GPU;
}

static uint64_t reasons_now(uint64_t *ret_share)
{
	struct td_gpu_info gpu;
	struct td_context context;
	uint64_t reasons;

	*ret_share = 0;
	/* The program does not use a GPU yet, so nothing prevents a move. */
	if (!td_context_gpu_count())
		return 0;
	reasons = reasons_of(atomic_load(&prepared), &context, &gpu);
	*ret_share = reasons_for(true, reasons, &gpu);
	return reasons_for(false, reasons, &gpu);
}

/* -- preparing -- */

static CUdevice find_device(const uint8_t uuid[16])
{
	const struct td_driver *driver = td_driver();
	uint8_t other[16];
	int count = 0;

	if (driver->device_get_count(&count))
		return -1;
	for (int i = 0; i < count && i < TD_HOMES_SHARES; i++)
		if (!driver->device_get_uuid(other, i) && !memcmp(other, uuid, sizeof(other)))
			return i;
	return -1;
}

/* Code is compiled for one kind of chip, and programs remember the features of theirs. */
static bool is_same_chip(CUdevice a, CUdevice b)
{
	static const int attributes[] = {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
		CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
		CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, TD_ATTRIBUTE_VMM,
		TD_ATTRIBUTE_POSIX_HANDLES};
	const struct td_driver *driver = td_driver();
	char name[64], other[64];
	int x, y;

	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		if (driver->device_get_attribute(&x, attributes[i], a) ||
			driver->device_get_attribute(&y, attributes[i], b) || x != y)
			return false;
	return !driver->device_get_name(name, sizeof(name), a) &&
	       !driver->device_get_name(other, sizeof(other), b) &&
	       !strncmp(name, other, sizeof(name));
}

/* Makes the twins. The twin's context is current. */
static bool make_twins(int home, CUcontext twin)
{
	int slot;

	td_context_set_left(twin, false);
	td_context_note(twin, true);
	slot = td_context_slot();
	if (slot < 0 || td_rehome_make_all(home))
		return false;
	next.slot = (unsigned)slot;
	if (!next.share_ppm && !next.stream &&
		td_true->cuStreamCreate(&next.stream, CU_STREAM_NON_BLOCKING))
		return false;
	return true;
}

/* The driver destroys a stream only for a thread that has a current context. */
static void forget_next(void)
{
	CUcontext popped;

	if (next.stream && !td_true->cuCtxPushCurrent_v2(next.context)) {
		(void)td_true->cuStreamDestroy_v2(next.stream);
		(void)td_true->cuCtxPopCurrent_v2(&popped);
	}
	memset(&next, 0, sizeof(next));
	atomic_store(&prepared, NULL);
}

static void cancel(void)
{
	if (next.context)
		td_context_set_left(next.context, true);
	forget_next();
}

/* Finds the home to go to. Returns the reasons against it. */
static uint64_t find_gpu(const uint8_t gpu[16], const struct td_context *context,
	const struct td_gpu_info *info, int *ret_home)
{
	CUdevice device = find_device(gpu);

	*ret_home = device;
	if (device < 0 || device == info->device)
		return TD_UNMOVABLE(UNSEEN);
	if (!is_same_chip(info->device, device))
		return TD_UNMOVABLE(OTHER_CHIP);
	return td_rehome_adopt(context->handle, info->device) ? TD_UNMOVABLE(CONTEXTS) : 0;
}

static uint64_t find_share(uint32_t share_ppm, const struct td_context *context,
	const struct td_gpu_info *info, int *ret_home)
{
	if (share_ppm > most_ppm())
		return TD_UNMOVABLE(FIXED_SHARE);
	if (td_rehome_adopt(context->handle, info->device))
		return TD_UNMOVABLE(CONTEXTS);
	*ret_home = td_rehome_home_of_share(sms_of_share(info->device, share_ppm));
	return 0;
}

static bool prepare(
	const uint8_t gpu[16], uint32_t share_ppm, unsigned *ret_slot, uint64_t *ret_reasons)
{
	struct td_context context;
	struct td_gpu_info info;
	CUcontext twin = NULL, popped;
	bool there;
	int home = -1;

	memset(&next, 0, sizeof(next));
	*ret_reasons = reasons_for(share_ppm != 0, reasons_of(NULL, &context, &info), &info);
	if (!*ret_reasons)
		*ret_reasons = share_ppm ? find_share(share_ppm, &context, &info, &home)
					 : find_gpu(gpu, &context, &info, &home);
	if (*ret_reasons)
		return false;
	next.home = home;
	next.share_ppm = share_ppm;
	next.device = info.device;
	next.slot = next.from = *ret_slot = context.slot;
	if (home == td_rehome_here())
		return true;
	if (td_rehome_make_context(home, &twin)) {
		*ret_reasons = TD_UNMOVABLE(NO_CONTEXT);
		return false;
	}
	next.context = twin;
	atomic_store(&prepared, twin);
	there = make_twins(home, twin);
	(void)td_true->cuCtxPopCurrent_v2(&popped);
	if (!there) {
		cancel();
		*ret_reasons = TD_UNMOVABLE(NO_CONTEXT);
	}
	*ret_slot = next.slot;
	return there;
}

/* -- the move -- */

/*
 * Moves the program to the context of its twin, the copy of its handles on the new GPU. Call it
 * with that context current. Returns 0, or a mask of TD_UNMOVABLE reasons with the program
 * unchanged.
 */
static uint64_t move(const struct td_context *context, uint64_t limit_bytes, uint64_t *ret_bytes)
{
	const struct td_rehome_places places = {.from = context->handle,
		.to = next.context,
		.device = next.home,
		.stream = next.stream};
	struct td_memory_stats stats;
	int r;

	/* Twins of objects that were made after the preparation. */
	if (td_rehome_make_all(next.home))
		return TD_UNMOVABLE(NO_CONTEXT);
	td_swap_trim(next.from, false);
	td_client_totals(next.from, &stats);
	if (td_client_is_allocating())
		return TD_UNMOVABLE(BUSY);
	if (stats.resident_bytes > limit_bytes)
		return TD_UNMOVABLE(NO_ROOM);
	if (!td_client_claim_move(
		    next.slot, stats.resident_bytes, stats.demanded_bytes + stats.paged_bytes))
		return TD_UNMOVABLE(NO_ROOM);
	r = td_swap_rehome(next.from, next.slot, &places, ret_bytes);
	if (r)
		td_client_claim_only_what_is_there(next.slot);
	if (r)
		return r == CUDA_ERROR_OUT_OF_MEMORY ? TD_UNMOVABLE(NO_ROOM) : TD_UNMOVABLE(BUSY);
	return 0;
}

/* Twins of objects that were made after the preparation. The twin's context is current. */
static uint64_t finish_share(const struct td_context *context)
{
	return td_rehome_make_all(next.home) ? TD_UNMOVABLE(NO_CONTEXT)
	       : context->slot != next.from  ? TD_UNMOVABLE(CONTEXTS)
					     : 0;
}

static bool go(uint64_t limit_bytes, struct td_moved_to *ret)
{
	struct td_context context;
	struct td_gpu_info info;
	CUcontext popped;
	uint64_t why = TD_UNMOVABLE(BUSY);

	if (next.share_ppm && !next.context) {
		*ret = (struct td_moved_to){.from = next.from,
			.sm_share_ppm = share_at(next.home, next.device, next.share_ppm)};
		return true;
	}
	if (td_rehome_close(CLOSE_NS, td_client_let_move)) {
		why = reasons_for(
			next.share_ppm != 0, reasons_of(next.context, &context, &info), &info);
		if (!why && context.slot != next.from)
			why = TD_UNMOVABLE(CONTEXTS);
		if (!why && td_true->cuCtxPushCurrent_v2(next.context))
			why = TD_UNMOVABLE(NO_CONTEXT);
		else if (!why) {
			why = next.share_ppm ? finish_share(&context)
					     : move(&context, limit_bytes, &ret->bytes);
			(void)td_true->cuCtxPopCurrent_v2(&popped);
		}
		if (!why) {
			td_rehome_switch(next.home);
			td_context_set_left(context.handle, true);
		}
		td_rehome_open();
	}
	ret->reasons = why;
	if (why)
		return false;
	ret->from = next.from;
	if (next.share_ppm)
		ret->sm_share_ppm = share_at(next.home, next.device, next.share_ppm);
	td_client_memory_changed(next.from);
	td_client_memory_changed(next.slot);
	forget_next();
	return true;
}

/*
 * Names of GPUs that the library would give to the driver may be wrong from now on, so it moves
 * nothing itself any more.
 */
static void put(const uint8_t to[16])
{
	struct td_gpu_info gpu;

	td_unmovable_note(TD_UNMOVABLE(PUT));
	for (unsigned i = 0; i < td_context_gpu_count(); i++)
		if (td_context_gpu(i, &gpu) && gpu.context) {
			td_context_put(i, to);
			return;
		}
}

const struct td_mover td_mover = {
	.reasons = reasons_now,
	.prepare = prepare,
	.go = go,
	.cancel = cancel,
	.put = put,
};
