/* This file implements abilities.h. */
#include "daemon/node/abilities.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/gpus.h"
#include "daemon/node/hangs.h"
#include "gpu/nvml_abi.h"
#include "proto/orders.h"

/*
 * The abilities of each library: it reports steps, counts requests, and holds its program to a duty
 * and to a batch.
 */
#define BY_LIBRARY (TD_HAS(STEPS) | TD_HAS(DUTY) | OF_SERVICES)
/* The abilities of a client that has called tandem_service() and tandem_batch(). */
#define OF_SERVICES (TD_HAS(SERVICE) | TD_HAS(BATCH))
/*
 * The abilities of the daemon: it ends processes itself, and has `tandem run` start a job again
 * (execute/endings.c).
 */
#define BY_DAEMON (TD_HAS(EVICTION) | TD_HAS(RESTART))

/* The abilities of a library whose meter is on: it reports what its program uses of a GPU. */
#define BY_METER (TD_HAS(SM_ACTIVITY) | TD_HAS(CORES))

/* The TD_HAS bit of each figure of NVML. */
static const struct {
	uint32_t known, has;
} figures[] = {
	{TD_GPU_KNOWS_UTILISATION, TD_HAS(UTILISATION)},
	{TD_GPU_KNOWS_CLOCK, TD_HAS(CLOCK)},
};

/* Returns the figures that NVML reports for each GPU that programs can use. */
static uint32_t figures_of_gpus(const struct td_node *node)
{
	uint32_t known = node->listed_count ? UINT32_MAX : 0, has = 0;

	for (uint32_t i = 0; i < node->listed_count; i++)
		if (!node->listed[i].lost)
			known &= node->listed[i].known;
	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++)
		if (known & figures[i].known)
			has |= figures[i].has;
	return has;
}

/* Returns false only if each GPU whose driver has reported on host memory cannot map it. */
static bool has_host_memory(const struct td_node *node)
{
	bool said_no = false;

	for (uint32_t i = 0; i < node->gpu_count; i++) {
		if (node->gpus[i].host_memory == TD_HOST_MEMORY_YES)
			return true;
		said_no |= node->gpus[i].host_memory == TD_HOST_MEMORY_NO;
	}
	return !said_no;
}

/*
 * Translates the abilities of a supervisor (TD_SUPERVISOR_*) into those of policies. They apply to
 * its own job only. The node gets no ability from them: any user may connect as a supervisor and
 * claim anything, and the policy for all users must not depend on that.
 */
static uint32_t by_supervisor(uint32_t can)
{
	return (can & TD_SUPERVISOR_RESTARTS ? TD_HAS(RESTART) : 0) |
	       (can & TD_SUPERVISOR_SHADOWS ? TD_HAS(SHADOW) : 0);
}

/*
 * Returns whether the health of the GPU is known. Without NVML there are no reports of Xid errors.
 */
static bool has_health(
	const struct td_node *node, const struct td_nvml_gpu *listed, struct td_mps_seen *ret)
{
	*ret = (struct td_mps_seen){0};
	return !listed->lost && node->io.mps && node->io.mps(node->io.arg, listed->uuid, ret);
}

/* One GPU with MPS is enough: the view has a bit for each GPU. */
static uint32_t by_mps(const struct td_node *node)
{
	struct td_mps_seen seen;
	uint32_t has = 0;

	for (uint32_t i = 0; i < node->listed_count; i++)
		if (has_health(node, &node->listed[i], &seen))
			has |= TD_HAS(HEALTH) | (seen.can_serve ? TD_HAS(SM_SHARE) : 0);
	return has;
}

static uint32_t of_node(const struct td_node *node)
{
	return BY_LIBRARY | BY_DAEMON | (node->options.meter == TD_METER_OFF ? 0 : BY_METER) |
	       figures_of_gpus(node) | by_mps(node) |
	       (td_gpus_count(node) > 1 ? TD_HAS(MIGRATION) : 0) |
	       (node->profiles.good_count ? TD_HAS(PROFILES) : 0) |
	       (has_host_memory(node) ? TD_HAS(HOST_MEMORY) : 0);
}

