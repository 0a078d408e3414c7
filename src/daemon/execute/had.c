/* This file implements had.h. */
#include "daemon/execute/had.h"

#include <assert.h>

#include "daemon/model/job.h"
#include "daemon/model/node.h"

#ifdef NDEBUG
void td_had_check(const struct td_node *node)
{
	(void)node;
}
#else
static void check_job(const struct td_had *had, const struct td_job *job)
{
	assert(had->acts || !job->leaves);
	assert(had->exchanges || !job->exchanges);
	assert(had->kept_out || !job->kept_out_since_ns);
}

static void check_process(const struct td_had *had, const struct td_process *process)
{
	assert(had->services || !process->service);
	assert(had->moments || !(process->hold || process->alone || process->shares_moments));
	assert(had->host_limit || process->host.holding.told == TD_UNBOUNDED);
}

void td_had_check(const struct td_node *node)
{
	struct td_list *it;

	td_list_for_each (it, &node->jobs)
		check_job(&node->had, td_container_of(it, struct td_job, of_node));
	td_list_for_each (it, &node->processes)
		check_process(&node->had, td_process_at(it));
	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		assert(node->had.imports || !(client->imported_bytes || client->unseen_bytes));
	}
}
#endif
