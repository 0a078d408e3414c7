/*
 * What a user's protected jobs may hold of this node: AntMan's tenants, their quotas and the upgrade of a job (3.2, 3.3), on one node.
 *
 * A protected job (online or guaranteed) is charged, for each GPU that it was given or uses, and for one before that, the part of it that its
 * memory limit is, or what it has there if that is more: all of it where it has no limit. Its user's charges sum up to at most quota.gpus, and quota.jobs counts such jobs. Nothing is set
 * aside by that: what a protected job does not use others use meanwhile, and the policies take it back from them when it asks.
 *
 *   admitted at arrival, in that order, or when its class is changed by hand
 *   what comes although there is no room for it runs as besteffort, to be upgraded
 *   to be upgraded: whole jobs, once there is room, the first come first; nobody of the same user overtakes, newcomers neither
 *   but who asks for more than the quota is waits by itself, and keeps nobody behind it
 *   the order of arrival, and who was admitted, outlive the daemon
 *   a quota that is lowered takes nothing from who was admitted
 *
 * quota.gpus=auto, the default, is an equal part of the node's GPUs for each user who is there, or was within the last minute; one alone, root and the daemon's owner
 * are not bounded. When another user comes the part is smaller, and who is beyond it by then waits for an upgrade, the last first: otherwise who came first would keep all of it.
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

/* Is there room for it with all users that it is about? 0, or -EDQUOT with a sentence. */
int td_tenant_check(
	const struct td_node *node, const struct td_tenant_change *change, struct td_err *err);

/* The same for a new job of a user; mem: its memory limit as typed, empty: none. */
int td_tenant_check_new(const struct td_node *node, uid_t uid, enum td_class class, const char *mem,
	struct td_err *err);

/* Would its class to come fit its user's quota if the user had nothing else? */
bool td_tenant_has_a_chance(const struct td_node *node, const struct td_job *job);

/* A change that was checked has been made: who is protected by it is admitted. */
void td_tenant_changed(struct td_node *node);

/* Judges who is new or has come to more GPUs, and upgrades whom there is room for. Returns when to be called again, or UINT64_MAX. */
uint64_t td_tenant_step(struct td_node *node, uint64_t now_ns);
