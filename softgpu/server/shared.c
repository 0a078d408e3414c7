/*
 * Physical memory that processes share: memory of cuMemCreate that can be exported as a file. It is
 * on its GPU as long as a process holds it, by handles or mappings, and counts once: for its maker
 * while that holds it, then for the process that has held it longest.
 *
 * The file's number and device identify it, which the driver finds the same in every process. A
 * descriptor in transit is not seen here: memory that nobody holds is off the GPU, and a later
 * importer is its first holder again, if there is room.
 */
#include <stdlib.h>

#include "softgpu/server/internal.h"

/* 512 GiB in pieces of 2 MiB are the most that can be held. */
#define HOLDS_MAX 262144u

struct shared {
	struct td_list link; /* in its bucket */
	uint64_t file, file_device, bytes;
	struct sg_gpu *gpu;
	/* the memory of the whole allocation, unless it is suspended */
	struct td_memory_context memory;
	struct td_list holds; /* never empty; the first one's client is charged */
	/* it has left the GPU, since its only holder is checkpointed */
	bool suspended;
};

struct hold {
	struct td_list of_shared, of_client;
	struct shared *shared;
	struct sg_peer_state *client;
	uint64_t count;
};

static struct td_list *bucket_of(struct sg_server *server, const struct sg_msg *msg)
{
	return &server->shared[(msg->value * 0x9e3779b97f4a7c15ull >> 40 ^ msg->value2) %
			       SG_SHARED_BUCKETS];
}

static struct shared *find_shared(struct sg_server *server, const struct sg_msg *msg)
{
	struct td_list *it, *bucket = bucket_of(server, msg);

	td_list_for_each (it, bucket) {
		struct shared *shared = td_container_of(it, struct shared, link);

		if (shared->file == msg->value && shared->file_device == msg->value2)
			return shared;
	}
	return NULL;
}

static struct hold *hold_of(const struct shared *shared, const struct sg_peer_state *client)
{
	struct td_list *it;

	td_list_for_each (it, &shared->holds) {
		struct hold *hold = td_container_of(it, struct hold, of_shared);

		if (hold->client == client)
			return hold;
	}
	return NULL;
}

static struct hold *hold_at(struct td_list *of_client)
{
	return td_container_of(of_client, struct hold, of_client);
}

static bool is_charged(const struct hold *hold)
{
	return hold->shared->holds.next == &hold->of_shared;
}

static bool is_shared(const struct hold *hold)
{
	return hold->shared->holds.next != hold->shared->holds.prev;
}

static int enter(struct sg_gpu *gpu, struct shared *shared)
{
	struct td_moves moves = {0};

	if (td_memory_context_add(&gpu->memory, &shared->memory, shared->bytes, &moves) ==
		TD_MEMORY_FULL)
		return SG_ERR_MEMORY;
	shared->gpu = gpu;
	shared->suspended = false;
	return SG_OK;
}

static void leave(struct shared *shared)
{
	if (!shared->suspended)
		td_memory_context_remove(&shared->gpu->memory, &shared->memory);
	shared->suspended = true;
}

static int make(struct sg_server *server, const struct sg_msg *msg, struct shared **ret)
{
	struct sg_gpu *gpu = &server->gpus[msg->gpu];
	struct shared *shared;
	int error;

	if (!msg->bytes || msg->bytes > gpu->spec.memory_bytes)
		return msg->bytes ? SG_ERR_MEMORY : SG_ERR_VALUE;
	shared = calloc(1, sizeof(*shared));
	if (!shared)
		return SG_ERR_MEMORY;
	shared->file = msg->value;
	shared->file_device = msg->value2;
	shared->bytes = msg->bytes;
	td_list_init(&shared->holds);
	error = enter(gpu, shared);
	if (error) {
		free(shared);
		return error;
	}
	td_list_append(bucket_of(server, msg), &shared->link);
	*ret = shared;
	return SG_OK;
}

int sg_shared_hold(struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct shared *shared = find_shared(server, msg);
	struct hold *hold = shared ? hold_of(shared, client) : NULL;
	int error;

	if (server->gpus[msg->gpu].lost)
		return SG_ERR_LOST;
	if (shared && (shared->gpu->index != msg->gpu || shared->bytes != msg->bytes))
		return SG_ERR_VALUE;
	if (shared && shared->suspended)
		return SG_ERR_STATE;
	if (hold) {
		hold->count++;
		return SG_OK;
	}
	if (!shared && !sg_mps_has_room(client, &server->gpus[msg->gpu], msg->bytes))
		return SG_ERR_MEMORY;
	hold = client->hold_count < HOLDS_MAX ? calloc(1, sizeof(*hold)) : NULL;
	if (!hold)
		return SG_ERR_MEMORY;
	error = shared ? SG_OK : make(server, msg, &shared);
	if (error) {
		free(hold);
		return error;
	}
	*hold = (struct hold){.shared = shared, .client = client, .count = 1};
	td_list_append(&shared->holds, &hold->of_shared);
	td_list_append(&client->holds, &hold->of_client);
	client->hold_count++;
	return SG_OK;
}

static void end(struct hold *hold)
{
	struct shared *shared = hold->shared;

	td_list_remove(&hold->of_shared);
	td_list_remove(&hold->of_client);
	hold->client->hold_count--;
	free(hold);
	if (!td_list_empty(&shared->holds))
		return;
	leave(shared);
	td_list_remove(&shared->link);
	free(shared);
}

int sg_shared_drop(struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct shared *shared = find_shared(server, msg);
	struct hold *hold = shared ? hold_of(shared, client) : NULL;

	if (!hold)
		return SG_ERR_HANDLE;
	if (!--hold->count)
		end(hold);
	return SG_OK;
}

void sg_shared_gone(struct sg_peer_state *client)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &client->holds)
		end(hold_at(it));
}

uint64_t sg_shared_bytes(const struct sg_peer_state *client, uint32_t gpu)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &client->holds) {
		const struct hold *hold = hold_at(it);

		if (is_charged(hold) && !hold->shared->suspended && hold->shared->gpu->index == gpu)
			bytes += hold->shared->bytes;
	}
	return bytes;
}

/* -- checkpoints: what a process alone holds leaves with it, and comes back -- */

bool sg_shared_with_others(const struct sg_peer_state *client)
{
	struct td_list *it;

	td_list_for_each (it, &client->holds)
		if (is_shared(hold_at(it)))
			return true;
	return false;
}

uint64_t sg_shared_suspend(struct sg_peer_state *client)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &client->holds) {
		bytes += hold_at(it)->shared->bytes;
		leave(hold_at(it)->shared);
	}
	return bytes;
}

void sg_shared_need(const struct sg_peer_state *client, uint64_t map, uint64_t *need)
{
	struct td_list *it;

	td_list_for_each (it, &client->holds) {
		const struct shared *shared = hold_at(it)->shared;

		if (shared->suspended)
			need[sg_remap(map, shared->gpu->index)] += shared->bytes;
	}
}

uint64_t sg_shared_resume(struct sg_server *server, struct sg_peer_state *client, uint64_t map)
{
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &client->holds) {
		struct shared *shared = hold_at(it)->shared;

		if (!shared->suspended)
			continue;
		(void)enter(&server->gpus[sg_remap(map, shared->gpu->index)], shared);
		bytes += shared->bytes;
	}
	return bytes;
}
