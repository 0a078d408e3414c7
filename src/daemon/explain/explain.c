/* This file implements explain.h. */
#include "daemon/explain/explain.h"

#include <stdio.h>

#include "daemon/explain/causes.h"
#include "daemon/explain/facts.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "proto/proto.h"

struct rows {
	void (*each)(void *arg, const struct td_msg *row);
	void *arg;
	uint32_t count;
};

static void send_row(
	struct rows *rows, const struct td_facts *facts, const struct td_cause *cause, uint32_t gpu)
{
	const struct td_process *process = facts->process;
	struct td_msg msg = {.type = TD_MSG_TYPE_cause};
	struct td_msg_cause *row = &msg.cause;

	snprintf(row->job, sizeof(row->job), "%s", process->job->name);
	snprintf(row->name, sizeof(row->name), "%s", process->name);
	snprintf(row->state, sizeof(row->state), "%s", td_process_state_now(facts->node, process));
	snprintf(row->id, sizeof(row->id), "%s", cause->id);
	row->process = process->id;
	row->pid = (uint32_t)process->pid;
	row->gpu = gpu;
	td_facts_list(facts, cause->text, row->figures, sizeof(row->figures));
	td_facts_fill(facts, cause->text, row->text, sizeof(row->text));
	td_facts_fill(facts, cause->todo, row->todo, sizeof(row->todo));
	rows->each(rows->arg, &msg);
	rows->count++;
}

static void send_state(struct rows *rows, const struct td_facts *facts)
{
	for (const struct td_cause *cause = td_causes; cause->id; cause++)
		if (cause->group == TD_CAUSES_STATE && cause->applies(facts)) {
			send_row(rows, facts, cause, TD_GPU_ANY);
			return;
		}
}

static void send_group(
	struct rows *rows, const struct td_facts *facts, enum td_cause_group group, uint32_t gpu)
{
	for (const struct td_cause *cause = td_causes; cause->id; cause++)
		if (cause->group == group && cause->applies(facts))
			send_row(rows, facts, cause, gpu);
}

uint32_t td_explain(const struct td_node *node, const struct td_process *process,
	struct td_identity reader, uint64_t now_ns,
	void (*each)(void *arg, const struct td_msg *row), void *arg)
{
	struct rows rows = {each, arg, 0};
	struct td_facts facts;
	struct td_list *it;

	td_facts_of_process(&facts, node, process, reader, now_ns);
	send_state(&rows, &facts);
	send_group(&rows, &facts, TD_CAUSES_PROCESS, TD_GPU_ANY);
	td_list_for_each (it, &process->clients) {
		td_facts_add_client(&facts, td_container_of(it, struct td_client, of_process));
		send_group(&rows, &facts, TD_CAUSES_GPU, (uint32_t)facts.gpu);
	}
	return rows.count;
}
