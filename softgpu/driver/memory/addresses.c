/*
 * The memory of this process: the window of device addresses, allocations of every kind, and the
 * bytes behind each address.
 * Device addresses lie in a window that is reserved without access rights, so a program that
 * dereferences one faults, as it would with a GPU. The bytes are elsewhere, and a table of 2 MiB
 * granules translates addresses to them. Managed and pinned memory has the same address on the
 * device and the host.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softgpu/driver/memory/ipc.h"

#define WINDOW_BYTES  (1ull << 40)
#define WINDOW_LEAST  (1ull << 34)
#define GRANULE_COUNT (WINDOW_BYTES / GRANULE)
/* Smaller allocations share a granule. They are aligned to UNIT. */
#define SMALL_BYTES (GRANULE / 2)
#define UNIT        512u
#define UNIT_COUNT  (GRANULE / UNIT)

struct interval {
	uint64_t base, bytes;
};

/* A granule that several small allocations share. */
struct slab {
	struct slab *next;
	struct CUctx_st *context;
	uint64_t base;
	unsigned used;
	uint8_t taken[UNIT_COUNT];
};

/*
 * All of these are guarded by sg.memory_lock. window_bytes is WINDOW_BYTES, or less if the process
 * cannot reserve that much.
 */
static uint64_t window, window_bytes;
static struct sg_granule granules[GRANULE_COUNT];
/* cuMemAlloc memory lies in a file, so that other processes can open it (ipc.c). */
static int arena = -1;
static struct interval *reserved; /* sorted by base */
static size_t reserved_count, reserved_room;
static struct sg_allocation *allocations; /* sorted by base */
static size_t allocation_count, allocation_room;
static struct slab *slabs;

