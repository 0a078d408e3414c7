/*
 * Measures programs alone: for moments, all others on the GPU are held (policy/node/alone.h). This
 * is done for programs that all have a duty, so that each may be held up a little, and for
 * besteffort and guaranteed programs. An online program has a latency to keep, so it is never held.
 */
#include "base/time.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"

static bool is_on(const struct td_process *process, uint32_t gpu, unsigned *ret_gpus)
{
	struct td_list *it;
	bool on = false;

	*ret_gpus = 0;
	td_list_for_each (it, &process->clients) {
		on |= td_container_of(it, struct td_client, of_process)->gpu == gpu;
		++*ret_gpus;
	}
	return on;
}

/* A process has one gate for all of its GPUs. To hold it on one would hold it on all of them. */
static bool may_be_held(const struct td_process *process, unsigned gpus)
{
	return gpus == 1 && process->pacing.duty_ppm && process->meter &&
	       process->job->settings.class != TD_CLASS_ONLINE && process->phase == TD_PHASE_OPEN;
}

/*
 * Lists the processes that use the GPU now and returns their number. Returns 0 if there are fewer
 * than two, or if one of them may not be held.
 */
static uint32_t gather(const struct td_node *node, uint32_t gpu, struct td_alone_tenant *tenants,
	struct td_process **processes)
{
	struct td_list *it;
	uint32_t count = 0;

	td_list_for_each (it, &node->processes) {
		struct td_process *process = td_process_at(it);
		unsigned gpus;

		if (process->phase == TD_PHASE_CLOSED || process->stop.is || !process->wants ||
			!is_on(process, gpu, &gpus))
			continue;
		if (count == TD_ALONE_TENANTS_MAX || !may_be_held(process, gpus))
			return 0;
		tenants[count] = (struct td_alone_tenant){.id = process->id,
			.guesses = atomic_load(&process->meter->guesses),
			.dry = atomic_load(&process->meter->dry),
			.measured = atomic_load(&process->meter->measured)};
		processes[count++] = process;
	}
	return count < 2 ? 0 : count;
}

/* Resets the processes that the last step held or favoured and that do not take part any more. */
static void release(const struct td_node *node, uint32_t gpu)
{
	struct td_list *it;

	td_list_for_each (it, &node->processes) {
		struct td_process *process = td_process_at(it);
		unsigned gpus;

		if (is_on(process, gpu, &gpus) || !gpus)
			process->hold = process->alone = process->shares_moments = 0;
	}
}

static uint64_t step_gpu(struct td_node *node, uint32_t gpu, uint64_t now_ns, bool *ret_any)
{
	struct td_alone_tenant tenants[TD_ALONE_TENANTS_MAX];
	struct td_process *processes[TD_ALONE_TENANTS_MAX];
	uint32_t count = gather(node, gpu, tenants, processes);
	uint64_t at =
		td_alone_step(&node->gpus[gpu].alone, tenants, count, &node->last_moment, now_ns);

	if (node->had.moments)
		release(node, gpu);
	*ret_any |= count > 0;
	for (uint32_t i = 0; i < count; i++) {
		processes[i]->hold = tenants[i].ret_hold;
		processes[i]->alone = tenants[i].ret_alone;
		processes[i]->shares_moments = tenants[i].ret_measurable;
	}
	return at;
}

uint64_t td_node_step_alone(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = TD_NEVER;
	bool any = false;

	/*
	 * Programs outlive a daemon and keep the last number that it gave them. It counted less
	 * than one moment in each millisecond, so the time in milliseconds is beyond all of them.
	 */
	if (!node->last_moment)
		node->last_moment = (uint32_t)(now_ns / TD_NS_PER_MS);
	for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++) {
		uint64_t at = step_gpu(node, gpu, now_ns, &any);

		wakeup = at < wakeup ? at : wakeup;
	}
	node->had.moments = any;
	return wakeup;
}
