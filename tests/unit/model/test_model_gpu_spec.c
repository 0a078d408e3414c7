/* The table of GPU models: complete, consistent, found by name. */
#include "test.h"

#include "base/time.h"
#include "model/gpu_spec.h"
#include "model/kernel.h"
#include "model/memory.h"

TEST(specs_are_found_by_name)
{
	static const char *const names[] = {"t4", "v100", "a100", "h100", "h200", "tiny"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CHECK(td_gpu_spec_find(names[i]));
		CHECK(td_gpu_spec_find(names[i]) == td_gpu_spec_at(i));
	}
	CHECK(!td_gpu_spec_at(6));
	CHECK(!td_gpu_spec_find("T4"));
	CHECK(!td_gpu_spec_find(""));
}

TEST(no_spec_leaves_a_figure_out)
{
	const struct td_gpu_spec *s;

	for (unsigned i = 0; (s = td_gpu_spec_at(i)); i++) {
		CHECK(s->full_name && s->capability_major);
		CHECK(s->memory_bytes > s->context_bytes && s->context_bytes);
		CHECK(s->sm_count && s->instr_per_clock && s->sm_threads && s->sm_blocks);
		CHECK(s->sm_registers && s->sm_shared_bytes >= s->block_shared_bytes);
		CHECK(s->clock_mhz > s->base_clock_mhz && s->base_clock_mhz > s->idle_clock_mhz);
		CHECK(s->dram_bytes_per_us > s->pinned_bytes_per_us);
		CHECK(s->pinned_bytes_per_us > s->prefetch_bytes_per_us);
		CHECK(s->pinned_bytes_per_us > s->pageable_bytes_per_us);
		CHECK(s->prefetch_bytes_per_us > s->fault_bytes_per_us);
		CHECK(s->page_bytes && s->memory_bytes % s->page_bytes == 0);
		CHECK(s->fault_group_pages && s->fault_latency_ns);
		CHECK(s->slice_ns && s->switch_ns && s->slice_ns > s->switch_ns);
		CHECK(s->launch_latency_ns && s->copy_latency_ns);
		CHECK(s->max_power_mw > s->idle_power_mw && s->idle_power_mw);
	}
}

/* Streaming through faults reaches a fifth to a half of what bulk copies reach, on every model. */
TEST(faults_are_several_times_slower_than_copies)
{
	const struct td_gpu_spec *s;

	for (unsigned i = 0; (s = td_gpu_spec_at(i)); i++) {
		uint64_t bytes = 48ull << 20;
		struct td_moves m = {.fault_in_bytes = bytes};
		uint64_t copy_ns = td_model_copy_ns(s, TD_COPY_HTOD, bytes, true), fault_ns;

		m.faults = bytes / s->page_bytes;
		m.groups = m.faults / s->fault_group_pages;
		fault_ns = td_model_moves_ns(s, &m);
		CHECK(fault_ns >= 2 * copy_ns && fault_ns <= 5 * copy_ns);
	}
}

TEST(tiny_is_sized_for_an_interpreter)
{
	const struct td_gpu_spec *s = td_gpu_spec_find("tiny");
	uint64_t swap_ns = td_model_copy_ns(s, TD_COPY_HTOD, 48ull << 20, true);

	CHECK_EQ(td_gpu_spec_instr_per_us(s), 40);
	CHECK(swap_ns > 20 * TD_NS_PER_MS && swap_ns < 100 * TD_NS_PER_MS);
}
