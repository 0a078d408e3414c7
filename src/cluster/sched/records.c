/* This file implements records.h. */
#include "cluster/sched/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "cluster/sched/scheduler.h"

#define PREFIX   TD_SCHED_PREFIX "node/"
#define AGAIN_NS TD_NS_PER_S /* the brain may have met a node since it was told */
#define FULL     20u         /* the part of a GPU's memory that must be left for a guest */

static struct td_brain_verdict verdict_of(const struct td_record_gpu *gpu)
{
	return (struct td_brain_verdict){
		.accepts = gpu->accepts && gpu->room_bytes >= gpu->total_bytes / FULL,
		.broken = !strcmp(gpu->health, "broken"),
		.load_ppm =
			gpu->load_ppm == TD_RECORD_UNKNOWN ? TD_BRAIN_LOAD_UNKNOWN : gpu->load_ppm};
}

static void tell(struct td_records *r, const struct td_state_item *item)
{
	struct td_brain_verdict verdict[TD_RECORD_GPUS];

	if (!r->brain || td_record_read(item->value, item->length, r->record))
		return; /* a record that is not understood changes nothing */
	for (uint32_t k = 0; k < r->record->gpus; k++)
		verdict[k] = verdict_of(&r->record->gpu[k]);
	for (uint32_t k = 0; k < r->record->gpus; k++)
		td_brain_gpu_is(r->brain, item->key + strlen(PREFIX), k, r->record->gpu[k].name);
	td_brain_node_judged(
		r->brain, item->key + strlen(PREFIX), r->record->answers, verdict, r->record->gpus);
}

static void changed(void *arg, const struct td_state_item *item, bool is_gone)
{
	struct td_records *r = arg;

	r->has_changed = true;
	if (is_gone && r->brain)
		td_brain_node_judged(r->brain, item->key + strlen(PREFIX), true, NULL, 0);
}

int td_records_init(struct td_records *r, struct td_state *state)
{
	*r = (struct td_records){.record = calloc(1, sizeof(*r->record))};
	return r->record ? td_mirror_init(&r->mirror, state, PREFIX, changed, r) : -ENOMEM;
}

void td_records_deinit(struct td_records *r)
{
	if (r->record)
		td_mirror_deinit(&r->mirror);
	free(r->record);
	r->record = NULL;
}

uint64_t td_records_turn(struct td_records *r, uint64_t now_ns)
{
	uint64_t wakeup_ns;

	r->brain = NULL; /* it may have been freed */
	(void)td_mirror_turn(&r->mirror, now_ns, &wakeup_ns);
	return wakeup_ns;
}

void td_records_look(void *records, struct td_brain *brain, uint64_t now_ns)
{
	struct td_records *r = records;
	uint64_t wakeup_ns;

	r->brain = brain;
	(void)td_mirror_turn(&r->mirror, now_ns, &wakeup_ns);
	if (!r->has_changed && r->told_ns && now_ns - r->told_ns < AGAIN_NS)
		return;
	r->told_ns = now_ns;
	r->has_changed = false;
	for (size_t k = 0; k < r->mirror.list.count; k++)
		tell(r, &r->mirror.list.item[k]);
}
