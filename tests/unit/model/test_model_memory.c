/* Capacity, residency and eviction order, on a GPU of 16 pages of 100 bytes. */
#include "test.h"

#include "model/gpu_spec.h"
#include "model/memory.h"

#define PAGE  100
#define PAGES 64

struct fixture {
	struct td_memory mem;
	struct td_memory_context a, b;
	struct td_range ra, rb;
	struct td_page pa[PAGES], pb[PAGES];
	struct td_moves m;
};

static void setup(struct fixture *f)
{
	static const struct td_gpu_spec spec = {
		.memory_bytes = 16 * PAGE,
		.page_bytes = PAGE,
		.fault_group_pages = 4,
	};

	memset(f, 0, sizeof(*f));
	td_memory_init(&f->mem, &spec);
	CHECK_EQ(td_memory_context_add(&f->mem, &f->a, 0, &f->m), TD_MEMORY_OK);
	CHECK_EQ(td_memory_context_add(&f->mem, &f->b, 0, &f->m), TD_MEMORY_OK);
	td_memory_range_add(&f->mem, &f->a, &f->ra, f->pa, PAGES);
	td_memory_range_add(&f->mem, &f->b, &f->rb, f->pb, PAGES);
}

static struct td_moves touch(
	struct fixture *f, struct td_range *r, uint64_t first, uint64_t count, bool write)
{
	struct td_moves m = {0};

	td_memory_touch(&f->mem, r, first, count, write, &m);
	return m;
}

TEST(plain_bytes_are_granted_to_the_last_one)
{
	struct fixture f;

	setup(&f);
	CHECK_EQ(td_memory_reserve(&f.mem, &f.a, 1599, &f.m), TD_MEMORY_OK);
	CHECK_EQ(td_memory_reserve(&f.mem, &f.b, 2, &f.m), TD_MEMORY_FULL);
	CHECK_EQ(f.b.plain_bytes, 0);
	CHECK_EQ(td_memory_reserve(&f.mem, &f.b, 1, &f.m), TD_MEMORY_OK);
	CHECK_EQ(td_memory_free_bytes(&f.mem), 0);
	CHECK_EQ(td_memory_reserve(&f.mem, &f.b, 1, &f.m), TD_MEMORY_FULL);
	CHECK_EQ(td_memory_reserve(&f.mem, &f.b, UINT64_MAX, &f.m), TD_MEMORY_FULL);
	td_memory_release(&f.mem, &f.a, 1599);
	CHECK_EQ(td_memory_free_bytes(&f.mem), 1599);
}

TEST(a_context_costs_memory_and_gives_it_back)
{
	struct fixture f;
	struct td_memory_context c, d;

	setup(&f);
	CHECK_EQ(td_memory_context_add(&f.mem, &c, 1000, &f.m), TD_MEMORY_OK);
	CHECK_EQ(td_memory_context_add(&f.mem, &d, 601, &f.m), TD_MEMORY_FULL);
	td_memory_context_remove(&f.mem, &c);
	CHECK_EQ(td_memory_free_bytes(&f.mem), 1600);
}

TEST(a_page_count_covers_the_last_byte)
{
	struct fixture f;

	setup(&f);
	CHECK_EQ(td_memory_page_count(&f.mem, 1), 1);
	CHECK_EQ(td_memory_page_count(&f.mem, 200), 2);
	CHECK_EQ(td_memory_page_count(&f.mem, 201), 3);
}

TEST(first_touch_faults_but_copies_nothing)
{
	struct fixture f;
	struct td_moves m;

	setup(&f);
	m = touch(&f, &f.ra, 0, 8, false);
	CHECK_EQ(m.faults, 8);
	CHECK_EQ(m.groups, 2);
	CHECK_EQ(m.fault_in_bytes, 0);
	m = touch(&f, &f.ra, 0, 8, true);
	CHECK_EQ(m.faults, 0);
}

TEST(data_of_the_host_comes_with_the_fault)
{
	struct fixture f;
	struct td_moves m;

	setup(&f);
	td_memory_touch_host(&f.mem, &f.ra, 0, 6, true, &f.m);
	CHECK_EQ(f.m.out_bytes, 0);
	m = touch(&f, &f.ra, 3, 5, false); /* pages 3 | 4 5 6 7, of which 3 4 5 hold data */
	CHECK_EQ(m.faults, 5);
	CHECK_EQ(m.groups, 2);
	CHECK_EQ(m.fault_in_bytes, 3 * PAGE);
}

