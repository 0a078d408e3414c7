/* Hooks of cuMemAlloc and related functions: the process's backend does the work. */
#include "preload/base/backend.h"
#include "preload/base/settings.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"
#include "preload/driver/real.h"
#include "preload/hooks/job_view.h"
#include "preload/ipc/ipc.h"
#include "preload/link/client.h"
#include "preload/memory/late.h"
#include "preload/outside/outside.h"
#include "preload/rehome/rehome.h"
#include "preload/swap/swap.h"

/*
 * Rows of a pitched allocation begin at multiples of this. The driver uses it on all GPUs so far,
 * and textures need no more.
 */
#define PITCH_BYTES 512
/*
 * Results of calls that conflict with a capture are from 900,
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, to CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD.
 */
#define CAPTURE_ERROR_LAST 908
/* No device has, or can address, this much. */
#define ABSURD_BYTES ((size_t)1 << 62)

bool td_is_capture_error(CUresult r)
{
	return r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r <= CAPTURE_ERROR_LAST;
}

/* Asks the driver for an impossible size: it refuses for the capture, or because of the size. */
CUresult td_refused_by_capture(void)
{
	CUdeviceptr none;
	CUresult r;

	if (!td_context_any_capture())
		return CUDA_SUCCESS;
	r = td_real.cuMemAlloc_v2(&none, ABSURD_BYTES);
	return td_is_capture_error(r) ? r : CUDA_SUCCESS;
}

/*
 * Returns the driver's error if a capture forbids cuMemAlloc now. The backend's own driver calls
 * would not show it.
 */
static CUresult refused_by_capture(void)
{
	return td_swap_is_used() ? td_refused_by_capture() : CUDA_SUCCESS;
}

/* Allocates from the driver; the memory never leaves the device. */
static CUresult alloc_of_the_driver(CUdeviceptr *address, size_t bytes)
{
	struct td_outside_claim claim;
	CUresult r = td_outside_claim(&claim, TD_DEVICE_CURRENT, TD_OUTSIDE_LEGACY, bytes);

	if (r)
		return r;
	do
		r = td_real.cuMemAlloc_v2(address, bytes);
	while (td_outside_again(&claim, r));
	return td_outside_settle(&claim, r, TD_KEY_ADDRESS, r ? 0 : *address);
}

static CUresult alloc(CUdeviceptr *address, size_t bytes)
{
	int slot = td_context_use();
	uint64_t at;
	CUresult r;

	/* The arguments are wrong or there is no context: the driver returns the error. */
	if (slot < 0 || !address || !bytes)
		return td_real.cuMemAlloc_v2(address, bytes);
	r = refused_by_capture();
	if (r)
		return r;
	td_outside_refresh();
	r = td_agent_backend()->alloc((unsigned)slot, bytes, &at);
	/*
	 * Before returning out of memory, the driver would reuse the free memory of pools. So do
	 * we.
	 */
	if (r == CUDA_ERROR_OUT_OF_MEMORY && td_outside_trim((unsigned)slot))
		r = td_agent_backend()->alloc((unsigned)slot, bytes, &at);
	if (r == CUDA_ERROR_OUT_OF_MEMORY && td_late_await())
		r = td_agent_backend()->alloc((unsigned)slot, bytes, &at);
	if (r == TD_BACKEND_NO_RECORD)
		return alloc_of_the_driver(address, bytes);
	/*
	 * Another thread has ended the context meanwhile, so the driver is called and returns the
	 * error.
	 */
	if (r == CUDA_ERROR_OUT_OF_MEMORY && td_context_use() < 0)
		return td_real.cuMemAlloc_v2(address, bytes);
	if (!r) {
		*address = at;
		td_outside_note(TD_OUTSIDE_BACKEND, TD_KEY_BACKEND, at, 0);
	}
	return r;
}

CUresult td_hook_cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
	CUresult r;

	do {
		/* Waits while the program moves. */
		td_rehome_begin();
		r = alloc(address, bytes);
		td_rehome_end();
	} while (r == TD_BACKEND_MOVES);
	return r;
}

/*
 * Lays rows out as the driver does, in an allocation of the backend. element is 4, 8 or 16 bytes,
 * the size that a thread reads at once.
 */
CUresult td_hook_cuMemAllocPitch_v2(
	CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
	size_t row = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES, bytes;
	CUresult r;

	if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16) ||
		row < width || __builtin_mul_overflow(row, height, &bytes))
		return td_real.cuMemAllocPitch_v2(address, pitch, width, height, element);
	r = td_hook_cuMemAlloc_v2(address, bytes);
	if (!r)
		*pitch = row;
	return r;
}

/* Frees in the memory's own context, because the backend waits for the work of that context. */
static int free_in(void *context, CUdeviceptr address)
{
	CUcontext current = NULL, popped;
	bool pushed = context && !td_real.cuCtxGetCurrent(&current) && current != context &&
		      !td_real.cuCtxPushCurrent_v2(context);
	int r = td_agent_backend()->free(address);

	if (pushed)
		(void)td_real.cuCtxPopCurrent_v2(&popped);
	return r;
}

