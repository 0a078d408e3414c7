/*
 * A job: the processes of one `tandem run` of one user. A process without a job's name is a job of
 * its own. Settings made by hand also apply to its future processes. They are sent to its present
 * processes, which report them to the next daemon.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/parse.h"
#include "daemon/record/identity.h"
#include "daemon/model/sharing/account.h"
#include "daemon/model/supervisors.h"
#include "proto/words.h"

struct td_err;
struct td_msg_hello;
struct td_node;
struct td_process;
struct td_tenant;

/*
 * The settings of a job. Sizes are texts as the user typed them ("8Gi", "40%"). A percentage refers
 * to each GPU's own capacity. An empty text means no limit.
 */
struct td_job_settings {
	enum td_class class;
	uint32_t weight;
	bool paused;
	char mem[TD_LIMIT_TEXT], mem_soft[TD_LIMIT_TEXT];
	/*
	 * For a besteffort job: 1 + the class that it gets once its user's quota has room. 0: no
	 * upgrade.
	 */
	uint8_t upgrade;
	uint32_t duty_ppm; /* the largest part of a GPU's time; 0: no bound */
	/* How much longer than alone its steps may take. 0: the policy decides. */
	uint32_t slack_ppm;
	uint32_t batch; /* the batch size of a service; 0: the policy decides */
};

/* The sums over a job's clients on one GPU; quota.c gathers them at each step. */
struct td_job_on {
	/*
	 * The limit is the job's less the memory of contexts. Memory that the driver pages
	 * counts.
	 */
	struct td_account account;
	uint64_t demanded_bytes, paged_bytes, overhead_bytes, unseen_bytes;
	uint64_t needed_bytes; /* asked for, and not in demanded_bytes */
	/* the part of demanded_bytes that cannot leave the device */
	uint64_t stays_bytes;
	/* the part of stays_bytes that only a lack of host memory keeps there */
	uint64_t stranded_bytes;
	/* The part of the soft limit that soft.c has not yet divided among the clients. */
	uint64_t soft_left_bytes;
	uint32_t clients, needs;
	/*
	 * The job was let in, has memory on the host already, or has waited long enough. So
	 * memory that does not fit on the device may lie on the host.
	 */
	bool is_in;
};

struct td_job {
	struct td_list of_node, members; /* members: its processes */
	struct td_tenant *tenant;
	uint32_t group, processes;
	uint32_t supervised; /* TD_SUPERVISOR_*: what its supervisor can do (supervisors.c) */
	uint32_t restarts;   /* how often the job's supervisor has started the command again */
	/*
	 * the instance that answers requests, as the job's supervisor says; 0: the job has no
	 * instances
	 */
	uint32_t instance;
	struct td_identity who;
	char name[64]; /* the job's id; empty: a job of a single process */
	/*
	 * When the job first came to this daemon or to an earlier one. Jobs that wait for an
	 * upgrade keep their order across daemons.
	 */
	uint64_t arrived_ns;
	bool came_back; /* an earlier daemon had this job and decided on its class */
	struct td_job_settings settings;
	uint32_t placed_count;
	/*
	 * The exchange of jobs between GPUs (node/pairing.h) that brought the job to its GPU, if
	 * one did, and when.
	 */
	struct td_bound exchanged;
	uint64_t exchanged_ns;
	bool changed;   /* the settings changed, and the job's processes have not been told yet */
	bool held_back; /* paused by the policy: no plan opens its gate */
	bool leaves; /* the job was ordered to end, and its gate is closed for that (endings.c) */
	/*
	 * The parts of GPUs that are charged to its user's quota. 0: the job is not protected, or
	 * not admitted yet (tenant.h).
	 */
	uint64_t charged_ppm;
	/*
	 * asks: the job waits to be let in, or for memory. is_in: it is let in. quota.c gathers
	 * both at each step.
	 */
	bool asks, is_in;
	uint32_t gpus;  /* how many GPUs it has clients on; quota.c counts them, too */
	bool exchanges; /* soft.c drains the job to move memory, and opens it again */
	/*
	 * Since when others' immovable memory keeps the job out; 0: it does not. It stays set when
	 * the job is refused for that. For soft.c.
	 */
	uint64_t kept_out_since_ns;
	/* The last fields are long: a step finds the others close together. */
	struct td_job_on on[TD_GPU_MAX];
	/*
	 * The GPUs that all its processes see, in this order (place.h). A count of 0 means any GPU,
	 * as far as is known.
	 */
	uint8_t placed[TD_GPU_MAX][16];
};

/*
 * Returns the job of a new process, and makes it if there is none. node->jobs is in order of
 * arrival. Returns NULL if memory is short.
 */
struct td_job *td_job_join(struct td_node *node, struct td_identity who,
	const struct td_msg_hello *hello, uint64_t now_ns);
void td_job_leave(struct td_job *job);

const char *td_class_name(enum td_class class);

/* Returns whether the text is the name of the job or of one of its processes. */
bool td_job_is_named(const struct td_job *job, const char *text);

/*
 * Sets the error for the name of a job that the user may not see, whether it exists or not. Returns
 * -ENOENT.
 */
int td_job_unknown(const char *name, struct td_err *err);

/* Returns whether the job is besteffort only until its user's quota has room. */
bool td_job_is_to_be_upgraded(const struct td_job *job);

/*
 * Sends the settings to the job's processes, which give them to their next daemon, and shows them
 * the job's limits.
 */
void td_job_tell(struct td_node *node, const struct td_job *job);

/*
 * Writes the i-th setting as text. Returns false beyond the last. All pointers of the row except
 * `value` are static.
 */
struct td_option_row;
bool td_job_row(const struct td_job_settings *settings, size_t i, struct td_option_row *ret);

/* Checks one setting and changes it. Returns 0, or -EINVAL or -ERANGE with a sentence in err. */
int td_job_set(
	struct td_job_settings *settings, const char *key, const char *value, struct td_err *err);