static int open_window(void)
{
	uint64_t bytes = WINDOW_BYTES;
	void *at = MAP_FAILED;

	if (window)
		return 0;
	while (at == MAP_FAILED && bytes >= WINDOW_LEAST) {
		at = mmap(NULL, bytes + GRANULE, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			bytes /= 2;
	}
	if (at == MAP_FAILED)
		return -1;
	window_bytes = bytes;
	window = ((uint64_t)at + GRANULE - 1) & ~(GRANULE - 1);
	return 0;
}

bool sg_is_device_address(uint64_t address)
{
	return window && address - window < window_bytes;
}

/* -- addresses -- */

static bool grow(void **array, size_t count, size_t *room, size_t each)
{
	void *bigger;

	if (count < *room)
		return true;
	bigger = realloc(*array, (*room ? 2 * *room : 64) * each);
	if (!bigger)
		return false;
	*array = bigger;
	*room = *room ? 2 * *room : 64;
	return true;
}

static uint64_t reserve_locked(uint64_t bytes, uint64_t align)
{
	uint64_t at = (window + align - 1) & ~(align - 1);
	size_t i = 0;

	if (open_window() ||
		!grow((void **)&reserved, reserved_count, &reserved_room, sizeof(*reserved)))
		return 0;
	at = (window + align - 1) & ~(align - 1);
	for (; i < reserved_count; i++) {
		if (reserved[i].base >= at + bytes)
			break;
		at = (reserved[i].base + reserved[i].bytes + align - 1) & ~(align - 1);
	}
	if (bytes > window_bytes || at + bytes > window + window_bytes)
		return 0;
	memmove(reserved + i + 1, reserved + i, (reserved_count - i) * sizeof(*reserved));
	reserved[i] = (struct interval){at, bytes};
	reserved_count++;
	return at;
}

static void unreserve_locked(uint64_t base)
{
	for (size_t i = 0; i < reserved_count; i++) {
		if (reserved[i].base != base)
			continue;
		memmove(reserved + i, reserved + i + 1,
			(reserved_count - i - 1) * sizeof(*reserved));
		reserved_count--;
		return;
	}
}

uint64_t sg_address_reserve(uint64_t bytes, uint64_t align)
{
	uint64_t at;

	pthread_rwlock_wrlock(&sg.memory_lock);
	at = reserve_locked(bytes, align < GRANULE ? GRANULE : align);
	pthread_rwlock_unlock(&sg.memory_lock);
	return at;
}

void sg_address_release(uint64_t base, uint64_t bytes)
{
	(void)bytes;
	pthread_rwlock_wrlock(&sg.memory_lock);
	unreserve_locked(base);
	pthread_rwlock_unlock(&sg.memory_lock);
}

static void set_granules_locked(uint64_t base, uint64_t bytes, const struct sg_granule *granule)
{
	for (uint64_t done = 0; done < bytes; done += GRANULE) {
		struct sg_granule *at = &granules[(base + done - window) / GRANULE];

		*at = *granule;
		at->host = granule->host ? granule->host + done : NULL;
	}
}

void sg_granules_set(uint64_t base, uint64_t bytes, const struct sg_granule *granule)
{
	pthread_rwlock_wrlock(&sg.memory_lock);
	set_granules_locked(base, bytes, granule);
	pthread_rwlock_unlock(&sg.memory_lock);
}

static bool may_access(const struct CUctx_st *context, const struct sg_granule *granule)
{
	if (!context)
		return granule->devices;
	return granule->devices & SG_DEVICE_BIT(context->device) ||
	       (granule->peers && __atomic_load_n(&context->peers, __ATOMIC_RELAXED) &
					  SG_DEVICE_BIT(granule->home));
}

void *sg_memory_translate(
	const struct CUctx_st *context, uint64_t address, uint64_t *ret_last, bool *ret_remote)
{
	struct sg_granule granule;

	if (!sg_is_device_address(address))
		return NULL;
	pthread_rwlock_rdlock(&sg.memory_lock);
	granule = granules[(address - window) / GRANULE];
	pthread_rwlock_unlock(&sg.memory_lock);
	if (!granule.host || !may_access(context, &granule))
		return NULL;
	*ret_remote = granule.remote || (context && granule.home != context->device);
	*ret_last = address | (GRANULE - 1);
	return granule.host + (address & (GRANULE - 1));
}

/*
 * Returns the arena's file, and the offset in it of the memory behind a device address. The bytes
 * of a granule are contiguous.
 */
int sg_arena_place(uint64_t address, uint64_t *ret_offset)
{
	*ret_offset = address - window;
	return arena;
}

/* Maps the bytes behind new cuMemAlloc addresses. They are a hole in the file until written. */
static uint8_t *arena_map(uint64_t base, uint64_t bytes)
{
	void *pages;

	if (arena < 0) {
		arena = memfd_create("softgpu-device", MFD_CLOEXEC);
		if (arena >= 0 && ftruncate(arena, (off_t)WINDOW_BYTES)) {
			close(arena);
			arena = -1;
		}
	}
	if (arena < 0)
		return NULL;
	pages = mmap(
		NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, arena, (off_t)(base - window));
	return pages == MAP_FAILED ? NULL : pages;
}

static void arena_unmap(uint64_t base, void *pages, uint64_t bytes)
{
	sg_pages_free(pages, bytes);
	(void)fallocate(arena, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(base - window),
		(off_t)bytes);
}

/* -- allocations -- */

/* Returns the index of the first allocation with base > address. */
static size_t upper_bound(uint64_t address)
{
	size_t low = 0, high = allocation_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (allocations[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool add_locked(const struct sg_allocation *allocation)
{
	static uint64_t last_id;
	size_t i = upper_bound(allocation->base);

	if (!grow((void **)&allocations, allocation_count, &allocation_room, sizeof(*allocations)))
		return false;
	memmove(allocations + i + 1, allocations + i,
		(allocation_count - i) * sizeof(*allocations));
	allocations[i] = *allocation;
	allocations[i].id = ++last_id;
	allocation_count++;
	return true;
}

static bool remove_locked(uint64_t base, struct sg_allocation *ret)
{
	size_t i = upper_bound(base);

	if (!i || allocations[i - 1].base != base)
		return false;
	*ret = allocations[i - 1];
	memmove(allocations + i - 1, allocations + i,
		(allocation_count - i) * sizeof(*allocations));
	allocation_count--;
	return true;
}

void sg_allocation_add(const struct sg_allocation *allocation)
{
	pthread_rwlock_wrlock(&sg.memory_lock);
	(void)add_locked(allocation);
	pthread_rwlock_unlock(&sg.memory_lock);
}

bool sg_allocation_set_freeing(uint64_t base, bool freeing)
{
	struct sg_allocation *found;
	bool changes;
	size_t i;

	pthread_rwlock_wrlock(&sg.memory_lock);
	i = upper_bound(base);
	found = i ? &allocations[i - 1] : NULL;
	changes = found && found->base == base && found->context && !found->owned &&
		  found->kind == SG_MEMORY_DEVICE && found->freeing != freeing;
	if (changes)
		found->freeing = freeing;
	pthread_rwlock_unlock(&sg.memory_lock);
	return changes;
}

bool sg_allocation_remove(uint64_t base, struct sg_allocation *ret)
{
	bool found;

	pthread_rwlock_wrlock(&sg.memory_lock);
	found = remove_locked(base, ret);
	pthread_rwlock_unlock(&sg.memory_lock);
	return found;
}

bool sg_memory_find(uint64_t address, uint64_t bytes, struct sg_allocation *ret)
{
	bool found = false;
	size_t i;

	pthread_rwlock_rdlock(&sg.memory_lock);
	i = upper_bound(address);
	if (i) {
		*ret = allocations[i - 1];
		found = address - ret->base < ret->bytes &&
			bytes <= ret->bytes - (address - ret->base);
	}
	pthread_rwlock_unlock(&sg.memory_lock);
	return found;
}

bool sg_memory_overlaps(uint64_t address, uint64_t bytes)
{
	bool overlaps;
	size_t i;

	pthread_rwlock_rdlock(&sg.memory_lock);
	i = upper_bound(address);
	overlaps = (i && address - allocations[i - 1].base < allocations[i - 1].bytes) ||
		   (i < allocation_count && allocations[i].base - address < bytes);
	pthread_rwlock_unlock(&sg.memory_lock);
	return overlaps;
}

int sg_reserve_what_is_free(uint32_t device, uint32_t context_id, uint64_t bytes)
{
	struct sg_msg msg = {
		.type = SG_MEMORY_RESERVE, .gpu = device, .context = context_id, .bytes = bytes};

	if (sg_client_request(sg.client, &msg, NULL, 0, NULL))
		return SG_LOST;
	return msg.error ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

int sg_reserve(uint32_t device, uint32_t context_id, uint64_t bytes)
{
	int r = sg_reserve_what_is_free(device, context_id, bytes);

	if (r != CUDA_ERROR_OUT_OF_MEMORY)
		return r;
	sg_pools_trim(device);
	return sg_reserve_what_is_free(device, context_id, bytes);
}

void sg_release(uint32_t device, uint32_t context_id, uint64_t bytes)
{
	struct sg_msg msg = {
		.type = SG_MEMORY_RELEASE, .gpu = device, .context = context_id, .bytes = bytes};

	(void)sg_client_request(sg.client, &msg, NULL, 0, NULL);
}

/*
 * Allocates granules for this allocation alone: reserves capacity and maps memory. Returns 0 and
 * *ret, or an error.
 */
static int new_granules(struct CUctx_st *context, uint64_t bytes, uint64_t *ret)
{
	struct sg_granule granule = {.devices = SG_DEVICE_BIT(context->device),
		.home = (uint8_t)context->device,
		.peers = true};
	int r = sg_reserve(context->device, context->id, bytes);
	uint64_t at;

	if (r)
		return r;
	pthread_rwlock_wrlock(&sg.memory_lock);
	at = reserve_locked(bytes, GRANULE);
	if (at)
		granule.host = arena_map(at, bytes);
	if (granule.host)
		set_granules_locked(at, bytes, &granule);
	else if (at)
		unreserve_locked(at);
	pthread_rwlock_unlock(&sg.memory_lock);
	if (!granule.host) {
		sg_release(context->device, context->id, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = at;
	return CUDA_SUCCESS;
}

/*
 * Takes the first run of free units in a slab of this context. Returns 0 if there is none. Called
 * with the write lock held.
 */
static uint64_t take_units(struct CUctx_st *context, unsigned count)
{
	for (struct slab *slab = slabs; slab; slab = slab->next) {
		unsigned run = 0;

		if (slab->context != context || UNIT_COUNT - slab->used < count)
			continue;
		for (unsigned i = 0; i < UNIT_COUNT; i++) {
			run = slab->taken[i] ? 0 : run + 1;
			if (run < count)
				continue;
			memset(slab->taken + i + 1 - count, 1, count);
			slab->used += count;
			return slab->base + (uint64_t)(i + 1 - count) * UNIT;
		}
	}
	return 0;
}

static int alloc_small(struct CUctx_st *context, unsigned units, uint64_t *ret)
{
	struct slab *slab;
	int r;

	pthread_rwlock_wrlock(&sg.memory_lock);
	*ret = take_units(context, units);
	pthread_rwlock_unlock(&sg.memory_lock);
	if (*ret)
		return CUDA_SUCCESS;
	slab = calloc(1, sizeof(*slab));
	if (!slab)
		return CUDA_ERROR_OUT_OF_MEMORY;
	slab->context = context;
	r = new_granules(context, GRANULE, &slab->base);
	if (r) {
		free(slab);
		return r;
	}
	pthread_rwlock_wrlock(&sg.memory_lock);
	slab->next = slabs;
	slabs = slab;
	*ret = take_units(context, units);
	pthread_rwlock_unlock(&sg.memory_lock);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int sg_memory_alloc(struct CUctx_st *context, uint64_t bytes, bool owned, uint64_t *ret)
{
	struct sg_allocation allocation = {.bytes = bytes,
		.kind = SG_MEMORY_DEVICE,
		.context = context,
		.device = context->device,
		.owned = owned};
	int r;

	if (bytes > WINDOW_BYTES)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (bytes < SMALL_BYTES)
		r = alloc_small(context, (unsigned)((bytes + UNIT - 1) / UNIT), &allocation.base);
	else
		r = new_granules(context, (bytes + GRANULE - 1) & ~(GRANULE - 1), &allocation.base);
	if (r)
		return r;
	sg_allocation_add(&allocation);
	*ret = allocation.base;
	return CUDA_SUCCESS;
}

/* -- granules that other processes may hold -- */

struct run {
	struct run *next;
	uint64_t base, number;
};
/* The mark keeps the number different from any file's device number. */
#define RUN_MARK (1ull << 63)

static struct run *runs;  /* guarded by sg.memory_lock */
static uint64_t last_run; /* only used by the thread that shares */

static struct run **find_run(uint64_t base)
{
	struct run **at = &runs;

	while (*at && (*at)->base != base)
		at = &(*at)->next;
	return at;
}

static uint64_t arena_file(void)
{
	struct stat st;

	return fstat(arena, &st) ? 0 : (uint64_t)st.st_ino;
}

/* Turns the context's own memory into memory that several processes can hold. */
static bool share_run(const struct CUctx_st *context, const struct run *run, uint64_t bytes)
{
	struct sg_msg msg = {.type = SG_MEMORY_SHARE,
		.gpu = context->device,
		.context = context->id,
		.bytes = bytes,
		.value = arena_file(),
		.value2 = run->number};

	return !sg_client_request(sg.client, &msg, NULL, 0, NULL) && !msg.error;
}

/* ipc.c makes these calls one at a time. memory_lock is not held while the server is asked. */
uint64_t sg_granules_share(const struct sg_allocation *allocation)
{
	bool small = allocation->bytes < SMALL_BYTES;
	uint64_t base = allocation->base & ~(GRANULE - 1);
	uint64_t bytes = small ? GRANULE : (allocation->bytes + GRANULE - 1) & ~(GRANULE - 1);
	const struct run *known;
	struct run *run;

	if (!(sg.devices[allocation->device].info.features & SG_FEATURE_IPC_KEEPS))
		return 0;
	pthread_rwlock_rdlock(&sg.memory_lock);
	known = *find_run(base);
	pthread_rwlock_unlock(&sg.memory_lock);
	if (known)
		return known->number;
	run = malloc(sizeof(*run));
	if (!run)
		return 0;
	*run = (struct run){NULL, base, RUN_MARK | ++last_run};
	if (!share_run(allocation->context, run, bytes)) {
		free(run);
		return 0;
	}
	pthread_rwlock_wrlock(&sg.memory_lock);
	run->next = runs;
	runs = run;
	pthread_rwlock_unlock(&sg.memory_lock);
	return run->number;
}

/* Drops the owner's hold on shared granules. Returns false if they were not shared. */
static bool drop_run(uint64_t base)
{
	struct sg_msg msg = {.type = SG_MEMORY_DROP};
	struct run **at, *run;

	pthread_rwlock_wrlock(&sg.memory_lock);
	at = find_run(base);
	run = *at;
	if (run)
		*at = run->next;
	pthread_rwlock_unlock(&sg.memory_lock);
	if (!run)
		return false;
	msg.value = arena_file();
	msg.value2 = run->number;
	free(run);
	(void)sg_client_request(sg.client, &msg, NULL, 0, NULL);
	return true;
}

static void free_granules(struct CUctx_st *context, uint64_t base, uint64_t bytes)
{
	static const struct sg_granule none;
	bool shared = drop_run(base);

	pthread_rwlock_wrlock(&sg.memory_lock);
	arena_unmap(base, granules[(base - window) / GRANULE].host, bytes);
	set_granules_locked(base, bytes, &none);
	unreserve_locked(base);
	pthread_rwlock_unlock(&sg.memory_lock);
	if (!shared)
		sg_release(context->device, context->id, bytes);
}

static void free_small(uint64_t base, uint64_t bytes)
{
	unsigned units = (unsigned)((bytes + UNIT - 1) / UNIT);
	struct slab *empty = NULL;

	pthread_rwlock_wrlock(&sg.memory_lock);
	for (struct slab **s = &slabs; *s; s = &(*s)->next) {
		struct slab *slab = *s;

		if (base - slab->base >= GRANULE)
			continue;
		memset(slab->taken + (base - slab->base) / UNIT, 0, units);
		slab->used -= units;
		if (!slab->used) {
			*s = slab->next;
			empty = slab;
		}
		break;
	}
	pthread_rwlock_unlock(&sg.memory_lock);
	if (empty) {
		free_granules(empty->context, empty->base, GRANULE);
		free(empty);
	}
}

int sg_memory_release(struct CUctx_st *context, uint64_t address)
{
	struct sg_allocation allocation;

	if (!sg_memory_find(address, 1, &allocation) || allocation.base != address ||
		!allocation.context || allocation.kind == SG_MEMORY_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	(void)context;
	sg_ipc_memory_gone(address);
	(void)sg_allocation_remove(address, &allocation);
	if (allocation.kind == SG_MEMORY_MANAGED)
		sg_managed_free(&allocation);
	else if (allocation.bytes < SMALL_BYTES)
		free_small(allocation.base, allocation.bytes);
	else
		free_granules(allocation.context, allocation.base,
			(allocation.bytes + GRANULE - 1) & ~(GRANULE - 1));
	return CUDA_SUCCESS;
}

/*
 * Frees all allocations of the context here. The server frees its own record of them when the
 * context ends.
 */
void sg_memory_context_gone(struct CUctx_st *context)
{
	uint64_t base;

	while ((base = sg_allocation_of_context(context, SG_MEMORY_DEVICE)) ||
		(base = sg_allocation_of_context(context, SG_MEMORY_MANAGED)))
		(void)sg_memory_release(context, base);
}

uint64_t sg_allocation_of_context(const struct CUctx_st *context, enum sg_memory_kind kind)
{
	uint64_t base = 0;

	pthread_rwlock_rdlock(&sg.memory_lock);
	for (size_t i = 0; i < allocation_count && !base; i++)
		if (allocations[i].context == context && allocations[i].kind == kind)
			base = allocations[i].base;
	pthread_rwlock_unlock(&sg.memory_lock);
	return base;
}

/* -- bytes -- */

/*
 * Returns the host pointer behind an address and the number of contiguous bytes from there. NULL: a
 * device address with nothing mapped behind it.
 */
static uint8_t *resolve(uint64_t address, uint64_t *ret_bytes)
{
	uint64_t last;
	uint8_t *host;
	bool remote;

	if (!sg_is_device_address(address)) {
		*ret_bytes = UINT64_MAX;
		return (uint8_t *)address;
	}
	host = sg_memory_translate(NULL, address, &last, &remote);
	*ret_bytes = host ? last - address + 1 : 0;
	return host;
}

int sg_memory_copy(uint64_t target, uint64_t source, uint64_t bytes)
{
	while (bytes) {
		uint64_t to_bytes, from_bytes, n = bytes;
		uint8_t *to = resolve(target, &to_bytes), *from = resolve(source, &from_bytes);

		if (!to || !from)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		n = n < to_bytes ? n : to_bytes;
		n = n < from_bytes ? n : from_bytes;
		memmove(to, from, n);
		target += n;
		source += n;
		bytes -= n;
	}
	return CUDA_SUCCESS;
}

int sg_memory_fill(uint64_t target, uint64_t pattern, unsigned pattern_bytes, uint64_t count)
{
	for (uint64_t left = count * pattern_bytes; left;) {
		uint64_t n;
		uint8_t *to = resolve(target, &n);

		if (!to)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		n = n < left ? n : left;
		if (pattern_bytes == 1)
			memset(to, (int)pattern, n);
		for (uint64_t i = 0; pattern_bytes > 1 && i < n; i += pattern_bytes)
			memcpy(to + i, &pattern, pattern_bytes);
		target += n;
		left -= n;
	}
	return CUDA_SUCCESS;
}