TEST(the_host_takes_written_pages_back)
{
	struct fixture f;
	struct td_moves m = {0};

	setup(&f);
	touch(&f, &f.ra, 0, 2, true);
	touch(&f, &f.ra, 2, 2, false);
	td_memory_touch_host(&f.mem, &f.ra, 0, 4, false, &m);
	CHECK_EQ(m.out_bytes, 2 * PAGE);
	CHECK_EQ(f.a.resident_bytes, 0);
	CHECK_EQ(touch(&f, &f.ra, 0, 4, false).fault_in_bytes, 2 * PAGE);
}

TEST(the_least_recently_used_page_of_all_contexts_goes)
{
	struct fixture f;
	struct td_moves m;

	setup(&f);
	touch(&f, &f.ra, 0, 8, true);
	touch(&f, &f.rb, 0, 8, false);
	touch(&f, &f.ra, 0, 1, false); /* page 0 is young again */
	m = touch(&f, &f.rb, 8, 2, false);
	CHECK_EQ(m.evictions, 2);
	CHECK_EQ(m.out_bytes, 2 * PAGE);
	CHECK(f.pa[0].on_device);
	CHECK(!f.pa[1].on_device && !f.pa[2].on_device);
	CHECK(f.pa[3].on_device);
	CHECK_EQ(f.a.resident_bytes, 6 * PAGE);
	CHECK_EQ(f.b.resident_bytes, 10 * PAGE);
}

TEST(clean_pages_go_without_a_copy_and_come_back_with_one)
{
	struct fixture f;
	struct td_moves m;

	setup(&f);
	td_memory_touch_host(&f.mem, &f.ra, 0, 16, true, &f.m);
	touch(&f, &f.ra, 0, 16, false);
	m = touch(&f, &f.rb, 0, 16, false);
	CHECK_EQ(m.evictions, 16);
	CHECK_EQ(m.out_bytes, 0);
	m = touch(&f, &f.ra, 0, 16, false);
	CHECK_EQ(m.fault_in_bytes, 16 * PAGE);
}

TEST(plain_allocations_push_managed_pages_out)
{
	struct fixture f;
	struct td_moves m = {0};

	setup(&f);
	touch(&f, &f.ra, 0, 16, true);
	CHECK_EQ(td_memory_available_bytes(&f.mem), 1600);
	CHECK_EQ(td_memory_reserve(&f.mem, &f.b, 250, &m), TD_MEMORY_OK);
	CHECK_EQ(m.evictions, 3);
	CHECK_EQ(m.out_bytes, 3 * PAGE);
	CHECK_EQ(td_memory_free_bytes(&f.mem), 50);
}

TEST(a_refused_allocation_evicts_nothing)
{
	struct fixture f;
	struct td_moves m = {0};

	setup(&f);
	touch(&f, &f.ra, 0, 4, true);
	CHECK_EQ(td_memory_reserve(&f.mem, &f.b, 1601, &m), TD_MEMORY_FULL);
	CHECK_EQ(m.evictions, 0);
	CHECK_EQ(f.a.resident_bytes, 4 * PAGE);
}

TEST(pages_without_room_are_served_from_the_host)
{
	struct fixture f;
	struct td_moves m;

	setup(&f);
	CHECK_EQ(td_memory_reserve(&f.mem, &f.b, 1550, &f.m), TD_MEMORY_OK);
	m = touch(&f, &f.ra, 0, 3, true);
	CHECK_EQ(m.faults, 0);
	CHECK_EQ(m.remote_bytes, 3 * PAGE);
	CHECK_EQ(f.a.resident_bytes, 0);
	td_memory_release(&f.mem, &f.b, 1550);
	CHECK_EQ(touch(&f, &f.ra, 0, 3, false).fault_in_bytes, 3 * PAGE); /* they were written */
}

