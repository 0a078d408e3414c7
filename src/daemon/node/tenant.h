/*
 * The protected jobs that a user may have on this node: AntMan's tenants, their quotas and the
 * upgrade of a job (3.2, 3.3), on one node.
 *
 * A protected job (online or guaranteed) is charged for each GPU that it was given or uses, and for
 * one GPU before that. With a memory limit the charge is the limit's part of the GPU, or the part
 * that the job's memory takes if that is more. Without a limit it is the whole GPU. The charges of
 * a user's jobs may sum up to quota.gpus, and there may be quota.jobs of them. Nothing is set
 * aside: others use what a protected job does not, and the policies take it back when the job asks.
 *
 * - Jobs are admitted in order of arrival, or when their class is changed by hand.
 * - A job for which there is no room runs as besteffort until it can be upgraded.
 * - Only a whole job is upgraded, once there is room, in order of arrival. No other job of the
 *   same user overtakes it, not even a new one.
 * - A job that asks for more than the whole quota waits by itself and keeps no other job waiting.
 * - The order of arrival, and which jobs were admitted, outlive the daemon.
 * - Lowering a quota takes nothing from admitted jobs.
 *
 * quota.gpus=auto, the default, is an equal part of the node's GPUs for each user who has jobs, or
 * had some within the last minute. A single user, root and the daemon's owner are not bounded. When
 * another user comes, the part gets smaller, and jobs beyond it wait for an upgrade, the latest
 * first. Otherwise the first user would keep all GPUs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record/identity.h"
#include "proto/words.h"

struct td_err;
struct td_job;
struct td_node;

/* A change of a setting: of the user's jobs (root: of all users' jobs) that `job` names. */
struct td_tenant_change {
	struct td_identity who;
	const char *job, *key, *value;
};

/*
 * Checks whether all users that the change affects have room for it. Returns 0, or -EDQUOT with a
 * sentence in err.
 */
int td_tenant_check(
	const struct td_node *node, const struct td_tenant_change *change, struct td_err *err);

/*
 * Like td_tenant_check(), for a job that a user is about to start. mem is its memory limit as
 * typed; empty: no limit.
 */
int td_tenant_check_new(const struct td_node *node, struct td_identity who, enum td_class class,
	const char *mem, struct td_err *err);

/*
 * Returns whether the user's quota has room for the class that the job waits for, if all his other
 * jobs ended.
 */
bool td_tenant_has_a_chance(const struct td_node *node, const struct td_job *job);

/* Admits the jobs that a change has made protected. The change must have passed the check. */
void td_tenant_changed(struct td_node *node);

/*
 * Decides the class of new jobs, and of jobs that have come to more GPUs, by their users' quotas.
 * Upgrades jobs for which there is room now. Returns when to call it again, or UINT64_MAX.
 */
uint64_t td_tenant_step(struct td_node *node, uint64_t now_ns);
