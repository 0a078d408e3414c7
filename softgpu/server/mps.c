/*
 * MPS: processes whose kernels run side by side. An MPS server is a client that has said
 * SG_MPS_SERVE; clients of it have said SG_MPS_JOIN before their first context. All contexts of one
 * MPS server on one GPU are a group of the timeline (src/model/timeline.h), which has one turn.
 *
 * The state of an MPS server, as nvidia-cuda-mps-control tells it:
 *
 *	ACTIVE --a client's kernel faults--> FAULT --all clients of those GPUs are gone--> ACTIVE
 *
 * A fault ends the contexts of all clients on its GPU, and until these clients are gone nobody may
 * join. A client that ends with work in flight and has not said SG_MPS_LEAVE was killed: then no
 * operation of the group ends any more until the MPS server is gone, unless it was asked for
 * otherwise (SG_FAULT_MPS_EARLY_EXIT). NVIDIA calls this case undefined; a hang is the worst.
 */
#include <stdlib.h>
#include <string.h>

#include "cuda/types.h"
#include "softgpu/server/internal.h"

#define PPM 1000000u
/*
 * The most contexts per GPU, since Volta: NVIDIA's documentation of MPS, "Client-server connection
 * limits".
 */
#define CONTEXTS_PER_GPU 48u

struct sg_mps {
	struct td_list link;
	struct sg_peer_state *owner;
	uint64_t gpus, faulted; /* a bit per GPU */
	uint32_t share_ppm;     /* the share of clients that join from now on */
	bool hung;
	uint64_t limits[SG_GPU_MAX]; /* the limits of clients that join from now on; 0: none */
	/* one per GPU; no td_timeline_context of a client that is ended is a member */
	struct td_timeline_context leaders[SG_GPU_MAX];
};

static struct sg_peer_state *client_at(struct td_list *it)
{
	return td_container_of(it, struct sg_peer_state, link);
}

static struct sg_server_context *context_at(struct td_list *it)
{
	return td_container_of(it, struct sg_server_context, link);
}

static struct sg_mps *find(struct sg_server *server, uint64_t pid)
{
	struct td_list *it;

	td_list_for_each (it, &server->mps) {
		struct sg_mps *mps = td_container_of(it, struct sg_mps, link);

		if ((uint64_t)mps->owner->pid == pid)
			return mps;
	}
	return NULL;
}

static uint32_t count_contexts(const struct sg_server *server, const struct sg_mps *mps,
	const struct sg_peer_state *only, const struct sg_gpu *gpu)
{
	struct td_list *it, *c;
	uint32_t n = 0;

	td_list_for_each (it, &server->clients) {
		const struct sg_peer_state *client = client_at(it);

		if (client->mps != mps || (only && client != only))
			continue;
		td_list_for_each (c, &client->contexts)
			n += context_at(c)->gpu == gpu && context_at(c)->id;
	}
	return n;
}

static void notify(
	struct sg_server *server, const struct sg_peer_state *client, uint32_t gpu, uint32_t result)
{
	const struct sg_msg notice = {
		.type = SG_NOTICE, .gpu = gpu, .engine = SG_NOTICE_MPS, .value = result};

	server->send(client->peer, &notice, NULL, 0);
}

/* Ends what the client has, for a reason that it gets from all its calls from now on. */
static void end_client(
	struct sg_server *server, struct sg_peer_state *client, uint32_t error, uint32_t result)
{
	client->mps_error = error;
	for (uint32_t i = 0; i < server->gpu_count; i++)
		notify(server, client, i, result);
	sg_server_fail_operations(server, client, NULL);
}

static int serve(struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct sg_mps *mps;

	if (client->serves || client->mps || client->context_count)
		return SG_ERR_STATE;
	if (!msg->value || (server->gpu_count < 64 && msg->value >> server->gpu_count) ||
		!msg->value2 || msg->value2 > PPM)
		return SG_ERR_VALUE;
	mps = calloc(1, sizeof(*mps));
	if (!mps)
		return SG_ERR_MEMORY;
	mps->owner = client;
	mps->gpus = msg->value;
	mps->share_ppm = (uint32_t)msg->value2;
	for (uint32_t i = 0; i < server->gpu_count; i++)
		td_timeline_context_add(&server->gpus[i].timeline, &mps->leaders[i]);
	td_list_append(&server->mps, &mps->link);
	client->serves = mps;
	return SG_OK;
}

/* Lets a client join. Its own share can only be smaller than what the MPS server gives. */
static int join(struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg,
	struct sg_msg *reply)
{
	struct sg_mps *mps = find(server, msg->value);

