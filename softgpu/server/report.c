/*
 * The server's figures of a GPU and its users: facts, load, processes. status.c has the status
 * text.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/server/internal.h"

#define PPM 1000000u

void sg_gpu_load_update(struct sg_gpu *gpu, uint64_t now_ns)
{
	const struct td_timeline_engine *engines = gpu->timeline.engines;

	td_load_update(&gpu->load, engines[TD_ENGINE_COMPUTE].busy_ns, now_ns);
	td_load_update(&gpu->link_load,
		engines[TD_ENGINE_HTOD].busy_ns + engines[TD_ENGINE_DTOH].busy_ns, now_ns);
}

void sg_gpu_state_fill(const struct sg_gpu *gpu, struct sg_gpu_state *ret)
{
	uint32_t link_ppm = gpu->link_load.utilisation_ppm;

	memset(ret, 0, sizeof(*ret));
	ret->utilisation_ppm = gpu->load.utilisation_ppm;
	/* Copies in both directions at once count as at most all of the time. */
	ret->link_ppm = link_ppm < PPM ? link_ppm : PPM;
	ret->clock_mhz = td_load_clock_mhz(&gpu->load);
	ret->temperature_celsius = td_load_temperature_celsius(&gpu->load);
	ret->power_mw = td_load_power_mw(&gpu->load);
	ret->max_power_mw = gpu->spec.max_power_mw;
	ret->window_end_ns = gpu->load.window_start_ns;
	ret->total_bytes = gpu->spec.memory_bytes;
	ret->used_bytes = gpu->spec.memory_bytes - td_memory_available_bytes(&gpu->memory);
}

/* Work of an operation that still runs is counted at its end. */
void sg_gpm_fill(const struct sg_gpu *gpu, uint64_t now_ns, struct sg_gpm_sample *ret)
{
	*ret = (struct sg_gpm_sample){now_ns, gpu->timeline.engines[TD_ENGINE_COMPUTE].busy_ns,
		gpu->sm_busy_ns, gpu->in_bytes, gpu->out_bytes};
}

void sg_gpu_info_fill(const struct sg_gpu *gpu, struct sg_gpu_info *info)
{
	const struct td_gpu_spec *spec = &gpu->spec;

	memset(info, 0, sizeof(*info));
	memcpy(info->name, "softgpu ", 8);
	strncat(info->name, spec->name, sizeof(info->name) - 9);
	memcpy(info->uuid, gpu->uuid, 16);
	info->memory_bytes = spec->memory_bytes;
	info->managed_page_bytes = spec->page_bytes;
	info->sm_count = spec->sm_count;
	info->clock_mhz = spec->clock_mhz;
	info->compute_major = spec->capability_major;
	info->compute_minor = spec->capability_minor;
	info->threads_per_sm = spec->sm_threads;
	info->blocks_per_sm = spec->sm_blocks;
	info->shared_per_sm_bytes = spec->sm_shared_bytes;
	info->shared_per_block_bytes = spec->block_shared_bytes;
	info->registers_per_sm = spec->sm_registers;
	/*
	 * One thread alone issues one instruction in four clocks, the depth of the pipeline on
	 * recent chips.
	 */
	info->instr_ps = 4000000u / spec->clock_mhz;
	info->instr_per_s = td_gpu_spec_instr_per_us(spec) * 1000000u;
	info->dram_bytes_per_s = (uint64_t)spec->dram_bytes_per_us * 1000000u;
	info->link_bytes_per_s = (uint64_t)spec->pinned_bytes_per_us * 1000000u;
	info->launch_ns = spec->launch_latency_ns;
	info->context_bytes = spec->context_bytes;
	info->features = gpu->features;
	info->pci_bus = 1 + gpu->index;
}

/* Adds what the client has on that GPU; true if that includes a context. */
static bool add_client(const struct sg_peer_state *client, uint32_t gpu, struct sg_process *row)
{
	bool uses = false;
	struct td_list *c;

	td_list_for_each (c, &client->contexts) {
		const struct sg_server_context *context =
			td_container_of(c, struct sg_server_context, link);

		if (context->gpu->index != gpu)
			continue;
		uses |= context->id != 0;
		/* NVIDIA's driver charges no process with managed pages, wherever they are. */
		row->memory_bytes += context->memory.plain_bytes;
	}
	row->memory_bytes += sg_shared_bytes(client, gpu);
	return uses;
}

/* Under MPS the process that has the contexts is the server, for all its clients. */
uint32_t sg_server_processes(const struct sg_server *server, uint32_t gpu, struct sg_process *rows)
{
	struct td_list *it, *c;
	uint32_t n = 0;

	td_list_for_each (it, &server->clients) {
		const struct sg_peer_state *client =
			td_container_of(it, struct sg_peer_state, link);
		struct sg_process row = {.pid = (uint32_t)client->pid, .gpu = gpu};
		bool uses;

		if (client->mps)
			continue;
		uses = add_client(client, gpu, &row);
		td_list_for_each (c, &server->clients) {
			const struct sg_peer_state *other =
				td_container_of(c, struct sg_peer_state, link);

			if (sg_mps_owns(client, other))
				uses |= add_client(other, gpu, &row);
		}
		if (uses && n < SG_PROCESSES_MAX)
			rows[n++] = row;
	}
	return n;
}

static void send_status(struct sg_server *server, const struct sg_peer_state *client,
	struct sg_msg *reply, uint64_t now_ns)
{
	char *text = sg_server_status(server, now_ns);

	reply->error = text ? SG_OK : SG_ERR_MEMORY;
	server->send(client->peer, reply, text, text ? strlen(text) + 1 : 0);
	free(text);
}

bool sg_server_report(struct sg_server *server, const struct sg_peer_state *client,
	const struct sg_msg *msg, uint64_t now_ns)
{
	struct sg_msg reply = {.type = SG_REPLY, .ticket = msg->ticket, .gpu = msg->gpu};
	const struct sg_gpu *gpu = &server->gpus[msg->gpu];
	union {
		struct sg_gpu_info info;
		struct sg_gpm_sample gpm;
		struct sg_gpu_state state;
		struct sg_process processes[SG_PROCESSES_MAX];
		uint32_t pids[SG_PROCESSES_MAX];
	} rows;
	size_t len;

	switch (msg->type) {
	case SG_GPU_INFO:
		sg_gpu_info_fill(gpu, &rows.info);
		len = sizeof(rows.info);
		break;
	case SG_GPM:
		sg_gpm_fill(gpu, now_ns, &rows.gpm);
		len = sizeof(rows.gpm);
		break;
	case SG_GPU_STATE:
		reply.error = gpu->lost ? SG_ERR_LOST : SG_OK;
		sg_gpu_state_fill(gpu, &rows.state);
		len = sizeof(rows.state);
		break;
	case SG_PROCESSES:
		reply.value = sg_server_processes(server, msg->gpu, rows.processes);
		len = reply.value * sizeof(rows.processes[0]);
		break;
	case SG_MPS_STATE:
		len = sg_mps_state(server, msg->value, &reply, rows.pids) * sizeof(rows.pids[0]);
		break;
	case SG_STATUS: send_status(server, client, &reply, now_ns); return true;
	default: return false;
	}
	server->send(client->peer, &reply, &rows, len);
	return true;
}
