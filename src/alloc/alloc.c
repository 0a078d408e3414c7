/*
 * libtandem_alloc.so: the caching allocator (cache.h) on the CUDA driver. It has the two functions
 * that torch.cuda.memory.CUDAPluggableAllocator takes:
 *
 *     void *tandem_malloc(ssize_t bytes, int device, CUstream stream);
 *     void tandem_free(void *address, ssize_t bytes, int device, CUstream stream);
 *
 * PyTorch takes any result for memory. So the first one also exists in a form that throws
 * (std::runtime_error, by the C++ library that PyTorch has loaded), where there is no memory, and
 * where a stream captures: a captured graph needs pools, which this allocator does not have, and
 * would find its memory in other hands.
 *
 *     void *tandem_torch_malloc(ssize_t bytes, int device, CUstream stream);
 *
 * PyTorch calls these where another stream uses a tensor (Tensor.record_stream), and for
 * torch.cuda.empty_cache():
 *
 *     void tandem_record_stream(void *address, CUstream stream);
 *     void tandem_alloc_empty(void);
 *
 * One more is for the end of a step, which python/tandem calls in tandem.step(). At a step's end
 * cached memory beyond the process's limit is given back; within the limit it is kept. In a program
 * that reports no steps every 256th call does this instead.
 *
 * TANDEM_ALLOC_SEGMENT (20Mi): the size of segments from the driver for requests below half of
 * that. Smaller segments come free as a whole more often, and cost more calls.
 *
 * Without tandem this is a plain caching allocator. The driver is looked up at the first call, so
 * that loading the library needs no GPU.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "alloc/cache.h"
#include "base/parse.h"
#include "cuda/types.h"
#include "include/tandem/tandem.h"

#define DEVICES     16
#define LOOK_EVERY  256
#define SEGMENT_MIN ((uint64_t)2 << 20)
#define SEGMENT_MAX ((uint64_t)1 << 30)
#define EXPORT      __attribute__((visibility("default")))

EXPORT void *tandem_malloc(ssize_t bytes, int device, CUstream stream);
EXPORT void *tandem_torch_malloc(ssize_t bytes, int device, CUstream stream);
EXPORT void tandem_free(void *address, ssize_t bytes, int device, CUstream stream);
EXPORT void tandem_record_stream(void *address, CUstream stream);
EXPORT void tandem_alloc_empty(void);
EXPORT void tandem_alloc_step(void);
EXPORT int tandem_alloc_stats(int device, struct td_cache_stats *ret);

static struct {
	int (*init)(unsigned flags);
	int (*get_device)(CUdevice *device, int ordinal);
	int (*retain)(CUcontext *context, CUdevice device);
	int (*push)(CUcontext context);
	int (*pop)(CUcontext *context);
	int (*alloc)(CUdeviceptr *address, size_t bytes);
	int (*free)(CUdeviceptr address);
	int (*event_create)(CUevent *event, unsigned flags);
	int (*event_record)(CUevent event, CUstream stream);
	int (*event_destroy)(CUevent event);
	int (*stream_wait)(CUstream stream, CUevent event, unsigned flags);
	int (*synchronize)(void);
	int (*is_capturing)(CUstream stream, int *ret_status);
} cuda;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool found;

struct device {
	pthread_mutex_t lock;
	CUcontext context; /* the primary context; never released */
	struct td_cache *cache;
	unsigned calls;
	uint64_t steps;
};

static struct device devices[DEVICES];
static _Atomic bool tells_steps;

static bool look_up(void *library, const char *name, void **ret)
{
	*ret = dlsym(library, name);
	return *ret != NULL;
}

