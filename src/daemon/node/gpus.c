/* This file implements gpus.h. The list is sorted by NVML's index. */
#include "daemon/node/gpus.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/uuid.h"
#include "daemon/memory/capacity.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"

static struct td_nvml_gpu *find_listed(struct td_node *node, const uint8_t *uuid)
{
	for (uint32_t i = 0; i < node->listed_count; i++)
		if (!memcmp(node->listed[i].uuid, uuid, 16))
			return &node->listed[i];
	return NULL;
}

const struct td_nvml_gpu *td_gpus_find(const struct td_node *node, const uint8_t *uuid)
{
	return find_listed((struct td_node *)node, uuid);
}

static void insert(struct td_node *node, const struct td_nvml_gpu *gpu)
{
	uint32_t at = node->listed_count;

	if (at == TD_NVML_GPU_MAX)
		return;
	for (; at && node->listed[at - 1].index > gpu->index; at--)
		node->listed[at] = node->listed[at - 1];
	node->listed[at] = *gpu;
	node->listed[at].lost = false; /* the caller may set it again */
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

/*
 * Updates one GPU of the list. It is removed first, because two GPUs may have swapped their
 * indices.
 */
static void update(struct td_node *node, const struct td_nvml_gpu *gpu)
{
	struct td_nvml_gpu *known = find_listed(node, gpu->uuid);
	bool was_lost = known && known->lost;

	if (known && known->index != gpu->index) {
		size_t behind = (size_t)(node->listed + node->listed_count - (known + 1));

		memmove(known, known + 1, behind * sizeof(*known));
		node->listed_count--;
		known = NULL;
	}
	if (!known)
		insert(node, gpu);
	known = find_listed(node, gpu->uuid);
	if (!known)
		return; /* the list is full */
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
	for (uint32_t i = 0; i < node->gpu_count; i++)
		td_gpus_changed(node, i);
}

/* -- the table of GPUs that jobs use -- */

/* The bound on a size that a client reports: no GPU has more memory than this (1 TiB). */
#define TOTAL_MAX (1ull << 40)
/* The driver keeps at most this fraction (1/16) of the memory that NVML reports. */
#define DRIVERS_PART 16

/*
 * Returns the GPU if programs can use it as a whole. The parts of a GPU divided by MIG have other
 * UUIDs and sizes.
 */
static const struct td_nvml_gpu *find_usable(const struct td_node *node, const uint8_t *uuid)
{
	const struct td_nvml_gpu *listed = td_gpus_find(node, uuid);

	return listed && !listed->mig && listed->total_bytes ? listed : NULL;
}

/* Returns the GPU's index in the table; TD_GPU_MAX if it is not there. */
static uint32_t index_of(const struct td_node *node, const uint8_t *uuid)
{
	for (uint32_t i = 0; i < node->gpu_count; i++)
		if (node->gpus[i].used && !memcmp(node->gpus[i].uuid, uuid, 16))
			return i;
	return TD_GPU_MAX;
}

/* Returns the GPU's size from what its clients and NVML report. */
static uint64_t total_bytes(const struct td_node *node, const uint8_t *uuid, uint64_t said_bytes)
{
	const struct td_nvml_gpu *listed = find_usable(node, uuid);
	uint64_t said = said_bytes < TOTAL_MAX ? said_bytes : TOTAL_MAX, least;

	if (!listed)
		return said;
	least = listed->total_bytes - listed->total_bytes / DRIVERS_PART;
	return said > listed->total_bytes ? listed->total_bytes : said < least ? least : said;
}

static void remove_gpu(struct td_node *node, uint32_t index)
{
	struct td_list *it;

	memset(&node->gpus[index], 0, sizeof(node->gpus[index]));
	td_list_for_each (it, &node->jobs) {
		struct td_job *job = td_container_of(it, struct td_job, of_node);

		memset(&job->on[index], 0, sizeof(job->on[index]));
	}
	if (node->policy->forget_gpu)
		node->policy->forget_gpu(node->policy_state, index);
	while (node->gpu_count && !node->gpus[node->gpu_count - 1].used)
		node->gpu_count--;
}

void td_gpus_changed(struct td_node *node, uint32_t index)
{
	struct td_gpu *gpu = &node->gpus[index];
	uint64_t said_bytes = 0, total;
	struct td_list *it;
	bool is_used = false;

	if (!gpu->used)
		return;
	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client->gpu != index)
			continue;
		is_used = true;
		if (client->total_bytes > said_bytes)
			said_bytes = client->total_bytes;
	}
	if (!is_used && !td_gpus_find(node, gpu->uuid)) {
		remove_gpu(node, index);
		return;
	}
	total = total_bytes(node, gpu->uuid, is_used ? said_bytes : gpu->total_bytes);
	if (total == gpu->total_bytes)
		return;
	gpu->total_bytes = total;
	td_capacity_update(node, index);
}

