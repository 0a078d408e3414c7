/* See supervisors.h. */
#include "daemon/model/supervisors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "daemon/model/job.h"
#include "daemon/model/node.h"
#include "proto/orders.h"

static struct td_supervisor *supervisor_at(struct td_list *it)
{
	return td_container_of(it, struct td_supervisor, of_node);
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

int td_supervisors_say(struct td_node *node, struct td_supervisor **supervisor, void *peer,
	pid_t pid, uid_t uid, const struct td_msg_supervise *msg, struct td_err *err)
{
	struct td_supervisor *s = *supervisor;
	int r = check(s, msg, err);

	if (r)
		return r;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->peer = peer;
		s->pid = pid;
		s->uid = uid;
		strcpy(s->job, msg->job);
		(void)td_printable(s->job);
		td_list_append(&node->supervisors, &s->of_node);
		*supervisor = s;
	}
	s->child = msg->pid;
	s->epoch = msg->epoch;
	s->can = msg->can & TD_SUPERVISOR_ALL;
	return 0;
}

void td_supervisors_gone(struct td_supervisor *supervisor)
{
	if (!supervisor)
		return;
	td_list_remove(&supervisor->of_node);
	free(supervisor);
}

struct td_supervisor *td_supervisors_find(const struct td_node *node, const struct td_job *job)
{
	struct td_supervisor *found = NULL;
	struct td_list *it;

	td_list_for_each (it, &node->supervisors) {
		struct td_supervisor *s = supervisor_at(it);

		if (s->uid == job->uid && *job->name && !strcmp(s->job, job->name))
			found = s;
	}
	return found;
}

void td_supervisors_deinit(struct td_node *node)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &node->supervisors)
		td_supervisors_gone(supervisor_at(it));
}
