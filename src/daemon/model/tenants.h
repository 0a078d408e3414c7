/*
 * The users who have jobs on this node. A user is still counted for TD_TENANT_STAYS_NS after his
 * last job, so that short programs do not change the others' parts each time (tenant.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "daemon/record/identity.h"

#define TD_TENANT_STAYS_NS (60 * 1000000000ull)

struct td_job;
struct td_node;

/* The GPUs (in millionths) and the number of protected jobs, added up. */
struct td_usage {
	uint64_t gpus_ppm;
	uint32_t jobs;
};

struct td_tenant {
	struct td_list of_node;
	struct td_identity who;
	uint32_t jobs; /* the number of his jobs on the node */
	/* Since when the user has no client; 0: he has one, or this was not noticed yet. */
	uint64_t left_ns;
	struct td_usage used; /* the sum over his admitted jobs */
	/* Used by tenant.c within one pass over the jobs. */
	struct td_usage after;
	bool is_meant, waits;
};

/* Counts one more job of that user. Returns NULL if memory is short. */
struct td_tenant *td_tenants_join(struct td_node *node, struct td_identity who);
/* Returns the user, or NULL if he has no job here and had none lately. */
struct td_tenant *td_tenants_find(const struct td_node *node, struct td_identity who);
void td_tenants_leave(struct td_tenant *user);

/* Charges that much to the job from now on; 0: it is not admitted. */
void td_tenant_charge(struct td_job *job, uint64_t ppm);

/*
 * Forgets users who have been away for long enough. Returns when to call it again, or UINT64_MAX.
 */
uint64_t td_tenants_step(struct td_node *node, uint64_t now_ns);
void td_tenants_deinit(struct td_node *node);
