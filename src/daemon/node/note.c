/* Makes events, with the names of the processes and jobs that they are about. */
#include <stdio.h>
#include <time.h>

#include "base/time.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/node/gpus.h"

static uint64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * TD_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint32_t first_gpu(const struct td_process *process)
{
	return td_list_empty(&process->clients)
		       ? TD_GPU_ANY
		       : td_container_of(process->clients.next, struct td_client, of_process)->gpu;
}

static void name_process(struct td_event *event, const struct td_process *process)
{
	snprintf(event->job, sizeof(event->job), "%s", process->job->name);
	snprintf(event->name, sizeof(event->name), "%s", process->name);
	event->of_process = true;
	event->pid = (uint32_t)process->pid;
	event->who = process->who;
}

void td_node_event(struct td_node *node, enum td_event_kind kind, const struct td_process *process,
	uint32_t gpu, uint64_t now_ns, uint64_t value_ns, uint64_t value_bytes, const char *detail)
{
	struct td_event event = {.kind = kind,
		.time_ns = now_ns,
		.wall_ns = wall_ns(),
		.value_ns = value_ns,
		.value_bytes = value_bytes};

	if (process)
		name_process(&event, process);
	if (gpu == TD_GPU_ANY && process)
		gpu = first_gpu(process);
	event.gpu = td_gpu_number(node, gpu);
	snprintf(event.detail, sizeof(event.detail), "%s", detail ? detail : "");
	node->io.event(node->io.arg, td_events_add(&node->events, &event));
}

void td_node_job_event(struct td_node *node, enum td_event_kind kind, struct td_identity who,
	const char *job, const char *name, uint64_t now_ns, const char *detail)
{
	struct td_event event = {.kind = kind,
		.time_ns = now_ns,
		.wall_ns = wall_ns(),
		.of_process = true,
		.who = who,
		.gpu = TD_GPU_ANY};

	snprintf(event.job, sizeof(event.job), "%.63s", job);
	snprintf(event.name, sizeof(event.name), "%.63s", name);
	snprintf(event.detail, sizeof(event.detail), "%.255s", detail);
	node->io.event(node->io.arg, td_events_add(&node->events, &event));
}

void td_node_gpu_event(struct td_node *node, enum td_event_kind kind,
	const struct td_process *process, uint32_t number, uint64_t now_ns, const char *detail)
{
	struct td_event event = {
		.kind = kind, .time_ns = now_ns, .wall_ns = wall_ns(), .gpu = number};

	if (process)
		name_process(&event, process);
	snprintf(event.detail, sizeof(event.detail), "%s", detail);
	node->io.event(node->io.arg, td_events_add(&node->events, &event));
}