CUresult td_hook_cuMemFree_v2(CUdeviceptr address)
{
	struct td_key *key, *handed;
	CUresult r;

	if (!address || td_context_use() < 0)
		return td_real.cuMemFree_v2(address);
	r = refused_by_capture();
	if (r)
		return r;
	if (td_late_has(address))
		return CUDA_ERROR_INVALID_VALUE;
	key = td_outside_take(TD_KEY_BACKEND, address);
	r = free_in(td_outside_context_of(key), address);
	if (r != TD_BACKEND_NOT_MINE)
		return td_outside_end(key, r);
	td_outside_gone(key);
	key = td_outside_take(TD_KEY_ADDRESS, address);
	handed = td_outside_take(TD_KEY_HANDED, address);
	r = td_outside_end(key, td_real.cuMemFree_v2(address));
	(void)td_outside_end(handed, r);
	td_outside_refresh();
	return r;
}

/*
 * The total is the part of the GPU that the daemon shares out, or the job's limit. The free memory
 * is the total less this process's use and, with a limit, the job's use.
 */
CUresult td_hook_cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	CUresult r = td_real.cuMemGetInfo_v2(free_bytes, total_bytes);
	int slot = r ? -1 : td_context_use();
	struct td_memory_stats stats;
	uint64_t capacity, used;

	capacity = slot < 0 ? 0 : td_client_visible((unsigned)slot);
	if (!capacity)
		return r;
	td_agent_backend()->stats((unsigned)slot, &stats);
	used = stats.demanded_bytes - stats.kept_bytes + td_client_others((unsigned)slot);
	if (capacity < td_client_capacity((unsigned)slot))
		used += stats.paged_bytes; /* paged memory counts against a limit */
	if (free_bytes)
		*free_bytes = used < capacity ? capacity - used : 0;
	if (total_bytes)
		*total_bytes = capacity;
	return r;
}

static unsigned no_more_than_32_bits(size_t bytes)
{
	return bytes < UINT32_MAX ? (unsigned)bytes : UINT32_MAX;
}

CUresult td_hook_cuMemGetInfo(unsigned *free_bytes, unsigned *total_bytes)
{
	size_t free_all = 0, total_all = 0;
	CUresult r = td_real.cuMemGetInfo(free_bytes, total_bytes);

	if (r || !td_real.cuMemGetInfo_v2 || td_hook_cuMemGetInfo_v2(&free_all, &total_all))
		return r;
	if (free_bytes)
		*free_bytes = no_more_than_32_bits(free_all);
	if (total_bytes)
		*total_bytes = no_more_than_32_bits(total_all);
	return r;
}

static bool has_context(void)
{
	CUcontext context;

	return td_real.cuCtxGetCurrent && !td_real.cuCtxGetCurrent(&context) && context;
}

/*
 * Answers for the backend's memory. Without a context the driver is called; it returns the same
 * error for all memory.
 */
CUresult td_hook_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
	struct td_swap_info opened = {0};
	uint64_t found_base;
	size_t found_bytes;
	int r = td_agent_backend()->range(address, &found_base, &found_bytes);

	if (r == TD_BACKEND_NOT_MINE) {
		r = td_ipc_describe(address, &opened);
		found_base = opened.base;
		found_bytes = opened.bytes;
	}
	if (r == TD_BACKEND_NOT_MINE || !has_context())
		return td_real.cuMemGetAddressRange_v2(base, bytes, address);
	if (r)
		return r;
	if (base)
		*base = found_base;
	if (bytes)
		*bytes = found_bytes;
	return CUDA_SUCCESS;
}

/* Returns the job's limit on a device that the process does not use yet; UINT64_MAX: none. */
static uint64_t limit_on(CUdevice device, size_t total)
{
	struct td_job_view view;
	uint8_t uuid[16];

	if ((!*td_settings.job && !*td_settings.mem) || !td_driver() ||
		td_driver()->device_get_uuid(uuid, device))
		return UINT64_MAX;
	td_job_view(uuid, total, &view);
	return view.limit_bytes;
}

/*
 * Returns the same total as cuMemGetInfo. Before the process uses the device it is the total of our
 * NVML hook.
 */
CUresult td_hook_cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	CUresult r = td_real.cuDeviceTotalMem_v2(bytes, device);
	unsigned count = td_context_gpu_count();
	uint64_t visible = 0;
	struct td_gpu_info gpu;

	if (r)
		return r;
	for (unsigned i = 0; i < count && !visible; i++)
		if (td_context_gpu(i, &gpu) && gpu.device == device)
			visible = td_client_visible(i);
	if (!visible)
		visible = limit_on(device, *bytes);
	if (visible < *bytes)
		*bytes = visible;
	return r;
}

CUresult td_hook_cuDeviceTotalMem(unsigned *bytes, CUdevice device)
{
	CUresult r = td_real.cuDeviceTotalMem(bytes, device);
	size_t all = 0;

	if (!r && bytes && td_real.cuDeviceTotalMem_v2 &&
		!td_hook_cuDeviceTotalMem_v2(&all, device))
		*bytes = no_more_than_32_bits(all);
	return r;
}
