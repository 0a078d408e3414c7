/*
 * The protected jobs that a user may have on this node: AntMan's tenants, their quotas and the
 * upgrade of a job (3.2, 3.3), on one node.
 *
 * A protected job (online or guaranteed) is charged for each GPU that it was given or uses, and for
 * one GPU before that. The charge is the part of the GPU that its memory limit is, or its memory
 * there if that is more; all of the GPU without a limit. The charges of a user's jobs sum up to at
 * most quota.gpus, and quota.jobs counts such jobs. Nothing is set aside: what a protected job does
 * not use, others use meanwhile, and the policies take it back when the job asks.
 *
 * - Jobs are admitted in order of arrival, or when their class is changed by hand.
 * - A job for which there is no room runs as besteffort, to be upgraded.
 * - An upgrade takes whole jobs, once there is room, in order of arrival. No job of the same user
 *   overtakes, a new one neither.
 * - A job that asks for more than the whole quota waits by itself and keeps no other job waiting.
 * - The order of arrival, and who was admitted, outlive the daemon.
 * - Lowering a quota takes nothing from admitted jobs.
 *
 * quota.gpus=auto, the default, is an equal part of the node's GPUs for each user who is there, or
 * was within the last minute. A single user, root and the daemon's owner are not bounded. When
 * another user comes, the part gets smaller, and jobs beyond it wait for an upgrade, the latest
 * first; otherwise the first user would keep all of it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/words.h"

struct td_err;
struct td_job;
struct td_node;

/* A setting of the jobs of a user (0: of all) that a text names. */
struct td_tenant_change {
	uid_t uid;
	const char *job, *key, *value;
};

/*
 * Is there room for the change with all users that it affects? Returns 0, or -EDQUOT with a
 * sentence.
 */
int td_tenant_check(
	const struct td_node *node, const struct td_tenant_change *change, struct td_err *err);

/* The same for a new job of a user. mem is its memory limit as typed; empty: none. */
int td_tenant_check_new(const struct td_node *node, uid_t uid, enum td_class class, const char *mem,
	struct td_err *err);

/* Would its class to come fit its user's quota if the user had nothing else? */
bool td_tenant_has_a_chance(const struct td_node *node, const struct td_job *job);

/* A change that was checked has been made: who is protected by it is admitted. */
void td_tenant_changed(struct td_node *node);

/*
 * Judges new jobs and jobs that came to more GPUs, and upgrades those for which there is room.
 * Returns when to be called again, or UINT64_MAX.
 */
uint64_t td_tenant_step(struct td_node *node, uint64_t now_ns);
