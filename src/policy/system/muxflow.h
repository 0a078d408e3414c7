/*
 * MuxFlow: an online service shares its GPU with one offline workload (4, 5).
 *
 * Purpose. Online services leave most of a GPU unused, but must not be hurt. Three guards act at
 * three speeds: a duty within milliseconds; a state of the GPU within seconds, which evicts; and
 * every quarter of an hour the choice of pairs.
 *
 * On each GPU, every few milliseconds (td_muxflow_gpu_step):
 *   U_GPU <- U_SM x a_C                          Equations 1, 2   (load_factor.h)
 *   duty  <- PID(U_GPU)                          4.1, workload level (pid.h)
 *   state <- SysMonitor(metrics)                 4.1, GPU level      (sysmonitor.h)
 *
 * In the cluster, every 15 minutes (td_muxflow_schedule), Algorithm 1:
 *   for each pair (u, v) of an online and an offline workload:
 *     sm     <- DynamicSM(u)                     4.3                 (slo_share.h)
 *     weight <- P.CalculateTput(u, v, sm)        the MLP             (predict.h)
 *   M <- maximum-weight bipartite matching       instead of KM       (match/match.h)
 *
 * Only GPUs that SysMonitor calls healthy take part: the others' weights are 0.
 *
 * Invariants
 * - an offline workload is placed on a healthy GPU only, and is the only offline workload there;
 * - evicted work has duty 0, and a GPU that evicts does not accept;
 * - a GPU that does not take part is matched with nobody;
 * - those of the parts; same figures in the same order, same decisions.
 */
#pragma once

#include "policy/algo/control/health.h"
#include "policy/algo/control/load_factor.h"
#include "policy/algo/control/pid.h"
#include "policy/algo/control/sysmonitor.h"
#include "policy/algo/fit/predict.h"
#include "policy/algo/fit/slo_share.h"

struct td_muxflow_params {
	struct td_load_factor load;
	struct td_pid_params pid;
	struct td_sysmonitor_params monitor;
	struct td_dynamic_sm sm;
	struct td_health_params health;
	uint32_t memory_quota_ppm; /* part of the memory that offline work may have: 40 % */
	/*
	 * SysMonitor gets means over about this time, so that a step of the load that the duty soon
	 * makes up for evicts nobody; 0: it gets each sample.
	 */
	uint64_t smooth_ns;
};

/*
 * Values for a T4: clock threshold 1,005 MHz, which is its clock under load, a_L 4, a_H 0.2. The
 * paper calls its own values "empirically selected".
 */
extern const struct td_muxflow_params td_muxflow_t4;

struct td_muxflow_gpu {
	struct td_sysmonitor_metrics mean;
	uint64_t mean_ns; /* when `mean` was updated; 0: never */
	struct td_pid pid;
	struct td_sysmonitor monitor;
};

struct td_muxflow_output {
	double load; /* U_GPU of the last step */
	uint32_t duty_ppm;
	bool accepts, evict;
};

struct td_muxflow_output td_muxflow_gpu_step(struct td_muxflow_gpu *gpu,
	const struct td_muxflow_params *params, const struct td_sysmonitor_metrics *metrics,
	uint64_t now_ns);