static bool can_be_ended(const struct td_node *node, const struct td_process *process)
{
	return process->can & TD_CAN_LEAVE || !node->owner || node->owner == process->who.uid;
}

uint32_t td_abilities_of(const struct td_node *node, const struct td_client *client)
{
	uint32_t by_own = by_supervisor(client->process->job->supervised);
	uint32_t has = BY_LIBRARY | node->gpu_views[client->gpu].known;

	if (can_be_ended(node, client->process))
		has |= TD_HAS(EVICTION);
	if (client->process->can & TD_CAN_MOVE && !client->process->unmovable)
		has |= TD_HAS(MIGRATION);
	if (td_client_reshares(client))
		by_own |= TD_HAS(SHADOW);
	if (client->activity.known)
		has |= BY_METER;
	if (!td_service_is_known(client->process->service))
		has &= ~OF_SERVICES;
	else if (!client->process->service->batch)
		has &= ~TD_HAS(BATCH);
	if (client->spills || client->process->backend == TD_BACKEND_MANAGED)
		has |= TD_HAS(HOST_MEMORY);
	/*
	 * The node itself changes no share and starts no shadow, so what the program and its
	 * supervisor can do is not cut to the node's.
	 */
	return (has & node->options.has) | by_own;
}

static void adopt_policy(struct td_node *node, uint64_t now_ns)
{
	char what[128];

	if (node->policy == node->options.policy ||
		td_policy_lacks(node->options.policy, node->options.has))
		return;
	snprintf(what, sizeof(what), "policy=%s: what it needs is there",
		node->options.policy->name);
	td_node_options_changed(node, now_ns, what);
}

void td_abilities_look(struct td_node *node)
{
	node->options.has = of_node(node);
}

void td_abilities_step(struct td_node *node, uint64_t now_ns)
{
	td_abilities_look(node);
	adopt_policy(node, now_ns);
}

static void show_health(
	const struct td_node *node, const struct td_nvml_gpu *listed, struct td_gpu_view *view)
{
	struct td_mps_seen seen;

	if (!has_health(node, listed, &seen))
		return;
	view->known |= TD_HAS(HEALTH);
	view->xid = listed->xid;
	view->xid_ns = listed->xid_ns;
	view->xid_of = (uint8_t)td_hangs_xid_of(node, listed, seen.server);
	view->mps = seen.state;
	view->mps_started_ns = seen.started_ns;
	view->hangs = seen.hangs;
}

/*
 * Returns whether the GPU's clock is that of an idle GPU. Such a clock says nothing of its load or
 * health, so it is shown as the highest one. A policy's mean then falls slowly, since the clock
 * rises only a moment after work has come.
 */
static bool has_idle_clock(const struct td_nvml_gpu *listed)
{
	return listed->sm_max_mhz && listed->known & TD_GPU_KNOWS_THROTTLE &&
	       listed->throttle == NVML_CLOCK_REASON_IDLE;
}

void td_abilities_show_gpu(
	const struct td_node *node, const uint8_t *uuid, struct td_gpu_view *view)
{
	const struct td_nvml_gpu *listed = td_gpus_find(node, uuid);

	if (!listed || listed->lost)
		return;
	show_health(node, listed, view);
	for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++)
		if (listed->known & figures[i].known)
			view->known |= figures[i].has;
	view->utilisation_ppm = listed->utilisation_ppm;
	view->sm_clock_mhz = has_idle_clock(listed) ? listed->sm_max_mhz : listed->sm_mhz;
	view->sm_clock_max_mhz = listed->sm_max_mhz;
	view->power_mw = listed->power_mw;
	view->temperature_celsius = listed->temperature_celsius;
	view->used_bytes = listed->used_bytes;
	view->total_bytes = td_options_capacity(&node->options, listed->total_bytes);
}

char *td_abilities_sentence(uint32_t bit, char *buf, size_t len)
{
	const struct td_ability *ability = td_ability_at(bit);

	snprintf(buf, len, "This node cannot %s: %s.", ability->text, ability->why);
	return buf;
}
