/*
 * Keeps a GPU's capacity and the residency of its pages. Invariants:
 *
 * 	plain_bytes + resident_bytes <= capacity_bytes
 * 	resident_bytes = page_bytes * length of lru = sum of the contexts' resident_bytes
 * 	a page is in lru if and only if it is on the device
 *
 * A clean page is dropped without a copy: its bytes, or the knowledge that it has none, are still
 * on the host. Current drivers copy such pages too, because GPUs keep no dirty bits for them. So
 * the model makes managed memory somewhat too fast.
 */
#include "model/memory.h"

#include <assert.h>

#include "model/gpu_spec.h"

void td_memory_init(struct td_memory *mem, const struct td_gpu_spec *spec)
{
	*mem = (struct td_memory){
		.capacity_bytes = spec->memory_bytes,
		.page_bytes = spec->page_bytes,
		.group_pages = spec->fault_group_pages,
	};
	td_list_init(&mem->lru);
}

uint64_t td_memory_free_bytes(const struct td_memory *mem)
{
	return mem->capacity_bytes - mem->plain_bytes - mem->resident_bytes;
}

uint64_t td_memory_available_bytes(const struct td_memory *mem)
{
	return mem->capacity_bytes - mem->plain_bytes;
}

uint64_t td_memory_page_count(const struct td_memory *mem, uint64_t bytes)
{
	return bytes / mem->page_bytes + !!(bytes % mem->page_bytes);
}

void td_moves_add(struct td_moves *sum, const struct td_moves *m)
{
	sum->faults += m->faults;
	sum->groups += m->groups;
	sum->fault_in_bytes += m->fault_in_bytes;
	sum->prefetch_in_bytes += m->prefetch_in_bytes;
	sum->out_bytes += m->out_bytes;
	sum->remote_bytes += m->remote_bytes;
	sum->evictions += m->evictions;
}

static void account(struct td_memory *mem, const struct td_moves *m, struct td_moves *moves)
{
	td_moves_add(&mem->total, m);
	td_moves_add(moves, m);
}

static void put_on_device(struct td_memory *mem, struct td_page *page)
{
	page->on_device = true;
	page->dirty = false;
	td_list_append(&mem->lru, &page->lru);
	mem->resident_bytes += mem->page_bytes;
	page->range->context->resident_bytes += mem->page_bytes;
}

static void take_off_device(struct td_memory *mem, struct td_page *page)
{
	page->on_device = false;
	page->dirty = false;
	td_list_remove(&page->lru);
	mem->resident_bytes -= mem->page_bytes;
	page->range->context->resident_bytes -= mem->page_bytes;
}

static void send_home(struct td_memory *mem, struct td_page *page, struct td_moves *m)
{
	if (page->dirty) {
		m->out_bytes += mem->page_bytes;
		page->has_data = true;
	}
	take_off_device(mem, page);
}

static struct td_page *least_recent(const struct td_memory *mem)
{
	return td_container_of(mem->lru.next, struct td_page, lru);
}

/*
 * Frees at least `bytes` by evicting pages. Returns false, with nothing changed, if plain bytes
 * leave too little room.
 */
static bool make_room(struct td_memory *mem, uint64_t bytes, struct td_moves *m)
{
	if (bytes > td_memory_available_bytes(mem))
		return false;
	while (td_memory_free_bytes(mem) < bytes) {
		m->evictions++;
		send_home(mem, least_recent(mem), m);
	}
	return true;
}

int td_memory_reserve(struct td_memory *mem, struct td_memory_context *ctx, uint64_t bytes,
	struct td_moves *moves)
{
	struct td_moves m = {0};

	if (!make_room(mem, bytes, &m))
		return TD_MEMORY_FULL;
	mem->plain_bytes += bytes;
	ctx->plain_bytes += bytes;
	account(mem, &m, moves);
	return TD_MEMORY_OK;
}

void td_memory_release(struct td_memory *mem, struct td_memory_context *ctx, uint64_t bytes)
{
	assert(bytes <= ctx->plain_bytes);
	mem->plain_bytes -= bytes;
	ctx->plain_bytes -= bytes;
}

int td_memory_context_add(struct td_memory *mem, struct td_memory_context *ctx, uint64_t cost_bytes,
	struct td_moves *moves)
{
	*ctx = (struct td_memory_context){0};
	td_list_init(&ctx->ranges);
	return td_memory_reserve(mem, ctx, cost_bytes, moves);
}

