/* See gpus.h. The list is in the order of NVML's indices. */
#include "daemon/gpus.h"

#include <stdio.h>
#include <string.h>

#include "base/uuid.h"
#include "daemon/node.h"

static struct td_nvml_gpu *find(struct td_node *node, const uint8_t *uuid)
{
	for (uint32_t i = 0; i < node->listed_count; i++)
		if (!memcmp(node->listed[i].uuid, uuid, 16))
			return &node->listed[i];
	return NULL;
}

const struct td_nvml_gpu *td_gpus_find(const struct td_node *node, const uint8_t *uuid)
{
	return find((struct td_node *)node, uuid);
}

static void insert(struct td_node *node, const struct td_nvml_gpu *gpu)
{
	uint32_t at = node->listed_count;

	if (at == TD_NVML_GPU_MAX)
		return;
	for (; at && node->listed[at - 1].index > gpu->index; at--)
		node->listed[at] = node->listed[at - 1];
	node->listed[at] = *gpu;
	node->listed[at].lost = false; /* yet */
	node->listed_count++;
}

static void lose(struct td_node *node, struct td_nvml_gpu *gpu, uint64_t now_ns)
{
	char uuid[TD_UUID_TEXT], detail[128];

	if (!gpu->lost) {
		snprintf(detail, sizeof(detail), "%s %s", td_uuid_format(uuid, gpu->uuid),
			gpu->name);
		td_node_gpu_event(node, TD_EVENT_LOST, NULL, gpu->index, now_ns, detail);
	}
	gpu->lost = true;
	gpu->known = 0;
}

/* Also where NVML has exchanged the indices of two. */
static void update(struct td_node *node, const struct td_nvml_gpu *gpu)
{
	struct td_nvml_gpu *known = find(node, gpu->uuid);
	bool was_lost = known && known->lost;

	if (known && known->index != gpu->index) {
		size_t behind = (size_t)(node->listed + node->listed_count - (known + 1));

		memmove(known, known + 1, behind * sizeof(*known));
		node->listed_count--;
		known = NULL;
	}
	if (!known)
		insert(node, gpu);
	known = find(node, gpu->uuid);
	if (!known)
		return; /* more than there is room for */
	*known = *gpu;
	known->lost = was_lost;
}

void td_gpus_seen(
	struct td_node *node, const struct td_nvml_gpu *gpus, uint32_t count, uint64_t now_ns)
{
	for (uint32_t i = 0; i < count; i++)
		update(node, &gpus[i]);
	for (uint32_t i = 0; i < node->listed_count; i++) {
		struct td_nvml_gpu *known = &node->listed[i];
		const struct td_nvml_gpu *now = NULL;

		for (uint32_t k = 0; k < count && !now; k++)
			if (!memcmp(gpus[k].uuid, known->uuid, 16))
				now = &gpus[k];
		if (!count)
			known->known = 0;
		else if (!now || now->lost)
			lose(node, known, now_ns);
		else
			known->lost = false;
	}
}

uint32_t td_gpu_number(const struct td_node *node, uint32_t index)
{
	const struct td_nvml_gpu *listed;
	uint32_t number = node->listed_count ? node->listed[node->listed_count - 1].index + 1 : 0;

	if (index >= node->gpu_count)
		return TD_GPU_ANY;
	listed = td_gpus_find(node, node->gpus[index].uuid);
	if (listed)
		return listed->index;
	for (uint32_t i = 0; i < index; i++)
		number += !td_gpus_find(node, node->gpus[i].uuid);
	return number;
}

uint32_t td_gpu_number_of(const struct td_node *node, const uint8_t *uuid)
{
	const struct td_nvml_gpu *listed = td_gpus_find(node, uuid);

	if (listed)
		return listed->index;
	for (uint32_t i = 0; i < node->gpu_count; i++)
		if (!memcmp(node->gpus[i].uuid, uuid, 16))
			return td_gpu_number(node, i);
	return TD_GPU_ANY;
}
