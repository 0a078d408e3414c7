/* This file implements mps.h. */
#include "daemon/server/gpus/mps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "base/uuid.h"
#include "daemon/node/gpus.h"
#include "daemon/node/hangs.h"
#include "daemon/server/gpus/canary.h"
#include "daemon/server/gpus/recovery.h"
#include "policy/policy.h"

#define LOOK_NS (2 * TD_NS_PER_S)

struct td_mps_gpu {
	struct td_source source; /* must be first: the loop hands it back */
	struct td_mpsd mps;
	struct td_canary canary;
	struct td_recovery recovery;
	uint8_t uuid[16];
	enum td_mpsd_state told; /* the state that the last event reported */
	bool woken;
	uint64_t next_ns;
};

static void wake(struct td_source *source, uint32_t events)
{
	(void)events;
	((struct td_mps_gpu *)source)->woken = true;
}

void td_mps_table_init(
	struct td_mps_table *table, struct td_loop *loop, struct td_node *node, const char *socket)
{
	const char *slash = strrchr(socket, '/');

	memset(table, 0, sizeof(*table));
	table->loop = loop;
	table->node = node;
	/* The path must leave room for the number of a GPU behind it. */
	if (!slash || snprintf(table->root, sizeof(table->root), "%.*s/mps", (int)(slash - socket),
			      socket) >= (int)sizeof(table->root) - 4)
		table->root[0] = 0;
}

void td_mps_table_deinit(struct td_mps_table *table)
{
	for (uint32_t i = 0; i < table->count; i++) {
		td_loop_remove(table->loop, &table->gpus[i]->source);
		td_canary_deinit(&table->gpus[i]->canary);
		td_mpsd_deinit(&table->gpus[i]->mps);
		free(table->gpus[i]);
	}
	table->count = 0;
}

/*
 * Returns whether control daemons are to run. auto: if the policy holds programs to shares of the
 * SMs.
 */
static bool is_wanted(const struct td_options *options)
{
	switch (options->mps) {
	case TD_MPS_OPTION_ON: return true;
	case TD_MPS_OPTION_AUTO: return options->policy->needs & TD_HAS(SM_SHARE);
	default: return false;
	}
}

static struct td_mps_gpu *find(const struct td_mps_table *table, const uint8_t *uuid)
{
	for (uint32_t i = 0; i < table->count; i++)
		if (!memcmp(table->gpus[i]->uuid, uuid, 16))
			return table->gpus[i];
	return NULL;
}

static void event(
	const struct td_mps_table *table, const uint8_t *uuid, uint64_t now_ns, const char *detail)
{
	td_node_gpu_event(table->node, TD_EVENT_MPS, NULL, td_gpu_number_of(table->node, uuid),
		now_ns, detail);
}

/*
 * Returns whether a control daemon may be started for the GPU. Parts of a GPU divided by MIG are
 * not supported, and the GPU must be this daemon's.
 */
static bool may_start(const struct td_mps_table *table, const struct td_nvml_gpu *listed)
{
	return !listed->mig && !listed->lost && table->count < TD_NVML_GPU_MAX && *table->root &&
	       td_node_may_have(table->node, listed->uuid);
}

static void add(struct td_mps_table *table, const struct td_nvml_gpu *listed)
{
	struct td_mps_gpu *gpu = calloc(1, sizeof(*gpu));
	char directory[TD_MPS_PATH + 16], uuid[TD_UUID_TEXT];

	if (!gpu)
		return;
	snprintf(directory, sizeof(directory), "%s/%u", table->root, listed->index);
	memcpy(gpu->uuid, listed->uuid, 16);
	if (td_mpsd_init(&gpu->mps, directory, td_uuid_format(uuid, listed->uuid))) {
		free(gpu);
		return;
	}
	gpu->source = (struct td_source){td_mpsd_fd(&gpu->mps), wake, false};
	if (td_loop_add(table->loop, &gpu->source)) {
		td_mpsd_deinit(&gpu->mps);
		free(gpu);
		return;
	}
	td_canary_init(&gpu->canary, table->loop);
	table->gpus[table->count++] = gpu;
}