static void find_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	found = library && look_up(library, "cuInit", (void **)&cuda.init) &&
		look_up(library, "cuDeviceGet", (void **)&cuda.get_device) &&
		look_up(library, "cuDevicePrimaryCtxRetain", (void **)&cuda.retain) &&
		look_up(library, "cuCtxPushCurrent_v2", (void **)&cuda.push) &&
		look_up(library, "cuCtxPopCurrent_v2", (void **)&cuda.pop) &&
		look_up(library, "cuMemAlloc_v2", (void **)&cuda.alloc) &&
		look_up(library, "cuMemFree_v2", (void **)&cuda.free) &&
		look_up(library, "cuEventCreate", (void **)&cuda.event_create) &&
		look_up(library, "cuEventRecord", (void **)&cuda.event_record) &&
		look_up(library, "cuEventDestroy_v2", (void **)&cuda.event_destroy) &&
		look_up(library, "cuStreamWaitEvent", (void **)&cuda.stream_wait) &&
		look_up(library, "cuCtxSynchronize", (void **)&cuda.synchronize) &&
		look_up(library, "cuStreamIsCapturing", (void **)&cuda.is_capturing) &&
		!cuda.init(0);
	for (unsigned i = 0; i < DEVICES; i++)
		pthread_mutex_init(&devices[i].lock, NULL);
}

static int get_segment(void *arg, size_t bytes, uint64_t *ret_address)
{
	const struct device *device = arg;
	CUcontext popped;
	CUdeviceptr address = 0;
	int r = cuda.push(device->context);

	if (r)
		return r;
	r = cuda.alloc(&address, bytes);
	(void)cuda.pop(&popped);
	*ret_address = address;
	return r;
}

static void put_segment(void *arg, uint64_t address)
{
	const struct device *device = arg;
	CUcontext popped;

	if (cuda.push(device->context))
		return;
	(void)cuda.free(address);
	(void)cuda.pop(&popped);
}

static bool join_by_event(CUstream stream, CUstream other)
{
	CUevent event;
	bool joined;

	if (cuda.event_create(&event, CU_EVENT_DISABLE_TIMING))
		return false;
	joined = !cuda.event_record(event, other) && !cuda.stream_wait(stream, event, 0);
	(void)cuda.event_destroy(event);
	return joined;
}

static void join(void *arg, const void *stream, const void *other)
{
	const struct device *device = arg;
	CUcontext popped;

	if (cuda.push(device->context))
		return;
	if (other == TD_CACHE_ALL_STREAMS || !join_by_event((CUstream)stream, (CUstream)other))
		(void)cuda.synchronize();
	(void)cuda.pop(&popped);
}

/*
 * Returns the value of TANDEM_ALLOC_SEGMENT. 0: it is not set or not valid, and the cache chooses.
 */
static size_t segment_bytes(void)
{
	const char *value = getenv("TANDEM_ALLOC_SEGMENT");
	uint64_t bytes;

	if (!value || td_parse_size(value, 0, &bytes, NULL) || bytes < SEGMENT_MIN ||
		bytes > SEGMENT_MAX)
		return 0;
	return bytes / SEGMENT_MIN * SEGMENT_MIN;
}

/* Returns a device, locked, with its cache. NULL: no such device, no driver, or no memory. */
static struct device *enter(int ordinal)
{
	struct device *device;
	CUdevice handle;

	pthread_once(&once, find_driver);
	if (!found || ordinal < 0 || ordinal >= DEVICES)
		return NULL;
	device = &devices[ordinal];
	pthread_mutex_lock(&device->lock);
	if (device->cache)
		return device;
	if (!cuda.get_device(&handle, ordinal) && !cuda.retain(&device->context, handle))
		device->cache = td_cache_new(&(struct td_cache_driver){
			get_segment, put_segment, join, device, segment_bytes()});
	if (device->cache)
		return device;
	pthread_mutex_unlock(&device->lock);
	return NULL;
}

/* Gives back the memory that the driver's limit asks for, and reports how much is only cached. */
static void tidy(struct device *device)
{
	int ordinal = (int)(device - devices);
	struct td_cache_stats stats;
	size_t excess = tandem_excess(ordinal);

	if (excess)
		(void)td_cache_trim(device->cache, excess);
	td_cache_get_stats(device->cache, &stats);
	tandem_cached(ordinal, stats.spare_bytes);
}

static void leave_context(struct device *device)
{
	if (++device->calls % LOOK_EVERY == 0 && !atomic_load(&tells_steps))
		tidy(device);
	pthread_mutex_unlock(&device->lock);
}

