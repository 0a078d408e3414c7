/*
 * Kernels on managed memory under time slices. The GPU has 64 pages of 1000 bytes; faults come in
 * groups of 4, each 1000 ns and 1 ns per byte; bytes out at 1 ns each. Slices of 16000 ns.
 */
#include "test.h"

#include "model/gpu_spec.h"
#include "model/kernel_paging.h"
#include "model/timeline.h"

#define PAGE  1000
#define PAGES 48 /* 0.75 of the GPU */

static const struct td_gpu_spec spec = {
	.memory_bytes = 64 * PAGE,
	.page_bytes = PAGE,
	.fault_group_pages = 4,
	.fault_latency_ns = 1000,
	.fault_bytes_per_us = 1000,
	.prefetch_bytes_per_us = 1000,
	.pinned_bytes_per_us = 2000,
	.slice_ns = 16000,
	.switch_ns = 100,
};

struct program {
	struct td_timeline_context time;
	struct td_memory_context memory;
	struct td_range range;
	struct td_page pages[PAGES];
	struct td_touch touch;
	struct td_kernel_paging paging;
	struct td_op op;
	uint64_t done, faults;
};

struct gpu {
	struct td_timeline tl;
	struct td_memory mem;
	struct program p[2];
};

static void launch(struct gpu *g, struct program *p, uint64_t length_ns)
{
	td_timeline_begin(&g->tl, &p->time, &p->op, TD_ENGINE_COMPUTE);
	td_kernel_paging_init(&p->paging, &spec, &g->mem, &p->touch, 1);
	td_kernel_paging_start(&p->paging, &g->tl, &p->op, length_ns);
}

static void setup(struct gpu *g, int programs)
{
	struct td_moves m = {0};

	memset(g, 0, sizeof(*g));
	td_timeline_init(&g->tl, &spec, 0);
	td_memory_init(&g->mem, &spec);
	for (int i = 0; i < programs; i++) {
		struct program *p = &g->p[i];

		td_timeline_context_add(&g->tl, &p->time);
		CHECK_EQ(td_memory_context_add(&g->mem, &p->memory, 0, &m), TD_MEMORY_OK);
		td_memory_range_add(&g->mem, &p->memory, &p->range, p->pages, PAGES);
		td_memory_touch_host(&g->mem, &p->range, 0, PAGES, true, &m);
		p->touch = (struct td_touch){&p->range, 0, PAGES, true};
	}
}

/* Every program runs the kernel again and again until both did so `times` times. */
static void run(struct gpu *g, int programs, uint64_t length_ns, uint64_t times)
{
	struct td_done done;
	int left = programs;

	for (int i = 0; i < programs; i++)
		launch(g, &g->p[i], length_ns);
	while (left) {
		struct program *p;

		CHECK_EQ(td_timeline_advance(&g->tl, UINT64_MAX / 2, &done), 1);
		p = td_container_of(done.op, struct program, op);
		p->faults += p->paging.moves.faults;
		CHECK_EQ(p->paging.pages_done, PAGES);
		CHECK(g->mem.resident_bytes <= g->mem.capacity_bytes);
		if (++p->done < times)
			launch(g, p, length_ns);
		else
			left--;
	}
}

TEST(one_program_that_fits_faults_at_first_touch_only)
{
	struct gpu g;

	setup(&g, 1);
	run(&g, 1, 48000, 10);
	CHECK_EQ(g.p[0].faults, PAGES);
	/* 12 groups of 1000 ns + 48 pages of 1000 ns, once */
	CHECK_EQ(td_timeline_now(&g.tl), 10 * 48000 + 12000 + 48000);
	CHECK_EQ(g.mem.total.out_bytes, 0);
}

TEST(two_programs_of_three_quarters_each_thrash)
{
	struct gpu g;
	uint64_t alone_ns, together_ns;

	setup(&g, 1);
	run(&g, 1, 48000, 20);
	alone_ns = td_timeline_now(&g.tl);
	setup(&g, 2);
	run(&g, 2, 48000, 20);
	together_ns = td_timeline_now(&g.tl);
	CHECK(g.p[0].faults > 10 * PAGES && g.p[1].faults > 10 * PAGES);
	CHECK(together_ns > 4 * alone_ns); /* worse by far than one after the other */
	CHECK(g.mem.total.out_bytes > 20 * PAGES * PAGE);
}

