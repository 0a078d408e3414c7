/*
 * The connected supervisors: which job each one has, and what it can do. proto/orders.h describes
 * the messages between them and the daemon. A supervisor acts for jobs of its own user only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "daemon/record/identity.h"

struct td_err;
struct td_job;
struct td_msg_figures;
struct td_msg_supervise;
struct td_node;

/* The GPU on which a job is to be started next, since the policy exchanges it (node/pairing.h). */
struct td_bound {
	bool is_set;
	uint8_t gpu[16];
	uint32_t from;             /* the number of the GPU that the job leaves */
	uint32_t from_ppm, to_ppm; /* predicted speeds, of that alone; from_ppm 0: it waited */
};

struct td_supervisor {
	struct td_list of_node;
	void *peer;
	struct td_identity who;
	pid_t pid;    /* the supervisor's own pid, as the kernel reports */
	char job[64]; /* the name of its job (td_job.name) */
	/* the name of its program for events, as the job's first process reported */
	char name[64];
	uint32_t child; /* the pid of its command, as it reports; 0: none runs now */
	uint32_t epoch; /* how often the supervisor has started its command */
	uint32_t can;   /* TD_SUPERVISOR_* */
	struct td_bound bound;
	uint32_t instance; /* the TANDEM_INSTANCE of the child; 0: it has no instances */
};

/*
 * Handles SUPERVISE. *supervisor is NULL at the first message of a connection, and is set then. A
 * supervisor that has started its command again makes an event. Returns 0, -EINVAL with a sentence
 * in err, or -ENOMEM.
 */
int td_supervisors_say(struct td_node *node, struct td_supervisor **supervisor, void *peer,
	pid_t pid, struct td_identity who, const struct td_msg_supervise *msg, uint64_t now_ns,
	struct td_err *err);

/*
 * Handles FIGURES: they are those of every process of the job that uses a GPU, since each may have
 * a part in each request.
 */
void td_supervisors_figures(struct td_node *node, const struct td_supervisor *supervisor,
	const struct td_msg_figures *msg, uint64_t now_ns);

/* Forgets a supervisor whose connection has ended. NULL: it had never sent SUPERVISE. */
void td_supervisors_gone(struct td_node *node, struct td_supervisor *supervisor);

/*
 * Returns the job's supervisor, or NULL. The newest one counts, because the end of an earlier
 * connection may not be noticed yet.
 */
struct td_supervisor *td_supervisors_find(const struct td_node *node, const struct td_job *job);
struct td_supervisor *td_supervisors_named(
	const struct td_node *node, struct td_identity who, const char *job);
/* Returns the job's supervisor if it has that pid, else NULL. */
struct td_supervisor *td_supervisors_at(
	const struct td_node *node, struct td_identity who, const char *job, pid_t pid);

/*
 * Updates td_job.supervised, .restarts and .instance: what the job's supervisor can do, how often
 * it has started its command again, and which instance of it answers requests. Called when the job
 * gets a new process. The figures of a service go on where another instance has taken over.
 */
void td_supervisors_judge(const struct td_node *node, struct td_job *job);

void td_supervisors_deinit(struct td_node *node);
