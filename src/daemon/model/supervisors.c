/* This file implements supervisors.h. */
#include "daemon/model/supervisors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "daemon/model/services/service.h"
#include "proto/orders.h"

static struct td_supervisor *supervisor_at(struct td_list *it)
{
	return td_container_of(it, struct td_supervisor, of_node);
}

static uint32_t restarts(const struct td_supervisor *supervisor)
{
	return supervisor->epoch ? supervisor->epoch - 1 : 0;
}

/* The services of instance `now` go on with the figures of those of instance `before`. */
static void hand_figures_over(struct td_job *job, uint32_t before, uint32_t now)
{
	struct td_list *i, *j;

	td_list_for_each (i, &job->members) {
		struct td_process *to = td_container_of(i, struct td_process, of_job);

		if (!to->service || to->instance != now)
			continue;
		td_list_for_each (j, &job->members) {
			struct td_process *from = td_container_of(j, struct td_process, of_job);

			if (from->instance == before)
				td_service_follow(to->service, from->service);
		}
	}
}

void td_supervisors_judge(const struct td_node *node, struct td_job *job)
{
	struct td_supervisor *s = td_supervisors_find(node, job);
	uint32_t instance = s ? s->instance : 0;

	if (job->instance && instance && job->instance != instance)
		hand_figures_over(job, job->instance, instance);
	job->instance = instance;
	job->supervised = s ? s->can : 0;
	job->restarts = s ? restarts(s) : 0;
	if (s && !*s->name && !td_list_empty(&job->members))
		strcpy(s->name,
			td_container_of(job->members.next, struct td_process, of_job)->name);
}

/* Calls td_supervisors_judge() for the job that the supervisor has or had. There is at most one. */
static void judge_jobs(const struct td_node *node, const struct td_supervisor *supervisor)
{
	struct td_list *it;

	td_list_for_each (it, &node->jobs) {
		struct td_job *job = td_container_of(it, struct td_job, of_node);

		if (td_identity_is_same(job->who, supervisor->who) &&
			!strcmp(job->name, supervisor->job))
			td_supervisors_judge(node, job);
	}
}

static int check(
	const struct td_supervisor *known, const struct td_msg_supervise *msg, struct td_err *err)
{
	if (!*msg->job || strlen(msg->job) >= sizeof(known->job))
		return td_err_set(err, -EINVAL,
			"\"%.64s\" is not the name of a job: expected 1 to %zu characters",
			msg->job, sizeof(known->job) - 1);
	if (known && strcmp(known->job, msg->job))
		return td_err_set(err, -EINVAL,
			"a supervisor has one job: expected \"%.64s\", not \"%.64s\"", known->job,
			msg->job);
	return 0;
}

static void note_restart(struct td_node *node, const struct td_supervisor *s, uint64_t now_ns)
{
	char detail[64];

	snprintf(detail, sizeof(detail), "%u restart%s so far", restarts(s),
		restarts(s) == 1 ? "" : "s");
	td_node_job_event(node, TD_EVENT_RESTARTED, s->who, s->job, *s->name ? s->name : s->job,
		now_ns, detail);
}

int td_supervisors_say(struct td_node *node, struct td_supervisor **supervisor, void *peer,
	pid_t pid, struct td_identity who, const struct td_msg_supervise *msg, uint64_t now_ns,
	struct td_err *err)
{
	struct td_supervisor *s = *supervisor;
	bool starts_again = s && msg->epoch > s->epoch && s->epoch;
	int r = check(s, msg, err);

	if (r)
		return r;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->peer = peer;
		s->pid = pid;
		s->who = who;
		strcpy(s->job, msg->job);
		(void)td_printable(s->job);
		td_list_append(&node->supervisors, &s->of_node);
		*supervisor = s;
	}
	s->child = msg->pid;
	s->epoch = msg->epoch;
	s->can = msg->can & TD_SUPERVISOR_ALL;
	s->instance = msg->instance;
	judge_jobs(node, s);
	if (starts_again)
		note_restart(node, s, now_ns);
	return 0;
}

static bool is_of(const struct td_supervisor *s, struct td_identity who, const char *job)
{
	return td_identity_is_same(s->who, who) && *job && !strcmp(s->job, job);
}

static void hear_figures(struct td_node *node, struct td_process *process,
	const struct td_msg_figures *msg, uint64_t now_ns)
{
	struct td_list *it;

	if (!td_service_hear(&process->service, msg, now_ns))
		return;
	node->had.services = true;
	process->service->profile = td_profiles_take(&node->profiles, process->service->name);
	/* The service's name may be that of a program whose speeds are known. */
	td_list_for_each (it, &process->clients)
		td_container_of(it, struct td_client, of_process)->alone_of = 0;
}

void td_supervisors_figures(struct td_node *node, const struct td_supervisor *supervisor,
	const struct td_msg_figures *msg, uint64_t now_ns)
{
	struct td_list *it;

	node->event_ns = now_ns;
	td_list_for_each (it, &node->processes) {
		struct td_process *process = td_process_at(it);

		if (is_of(supervisor, process->who, process->job->name) &&
			!td_list_empty(&process->clients) &&
			process->instance == supervisor->instance)
			hear_figures(node, process, msg, now_ns);
	}
}

void td_supervisors_gone(struct td_node *node, struct td_supervisor *supervisor)
{
	if (!supervisor)
		return;
	td_list_remove(&supervisor->of_node);
	judge_jobs(node, supervisor);
	free(supervisor);
}

struct td_supervisor *td_supervisors_named(
	const struct td_node *node, struct td_identity who, const char *job)
{
	struct td_supervisor *found = NULL;
	struct td_list *it;

	td_list_for_each (it, &node->supervisors)
		if (is_of(supervisor_at(it), who, job))
			found = supervisor_at(it);
	return found;
}

struct td_supervisor *td_supervisors_at(
	const struct td_node *node, struct td_identity who, const char *job, pid_t pid)
{
	struct td_supervisor *found = NULL;
	struct td_list *it;

	td_list_for_each (it, &node->supervisors)
		if (is_of(supervisor_at(it), who, job) && supervisor_at(it)->pid == pid)
			found = supervisor_at(it);
	return found;
}

struct td_supervisor *td_supervisors_find(const struct td_node *node, const struct td_job *job)
{
	return td_supervisors_named(node, job->who, job->name);
}

void td_supervisors_deinit(struct td_node *node)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &node->supervisors)
		td_supervisors_gone(node, supervisor_at(it));
}