void td_memory_context_remove(struct td_memory *mem, struct td_memory_context *ctx)
{
	struct td_list *it, *next;

	td_list_for_each_safe (it, next, &ctx->ranges)
		td_memory_range_remove(mem, td_container_of(it, struct td_range, link));
	td_memory_release(mem, ctx, ctx->plain_bytes);
}

void td_memory_range_add(struct td_memory *mem, struct td_memory_context *ctx,
	struct td_range *range, struct td_page *pages, uint64_t page_count)
{
	*range = (struct td_range){.context = ctx, .page_count = page_count, .pages = pages};
	td_list_append(&ctx->ranges, &range->link);
	ctx->managed_bytes += page_count * mem->page_bytes;
	for (uint64_t i = 0; i < page_count; i++) {
		pages[i] = (struct td_page){.range = range};
		td_list_init(&pages[i].lru);
	}
}

void td_memory_range_remove(struct td_memory *mem, struct td_range *range)
{
	for (uint64_t i = 0; i < range->page_count; i++)
		if (range->pages[i].on_device)
			take_off_device(mem, &range->pages[i]);
	range->context->managed_bytes -= range->page_count * mem->page_bytes;
	td_list_remove(&range->link);
}

/* Makes a page resident and marks it used. Returns whether it faulted. */
static bool touch_page(struct td_memory *mem, struct td_page *page, bool write, struct td_moves *m)
{
	bool missing = !page->on_device;

	if (missing && !make_room(mem, mem->page_bytes, m)) {
		m->remote_bytes += mem->page_bytes;
		page->has_data |= write;
		return false;
	}
	if (missing) {
		m->faults++;
		m->fault_in_bytes += page->has_data ? mem->page_bytes : 0;
		put_on_device(mem, page);
	} else {
		td_list_remove(&page->lru);
		td_list_append(&mem->lru, &page->lru);
	}
	page->dirty |= write;
	return missing;
}

void td_memory_touch(struct td_memory *mem, struct td_range *range, uint64_t first, uint64_t count,
	bool write, struct td_moves *moves)
{
	struct td_moves m = {0};
	uint64_t group = UINT64_MAX; /* the last group that faulted */

	assert(first <= range->page_count && count <= range->page_count - first);
	for (uint64_t i = first; i < first + count; i++) {
		if (!touch_page(mem, &range->pages[i], write, &m))
			continue;
		m.groups += group != i / mem->group_pages;
		group = i / mem->group_pages;
	}
	account(mem, &m, moves);
}

void td_memory_touch_host(struct td_memory *mem, struct td_range *range, uint64_t first,
	uint64_t count, bool write, struct td_moves *moves)
{
	td_memory_prefetch_host(mem, range, first, count, moves);
	for (uint64_t i = first; write && i < first + count; i++)
		range->pages[i].has_data = true;
}

void td_memory_prefetch_host(struct td_memory *mem, struct td_range *range, uint64_t first,
	uint64_t count, struct td_moves *moves)
{
	struct td_moves m = {0};

	assert(first <= range->page_count && count <= range->page_count - first);
	for (uint64_t i = first; i < first + count; i++)
		if (range->pages[i].on_device)
			send_home(mem, &range->pages[i], &m);
	account(mem, &m, moves);
}

/* Tells whether the next eviction would push out one of these pages. */
static bool victim_is_own(
	const struct td_memory *mem, const struct td_range *range, uint64_t first, uint64_t end)
{
	const struct td_page *victim;

	if (td_memory_free_bytes(mem) >= mem->page_bytes || td_list_empty(&mem->lru))
		return false;
	victim = least_recent(mem);
	return victim >= range->pages + first && victim < range->pages + end;
}

void td_memory_prefetch_device(struct td_memory *mem, struct td_range *range, uint64_t first,
	uint64_t count, struct td_moves *moves)
{
	struct td_moves m = {0};

	assert(first <= range->page_count && count <= range->page_count - first);
	for (uint64_t i = first; i < first + count; i++) {
		struct td_page *page = &range->pages[i];

		if (page->on_device) {
			td_list_remove(&page->lru);
			td_list_append(&mem->lru, &page->lru);
			continue;
		}
		if (victim_is_own(mem, range, first, i) || !make_room(mem, mem->page_bytes, &m))
			break;
		m.prefetch_in_bytes += page->has_data ? mem->page_bytes : 0;
		put_on_device(mem, page);
	}
	account(mem, &m, moves);
}