TEST(two_programs_that_fit_together_do_not_thrash)
{
	struct gpu g;

	setup(&g, 2);
	g.p[0].touch.count = g.p[1].touch.count = 32;
	for (int i = 0; i < 2; i++)
		launch(&g, &g.p[i], 32000);
	for (struct td_done done; td_timeline_advance(&g.tl, 1000000, &done);)
		CHECK_EQ(done.served_ns, 32000 + 8 * 1000 + 32000);
	CHECK_EQ(g.mem.total.faults, 64);
	CHECK_EQ(g.mem.total.evictions, 0);
}

TEST(touches_keep_pace_with_progress)
{
	struct gpu g;
	struct td_done done;

	setup(&g, 1);
	launch(&g, &g.p[0], 48000);
	/* A page is due every 1000 ns; a group of 4 stalls 5000 ns: after two groups ... */
	CHECK_EQ(td_timeline_advance(&g.tl, 9000, &done), 0);
	CHECK_EQ(g.p[0].paging.pages_done, 8);
	/* ... progress is 4000 + 4000 at 18000, where the third falls due. */
	CHECK_EQ(td_timeline_advance(&g.tl, 18000, &done), 0);
	CHECK_EQ(g.p[0].paging.pages_done, 12);
}

TEST(touches_come_in_the_order_of_the_list)
{
	struct gpu g;
	struct td_touch list[4];
	struct td_done done;
	struct program *p = &g.p[0];

	setup(&g, 1);
	list[0] = (struct td_touch){&p->range, 40, 2, false};
	list[1] = (struct td_touch){&p->range, 9, 0, false};
	list[2] = (struct td_touch){&p->range, 3, 2, true};
	list[3] = (struct td_touch){&p->range, 40, 1, false};
	td_timeline_begin(&g.tl, &p->time, &p->op, TD_ENGINE_COMPUTE);
	td_kernel_paging_init(&p->paging, &spec, &g.mem, list, 4);
	td_kernel_paging_start(&p->paging, &g.tl, &p->op, 5000);
	CHECK_EQ(td_timeline_advance(&g.tl, 100000, &done), 1);
	/* groups {40, 41}, {3}, {4}: three latencies and four pages */
	CHECK_EQ(done.end_ns, 5000 + 3000 + 4000);
	CHECK_EQ(p->paging.moves.faults, 4);
	CHECK(p->pages[3].dirty && p->pages[4].dirty && !p->pages[40].dirty);
	CHECK(g.mem.lru.next == &p->pages[41].lru && g.mem.lru.prev == &p->pages[40].lru);
}

TEST(a_kernel_without_touches_takes_its_length)
{
	struct gpu g;
	struct td_done done;
	struct program *p = &g.p[0];

	setup(&g, 1);
	p->touch.count = 0;
	launch(&g, p, 777);
	CHECK_EQ(td_timeline_advance(&g.tl, 100000, &done), 1);
	CHECK_EQ(done.end_ns, 777);
}

TEST(a_length_that_came_late_still_touches_everything)
{
	struct gpu g;
	struct td_done done;
	struct program *p = &g.p[0];

	setup(&g, 1);
	td_timeline_begin(&g.tl, &p->time, &p->op, TD_ENGINE_COMPUTE);
	CHECK_EQ(td_timeline_advance(&g.tl, 58000, &done), 0);
	td_kernel_paging_init(&p->paging, &spec, &g.mem, &p->touch, 1);
	td_kernel_paging_start(&p->paging, &g.tl, &p->op, 48000);
	CHECK_EQ(td_timeline_advance(&g.tl, 1000000, &done), 1);
	CHECK_EQ(done.end_ns, 48000 + 60000); /* the 10000 ns too many went into the stalls */
	CHECK_EQ(done.lag_ns, 0);
	CHECK_EQ(p->paging.moves.faults, PAGES);
}

TEST(the_same_thrash_happens_twice)
{
	struct gpu g, h;

	setup(&g, 2);
	run(&g, 2, 48000, 20);
	setup(&h, 2);
	run(&h, 2, 48000, 20);
	CHECK_EQ(td_timeline_now(&g.tl), td_timeline_now(&h.tl));
	CHECK(!memcmp(&g.mem.total, &h.mem.total, sizeof(g.mem.total)));
}
