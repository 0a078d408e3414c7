/* This file implements pools.h. */
#include "slurm/pools.h"

#include <slurm/slurm_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WISHES_MAX 4096u

void td_slurm_pools_deinit(struct td_slurm_pools *pools)
{
	for (uint32_t k = 0; k < TD_POOLS; k++)
		free(pools->pool[k].wishes);
	slurm_free_partition_info_msg(pools->partitions);
	*pools = (struct td_slurm_pools){0};
}

int td_slurm_pools_load(struct td_slurm_pools *pools)
{
	partition_info_msg_t *now = NULL;
	time_t known = pools->partitions ? pools->partitions->last_update : 0;

	if (slurm_load_partitions(known, &now, SHOW_ALL))
		return slurm_get_errno() == SLURM_NO_CHANGE_IN_DATA ? 0 : -1;
	slurm_free_partition_info_msg(pools->partitions);
	pools->partitions = now;
	return 0;
}

static const char *text_of(const char *text)
{
	return text ? text : "";
}

/* Writes the wishes of a job as one text. Returns false if it is too long. */
static bool write_wishes(const slurm_job_info_t *job, char *ret)
{
	return snprintf(ret, WISHES_MAX, "%s %s %s", text_of(job->partition),
		       text_of(job->features), text_of(job->exc_nodes)) < (int)WISHES_MAX;
}

static uint32_t find(const struct td_slurm_pools *pools, const char *wishes)
{
	uint32_t k = TD_ANYWHERE + 1;

	while (k < TD_SLURM_NOWHERE &&
		!(pools->pool[k].wishes && !strcmp(pools->pool[k].wishes, wishes)))
		k++;
	return k;
}

void td_slurm_pools_begin(struct td_slurm_pools *pools)
{
	for (uint32_t k = 0; k < TD_POOLS; k++)
		pools->pool[k].job = NULL;
}

void td_slurm_pools_note(struct td_slurm_pools *pools, const slurm_job_info_t *job)
{
	char wishes[WISHES_MAX];
	uint32_t k;

	if (!write_wishes(job, wishes))
		return;
	k = find(pools, wishes);
	if (k == TD_SLURM_NOWHERE) {
		k = TD_ANYWHERE + 1;
		while (k < TD_SLURM_NOWHERE && pools->pool[k].wishes)
			k++;
		if (k == TD_SLURM_NOWHERE)
			return;
		pools->pool[k].wishes = strdup(wishes);
	}
	pools->pool[k].job = job;
}

/* Whether Slurm's list of ranges of indices, which ends with -1, has this one. */
static bool has(const int32_t *ranges, uint32_t node)
{
	for (; ranges && ranges[0] >= 0; ranges += 2)
		if (node >= (uint32_t)ranges[0] && node <= (uint32_t)ranges[1])
			return true;
	return false;
}

/* Whether the word of this length is one of a list with marks of `ends` between. */
static bool is_among(const char *list, const char *ends, const char *word, size_t len)
{
	while (*list) {
		size_t n = strcspn(list, ends);

		if (n == len && !strncmp(list, word, n))
			return true;
		list += n;
		list += *list != 0;
	}
	return false;
}

static bool has_features(const node_info_t *node, const char *wanted)
{
	const char *own = text_of(node->features_act ? node->features_act : node->features);
	bool any = strchr(wanted, '|') != NULL;

	if (strpbrk(wanted, "[]*()"))
		return false;
	while (*wanted) {
		size_t n = strcspn(wanted, "&|,");
		bool is_there = is_among(own, ",", wanted, n);

		if (n && is_there == any)
			return any;
		wanted += n;
		wanted += *wanted != 0;
	}
	return !any;
}

static bool is_in_partition(
	const struct td_slurm_pools *pools, const slurm_job_info_t *job, uint32_t node)
{
	const partition_info_msg_t *all = pools->partitions;

	for (uint32_t k = 0; all && k < all->record_count; k++) {
		const partition_info_t *one = &all->partition_array[k];

		if (one->name &&
			is_among(text_of(job->partition), ",", one->name, strlen(one->name)) &&
			one->state_up & PARTITION_SCHED && has(one->node_inx, node))
			return true;
	}
	return false;
}

static bool may_run(const struct td_slurm_pools *pools, const slurm_job_info_t *job,
	const node_info_msg_t *nodes, uint32_t node)
{
	return is_in_partition(pools, job, node) && !has(job->exc_node_inx, node) &&
	       has_features(&nodes->node_array[node], text_of(job->features));
}

void td_slurm_pools_end(struct td_slurm_pools *pools, const node_info_msg_t *nodes)
{
	for (uint32_t k = 0; k < TD_POOLS; k++) {
		struct td_slurm_pool *pool = &pools->pool[k];

		if (!pool->job) {
			free(pool->wishes);
			pool->wishes = NULL;
			continue;
		}
		pool->is_everywhere = true;
		for (uint32_t n = 0; nodes && n < nodes->record_count; n++)
			pool->is_everywhere &=
				!nodes->node_array[n].name || may_run(pools, pool->job, nodes, n);
	}
}

uint32_t td_slurm_pool_of(const struct td_slurm_pools *pools, const slurm_job_info_t *job)
{
	char wishes[WISHES_MAX];
	uint32_t k = write_wishes(job, wishes) ? find(pools, wishes) : TD_SLURM_NOWHERE;

	return pools->pool[k].is_everywhere && k != TD_SLURM_NOWHERE ? TD_ANYWHERE : k;
}

uint32_t td_slurm_pools_without(
	const struct td_slurm_pools *pools, const node_info_msg_t *nodes, uint32_t node)
{
	uint32_t without = 1u << TD_SLURM_NOWHERE;

	for (uint32_t k = TD_ANYWHERE + 1; k < TD_SLURM_NOWHERE; k++)
		if (pools->pool[k].job && !may_run(pools, pools->pool[k].job, nodes, node))
			without |= 1u << k;
	return without;
}