	if (!mps)
		return SG_ERR_HANDLE;
	if (client->serves || client->mps || client->context_count)
		return SG_ERR_STATE;
	if (!msg->value2 || msg->value2 > PPM)
		return SG_ERR_VALUE;
	if (mps->faulted)
		return SG_ERR_MPS_NOT_READY;
	client->mps = mps;
	client->mps_share_ppm =
		msg->value2 < mps->share_ppm ? (uint32_t)msg->value2 : mps->share_ppm;
	memcpy(client->mps_limits, mps->limits, sizeof(client->mps_limits));
	reply->value = mps->gpus;
	reply->value2 = client->mps_share_ppm;
	return SG_OK;
}

static int set_share(struct sg_server *server, const struct sg_msg *msg)
{
	struct sg_mps *mps = find(server, msg->value);

	if (!mps)
		return SG_ERR_HANDLE;
	if (!msg->value2 || msg->value2 > PPM)
		return SG_ERR_VALUE;
	mps->share_ppm = (uint32_t)msg->value2;
	return SG_OK;
}

/* Lowers a limit. A client's own limit can only be smaller than its server's. */
static void narrow(uint64_t *limit, uint64_t bytes)
{
	if (bytes && (!*limit || bytes < *limit))
		*limit = bytes;
}

/* The GPU that a server's clients call their n-th; UINT32_MAX: there is none. */
static uint32_t nth_gpu(const struct sg_mps *mps, uint64_t n)
{
	for (uint32_t i = 0; i < SG_GPU_MAX; i++)
		if (mps->gpus >> i & 1 && !n--)
			return i;
	return UINT32_MAX;
}

static int set_limit(
	struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg)
{
	struct sg_mps *mps = msg->value ? find(server, msg->value) : client->mps;
	uint32_t gpu;

	if (!mps)
		return SG_ERR_HANDLE;
	if (!msg->value) {
		narrow(&client->mps_limits[msg->gpu], msg->bytes);
		return SG_OK;
	}
	gpu = nth_gpu(mps, msg->value2);
	if (gpu == UINT32_MAX)
		return SG_ERR_VALUE;
	mps->limits[gpu] = msg->bytes;
	return SG_OK;
}

bool sg_mps_has_room(const struct sg_peer_state *client, const struct sg_gpu *gpu, uint64_t bytes)
{
	uint64_t limit = client->mps_limits[gpu->index], used = sg_shared_bytes(client, gpu->index);
	struct td_list *it;

	if (!client->mps || !limit)
		return true;
	td_list_for_each (it, &client->contexts)
		if (context_at(it)->gpu == gpu)
			used += context_at(it)->memory.plain_bytes;
	return bytes <= limit && used <= limit - bytes;
}

static int terminate(struct sg_server *server, const struct sg_msg *msg)
{
	struct sg_mps *mps = find(server, msg->value);
	struct td_list *it;

	if (!mps)
		return SG_ERR_HANDLE;
	td_list_for_each (it, &server->clients) {
		struct sg_peer_state *client = client_at(it);

		if (client->mps != mps || (uint64_t)client->pid != msg->value2)
			continue;
		end_client(server, client, SG_ERR_MPS_TERMINATED, CUDA_ERROR_MPS_CLIENT_TERMINATED);
		return SG_OK;
	}
	return SG_ERR_VALUE;
}

int sg_mps_request(struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg,
	struct sg_msg *reply)
{
	switch (msg->type) {
	case SG_MPS_SERVE: return serve(server, client, msg);
	case SG_MPS_JOIN: return join(server, client, msg, reply);
	case SG_MPS_SET: return set_share(server, msg);
	case SG_MPS_LIMIT: return set_limit(server, client, msg);
	case SG_MPS_TERMINATE: return terminate(server, msg);
	default: return SG_ERR_VALUE;
	}
}

uint32_t sg_mps_state(
	const struct sg_server *server, uint64_t pid, struct sg_msg *reply, uint32_t *pids)
{
	const struct sg_mps *mps = find((struct sg_server *)server, pid);
	struct td_list *it;
	uint32_t n = 0;

	if (!mps) {
		reply->error = SG_ERR_HANDLE;
		return 0;
	}
	reply->value = mps->faulted ? SG_MPS_FAULTED : SG_MPS_ACTIVE;
	reply->value2 = mps->share_ppm;
	td_list_for_each (it, &server->clients)
		if (client_at(it)->mps == mps && n < SG_PROCESSES_MAX)
			pids[n++] = (uint32_t)client_at(it)->pid;
	return n;
}

