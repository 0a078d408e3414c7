/*
 * Checkpoints: a process's memory leaves its GPUs and comes back, perhaps to others. The process
 * keeps the bytes itself; the server moves the room that they occupy.
 *
 * 	running --lock--> locking --its work has ended--> locked --checkpoint--> checkpointed
 * 	checkpointed --restore--> locked --unlock--> running
 *
 * Memory that other processes hold, too, keeps its process from being checkpointed.
 *
 * The driver blocks calls while the process is locked (softgpu/driver/device/checkpoint.c). The
 * state of a process that dies is dropped.
 */
#include <string.h>

#include "softgpu/server/internal.h"

/* Finds the client of a process that has something on a GPU. */
static struct sg_peer_state *find_process(struct sg_server *server, uint64_t pid)
{
	struct td_list *it;

	td_list_for_each (it, &server->clients) {
		struct sg_peer_state *client = td_container_of(it, struct sg_peer_state, link);

		if ((uint64_t)client->pid == pid && (client->context_count || client->hold_count))
			return client;
	}
	return NULL;
}

static void send_notice(
	struct sg_server *server, const struct sg_peer_state *client, uint32_t what, uint64_t value)
{
	const struct sg_msg notice = {.type = SG_NOTICE, .engine = what, .value = value};

	server->send(client->peer, &notice, NULL, 0);
}

static struct sg_server_context *context_at(struct td_list *it)
{
	return td_container_of(it, struct sg_server_context, link);
}

/*
 * Moves a process's memory off the GPU. Returns the bytes that left. Managed pages go to the host.
 */
static uint64_t suspend(struct sg_peer_state *client)
{
	struct td_moves moves = {0};
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &client->ranges) {
		struct sg_server_range *range = td_container_of(it, struct sg_server_range, link);

		td_memory_prefetch_host(&range->context->gpu->memory, &range->range, 0,
			range->range.page_count, &moves);
	}
	td_list_for_each (it, &client->contexts) {
		struct sg_server_context *context = context_at(it);

		context->suspended_bytes = context->memory.plain_bytes;
		td_memory_release(
			&context->gpu->memory, &context->memory, context->suspended_bytes);
		bytes += context->suspended_bytes;
	}
	return bytes + moves.out_bytes + sg_shared_suspend(client);
}

uint32_t sg_remap(uint64_t map, uint32_t gpu)
{
	return gpu < SG_REMAP_MAX ? (uint32_t)(map >> (4 * gpu)) & 15 : gpu;
}

/* Tells whether each GPU goes to an existing one, and no two to the same. */
static bool is_valid(const struct sg_server *server, uint64_t map)
{
	uint64_t seen = 0;

	for (uint32_t i = 0; i < server->gpu_count; i++) {
		uint32_t to = sg_remap(map, i);

		if (to >= server->gpu_count || seen >> to & 1)
			return false;
		seen |= 1ull << to;
	}
	return true;
}

/* Is one of the process's GPUs among those that the pairs leave out, a bit each? */
static bool misses(const struct sg_peer_state *client, uint32_t missing)
{
	struct td_list *it;

	td_list_for_each (it, &client->contexts) {
		uint32_t gpu = context_at(it)->gpu->index;

		if (gpu < 32 && missing >> gpu & 1)
			return true;
	}
	return false;
}

static bool fits(struct sg_server *server, const struct sg_peer_state *client, uint64_t map)
{
	uint64_t need[SG_GPU_MAX] = {0};
	struct td_list *it;

	td_list_for_each (it, &client->contexts)
		need[sg_remap(map, context_at(it)->gpu->index)] += context_at(it)->suspended_bytes;
	sg_shared_need(client, map, need);
	for (uint32_t i = 0; i < server->gpu_count; i++)
		if (need[i] > td_memory_available_bytes(&server->gpus[i].memory))
			return false;
	return true;
}

/*
 * Moves a context with its managed ranges, whose pages are all on the host. All GPUs of a server
 * are alike.
 */
static void move_context(
	struct sg_peer_state *client, struct sg_server_context *context, struct sg_gpu *to)
{
	struct sg_gpu *from = context->gpu;
	struct td_moves moves = {0};
	struct td_list *it;