TEST(prefetch_moves_in_bulk_and_saves_the_faults)
{
	struct fixture f;
	struct td_moves m = {0};

	setup(&f);
	td_memory_touch_host(&f.mem, &f.ra, 0, 10, true, &f.m);
	td_memory_prefetch_device(&f.mem, &f.ra, 0, 12, &m);
	CHECK_EQ(m.prefetch_in_bytes, 10 * PAGE);
	CHECK_EQ(m.faults, 0);
	CHECK_EQ(touch(&f, &f.ra, 0, 12, true).faults, 0);
	m = (struct td_moves){0};
	td_memory_prefetch_host(&f.mem, &f.ra, 0, 12, &m);
	CHECK_EQ(m.out_bytes, 12 * PAGE);
	CHECK_EQ(f.a.resident_bytes, 0);
}

TEST(a_prefetch_larger_than_the_gpu_keeps_its_first_pages)
{
	struct fixture f;
	struct td_moves m = {0};

	setup(&f);
	touch(&f, &f.rb, 0, 16, false);
	td_memory_prefetch_device(&f.mem, &f.ra, 0, 40, &m);
	CHECK_EQ(m.evictions, 16);
	CHECK_EQ(f.a.resident_bytes, 16 * PAGE);
	CHECK(f.pa[0].on_device && f.pa[15].on_device && !f.pa[16].on_device);
}

TEST(removing_a_context_frees_its_pages)
{
	struct fixture f;

	setup(&f);
	touch(&f, &f.ra, 0, 8, true);
	touch(&f, &f.rb, 0, 4, true);
	CHECK_EQ(td_memory_reserve(&f.mem, &f.a, 100, &f.m), TD_MEMORY_OK);
	td_memory_context_remove(&f.mem, &f.a);
	CHECK_EQ(f.mem.resident_bytes, 4 * PAGE);
	CHECK_EQ(f.mem.plain_bytes, 0);
	CHECK_EQ(touch(&f, &f.rb, 4, 12, false).evictions, 0);
}

static uint64_t lru_length(const struct td_memory *mem)
{
	const struct td_list *it;
	uint64_t n = 0;

	td_list_for_each (it, &mem->lru)
		n++;
	return n;
}

TEST(no_sequence_of_calls_exceeds_capacity)
{
	struct fixture f;
	uint64_t seed = 1;

	setup(&f);
	for (int i = 0; i < 20000; i++) {
		bool is_a;
		struct td_memory_context *ctx;
		struct td_range *range;
		uint64_t first, count;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		is_a = seed >> 63;
		ctx = is_a ? &f.a : &f.b;
		range = is_a ? &f.ra : &f.rb;
		first = (seed >> 33) % PAGES;
		count = (seed >> 40) % (PAGES - first + 1);
		switch ((seed >> 50) % 6) {
		case 0: td_memory_reserve(&f.mem, ctx, count * 17, &f.m); break;
		case 1: td_memory_release(&f.mem, ctx, ctx->plain_bytes / 2); break;
		case 2: td_memory_prefetch_device(&f.mem, range, first, count, &f.m); break;
		case 3: td_memory_touch_host(&f.mem, range, first, count, is_a, &f.m); break;
		default: td_memory_touch(&f.mem, range, first, count, seed & 1, &f.m); break;
		}
		CHECK(f.mem.plain_bytes + f.mem.resident_bytes <= f.mem.capacity_bytes);
		CHECK_EQ(f.mem.plain_bytes, f.a.plain_bytes + f.b.plain_bytes);
		CHECK_EQ(f.mem.resident_bytes, f.a.resident_bytes + f.b.resident_bytes);
		CHECK_EQ(f.mem.resident_bytes, lru_length(&f.mem) * PAGE);
	}
	CHECK(f.mem.total.evictions > 1000);
	CHECK(!memcmp(&f.mem.total, &f.m, sizeof(f.m)));
}

TEST(managed_bytes_are_those_of_a_contexts_ranges)
{
	struct fixture f;

	setup(&f);
	CHECK_EQ(f.a.managed_bytes, PAGES * PAGE);
	td_memory_range_remove(&f.mem, &f.ra);
	CHECK_EQ(f.a.managed_bytes, 0);
	CHECK_EQ(f.b.managed_bytes, PAGES * PAGE);
}
