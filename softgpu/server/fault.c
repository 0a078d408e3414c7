/*
 * Injected faults, which show how programs and tandem handle them. Effects on time and the GPU
 * happen here. Effects on a process's own calls and contexts are sent to it as a NOTICE, and happen
 * in its driver (softgpu/driver/device/fault.c).
 */
#include <string.h>

#include "cuda/symbols.h"
#include "softgpu/server/internal.h"

#define XID_DOUBLE_BIT_ECC 48
#define XID_OFF_THE_BUS    79
#define XID_MAX            1000u
#define LEAST_BYTES_PER_US 1u

static void tell_all(struct sg_server *server, const struct sg_msg *notice)
{
	struct td_list *it;

	td_list_for_each (it, &server->clients)
		server->send(
			td_container_of(it, struct sg_peer_state, link)->peer, notice, NULL, 0);
}

void sg_fault_tell(struct sg_server *server, struct sg_peer_state *client)
{
	for (uint32_t i = 0; i < server->fault_count; i++)
		server->send(client->peer, &server->faults[i], NULL, 0);
}

void sg_fault_xid(struct sg_server *server, uint32_t gpu, uint64_t number)
{
	const struct sg_msg notice = {
		.type = SG_NOTICE, .gpu = gpu, .engine = SG_FAULT_XID, .value = number};

	tell_all(server, &notice);
}

static void clear(struct sg_server *server)
{
	for (uint32_t i = 0; i < server->gpu_count; i++) {
		struct sg_gpu *gpu = &server->gpus[i];

		gpu->lost = gpu->hung = false;
		if (gpu->pinned_bytes_per_us)
			gpu->spec.pinned_bytes_per_us = gpu->pinned_bytes_per_us;
		gpu->pinned_bytes_per_us = 0;
	}
	server->fault_count = 0;
	server->mps_exit_clean = false;
}

/* Applies to copies that begin from now on. */
static int slow_link(struct sg_gpu *gpu, uint64_t bytes_per_s)
{
	uint64_t rate = bytes_per_s / 1000000;

	if (rate < LEAST_BYTES_PER_US || rate > UINT32_MAX)
		return SG_ERR_VALUE;
	if (!gpu->pinned_bytes_per_us)
		gpu->pinned_bytes_per_us = gpu->spec.pinned_bytes_per_us;
	gpu->spec.pinned_bytes_per_us = (uint32_t)rate;
	return SG_OK;
}

static int remember(struct sg_server *server, const struct sg_msg *notice)
{
	if (server->fault_count == SG_FAULTS_MAX)
		return SG_ERR_VALUE;
	server->faults[server->fault_count++] = *notice;
	return SG_OK;
}

static int apply(struct sg_server *server, struct sg_gpu *gpu, const struct sg_msg *notice)
{
	switch ((enum sg_fault)notice->engine) {
	case SG_FAULT_CLEAR: clear(server); return SG_OK;
	case SG_FAULT_XID: return notice->value && notice->value < XID_MAX ? SG_OK : SG_ERR_VALUE;
	case SG_FAULT_ECC: sg_fault_xid(server, gpu->index, XID_DOUBLE_BIT_ECC); return SG_OK;
	case SG_FAULT_LOST:
		sg_fault_xid(server, gpu->index, XID_OFF_THE_BUS);
		gpu->lost = true;
		return remember(server, notice);
	case SG_FAULT_HANG: gpu->hung = true; return SG_OK;
	case SG_FAULT_LINK: return slow_link(gpu, notice->value);
	case SG_FAULT_HOST_MEMORY: return remember(server, notice);
	case SG_FAULT_CALL:
		return notice->range < TD_SYMBOL_N && notice->error ? remember(server, notice)
								    : SG_ERR_VALUE;
	case SG_FAULT_MPS_EARLY_EXIT:
		server->mps_exit_clean = notice->value == 1;
		return notice->value <= 1 ? SG_OK : SG_ERR_VALUE;
	case SG_FAULT_N: break;
	}
	return SG_ERR_VALUE;
}

static void fail_all(struct sg_server *server, const struct sg_gpu *gpu)
{
	struct td_list *it;

	td_list_for_each (it, &server->clients)
		sg_server_fail_operations(
			server, td_container_of(it, struct sg_peer_state, link), gpu);
}

int sg_fault_inject(struct sg_server *server, const struct sg_msg *msg)
{
	struct sg_msg notice = *msg;
	int r;

	notice.type = SG_NOTICE;
	r = apply(server, &server->gpus[msg->gpu], &notice);
	if (r)
		return r;
	/* Processes learn why before their operations fail. */
	tell_all(server, &notice);
	if (notice.engine == SG_FAULT_ECC || notice.engine == SG_FAULT_LOST)
		fail_all(server, &server->gpus[msg->gpu]);
	return SG_OK;
}
