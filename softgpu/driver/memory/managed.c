/*
 * Managed memory: allocation, advice, prefetch, discard, attachment. Here a managed page has one
 * home GPU, the one it was allocated on; other GPUs access it across the link. The server keeps the
 * location of each page (src/model/paging.h). The bytes are always at the address that the host
 * uses.
 * Advice is stored for each page and returned by queries. The paging model does not use it yet.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/memory/managed_abi.h"

#define NOWHERE (-2) /* CU_DEVICE_INVALID */
/* Discarded pages are filled with this, so that programs which rely on their old content fail. */
#define DISCARDED 0xa5

struct advice {
	bool read_mostly, accessed_by_host;
	int8_t preferred, prefetched; /* a device, CU_DEVICE_CPU or NOWHERE */
	uint64_t accessed_by;         /* devices, one bit each */
};
_Static_assert(SG_GPU_MAX <= 64, "one bit per device");

struct advised {
	struct td_list link;
	uint64_t base, bytes;
	struct advice *pages;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct td_list advised = {&advised, &advised};

int sg_managed_new(uint32_t device, struct CUctx_st *context, uint64_t bytes, uint64_t *ret)
{
	struct sg_allocation allocation = {
		.bytes = bytes, .kind = SG_MEMORY_MANAGED, .device = device, .context = context};
	struct sg_msg msg = {.type = SG_MANAGED_NEW,
		.gpu = device,
		.context = context ? context->id : 0,
		.bytes = bytes};
	void *pages = sg_pages_new(bytes);

	if (!pages)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (sg_client_request(sg.client, &msg, NULL, 0, NULL) || msg.error) {
		sg_pages_free(pages, bytes);
		return msg.error ? CUDA_ERROR_OUT_OF_MEMORY : SG_LOST;
	}
	allocation.base = (uint64_t)pages;
	allocation.range = (uint32_t)msg.value;
	sg_allocation_add(&allocation);
	*ret = allocation.base;
	return CUDA_SUCCESS;
}

static void forget_advice(uint64_t base)
{
	struct td_list *it, *tmp;

	pthread_mutex_lock(&lock);
	td_list_for_each_safe (it, tmp, &advised) {
		struct advised *a = td_container_of(it, struct advised, link);

		if (a->base != base)
			continue;
		td_list_remove(&a->link);
		free(a->pages);
		free(a);
	}
	pthread_mutex_unlock(&lock);
}

void sg_managed_free(const struct sg_allocation *allocation)
{
	struct sg_msg msg = {
		.type = SG_MANAGED_FREE, .gpu = allocation->device, .range = allocation->range};

	forget_advice(allocation->base);
	(void)sg_client_request(sg.client, &msg, NULL, 0, NULL);
	sg_pages_free((void *)allocation->base, allocation->bytes);
}

API CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned flags)
{
	struct CUctx_st *context;
	uint64_t address;
	int r = sg_current_unsafe(&context);

	if (r)
		return r;
	if (!ret || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	r = sg_managed_new(context->device, context, bytes, &address);
	if (!r)
		*ret = address;
	return r;
}

/* -- places -- */

/*
 * Returns the device of a location, or CU_DEVICE_CPU for any place on the host. Errors are
 * INVALID_VALUE and INVALID_DEVICE.
 */
static int place_of(CUmemLocation location, int *ret)
{
	switch (location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		*ret = location.id;
		return location.id < 0 || location.id >= (int)sg.device_count
			       ? CUDA_ERROR_INVALID_DEVICE
			       : CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: *ret = CU_DEVICE_CPU; return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		*ret = CU_DEVICE_CPU;
		return location.id ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUmemLocation old_place(CUdevice device)
{
	return (CUmemLocation){
		device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
		device};
}

static int find_managed(uint64_t address, size_t bytes, struct sg_allocation *ret)
{
	return bytes && sg_memory_find(address, bytes, ret) && ret->kind == SG_MEMORY_MANAGED
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

/* -- advice -- */

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/*
 * Called with lock held. Returns the allocation's advice. NULL: no memory, or none was given yet
 * and `make` is not set.
 */
static struct advised *advised_of(const struct sg_allocation *allocation, bool make)
{
	uint64_t count = (allocation->bytes + page_bytes() - 1) / page_bytes();
	struct advised *a;
	struct td_list *it;

	td_list_for_each (it, &advised) {
		a = td_container_of(it, struct advised, link);
		if (a->base == allocation->base)
			return a;
	}
	a = make ? calloc(1, sizeof(*a)) : NULL;
	if (!a)
		return NULL;
	a->pages = calloc(count, sizeof(*a->pages));
	if (!a->pages) {
		free(a);
		return NULL;
	}
	for (uint64_t i = 0; i < count; i++)
		a->pages[i].preferred = a->pages[i].prefetched = NOWHERE;
	a->base = allocation->base;
	a->bytes = allocation->bytes;
	td_list_append(&advised, &a->link);
	return a;
}

/* cuda.h has no advice 0. It stores what LAST_PREFETCH_LOCATION returns. */
enum { PREFETCHED = 0 };

static void advise_page(struct advice *page, int advice, int place)
{
	uint64_t bit = place == CU_DEVICE_CPU ? 0 : 1ull << (unsigned)place % SG_GPU_MAX;

	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY: page->read_mostly = true; break;
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY: page->read_mostly = false; break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: page->preferred = (int8_t)place; break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: page->preferred = NOWHERE; break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
		page->accessed_by |= bit;
		page->accessed_by_host |= !bit;
		break;
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		page->accessed_by &= ~bit;
		page->accessed_by_host &= bit != 0;
		break;
	default: page->prefetched = (int8_t)place; break;
	}
}

static int note_advice(const struct sg_allocation *allocation, uint64_t address, size_t bytes,
	int advice, int place)
{
	uint64_t first = (address - allocation->base) / page_bytes(),
		 end = (address - allocation->base + bytes + page_bytes() - 1) / page_bytes();
	struct advised *a;

	pthread_mutex_lock(&lock);
	a = advised_of(allocation, true);
	for (uint64_t i = first; a && i < end; i++)
		advise_page(&a->pages[i], advice, place);
	pthread_mutex_unlock(&lock);
	return a ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static int advise(CUdeviceptr address, size_t bytes, int advice, CUmemLocation location)
{
	bool needs_place = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
			   advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
			   advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
	struct sg_allocation allocation;
	int place = NOWHERE, r = sg_ready();

	if (r)
		return r;
	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return CUDA_ERROR_INVALID_VALUE;
	r = find_managed(address, bytes, &allocation);
	if (!r && needs_place)
		r = place_of(location, &place);
	return r ? r : note_advice(&allocation, address, bytes, advice, place);
}

API CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, int advice, CUdevice device)
{
	return advise(address, bytes, advice, old_place(device));
}

API CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, int advice, CUmemLocation location)
{
	return advise(address, bytes, advice, location);
}

/* Returns what all pages of a range have in common. */
static struct advice common(const struct sg_allocation *allocation, uint64_t address, size_t bytes)
{
	struct advice all = {.preferred = NOWHERE, .prefetched = NOWHERE};
	uint64_t first = (address - allocation->base) / page_bytes(),
		 end = (address - allocation->base + bytes + page_bytes() - 1) / page_bytes();
	const struct advised *a;

	pthread_mutex_lock(&lock);
	a = advised_of(allocation, false);
	if (a)
		all = a->pages[first];
	for (uint64_t i = first + 1; a && i < end; i++) {
		const struct advice *page = &a->pages[i];

		all.read_mostly &= page->read_mostly;
		all.accessed_by &= page->accessed_by;
		all.accessed_by_host &= page->accessed_by_host;
		if (all.preferred != page->preferred)
			all.preferred = NOWHERE;
		if (all.prefetched != page->prefetched)
			all.prefetched = NOWHERE;
	}
	pthread_mutex_unlock(&lock);
	return all;
}

static int type_of(int place)
{
	return place == NOWHERE         ? CU_MEM_LOCATION_TYPE_INVALID
	       : place == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST
					: CU_MEM_LOCATION_TYPE_DEVICE;
}

/* cuda.h: "If there are fewer, the remaining space will be set to CU_DEVICE_INVALID." */
static int list_accessors(const struct advice *all, int *out, size_t bytes)
{
	size_t room = bytes / 4, n = 0;

	if (!bytes || bytes % 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (all->accessed_by_host)
		out[n++] = CU_DEVICE_CPU;
	for (int i = 0; i < SG_GPU_MAX && n < room; i++)
		if (all->accessed_by >> i & 1)
			out[n++] = i;
	while (n < room)
		out[n++] = NOWHERE;
	return CUDA_SUCCESS;
}

static int write_advice(const struct advice *all, void *out, size_t bytes, int attribute)
{
	int *value = out;

	if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
		return list_accessors(all, out, bytes);
	if (bytes != 4)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: *value = all->read_mostly; break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: *value = all->preferred; break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: *value = all->prefetched; break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*value = type_of(all->preferred);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*value = type_of(all->prefetched);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		*value = all->preferred < 0 ? 0 : all->preferred;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*value = all->prefetched < 0 ? 0 : all->prefetched;
		break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

API CUresult cuMemRangeGetAttribute(
	void *out, size_t out_bytes, int attribute, CUdeviceptr address, size_t bytes)
{
	struct sg_allocation allocation;
	struct advice all;
	int r = sg_ready();

	if (!r && !out)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = find_managed(address, bytes, &allocation);
	if (r)
		return r;
	all = common(&allocation, address, bytes);
	return write_advice(&all, out, out_bytes, attribute);
}

API CUresult cuMemRangeGetAttributes(void **out, size_t *out_bytes, int *attributes, size_t count,
	CUdeviceptr address, size_t bytes)
{
	int r = sg_ready();

	if (!r && (!out || !out_bytes || !attributes || !count))
		r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < count; i++)
		r = cuMemRangeGetAttribute(out[i], out_bytes[i], attributes[i], address, bytes);
	return r;
}

/* -- prefetch -- */

struct prefetch_work {
	struct sg_work work;
	uint32_t range, device;
	uint64_t first, bytes;
	bool to_device;
};

static int run_prefetch(struct CUstream_st *stream, struct sg_work *work)
{
	struct prefetch_work *prefetch = (struct prefetch_work *)work;
	const struct CUctx_st *context = stream->context;
	struct sg_op op;

	/* The prefetch costs no time if the pages' home is another GPU than the stream's. */
	if (prefetch->device != context->device)
		return CUDA_SUCCESS;
	if (sg_client_op_prefetch(sg.client, &op, context->device, context->id, prefetch->range,
		    prefetch->first, prefetch->bytes, prefetch->to_device) ||
		sg_client_op_wait(sg.client, &op))
		return SG_LOST;
	stream->last_end_ns = op.end_ns;
	return CUDA_SUCCESS;
}

static int make_prefetch(
	uint64_t address, size_t bytes, CUmemLocation location, struct sg_work **ret)
{
	struct sg_allocation allocation;
	struct prefetch_work *prefetch;
	int place, r = find_managed(address, bytes, &allocation);

	if (!r)
		r = place_of(location, &place);
	if (r)
		return r;
	/* Pages cannot be prefetched to another GPU than their home. */
	if (place != CU_DEVICE_CPU && (uint32_t)place != allocation.device)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = note_advice(&allocation, address, bytes, PREFETCHED, place);
	if (r)
		return r;
	prefetch = calloc(1, sizeof(*prefetch));
	if (!prefetch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	prefetch->work.bytes = sizeof(*prefetch);
	prefetch->work.run = run_prefetch;
	prefetch->range = allocation.range;
	prefetch->device = allocation.device;
	prefetch->first = address - allocation.base;
	prefetch->bytes = bytes;
	prefetch->to_device = place != CU_DEVICE_CPU;
	*ret = &prefetch->work;
	return CUDA_SUCCESS;
}

static int prefetch_call(uint64_t address, size_t bytes, CUmemLocation location, unsigned flags,
	CUstream handle, bool ptsz)
{
	struct CUstream_st *stream;
	struct sg_work *work;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && flags)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = make_prefetch(address, bytes, location, &work);
	return r ? r : sg_stream_submit(stream, work, NULL);
}

SG_BOTH(cuMemPrefetchAsync, (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream),
	prefetch_call(address, bytes, old_place(device), 0, stream, false),
	prefetch_call(address, bytes, old_place(device), 0, stream, true))
SG_BOTH(cuMemPrefetchAsync_v2,
	(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
		CUstream stream),
	prefetch_call(address, bytes, location, flags, stream, false),
	prefetch_call(address, bytes, location, flags, stream, true))

/* -- batches: discard, prefetch, both -- */

struct discard_work {
	struct sg_work work;
	uint64_t address, bytes;
};

static int run_discard(struct CUstream_st *stream, struct sg_work *work)
{
	const struct discard_work *discard = (struct discard_work *)work;

	(void)stream;
	memset((void *)discard->address, DISCARDED, discard->bytes);
	return CUDA_SUCCESS;
}

static int make_discard(uint64_t address, size_t bytes, struct sg_work **ret)
{
	struct sg_allocation allocation;
	struct discard_work *discard;
	int r = find_managed(address, bytes, &allocation);

	if (r)
		return r;
	discard = calloc(1, sizeof(*discard));
	if (!discard)
		return CUDA_ERROR_OUT_OF_MEMORY;
	discard->work.bytes = sizeof(*discard);
	discard->work.run = run_discard;
	discard->address = address;
	discard->bytes = bytes;
	*ret = &discard->work;
	return CUDA_SUCCESS;
}

struct batch {
	const CUdeviceptr *addresses;
	const size_t *bytes;
	size_t count;
	const CUmemLocation *locations; /* NULL: only discard */
	const size_t *indices;
	size_t location_count;
	bool discards;
};

static int check_batch(const struct batch *b, unsigned long long flags)
{
	if (!b->addresses || !b->bytes || !b->count || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!b->locations && !b->location_count)
		return CUDA_SUCCESS;
	if (!b->locations || !b->indices || !b->location_count || b->location_count > b->count ||
		b->indices[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 1; i < b->location_count; i++)
		if (b->indices[i] <= b->indices[i - 1] || b->indices[i] >= b->count)
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static int make_batch(const struct batch *b, struct sg_work **works, size_t *made)
{
	size_t place = 0;
	int r = CUDA_SUCCESS;

	for (size_t i = 0; !r && i < b->count; i++) {
		if (b->discards) {
			r = make_discard(b->addresses[i], b->bytes[i], &works[*made]);
			*made += !r;
		}
		while (b->locations && place + 1 < b->location_count && b->indices[place + 1] <= i)
			place++;
		if (!r && b->locations) {
			r = make_prefetch(
				b->addresses[i], b->bytes[i], b->locations[place], &works[*made]);
			*made += !r;
		}
	}
	return r;
}

static int batch_call(const struct batch *b, unsigned long long flags, CUstream handle, bool ptsz)
{
	struct CUstream_st *stream;
	struct sg_work **works;
	size_t made = 0;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (!r && stream == stream->context->legacy)
		r = CUDA_ERROR_INVALID_VALUE; /* cuda.h: "Must not be legacy NULL stream." */
	if (!r)
		r = check_batch(b, flags);
	if (r)
		return r;
	works = calloc(b->count, 2 * sizeof(struct sg_work *));
	if (!works)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = make_batch(b, works, &made);
	for (size_t i = 0; i < made; i++) {
		if (r)
			sg_work_free(works[i]);
		else
			r = sg_stream_submit(stream, works[i], NULL);
	}
	free(works);
	return r;
}

#define DISCARD                                                                                    \
	&(struct batch)                                                                            \
	{                                                                                          \
		addresses, bytes, count, NULL, NULL, 0, true                                       \
	}
#define PREFETCH(with_discard)                                                                     \
	&(struct batch)                                                                            \
	{                                                                                          \
		addresses, bytes, count, locations, indices, location_count, with_discard          \
	}

SG_BOTH(cuMemDiscardBatchAsync,
	(CUdeviceptr * addresses, size_t *bytes, size_t count, unsigned long long flags,
		CUstream stream),
	batch_call(DISCARD, flags, stream, false), batch_call(DISCARD, flags, stream, true))
SG_BOTH(cuMemPrefetchBatchAsync,
	(CUdeviceptr * addresses, size_t *bytes, size_t count, CUmemLocation *locations,
		size_t *indices, size_t location_count, unsigned long long flags, CUstream stream),
	locations ? batch_call(PREFETCH(false), flags, stream, false) : CUDA_ERROR_INVALID_VALUE,
	locations ? batch_call(PREFETCH(false), flags, stream, true) : CUDA_ERROR_INVALID_VALUE)
SG_BOTH(cuMemDiscardAndPrefetchBatchAsync,
	(CUdeviceptr * addresses, size_t *bytes, size_t count, CUmemLocation *locations,
		size_t *indices, size_t location_count, unsigned long long flags, CUstream stream),
	locations ? batch_call(PREFETCH(true), flags, stream, false) : CUDA_ERROR_INVALID_VALUE,
	locations ? batch_call(PREFETCH(true), flags, stream, true) : CUDA_ERROR_INVALID_VALUE)

/*
 * With concurrent managed access, attaching memory to a stream has no effect that a program could
 * observe.
 */
static int attach(CUstream handle, CUdeviceptr address, size_t bytes, unsigned flags, bool ptsz)
{
	struct sg_allocation allocation;
	struct CUstream_st *stream;
	int r = sg_stream_find(handle, ptsz, &stream);

	if (r)
		return r;
	if (!sg_memory_find(address, 1, &allocation) || allocation.kind != SG_MEMORY_MANAGED)
		return CUDA_ERROR_INVALID_VALUE;
	/*
	 * cuda.h: "length must be zero or equal to the entire allocation's size". The range must
	 * start at the allocation's base.
	 */
	if ((bytes && bytes != allocation.bytes) || (bytes && address != allocation.base))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
		flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	/* cuda.h, CU_MEM_ATTACH_SINGLE: "it is illegal to specify the NULL stream". */
	if (flags == CU_MEM_ATTACH_SINGLE && stream == stream->context->legacy)
		return CUDA_ERROR_INVALID_VALUE;
	return sg_stream_is_capturing(stream) ? sg_capture_refuse(stream) : CUDA_SUCCESS;
}

SG_BOTH(cuStreamAttachMemAsync,
	(CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags),
	attach(stream, address, bytes, flags, false), attach(stream, address, bytes, flags, true))
