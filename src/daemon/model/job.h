/*
 * A job: the processes of one `tandem run` of one user (a process without a job's name is a job of
 * its own). Settings made by hand hold for its future processes. They are also sent to its present
 * processes, which bring them back after the daemon's end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/parse.h"
#include "daemon/model/account.h"
#include "proto/words.h"

struct td_err;
struct td_msg_hello;
struct td_node;
struct td_process;
struct td_tenant;

/*
 * The settings of a job. Sizes are as typed ("8Gi", "40%"): a share is of each GPU's own capacity;
 * empty: no limit.
 */
struct td_job_settings {
	enum td_class class;
	uint32_t weight;
	bool paused;
	char mem[TD_LIMIT_TEXT], mem_soft[TD_LIMIT_TEXT];
	/*
	 * For a besteffort job: 1 + the class that it gets once its user's quota has room; 0: none.
	 */
	uint8_t upgrade;
	uint32_t duty_ppm; /* the most of a GPU's time; 0: no bound */
	/* How much longer its steps may take than alone; 0: the policy decides. */
	uint32_t slack_ppm;
	uint32_t batch; /* that a service is to run with; 0: the policy decides */
};

struct td_job {
	struct td_list of_node, members; /* members: its processes */
	struct td_tenant *tenant;
	uint32_t group, processes;
	uint32_t supervised; /* TD_SUPERVISOR_*: what its supervisor can do; supervisors.c */
	uint32_t restarts;   /* how often its supervisor has started its command again */
	uid_t uid;
	char name[64]; /* the job's id; empty: of one process */
	/*
	 * At this daemon or an earlier one: the job's place among those who wait for an upgrade
	 * outlives a daemon.
	 */
	uint64_t arrived_ns;
	bool came_back; /* at one before it: its class was judged there */
	struct td_job_settings settings;
	/*
	 * The GPUs that all its processes see, in this order (place.h). A count of 0: any, as far
	 * as is known.
	 */
	uint8_t placed[TD_GPU_MAX][16];
	uint32_t placed_count;
	bool changed;   /* its processes are to be told of it */
	bool held_back; /* paused by the policy: no plan opens it */
	bool leaves;    /* it is to end, and its gate is closed for that: endings.c */
	/*
	 * Parts of GPUs charged to its user's quota; 0: not protected, or not admitted yet
	 * (tenant.h).
	 */
	uint64_t charged_ppm;
	/* quota.c: of its clients on each GPU, gathered at each step */
	struct {
		/* The limit less the memory of contexts, with memory that the driver pages. */
		struct td_account account;
		uint64_t demanded_bytes, paged_bytes, overhead_bytes, unseen_bytes;
		uint64_t needed_bytes;    /* asked for, beside what is demanded */
		uint64_t stays_bytes;     /* of what is demanded: it cannot leave the device */
		uint64_t stranded_bytes;  /* of that: only for want of a place on the host */
		uint64_t soft_left_bytes; /* soft.c */
		uint32_t clients, needs;
		/*
		 * The job was let in, is spread already, or has waited long enough: memory beyond
		 * the device may lie on the host.
		 */
		bool is_in;
	} on[TD_GPU_MAX];
	/*
	 * quota.c gathers these at each step: it waits to be let in, or for memory; it is let in.
	 */
	bool asks, is_in;
	bool exchanges; /* soft.c: drained to be opened again */
	/*
	 * soft.c: since when others' immovable memory keeps the job out; it stays set when the job
	 * is refused for that; 0: never
	 */
	uint64_t kept_out_since_ns;
};

/*
 * Returns the job of a new process, making it if there is none. node->jobs is in order of arrival.
 * NULL: memory is short.
 */
struct td_job *td_job_join(
	struct td_node *node, uid_t uid, const struct td_msg_hello *hello, uint64_t now_ns);
void td_job_leave(struct td_job *job);

const char *td_class_name(enum td_class class);

/* Is the text the name of the job, or of one of its processes? */
bool td_job_is_named(const struct td_job *job, const char *text);

/*
 * The error for a name of a job that the user may not see, whether it exists or not: -ENOENT with a
 * sentence.
 */
int td_job_unknown(const char *name, struct td_err *err);

/* Besteffort for now only. */
bool td_job_is_to_be_upgraded(const struct td_job *job);

/* Sends its settings to its processes, for their next daemon, and shows them its limits. */
void td_job_tell(struct td_node *node, const struct td_job *job);

/* The i-th setting as text; false beyond the last. Every pointer but value is static. */
struct td_option_row;
bool td_job_row(const struct td_job_settings *settings, size_t i, struct td_option_row *ret);

/* Checks one setting and changes it. 0, or -EINVAL / -ERANGE with a sentence. */
int td_job_set(
	struct td_job_settings *settings, const char *key, const char *value, struct td_err *err);