	td_list_for_each (it, &client->ranges) {
		struct sg_server_range *range = td_container_of(it, struct sg_server_range, link);

		if (range->context == context)
			td_memory_range_remove(&from->memory, &range->range);
	}
	td_timeline_context_remove(&from->timeline, &context->timeline);
	td_memory_context_remove(&from->memory, &context->memory);
	context->gpu = to;
	(void)td_memory_context_add(&to->memory, &context->memory, 0, &moves);
	td_timeline_context_add(&to->timeline, &context->timeline);
	td_list_for_each (it, &client->ranges) {
		struct sg_server_range *range = td_container_of(it, struct sg_server_range, link);
		uint64_t pages = range->range.page_count;

		if (range->context != context)
			continue;
		memset(range->pages, 0, pages * sizeof(*range->pages));
		td_memory_range_add(
			&to->memory, &context->memory, &range->range, range->pages, pages);
	}
}

static uint64_t resume(struct sg_server *server, struct sg_peer_state *client, uint64_t map)
{
	struct td_moves moves = {0};
	uint64_t bytes = 0;
	struct td_list *it;

	td_list_for_each (it, &client->contexts) {
		struct sg_server_context *context = context_at(it);
		struct sg_gpu *to = &server->gpus[sg_remap(map, context->gpu->index)];

		if (to != context->gpu)
			move_context(client, context, to);
		(void)td_memory_reserve(
			&to->memory, &context->memory, context->suspended_bytes, &moves);
		bytes += context->suspended_bytes;
		context->suspended_bytes = 0;
	}
	return bytes + sg_shared_resume(server, client, map);
}

/* The state that each command needs and leaves. */
static int change(
	struct sg_peer_state *client, enum sg_process_state from, enum sg_process_state to)
{
	if (client->state != from)
		return SG_ERR_STATE;
	client->state = to;
	return SG_OK;
}

int sg_checkpoint(struct sg_server *server, const struct sg_msg *msg, struct sg_msg *reply)
{
	struct sg_peer_state *client = find_process(server, msg->value);
	int r;

	if (!client)
		return SG_ERR_HANDLE;
	if (client->mps)
		return SG_ERR_MPS;
	switch ((enum sg_checkpoint)msg->engine) {
	case SG_CHECKPOINT_STATE: reply->value = client->state; return SG_OK;
	case SG_CHECKPOINT_LOCK:
		r = change(client, SG_PROCESS_RUNNING, SG_PROCESS_LOCKING);
		if (!r)
			send_notice(server, client, SG_NOTICE_LOCK, ++client->locks);
		return r;
	case SG_CHECKPOINT_SAVE:
		if (client->state == SG_PROCESS_LOCKED && sg_shared_with_others(client))
			return SG_ERR_SHARED;
		r = change(client, SG_PROCESS_LOCKED, SG_PROCESS_CHECKPOINTED);
		if (!r)
			reply->value = suspend(client);
		return r;
	case SG_CHECKPOINT_RESTORE:
		if (client->state != SG_PROCESS_CHECKPOINTED)
			return SG_ERR_STATE;
		if (!is_valid(server, msg->value2) || misses(client, msg->range))
			return SG_ERR_VALUE;
		if (!fits(server, client, msg->value2))
			return SG_ERR_MEMORY;
		reply->value = resume(server, client, msg->value2);
		send_notice(server, client, SG_NOTICE_REMAP, msg->value2);
		return change(client, SG_PROCESS_CHECKPOINTED, SG_PROCESS_LOCKED);
	case SG_CHECKPOINT_UNLOCK:
		/* A lock is cancelled too if the process that asked for it has gone. */
		r = client->state == SG_PROCESS_LOCKING
			    ? change(client, SG_PROCESS_LOCKING, SG_PROCESS_RUNNING)
			    : change(client, SG_PROCESS_LOCKED, SG_PROCESS_RUNNING);
		if (!r)
			send_notice(server, client, SG_NOTICE_UNLOCK, 0);
		return r;
	case SG_CHECKPOINT_N: break;
	}
	return SG_ERR_VALUE;
}

void sg_checkpoint_locked(struct sg_peer_state *client, uint64_t lock)
{
	/* The answer to an earlier lock, which has been given up, may come late. */
	if (lock == client->locks)
		(void)change(client, SG_PROCESS_LOCKING, SG_PROCESS_LOCKED);
}
