/*
 * Memory that graphs allocate. Its address is assigned with the allocation node and never changes.
 * Memory is behind it from the first launch on. In each launch it is accessible from the allocation
 * node's step to the free.
 *
 *	unbacked --launch--> in use --free node, cuMemFree, cuMemFreeAsync--> kept
 *	kept --launch--> in use
 *	kept --cuDeviceGraphMemTrim--> unbacked
 *
 * NVIDIA's driver shares memory between allocations whose lifetimes do not overlap. Here each has
 * its own, so a graph needs more. All state is guarded by sg_graph_lock, except the granules, which
 * the streams' workers set.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/graph/graph.h"

struct sg_graph_block {
	struct td_list link;
	uint64_t base, bytes, size; /* size: as requested */
	uint32_t device, access;
	uint8_t *host;                   /* NULL: unbacked */
	bool in_use;                     /* as of the latest launch that was queued */
	unsigned references;             /* nodes, executable graphs and queued work */
	unsigned launches;               /* references from launches that are not complete */
	uint64_t allocated_in, freed_in; /* ids of graphs; 0: none */
	CUmemPoolProps props;
};

struct block_work {
	struct sg_work work;
	struct sg_graph_block *block;
	bool accessible, launched;
};

static struct td_list blocks = {&blocks, &blocks};
static uint64_t used_high[SG_GPU_MAX], reserved_high[SG_GPU_MAX];
/* Workers copy and free operations too, so reference counts have a lock of their own. */
static pthread_mutex_t reference_lock = PTHREAD_MUTEX_INITIALIZER;

static struct sg_graph_block *find_block(uint64_t address)
{
	struct td_list *it;

	td_list_for_each (it, &blocks)
		if (td_container_of(it, struct sg_graph_block, link)->base == address)
			return td_container_of(it, struct sg_graph_block, link);
	return NULL;
}

static uint64_t sum(uint32_t device, bool in_use)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &blocks) {
		const struct sg_graph_block *b = td_container_of(it, struct sg_graph_block, link);

		if (b->device == device && (in_use ? b->in_use : b->host != NULL))
			bytes += b->bytes;
	}
	return bytes;
}

static void note_high(uint32_t device)
{
	uint64_t used = sum(device, true), reserved = sum(device, false);

	if (used > used_high[device])
		used_high[device] = used;
	if (reserved > reserved_high[device])
		reserved_high[device] = reserved;
}

static void set_granules(const struct sg_graph_block *block, bool accessible)
{
	sg_granules_set(block->base, block->bytes,
		&(struct sg_granule){.host = block->host,
			.home = (uint8_t)block->device,
			.devices = accessible ? block->access : 0});
}

static void take_backing(struct sg_graph_block *block)
{
	uint8_t *host = block->host;

	block->host = NULL;
	set_granules(block, false);
	sg_pages_free(host, block->bytes);
	sg_release(block->device, 0, block->bytes);
}

/* -- references -- */

static void refer(struct sg_work *copy)
{
	pthread_mutex_lock(&reference_lock);
	((struct block_work *)copy)->block->references++;
	pthread_mutex_unlock(&reference_lock);
}

/* The block itself is freed later, by sweep(): the program may still have it in use. */
static void unrefer(struct sg_work *work)
{
	struct block_work *b = (struct block_work *)work;

	pthread_mutex_lock(&reference_lock);
	b->block->references--;
	b->block->launches -= b->launched;
	pthread_mutex_unlock(&reference_lock);
}

static unsigned references(struct sg_graph_block *block)
{
	unsigned n;

	pthread_mutex_lock(&reference_lock);
	n = block->references;
	pthread_mutex_unlock(&reference_lock);
	return n;
}

static bool is_scheduled(struct sg_graph_block *block)
{
	bool scheduled;

	pthread_mutex_lock(&reference_lock);
	scheduled = block->launches;
	pthread_mutex_unlock(&reference_lock);
	return scheduled;
}

static void note_launched(struct sg_work *work)
{
	struct block_work *b = (struct block_work *)work;

	pthread_mutex_lock(&reference_lock);
	b->launched = true;
	b->block->launches++;
	pthread_mutex_unlock(&reference_lock);
}

static void remove_block(struct sg_graph_block *block)
{
	struct sg_allocation allocation;

	if (block->host)
		take_backing(block);
	td_list_remove(&block->link);
	(void)sg_allocation_remove(block->base, &allocation);
	sg_address_release(block->base, block->bytes);
	free(block);
}

static void sweep(void)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &blocks) {
		struct sg_graph_block *block = td_container_of(it, struct sg_graph_block, link);

		if (!block->in_use && !references(block))
			remove_block(block);
	}
}

/* -- operations -- */

