/* This file implements recovery.h. */
#include "daemon/server/gpus/recovery.h"

#include "daemon/execute/actions.h"
#include "daemon/model/node.h"
#include "daemon/node/gpus.h"
#include "daemon/node/hangs.h"
#include "gpu/mps.h"

static struct td_health_metrics metrics_of(
	const struct td_node *node, uint32_t gpu, const struct td_mpsd *mps)
{
	static const enum td_health_server servers[TD_MPSD_STATE_N] = {
		[TD_MPSD_READY] = TD_HEALTH_SERVER_RUNS,
		[TD_MPSD_FAULT] = TD_HEALTH_SERVER_FAILED,
	};
	const struct td_nvml_gpu *listed = td_gpus_find(node, node->gpus[gpu].uuid);

	return (struct td_health_metrics){
		.has_figures = true,
		.server = servers[mps->state],
		.server_ns = td_mpsd_started_ns(mps),
		/* An Xid from before the server's start does not concern this server. */
		.xid = listed && listed->xid_ns >= td_mpsd_started_ns(mps) ? listed->xid : 0,
		.xid_ns = listed ? listed->xid_ns : 0,
		.xid_of = listed ? td_hangs_xid_of(node, listed, mps->server) : TD_XID_OF_UNKNOWN,
		.hangs = node->gpus[gpu].hang.state == TD_HANG_HUNG,
	};
}

static enum td_health_state judge(struct td_recovery *recovery, const struct td_node *node,
	uint32_t gpu, const struct td_mpsd *mps, uint64_t now_ns)
{
	const struct td_health_metrics metrics = metrics_of(node, gpu, mps);
	struct td_health_params params = td_health_default;

	params.breaker_window_ns = node->options.mps_window_ns;
	/* Without a running server there is nothing to judge, except whether a pause is over. */
	if (mps->state != TD_MPSD_READY && mps->state != TD_MPSD_FAULT &&
		recovery->health.state != TD_HEALTH_BROKEN)
		return recovery->health.state;
	return td_health_step(&recovery->health, &params, &metrics, now_ns);
}

static const char *why(
	const struct td_node *node, uint32_t gpu, const struct td_mpsd *mps, bool is_broken)
{
	if (is_broken)
		return "is off for ten minutes: it has failed again and again";
	if (node->gpus[gpu].hang.state == TD_HANG_HUNG)
		return "is started anew: it hangs";
	return mps->state == TD_MPSD_FAULT ? "is started anew: it has failed"
					   : "is started anew: an Xid error has ended its clients";
}

/* Returns whether the server is to be ended. In BROKEN it is also not started again for a while. */
static bool is_reset(enum td_health_state health)
{
	return health == TD_HEALTH_FAILED || health == TD_HEALTH_BROKEN;
}

bool td_recovery_turn(struct td_recovery *recovery, struct td_node *node, uint32_t gpu,
	struct td_mpsd *mps, uint64_t now_ns, const char **ret_why)
{
	const struct td_gpu_verdict *verdict = &node->verdicts[gpu];
	bool resets, before = recovery->resets;
	/* A policy that does not use the health of GPUs gives no verdict on it. */
	bool judged = verdict->known && node->policy->needs & TD_HAS(HEALTH);
	enum td_health_state health = judged ? (enum td_health_state)verdict->health
					     : judge(recovery, node, gpu, mps, now_ns);

	resets = is_reset(health);
	recovery->is_broken = health == TD_HEALTH_BROKEN;
	recovery->resets = resets;
	if (!resets || before || !mps->control)
		return false;
	*ret_why = why(node, gpu, mps, recovery->is_broken);
	recovery->count++;
	td_actions_restart_on(node, gpu, now_ns);
	node->gpus[gpu].hang = (struct td_hang){0};
	td_mpsd_restart(mps);
	return true;
}
