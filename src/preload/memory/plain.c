/*
 * The backends plain and managed: the driver's own allocations, with a table of them. plain never
 * moves memory. managed uses unified memory, and prefetches it in bulk at each hand-over, where
 * nvshare relies on page faults.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "preload/base/backend.h"
#include "preload/base/ranges.h"
#include "preload/driver/real.h"
#include "preload/measure/steps.h"
#include "preload/link/client.h"

/*
 * The driver rounds to 2 MiB or packs small allocations, and does not tell how much it takes. So
 * requests are counted rounded up to this alignment.
 */
#define ALIGN 512u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct td_ranges ranges;
static struct td_memory_stats totals[TD_SLOT_MAX];

static uint64_t rounded(uint64_t bytes)
{
	return (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static void count(unsigned slot, uint64_t bytes, bool resident)
{
	struct td_memory_stats *t = &totals[slot];

	t->demanded_bytes += bytes;
	if (resident)
		t->resident_bytes += bytes;
	else
		t->host_bytes += bytes;
	if (t->demanded_bytes > t->peak_bytes)
		t->peak_bytes = t->demanded_bytes;
	td_steps_memory(slot, t->demanded_bytes);
}

/*
 * The driver does not tell where each part of managed memory is. It counts as one whole, and freed
 * bytes are first subtracted from the host's share.
 */
static void uncount(unsigned slot, uint64_t bytes)
{
	struct td_memory_stats *t = &totals[slot];
	uint64_t resident = t->host_bytes < bytes ? bytes - t->host_bytes : 0;

	t->demanded_bytes -= bytes;
	td_steps_memory(slot, t->demanded_bytes);
	t->host_bytes -= bytes - resident;
	t->resident_bytes -= resident;
}

static void *current_context(void)
{
	CUcontext context = NULL;

	return td_real.cuCtxGetCurrent && !td_real.cuCtxGetCurrent(&context) ? context : NULL;
}

/*
 * Records an allocation. If malloc fails it is not recorded, but the program has it all the same.
 */
static void note(unsigned slot, uint64_t address, size_t bytes, int need, enum td_mobility mobility)
{
	void *context = current_context();
	struct td_allocation gone;
	int r;

	pthread_mutex_lock(&lock);
	/*
	 * The driver has returned an address that is still recorded. So the earlier allocation
	 * ended with its context, and the thread that ended the context has not reported it yet.
	 */
	if (td_ranges_remove(&ranges, address, &gone))
		uncount(gone.slot, rounded(gone.bytes));
	r = td_ranges_add(&ranges, (struct td_allocation){address, bytes, slot, context});
	if (!r)
		count(slot, rounded(bytes), mobility == TD_FIXED || need == TD_NEED_DEVICE);
	td_client_settled(slot, rounded(bytes), need, mobility);
	pthread_mutex_unlock(&lock);
}

static int plain_alloc(unsigned slot, size_t bytes, uint64_t *ret_address)
{
	CUdeviceptr address;
	int need = td_client_need(slot, rounded(bytes), TD_FIXED);
	int r = need == TD_NEED_REFUSED ? CUDA_ERROR_OUT_OF_MEMORY
					: td_real.cuMemAlloc_v2(&address, bytes);

	if (!r) {
		note(slot, address, bytes, need, TD_FIXED);
		*ret_address = address;
	} else if (need != TD_NEED_REFUSED) {
		td_client_settled(slot, rounded(bytes), need, TD_FIXED);
	}
	return r;
}

/*
 * The record is removed before the free, as the address may be reused at once. The bytes are
 * subtracted after it, as others may use them only once the driver has them.
 */
static int any_free(uint64_t address)
{
	struct td_allocation row;
	bool mine;
	int r;

	pthread_mutex_lock(&lock);
	mine = td_ranges_remove(&ranges, address, &row);
	pthread_mutex_unlock(&lock);
	if (!mine)
		return TD_BACKEND_NOT_MINE;
	r = td_real.cuMemFree_v2(address);
	pthread_mutex_lock(&lock);
	uncount(row.slot, rounded(row.bytes));
	pthread_mutex_unlock(&lock);
	td_client_memory_changed(row.slot);
	return r;
}

static void any_lost(uint64_t address, const void *context)
{
	const struct td_allocation *row;
	struct td_allocation gone;
	bool lost;

	pthread_mutex_lock(&lock);
	row = td_ranges_find(&ranges, address);
	lost = row && row->of == context && td_ranges_remove(&ranges, address, &gone);
	if (lost)
		uncount(gone.slot, rounded(gone.bytes));
	pthread_mutex_unlock(&lock);
	if (lost)
		td_client_memory_changed(gone.slot);
}

static int any_range(uint64_t address, uint64_t *ret_base, size_t *ret_bytes)
{
	const struct td_allocation *row;

	pthread_mutex_lock(&lock);
	row = td_ranges_find(&ranges, address);
	if (row) {
		*ret_base = row->base;
		*ret_bytes = row->bytes;
	}
	pthread_mutex_unlock(&lock);
	return row ? CUDA_SUCCESS : TD_BACKEND_NOT_MINE;
}

static int plain_move(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	(void)slot;
	(void)limit_bytes;
	(void)progress;
	return 0;
}

static void any_stats(unsigned slot, struct td_memory_stats *ret)
{
	pthread_mutex_lock(&lock);
	*ret = totals[slot];
	pthread_mutex_unlock(&lock);
}

static void any_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	/*
	 * The fork may have happened while the parent was enlarging the array, so it is not read.
	 */
	memset(&ranges, 0, sizeof(ranges));
	memset(totals, 0, sizeof(totals));
}

const struct td_backend td_backend_plain = {
	.name = "plain",
	.alloc = plain_alloc,
	.free = any_free,
	.range = any_range,
	.release = any_free,
	.lost = any_lost,
	.shrink = plain_move,
	.fill = plain_move,
	.stats = any_stats,
	.forked = any_forked,
};

/* Unified memory starts on the host. It comes to the device by page faults or prefetch. */
static int managed_alloc(unsigned slot, size_t bytes, uint64_t *ret_address)
{
	CUdeviceptr address;
	int need = td_client_need(slot, rounded(bytes), TD_PAGING);
	int r = need == TD_NEED_REFUSED
			? CUDA_ERROR_OUT_OF_MEMORY
			: td_real.cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL);

	if (!r) {
		note(slot, address, bytes, need, TD_PAGING);
		*ret_address = address;
	} else if (need != TD_NEED_REFUSED) {
		td_client_settled(slot, rounded(bytes), need, TD_PAGING);
	}
	return r;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * Prefetches a slot's allocations in the order of their addresses until `bytes` have moved to the
 * target. Returns 0 or -EIO.
 */
static int prefetch(unsigned slot, uint64_t bytes, CUdevice target)
{
	uint64_t began = now_ns(), asked = 0;
	int r = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < ranges.count && asked < bytes; i++) {
		const struct td_allocation *row = &ranges.rows[i];
		uint64_t n = row->bytes < bytes - asked ? row->bytes : bytes - asked;

		if (row->slot != slot)
			continue;
		r = td_real.cuMemPrefetchAsync(row->base, n, target, CU_STREAM_PER_THREAD) ? -EIO
											   : r;
		asked += rounded(n);
	}
	pthread_mutex_unlock(&lock);
	r = td_real.cuStreamSynchronize(CU_STREAM_PER_THREAD) ? -EIO : r;
	pthread_mutex_lock(&lock);
	totals[slot].move_ns += now_ns() - began;
	pthread_mutex_unlock(&lock);
	return r;
}