/* Records an event for a change of state, but not for each step towards it. */
static void tell(const struct td_mps_table *table, struct td_mps_gpu *gpu, uint64_t now_ns)
{
	const struct td_mpsd *mps = &gpu->mps;
	char detail[256];

	if (mps->state == gpu->told || mps->state == TD_MPSD_STARTING ||
		mps->state == TD_MPSD_STOPPING)
		return;
	gpu->told = mps->state;
	if (mps->state == TD_MPSD_FAILED)
		snprintf(detail, sizeof(detail), "failed: %s", mps->why);
	else
		snprintf(detail, sizeof(detail), "%s", td_mpsd_state_name(mps->state));
	event(table, gpu->uuid, now_ns, detail);
}

/* Returns the GPU of the node, or NULL if no job uses it. */
static struct td_gpu *used_gpu(const struct td_mps_table *table, const uint8_t *uuid)
{
	for (uint32_t i = 0; i < table->node->gpu_count; i++)
		if (table->node->gpus[i].used && !memcmp(table->node->gpus[i].uuid, uuid, 16))
			return &table->node->gpus[i];
	return NULL;
}

bool td_mps_table_seen(
	const struct td_mps_table *table, const uint8_t *uuid, struct td_mps_seen *ret)
{
	static const enum td_mps states[TD_MPSD_STATE_N] = {
		[TD_MPSD_OFF] = TD_MPS_OFF,
		[TD_MPSD_READY] = TD_MPS_ON,
		[TD_MPSD_FAULT] = TD_MPS_FAILED,
		[TD_MPSD_FAILED] = TD_MPS_FAILED,
	};
	const struct td_nvml_gpu *listed = td_gpus_find(table->node, uuid);
	const struct td_mps_gpu *gpu = find(table, uuid);
	const struct td_gpu *used = used_gpu(table, uuid);

	if (table->has_foreign || !listed || listed->mig)
		return false;
	*ret = (struct td_mps_seen){.state = TD_MPS_OFF,
		.can_serve = table->is_installed && table->node->options.mps != TD_MPS_OPTION_OFF};
	if (gpu) {
		ret->state = states[gpu->mps.state];
		ret->started_ns = td_mpsd_started_ns(&gpu->mps);
		ret->server = gpu->mps.server;
		ret->directory = gpu->mps.state == TD_MPSD_READY ? gpu->mps.directory : NULL;
		ret->hangs = used && used->hang.state == TD_HANG_HUNG;
	}
	return true;
}

static void look_for_foreign(struct td_mps_table *table, bool wanted, uint64_t now_ns)
{
	static const uint8_t none[16];
	char detail[256];

	table->look_ns = now_ns + LOOK_NS;
	table->is_installed = td_mps_is_installed();
	table->has_foreign = td_mps_foreign(table->root, &table->foreign);
	if (!table->has_foreign)
		table->told_foreign = false;
	if (!table->has_foreign || !wanted || table->told_foreign)
		return;
	table->told_foreign = true;
	snprintf(detail, sizeof(detail),
		"the control daemon of process %d in %s is left alone, and none is started",
		(int)table->foreign.pid, table->foreign.directory);
	event(table, none, now_ns, detail);
}

