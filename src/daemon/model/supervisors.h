/*
 * The supervisors that are connected: of which job each one is, and what it can do. proto/orders.h
 * says what they and the daemon tell each other. A supervisor speaks for jobs of its own user only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

struct td_err;
struct td_job;
struct td_msg_supervise;
struct td_node;

struct td_supervisor {
	struct td_list of_node;
	void *peer;
	uid_t uid;
	pid_t pid;      /* of the supervisor itself, as the kernel says */
	char job[64];   /* the name of the job: td_job.name */
	char name[64];  /* of its program, as the first process of the job said; for events */
	uint32_t child; /* pid of its command, as it says; 0: none runs now */
	uint32_t epoch; /* how often it has started the command */
	uint32_t can;   /* TD_SUPERVISOR_* */
};

/*
 * SUPERVISE. *supervisor is NULL for the first one of a connection, and set then. One that has
 * started its command again makes an event. 0, -EINVAL with a sentence, or -ENOMEM.
 */
int td_supervisors_say(struct td_node *node, struct td_supervisor **supervisor, void *peer,
	pid_t pid, uid_t uid, const struct td_msg_supervise *msg, uint64_t now_ns,
	struct td_err *err);

/* The supervisor's connection has ended. NULL: it had never sent SUPERVISE. */
void td_supervisors_gone(struct td_node *node, struct td_supervisor *supervisor);

/*
 * Returns the job's supervisor, or NULL. The newest one counts, because the end of an earlier
 * connection may not be noticed yet.
 */
struct td_supervisor *td_supervisors_find(const struct td_node *node, const struct td_job *job);
struct td_supervisor *td_supervisors_named(const struct td_node *node, uid_t uid, const char *job);
/* Returns the job's supervisor if it is that process, or NULL. */
struct td_supervisor *td_supervisors_at(
	const struct td_node *node, uid_t uid, const char *job, pid_t pid);

/*
 * Finds out what the supervisor of a job with a new process can do, and how often it has started
 * its command again: td_job.supervised, restarts.
 */
void td_supervisors_judge(const struct td_node *node, struct td_job *job);

void td_supervisors_deinit(struct td_node *node);
