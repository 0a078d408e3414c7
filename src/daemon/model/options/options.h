/* The daemon's options: one table (options.def), set at start, by a file, or live. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"
#include "policy/policy.h"

struct td_err;

/* The value of quota_gpus_ppm for quota.gpus=auto. */
#define TD_QUOTA_AUTO (UINT64_MAX - 1)

enum td_mps_option { TD_MPS_OPTION_OFF, TD_MPS_OPTION_AUTO, TD_MPS_OPTION_ON, TD_MPS_OPTION_N };
/* The option `meter`. AUTO: the meter is on if the policy in force needs it. */
enum td_meter_option { TD_METER_AUTO, TD_METER_ON, TD_METER_OFF };

struct td_options {
	/*
	 * TD_HAS bits of policy.h: the abilities of the node that a policy may need (abilities.h);
	 * 0: not known yet. A policy that needs more is refused. If the abilities come later, the
	 * policy decides from then on, and the default policy until then.
	 */
	uint32_t has;
	const struct td_policy *policy;
	bool enabled, moves;
	enum td_meter_option meter;
	uint64_t evict_deadline_ns;
	uint64_t quantum_ns, quantum_min_ns, quantum_long_ns, drain_deadline_ns, sample_ns,
		memory_patience_ns, window_ns;
	/* quota_jobs: UINT32_MAX means any number */
	uint32_t swap_share_ppm, swap_share_long_ppm, quota_jobs;
	uint64_t quota_gpus_ppm; /* UINT64_MAX: any number; TD_QUOTA_AUTO: see there */
	uint32_t contexts;       /* the number of contexts per GPU that room is kept for */
	enum td_mps_option mps;
	uint64_t mps_patience_ns, mps_window_ns;
	uint32_t pressure_ppm;
	struct td_muxflow_options muxflow;
	char locks[108];       /* an absolute path, or "auto" */
	char log[108];         /* an absolute path, or "auto" */
	char profiles[108];    /* an absolute path, or "none" */
	bool learn;            /* services that run are learnt from */
	char cpus[108];        /* a list such as 0-3,8, or "none" */
	char cgroup_root[108]; /* an absolute path, or "auto" */
	/* The text that the user typed; a percentage refers to the size of each GPU. */
	char capacity[TD_LIMIT_TEXT];
	char host_limit
		/* as the user typed it, or "none"; a percentage refers to the machine's memory */
		[TD_LIMIT_TEXT];
};

void td_options_init(struct td_options *options);

/*
 * Sets an option. Returns 0, or -EINVAL or -ERANGE with a sentence that quotes the value; then
 * nothing changes.
 */
int td_options_set(
	struct td_options *options, const char *key, const char *value, struct td_err *err);

/* Reads a file of "key = value" lines, with # comments. The error names file and line. */
int td_options_load(struct td_options *options, const char *path, struct td_err *err);

/*
 * Writes the i-th option with its present value as text. Returns false beyond the last. All
 * pointers of the row except `value` are static.
 */
struct td_option_row {
	const char *key, *unit, *help;
	char value[128];
};
bool td_options_row(const struct td_options *options, size_t i, struct td_option_row *ret);

/*
 * Returns the most host memory that all processes may pin for swapped bytes; UINT64_MAX: no bound.
 */
uint64_t td_options_host(const struct td_options *options);

/* Returns the capacity in bytes of a GPU of total_bytes. */
uint64_t td_options_capacity(const struct td_options *options, uint64_t total_bytes);