static int run_access(struct CUstream_st *stream, struct sg_work *work)
{
	const struct block_work *b = (struct block_work *)work;

	(void)stream;
	set_granules(b->block, b->accessible);
	return CUDA_SUCCESS;
}

static int new_work(struct sg_graph_block *block, bool accessible, struct sg_work **ret)
{
	struct block_work *work = calloc(1, sizeof(*work));

	if (!work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	work->work.bytes = sizeof(*work);
	work->work.node =
		(accessible ? CU_GRAPH_NODE_TYPE_MEM_ALLOC : CU_GRAPH_NODE_TYPE_MEM_FREE) + 1;
	work->work.run = run_access;
	work->work.copied = refer;
	work->work.release = unrefer;
	work->work.when_dead = true;
	work->block = block;
	work->accessible = accessible;
	refer(&work->work);
	*ret = &work->work;
	return CUDA_SUCCESS;
}

struct sg_graph_block *sg_work_block(const struct sg_work *work)
{
	return work && work->run == run_access ? ((const struct block_work *)work)->block : NULL;
}

uint64_t sg_block_address(const struct sg_graph_block *block)
{
	return block->base;
}

static int check_params(const CUDA_MEM_ALLOC_NODE_PARAMS *p, uint32_t *ret_access)
{
	const CUmemPoolProps *props = &p->poolProps;

	if (!p->bytesize || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
		(p->accessDescCount && !p->accessDescs))
		return CUDA_ERROR_INVALID_VALUE;
	/* cuda.h: "handleTypes must be CU_MEM_HANDLE_TYPE_NONE". */
	if (props->handleTypes)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (props->location.id < 0 || props->location.id >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	*ret_access = SG_DEVICE_BIT(props->location.id);
	for (size_t i = 0; i < p->accessDescCount; i++) {
		const CUmemAccessDesc *access = &p->accessDescs[i];

		if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
			access->location.id < 0 || access->location.id >= (int)sg.device_count ||
			access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
		*ret_access |= SG_DEVICE_BIT(access->location.id);
	}
	return CUDA_SUCCESS;
}

int sg_work_alloc(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct sg_work **ret)
{
	struct sg_graph_block *block;
	uint32_t access;
	int r = check_params(params, &access);

	if (r)
		return r;
	block = calloc(1, sizeof(*block));
	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	block->size = params->bytesize;
	block->bytes = (params->bytesize + GRANULE - 1) & ~(GRANULE - 1);
	block->device = (uint32_t)params->poolProps.location.id;
	block->access = access;
	block->props = params->poolProps;
	block->base = block->bytes < block->size ? 0 : sg_address_reserve(block->bytes, GRANULE);
	r = block->base ? new_work(block, true, ret) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		if (block->base)
			sg_address_release(block->base, block->bytes);
		free(block);
		return r;
	}
	/*
	 * Later nodes may name the address, so it is an allocation from now on. Access faults until
	 * it is mapped.
	 */
	sg_allocation_add(&(struct sg_allocation){.base = block->base,
		.bytes = block->size,
		.kind = SG_MEMORY_DEVICE,
		.device = block->device});
	pthread_mutex_lock(&sg_graph_lock);
	sweep();
	td_list_append(&blocks, &block->link);
	sg_graph_unlock();
	params->dptr = block->base;
	return CUDA_SUCCESS;
}

int sg_work_free_block(uint64_t address, struct sg_work **ret)
{
	struct sg_graph_block *block;
	int r;

	pthread_mutex_lock(&sg_graph_lock);
	block = find_block(address);
	r = block ? new_work(block, false, ret) : CUDA_ERROR_INVALID_VALUE;
	sg_graph_unlock();
	return r;
}

void sg_graph_block_note_alloc(struct sg_graph_block *block, const struct CUgraph_st *graph)
{
	block->allocated_in = graph->id;
}

/*
 * cuda.h: "It is not possible to free an allocation in both the owning graph and another graph". It
 * is not possible twice in one graph either.
 */
int sg_graph_block_note_free(struct sg_graph_block *block, const struct CUgraph_st *graph)
{
	if (block->freed_in == graph->id ||
		(block->freed_in && (block->freed_in == block->allocated_in ||
					    graph->id == block->allocated_in)))
		return CUDA_ERROR_INVALID_VALUE;
	block->freed_in = graph->id;
	return CUDA_SUCCESS;
}

void sg_block_alloc_params(const struct sg_graph_block *block, CUDA_MEM_ALLOC_NODE_PARAMS *ret)
{
	*ret = (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = block->props, .bytesize = block->size, .dptr = block->base};
}

/* -- launches -- */

static int back(struct sg_graph_block *block)
{
	int r = block->host ? CUDA_SUCCESS : sg_reserve(block->device, 0, block->bytes);

	if (r || block->host)
		return r;
	block->host = sg_pages_new(block->bytes);
	if (!block->host) {
		sg_release(block->device, 0, block->bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	set_granules(block, false);
	return CUDA_SUCCESS;
}

int sg_graph_block_check(struct sg_graph_block *block, bool allocates, bool auto_free)
{
	bool freed_here = block->freed_in && block->freed_in == block->allocated_in;

	if (!allocates)
		return block->in_use || freed_here ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (block->in_use && !auto_free)
		return CUDA_ERROR_INVALID_VALUE; /* it was not freed since the last launch */
	return back(block);
}

void sg_graph_block_commit(struct sg_work *work)
{
	struct block_work *b = (struct block_work *)work;

	note_launched(work);
	b->block->in_use = b->accessible;
	note_high(b->block->device);
}

/* -- freed by the program -- */

static int begin_free(uint64_t address, struct sg_graph_block **ret)
{
	struct sg_graph_block *block = find_block(address);

	if (!block)
		return CUDA_ERROR_NOT_FOUND;
	/*
	 * cuda.h, if the owning graph frees them: "These allocations cannot be freed outside the
	 * owning graph".
	 */
	if (!block->in_use || (block->freed_in && block->freed_in == block->allocated_in))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = block;
	return CUDA_SUCCESS;
}

int sg_graph_memory_free(uint64_t address)
{
	struct sg_graph_block *block;
	int r;

	pthread_mutex_lock(&sg_graph_lock);
	r = begin_free(address, &block);
	if (!r) {
		block->in_use = false;
		set_granules(block, false);
		sweep();
	}
	sg_graph_unlock();
	return r;
}

int sg_graph_memory_free_async(struct CUstream_st *stream, uint64_t address)
{
	struct sg_graph_block *block;
	struct sg_work *work;
	int r;

	pthread_mutex_lock(&sg_graph_lock);
	r = begin_free(address, &block);
	if (!r)
		r = new_work(block, false, &work);
	if (!r) {
		block->in_use = false;
		note_launched(work);
	}
	sg_graph_unlock();
	return r ? r : sg_stream_submit(stream, work, NULL);
}

/* -- capture; allocates on the device of the current pool -- */

int sg_capture_alloc(struct CUstream_st *stream, uint64_t bytes, CUdeviceptr *ret)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {CU_MEM_LOCATION_TYPE_DEVICE, (int)stream->context->device}},
		.bytesize = bytes};
	struct sg_work *work;
	int r = sg_work_alloc(&params, &work);

	if (!r)
		r = sg_stream_submit(stream, work, NULL);
	if (!r)
		*ret = params.dptr;
	return r;
}