/* Checks whether the GPU's server still finishes work. Returns when to check again. */
static uint64_t watch(const struct td_mps_table *table, struct td_mps_gpu *gpu, uint64_t now_ns)
{
	struct td_hang_params params = td_hang_default;
	struct td_gpu *used = used_gpu(table, gpu->uuid);
	const char *why;
	uint64_t next_ns, find_ns = UINT64_MAX;
	bool hung;

	if (!used)
		return UINT64_MAX;
	if (gpu->mps.state == TD_MPSD_READY)
		td_hangs_xid(table->node, (uint32_t)(used - table->node->gpus), gpu->mps.server,
			td_mpsd_started_ns(&gpu->mps), now_ns);
	/* Only the server's pid tells which clients are suspect and which must be dropped. */
	if (used->hang.launched || used->hang.state != TD_HANG_QUIET)
		find_ns = td_mpsd_find(&gpu->mps);
	gpu->next_ns = find_ns < gpu->next_ns ? find_ns : gpu->next_ns;
	params.tried_ns = table->node->options.mps_patience_ns;
	next_ns = td_canary_turn(&gpu->canary, &used->hang, &params, &gpu->mps, now_ns, &hung);
	if (hung)
		event(table, gpu->uuid, now_ns,
			"hangs: the work of a program that tried it has not ended");
	if (!td_recovery_turn(&gpu->recovery, table->node, (uint32_t)(used - table->node->gpus),
		    &gpu->mps, now_ns, &why))
		return gpu->recovery.is_broken && now_ns + LOOK_NS < next_ns ? now_ns + LOOK_NS
									     : next_ns;
	event(table, gpu->uuid, now_ns, why);
	gpu->woken = true;
	return now_ns; /* the next turn ends the server */
}

uint64_t td_mps_table_turn(struct td_mps_table *table, uint64_t now_ns)
{
	bool wanted = is_wanted(&table->node->options);
	uint64_t next_ns = UINT64_MAX, watch_ns;

	td_hangs_look(table->node, now_ns);
	if (now_ns >= table->look_ns)
		look_for_foreign(table, wanted, now_ns);
	for (uint32_t i = 0; wanted && !table->has_foreign && i < table->node->listed_count; i++) {
		const struct td_nvml_gpu *listed = &table->node->listed[i];

		if (!find(table, listed->uuid) && may_start(table, listed))
			add(table, listed);
	}
	for (uint32_t i = 0; i < table->count; i++) {
		struct td_mps_gpu *gpu = table->gpus[i];
		bool wants = wanted && !gpu->recovery.is_broken;

		if (gpu->woken || now_ns >= gpu->next_ns || gpu->mps.wanted != wants) {
			gpu->woken = false;
			td_mpsd_want(&gpu->mps, wants);
			gpu->next_ns = td_mpsd_step(&gpu->mps, now_ns);
			tell(table, gpu, now_ns);
		}
		watch_ns = watch(table, gpu, now_ns);
		next_ns = watch_ns < next_ns ? watch_ns : next_ns;
		next_ns = gpu->next_ns < next_ns ? gpu->next_ns : next_ns;
	}
	if (wanted && !table->count && table->look_ns < next_ns)
		next_ns = table->look_ns;
	return next_ns;
}

void td_mps_table_terminate(struct td_mps_table *table, const uint8_t *uuid, pid_t client)
{
	struct td_mps_gpu *gpu = find(table, uuid);

	if (!gpu)
		return;
	td_mpsd_terminate(&gpu->mps, client);
	gpu->woken = true;
}

void td_mps_table_tell(
	const struct td_mps_table *table, const uint8_t *uuid, struct td_msg_gpu *ret)
{
	const struct td_mps_gpu *gpu = find(table, uuid);
	bool serves;

	if (gpu && gpu->recovery.is_broken) {
		snprintf(ret->mps, sizeof(ret->mps), "failed");
		snprintf(ret->mps_text, sizeof(ret->mps_text),
			"its server has failed again and again: it is tried again in ten minutes");
	} else if (gpu && gpu->mps.state != TD_MPSD_OFF) {
		serves = gpu->mps.state == TD_MPSD_READY || gpu->mps.state == TD_MPSD_FAULT;
		snprintf(ret->mps, sizeof(ret->mps), "%s", td_mpsd_state_name(gpu->mps.state));
		snprintf(ret->mps_text, sizeof(ret->mps_text), "%s",
			serves ? gpu->mps.directory : gpu->mps.why);
	} else if (table->has_foreign) {
		snprintf(ret->mps, sizeof(ret->mps), "foreign");
		snprintf(ret->mps_text, sizeof(ret->mps_text), "%s", table->foreign.directory);
	} else if (table->node && is_wanted(&table->node->options)) {
		snprintf(ret->mps, sizeof(ret->mps), "starting");
	}
}
