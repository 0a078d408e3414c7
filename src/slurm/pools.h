/*
 * The nodes where Slurm would let a job run: by its partitions, its features and the nodes that it
 * excludes. Jobs with the same wishes share a pool of the brain (td_brain_request.pool).
 *
 * Features are names joined by & or by |. slurmctld has refused others at submission.
 */
#pragma once

#include <slurm/slurm.h>
#include <stdbool.h>
#include <stdint.h>

#include "cluster/brain/brain.h"

#define TD_SLURM_NOWHERE (TD_POOLS - 1) /* for wishes beyond those that can be told apart */

struct td_slurm_pools {
	struct td_slurm_pool {
		char *wishes; /* NULL: free */
		const slurm_job_info_t
			*job; /* one that has them; valid until jobs are loaded again */
		bool is_everywhere;
	} pool[TD_POOLS];
	partition_info_msg_t *partitions;
};

void td_slurm_pools_deinit(struct td_slurm_pools *pools);
/* Reads the partitions. Returns 0, or -1 with Slurm's errno. */
int td_slurm_pools_load(struct td_slurm_pools *pools);
/* Forgets the wishes that no job has, and finds out where the others may run. */
void td_slurm_pools_begin(struct td_slurm_pools *pools);
void td_slurm_pools_note(struct td_slurm_pools *pools, const slurm_job_info_t *job);
void td_slurm_pools_end(struct td_slurm_pools *pools, const node_info_msg_t *nodes);
/* Returns the pool of a job that was noted. */
uint32_t td_slurm_pool_of(const struct td_slurm_pools *pools, const slurm_job_info_t *job);
/* Returns the pools that the node with this index is not in, as bits. */
uint32_t td_slurm_pools_without(
	const struct td_slurm_pools *pools, const node_info_msg_t *nodes, uint32_t node);