int sg_mps_admit(const struct sg_server *server, const struct sg_peer_state *client,
	const struct sg_gpu *gpu)
{
	const struct sg_mps *mps = client->mps;

	if (client->mps_error)
		return (int)client->mps_error;
	if (!mps)
		return SG_OK;
	if (!(mps->gpus >> gpu->index & 1))
		return SG_ERR_HANDLE;
	if (mps->faulted >> gpu->index & 1)
		return SG_ERR_MPS_NOT_READY;
	if (count_contexts(server, mps, NULL, gpu) >= CONTEXTS_PER_GPU)
		return SG_ERR_MPS_CLIENTS;
	return sg_mps_has_room(client, gpu, gpu->spec.context_bytes) ? SG_OK : SG_ERR_MEMORY;
}

void sg_mps_context_new(
	const struct sg_peer_state *client, struct sg_server_context *context, uint64_t share_ppm)
{
	struct sg_gpu *gpu = context->gpu;
	uint64_t ppm =
		share_ppm && share_ppm < client->mps_share_ppm ? share_ppm : client->mps_share_ppm;

	if (client->mps)
		td_timeline_join(&gpu->timeline, &context->timeline,
			&client->mps->leaders[gpu->index], (double)ppm / PPM);
}

bool sg_mps_hangs(const struct sg_peer_state *client)
{
	return client->mps && client->mps->hung;
}

void sg_mps_fault(
	struct sg_server *server, struct sg_peer_state *client, uint32_t gpu, uint64_t result)
{
	struct sg_mps *mps = client->mps;
	struct td_list *it;

	if (!mps || client->mps_error || mps->faulted >> gpu & 1 || !result || result > INT32_MAX ||
		!count_contexts(server, mps, client, &server->gpus[gpu]))
		return;
	mps->faulted |= 1ull << gpu;
	td_list_for_each (it, &server->clients) {
		struct sg_peer_state *other = client_at(it);

		if (other->mps != mps || !count_contexts(server, mps, other, &server->gpus[gpu]))
			continue;
		other->mps_affected |= 1ull << gpu;
		notify(server, other, gpu, (uint32_t)result);
		sg_server_fail_operations(server, other, &server->gpus[gpu]);
	}
}

/* Stops all operations of the group's clients from ending. */
static void hang(struct sg_server *server, struct sg_mps *mps)
{
	struct td_list *it, *o;

	mps->hung = true;
	td_list_for_each (it, &server->clients) {
		if (client_at(it)->mps != mps)
			continue;
		td_list_for_each (o, &client_at(it)->ops) {
			struct sg_server_op *op = td_container_of(o, struct sg_server_op, link);

			td_timeline_cancel(&op->context->gpu->timeline, &op->op);
			op->stuck = true;
		}
	}
}

void sg_mps_client_leaves(struct sg_server *server, const struct sg_peer_state *client)
{
	if (client->mps && client->op_count && !client->mps_left && !client->mps_error &&
		!server->mps_exit_clean && !client->mps->hung)
		hang(server, client->mps);
}

/* Ends the fault of GPUs once all clients that were affected have left. */
static void recover(const struct sg_server *server, struct sg_mps *mps)
{
	uint64_t affected = 0;
	struct td_list *it;

	td_list_for_each (it, &server->clients)
		if (client_at(it)->mps == mps)
			affected |= client_at(it)->mps_affected;
	mps->faulted &= affected;
}

static void detach(struct sg_peer_state *client)
{
	struct td_list *it;

	client->mps = NULL;
	td_list_for_each (it, &client->contexts) {
		struct sg_server_context *context = context_at(it);

		if (context->id)
			td_timeline_join(&context->gpu->timeline, &context->timeline, NULL, 1);
	}
}

static void end_service(struct sg_server *server, struct sg_mps *mps)
{
	struct td_list *it;

	td_list_for_each (it, &server->clients) {
		struct sg_peer_state *client = client_at(it);

		if (client->mps != mps)
			continue;
		if (!client->mps_error)
			end_client(server, client, SG_ERR_MPS_GONE, CUDA_ERROR_MPS_RPC_FAILURE);
		detach(client);
	}
	for (uint32_t i = 0; i < server->gpu_count; i++)
		td_timeline_context_remove(&server->gpus[i].timeline, &mps->leaders[i]);
	td_list_remove(&mps->link);
	free(mps);
}

void sg_mps_gone(struct sg_server *server, struct sg_peer_state *client)
{
	if (client->serves)
		end_service(server, client->serves);
	if (client->mps)
		recover(server, client->mps);
}

bool sg_mps_owns(const struct sg_peer_state *owner, const struct sg_peer_state *client)
{
	return owner->serves && client->mps == owner->serves;
}
