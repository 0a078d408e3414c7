/* Touches a kernel's pages as the timeline serves the kernel; see kernel_paging.h for the rule. */
#include "model/kernel_paging.h"

#include "model/gpu_spec.h"
#include "model/kernel.h"
#include "model/timeline.h"

/* Quanta in a time slice: how finely the touches of contexts are interleaved. */
#define QUANTA_PER_SLICE 16

void td_kernel_paging_init(struct td_kernel_paging *paging, const struct td_gpu_spec *spec,
	struct td_memory *mem, const struct td_touch *touches, size_t touch_count)
{
	*paging = (struct td_kernel_paging){
		.spec = spec,
		.mem = mem,
		.touches = touches,
		.touch_count = touch_count,
		.quantum_ns = spec->slice_ns / QUANTA_PER_SLICE,
	};
	for (size_t i = 0; i < touch_count; i++)
		paging->page_count += touches[i].count;
}

/* Returns the progress at which the next page is due; TD_NEVER_NS when all are touched. */
static uint64_t due_ns(const struct td_kernel_paging *paging)
{
	unsigned __int128 product;

	if (paging->pages_done == paging->page_count)
		return TD_NEVER_NS;
	product = (unsigned __int128)paging->pages_done * paging->length_ns;
	return (uint64_t)(product / paging->page_count);
}

/* Touches the remaining pages of the next fault group, within one entry of the touch list. */
static void touch_group(struct td_kernel_paging *paging, struct td_moves *moves)
{
	const struct td_touch *touch = &paging->touches[paging->at];
	uint64_t first, count, group = paging->mem->group_pages;

	while (paging->at_page == touch->count) {
		touch = &paging->touches[++paging->at];
		paging->at_page = 0;
	}
	first = touch->first + paging->at_page;
	count = group - first % group;
	if (count > touch->count - paging->at_page)
		count = touch->count - paging->at_page;
	td_memory_touch(paging->mem, touch->range, first, count, touch->write, moves);
	paging->at_page += count;
	paging->pages_done += count;
}

/*
 * The td_op_stall_fn of a kernel. Touches the pages that are due now and within the next quantum of
 * progress, which bounds how often the timeline asks. Stops early when the faults have cost a
 * quantum.
 */
static uint64_t stall(void *arg, uint64_t progress_ns, uint64_t *ret_next_ns)
{
	struct td_kernel_paging *paging = arg;
	uint64_t stall_ns = 0, due = due_ns(paging);

	while (due != TD_NEVER_NS && due <= progress_ns + paging->quantum_ns) {
		struct td_moves group = {0};

		touch_group(paging, &group);
		stall_ns += td_model_moves_ns(paging->spec, &group);
		td_moves_add(&paging->moves, &group);
		due = due_ns(paging);
		if (stall_ns > paging->quantum_ns)
			break;
	}
	*ret_next_ns = due;
	return stall_ns;
}

void td_kernel_paging_start(struct td_kernel_paging *paging, struct td_timeline *tl,
	struct td_op *op, uint64_t length_ns)
{
	paging->length_ns = length_ns;
	td_timeline_set_length_stalling(
		tl, op, length_ns, paging->page_count ? stall : NULL, paging);
}