void *tandem_malloc(ssize_t bytes, int device, CUstream stream)
{
	struct device *d = bytes < 0 ? NULL : enter(device);
	uint64_t address = 0;

	if (!d)
		return NULL;
	if (td_cache_alloc(d->cache, (size_t)bytes, stream, &address))
		address = 0;
	leave_context(d);
	return (void *)(uintptr_t)address;
}

/*
 * Throws an exception with this text. Returns only if there is no C++ library. No lock may be held.
 */
static void throw(const char *what)
{
	static const char name[] =
		"_ZSt21__throw_runtime_errorPKc"; /* std::__throw_runtime_error(char const *) */
	void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);
	void (*function)(const char *what) = NULL;

	*(void **)&function = dlsym(library ? library : RTLD_DEFAULT, name);
	if (function)
		function(what);
}

/*
 * Tells whether the stream captures. It asks in the device's primary context, which PyTorch uses.
 */
static bool is_captured(int ordinal, CUstream stream)
{
	struct device *device = enter(ordinal);
	CUcontext popped;
	int status = 0;

	if (!device)
		return false;
	pthread_mutex_unlock(&device->lock);
	if (cuda.push(device->context))
		return false;
	if (cuda.is_capturing(stream, &status))
		status = 0;
	(void)cuda.pop(&popped);
	return status != 0;
}

void *tandem_torch_malloc(ssize_t bytes, int device, CUstream stream)
{
	char text[160];
	void *address = NULL;

	if (bytes > 0 && is_captured(device, stream))
		throw("libtandem_alloc.so has no pools, so that graphs cannot be captured with it: "
		      "capture them with PyTorch's own allocator");
	else
		address = tandem_malloc(bytes, device, stream);
	if (address || bytes <= 0)
		return address;
	snprintf(text, sizeof(text),
		"CUDA out of memory. Tried to allocate %.2f MiB on GPU %d (libtandem_alloc.so).",
		(double)bytes / 1048576, device);
	throw(text);
	return NULL;
}

void tandem_free(void *address, ssize_t bytes, int device, CUstream stream)
{
	struct device *d = address ? enter(device) : NULL;

	(void)bytes, (void)stream;
	if (!d)
		return;
	(void)td_cache_free(d->cache, (uintptr_t)address);
	leave_context(d);
}

/* Only a block's own cache knows its address, so the caches of all devices are asked. */
void tandem_record_stream(void *address, CUstream stream)
{
	pthread_once(&once, find_driver);
	for (unsigned i = 0; found && i < DEVICES; i++) {
		pthread_mutex_lock(&devices[i].lock);
		if (devices[i].cache)
			(void)td_cache_record(devices[i].cache, (uintptr_t)address, stream);
		pthread_mutex_unlock(&devices[i].lock);
	}
}

void tandem_alloc_empty(void)
{
	pthread_once(&once, find_driver);
	for (unsigned i = 0; found && i < DEVICES; i++) {
		pthread_mutex_lock(&devices[i].lock);
		if (devices[i].cache) {
			(void)td_cache_trim(devices[i].cache, SIZE_MAX);
			tidy(&devices[i]);
		}
		pthread_mutex_unlock(&devices[i].lock);
	}
}

/* Ends a step. The first step is not counted, because its beginning is not known. */
static void end_step(struct device *device)
{
	struct td_cache_stats stats;

	td_cache_get_stats(device->cache, &stats);
	if (device->steps++)
		tandem_used((int)(device - devices), stats.step_peak_bytes, stats.step_least_bytes);
	td_cache_end_step(device->cache);
}

void tandem_alloc_step(void)
{
	pthread_once(&once, find_driver);
	atomic_store(&tells_steps, true);
	for (unsigned i = 0; found && i < DEVICES; i++) {
		pthread_mutex_lock(&devices[i].lock);
		if (devices[i].cache) {
			end_step(&devices[i]);
			tidy(&devices[i]);
		}
		pthread_mutex_unlock(&devices[i].lock);
	}
}

int tandem_alloc_stats(int device, struct td_cache_stats *ret)
{
	struct device *d = enter(device);

	if (!d)
		return -ENODEV;
	td_cache_get_stats(d->cache, ret);
	pthread_mutex_unlock(&d->lock);
	return 0;
}