static int managed_shrink(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	struct td_memory_stats *t = &totals[slot];
	uint64_t bytes;
	int r;

	(void)progress;
	pthread_mutex_lock(&lock);
	bytes = t->resident_bytes > limit_bytes ? t->resident_bytes - limit_bytes : 0;
	pthread_mutex_unlock(&lock);
	if (!bytes)
		return 0;
	r = prefetch(slot, bytes, -1);
	pthread_mutex_lock(&lock);
	t->resident_bytes -= bytes;
	t->host_bytes += bytes;
	t->out_bytes += bytes;
	pthread_mutex_unlock(&lock);
	return r;
}

static int managed_fill(unsigned slot, uint64_t limit_bytes, void (*progress)(unsigned slot))
{
	struct td_memory_stats *t = &totals[slot];
	uint64_t bytes, demanded;
	CUdevice device;

	(void)progress;
	pthread_mutex_lock(&lock);
	bytes = t->host_bytes;
	demanded = t->demanded_bytes;
	pthread_mutex_unlock(&lock);
	if (demanded > limit_bytes)
		return 1;
	if (!bytes || td_real.cuCtxGetDevice(&device))
		return 0;
	/*
	 * All of the memory is prefetched; this costs nothing for pages on the device. If it fails,
	 * page faults bring the memory.
	 */
	(void)prefetch(slot, demanded, device);
	pthread_mutex_lock(&lock);
	t->resident_bytes += bytes;
	t->host_bytes -= bytes;
	t->in_bytes += bytes;
	pthread_mutex_unlock(&lock);
	return 0;
}

static void managed_stats(unsigned slot, struct td_memory_stats *ret)
{
	any_stats(slot, ret);
	ret->managed_bytes = ret->resident_bytes;
}

const struct td_backend td_backend_managed = {
	.name = "managed",
	.alloc = managed_alloc,
	.free = any_free,
	.range = any_range,
	.release = any_free,
	.lost = any_lost,
	.shrink = managed_shrink,
	.fill = managed_fill,
	.stats = managed_stats,
	.forked = any_forked,
};