/*
 * Returns the free places of the table, less those kept for GPUs that NVML lists. *ret_users is how
 * many of the GPUs that NVML does not list the user has brought.
 */
static uint32_t count_places(
	const struct td_node *node, struct td_identity who, uint32_t *ret_users)
{
	uint32_t taken = 0;

	*ret_users = 0;
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		const struct td_gpu *gpu = &node->gpus[i];

		if (!gpu->used || find_usable(node, gpu->uuid))
			continue;
		taken++;
		*ret_users += td_identity_is_counted_as(gpu->brought_by, who);
	}
	for (uint32_t i = 0; i < node->listed_count; i++)
		taken += find_usable(node, node->listed[i].uuid) != NULL;
	return taken < TD_GPU_MAX ? TD_GPU_MAX - taken : 0;
}

bool td_gpus_have_place(const struct td_node *node, struct td_identity who, const uint8_t *uuid)
{
	uint32_t users, places;

	if (index_of(node, uuid) < TD_GPU_MAX || find_usable(node, uuid))
		return true;
	places = count_places(node, who, &users);
	return places > TD_GPU_PLACES_KEPT || (places && users < TD_GPU_PLACES_KEPT);
}

uint32_t td_gpus_count(const struct td_node *node)
{
	uint32_t listed = 0, used = 0;

	for (uint32_t i = 0; i < node->listed_count; i++)
		listed += find_usable(node, node->listed[i].uuid) && !node->listed[i].lost;
	for (uint32_t i = 0; i < node->gpu_count; i++)
		used += node->gpus[i].used;
	return listed ? listed : used ? used : 1;
}

static uint32_t find_free_place(const struct td_node *node)
{
	uint32_t place = 0;

	while (place < TD_GPU_MAX && node->gpus[place].used)
		place++;
	return place;
}

static void fill_place(struct td_node *node, uint32_t place, struct td_identity who,
	const uint8_t *uuid, const char *name, uint64_t said_bytes)
{
	struct td_gpu *gpu = &node->gpus[place];

	*gpu = (struct td_gpu){.used = true, .brought_by = who};
	memcpy(gpu->uuid, uuid, 16);
	snprintf(gpu->name, sizeof(gpu->name), "%.63s", name);
	gpu->total_bytes = total_bytes(node, uuid, said_bytes);
	gpu->capacity_bytes = td_options_capacity(&node->options, gpu->total_bytes);
	if (place >= node->gpu_count)
		node->gpu_count = place + 1;
}

void td_gpus_take_listed(struct td_node *node)
{
	for (uint32_t i = 0; i < node->listed_count; i++) {
		const struct td_nvml_gpu *listed = &node->listed[i];
		uint32_t place = find_free_place(node);

		if (place < TD_GPU_MAX && !listed->lost && find_usable(node, listed->uuid) &&
			index_of(node, listed->uuid) == TD_GPU_MAX)
			fill_place(node, place, td_identity_local(node->owner), listed->uuid,
				listed->name, listed->total_bytes);
	}
}

/* How long the answer to "does another daemon have this GPU" stays valid. */
#define SHUT_NS (1000 * 1000000ull)

bool td_gpus_are_shut(struct td_node *node, uint32_t index, uint64_t now_ns)
{
	struct td_gpu *gpu = &node->gpus[index];
	const struct td_nvml_gpu *listed = td_gpus_find(node, gpu->uuid);

	if (!gpu->used || (listed && (listed->lost || listed->mig)))
		return true;
	if (!gpu->shut_ns || now_ns - gpu->shut_ns >= SHUT_NS) {
		gpu->shut = !td_node_may_have(node, gpu->uuid);
		gpu->shut_ns = now_ns;
	}
	return gpu->shut;
}

uint32_t td_gpus_come(struct td_node *node, struct td_identity who, const struct td_msg_attach *msg,
	struct td_err *err)
{
	uint32_t index = index_of(node, msg->gpu), place;
	char uuid[TD_UUID_TEXT];

	if (index < TD_GPU_MAX)
		return index;
	place = find_free_place(node);
	if (place == TD_GPU_MAX || !td_gpus_have_place(node, who, msg->gpu)) {
		(void)td_err_set(err, -ENOSPC,
			"%s is beyond the %u GPUs that this daemon can share at once: programs on "
			"it run as "
			"without tandem",
			td_uuid_format(uuid, msg->gpu), TD_GPU_MAX);
		return TD_GPU_MAX;
	}
	fill_place(node, place, who, msg->gpu, msg->gpu_name, msg->total_bytes);
	return place;
}

/* -- the numbers of GPUs -- */

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
