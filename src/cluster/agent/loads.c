/* This file implements loads.h. */
#include "cluster/agent/loads.h"

#include <string.h>

#include "base/time.h"
#include "view/metrics.h"
#include "view/snapshot.h"

#define WINDOW_NS (10 * TD_NS_PER_S)

static struct td_load *load_of(struct td_loads *loads, const char *uuid)
{
	for (uint32_t i = 0; i < loads->count; i++)
		if (!strcmp(loads->of[i].uuid, uuid))
			return &loads->of[i];
	if (loads->count == TD_RECORD_GPUS)
		return NULL;
	loads->of[loads->count] = (struct td_load){0};
	strcpy(loads->of[loads->count].uuid, uuid);
	return &loads->of[loads->count++];
}

static uint32_t mean(const struct td_load *load, uint64_t now_ns)
{
	uint64_t sum = 0, count = 0;

	for (uint32_t i = 0; i < TD_LOADS_SAMPLES; i++)
		if (load->at_ns[i] && load->at_ns[i] + WINDOW_NS > now_ns) {
			sum += load->ppm[i];
			count++;
		}
	return count ? (uint32_t)(sum / count) : TD_RECORD_UNKNOWN;
}

void td_loads_note(struct td_loads *loads, const struct td_snapshot *snapshot, uint64_t now_ns,
	uint32_t *ret_ppm)
{
	for (size_t i = 0; i < snapshot->gpu_count && i < TD_RECORD_GPUS; i++) {
		double use = td_snapshot_use(snapshot, &snapshot->gpus[i]);
		char uuid[TD_UUID_TEXT];
		struct td_load *load = load_of(loads, td_gpu_uuid(uuid, &snapshot->gpus[i]));

		ret_ppm[i] = TD_RECORD_UNKNOWN;
		if (!load)
			continue;
		if (use >= 0) {
			uint32_t at = load->next++ % TD_LOADS_SAMPLES;

			load->at_ns[at] = now_ns;
			load->ppm[at] = use > 1 ? 1000000 : (uint32_t)(use * 1e6);
		}
		ret_ppm[i] = mean(load, now_ns);
	}
}