int sg_capture_free(struct CUstream_st *stream, CUdeviceptr address)
{
	struct sg_work *work;
	int r = sg_work_free_block(address, &work);

	/* Memory that was not allocated by a graph cannot be freed by one. */
	return r ? sg_capture_refuse(stream) : sg_stream_submit(stream, work, NULL);
}

/* -- attributes and trimming -- */

static int check(CUdevice device, const void *value)
{
	int r = sg_ready();

	if (r)
		return r;
	if (device < 0 || device >= (int)sg.device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	return value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuDeviceGetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
	int r = check(device, value);

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	switch (attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		*(uint64_t *)value = sum((uint32_t)device, true);
		break;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *(uint64_t *)value = used_high[device]; break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*(uint64_t *)value = sum((uint32_t)device, false);
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *(uint64_t *)value = reserved_high[device]; break;
	default: r = CUDA_ERROR_INVALID_VALUE;
	}
	sg_graph_unlock();
	return r;
}

/* Resets high watermarks to the current values. The only value that can be set is 0. */
API CUresult cuDeviceSetGraphMemAttribute(CUdevice device, int attribute, void *value)
{
	int r = check(device, value);

	if (r)
		return r;
	if (*(uint64_t *)value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_graph_lock);
	if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		used_high[device] = sum((uint32_t)device, true);
	else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		reserved_high[device] = sum((uint32_t)device, false);
	else
		r = CUDA_ERROR_INVALID_VALUE;
	sg_graph_unlock();
	return r;
}

/*
 * in_use is the state after all queued launches. Blocks that a queued launch still uses are skipped
 * by is_scheduled().
 */
API CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	struct td_list *it;
	int r = check(device, &r);

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	sweep();
	td_list_for_each (it, &blocks) {
		struct sg_graph_block *block = td_container_of(it, struct sg_graph_block, link);

		if (block->device == (uint32_t)device && block->host && !block->in_use &&
			!is_scheduled(block))
			take_backing(block);
	}
	sg_graph_unlock();
	return CUDA_SUCCESS;
}
