/*
 * Traces: jobs, requests and the nodes of a cluster, from CSV files.
 *
 * Columns are known by their names, so that one reader takes every file. Other names of a column
 * are in parentheses.
 *
 *   jobs      submit_time_s, num_gpus, and duration_s (without one the jobs have no duration).
 *             Optional: job_id, tenant (virtual_cluster), class (qos), model (application),
 *             memory_gib, gpu_milli, cpu_milli, memory_mib, batch_size, trace (of several in one
 *             file).
 *             class: online, guaranteed, besteffort; or Alibaba's LS, Guaranteed, Burstable, BE.
 *             Empty: besteffort
 *             gpu_milli: thousandths of one GPU, where num_gpus is 1
 *   requests  arrival_s, or inter_arrival_s. Optional: service (trace), input_tokens
 *             (context_tokens), output_tokens (generated_tokens)
 *   nodes     node, num_gpus. Optional: gpu_model, gpu_memory_gib, cpu_milli, memory_mib
 *
 * Rows of jobs without a GPU are counted and left out. Rows out of order are sorted by time; rows
 * of the same time keep their order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/policy.h"

struct td_err;
struct td_csv;

#define TD_TRACE_NONE UINT32_MAX

/* Columns that nothing here reads, "a, b"; "" when there are none. As many as have room. */
#define TD_TRACE_UNKNOWN_MAX 128

/* Texts, each once. */
struct td_names {
	char **text;
	uint32_t count, room;
	uint32_t *slots, slot_count; /* hash */
};

struct td_trace_job {
	double submit_s, duration_s; /* duration below 0: not in the source */
	uint32_t gpus;
	uint32_t gpu_milli;         /* of one GPU; 1000: whole ones */
	uint32_t id, tenant, model; /* names; TD_TRACE_NONE */
	enum td_class class;
	uint64_t memory_bytes; /* of one GPU's; 0 unknown */
	uint32_t cpu_milli, memory_mib;
	uint32_t batch;
	uint32_t line; /* of its file */
};

struct td_trace {
	struct td_trace_job *jobs;
	uint32_t count, room;
	struct td_names names;
	uint32_t skipped;     /* bad lines */
	uint32_t gpuless;     /* jobs without a GPU, left out */
	uint32_t undated;     /* jobs without a duration */
	bool has_durations;   /* there is the column */
	struct td_names sets; /* what the column trace names: several traces in one file */
	char unknown[TD_TRACE_UNKNOWN_MAX];
};

struct td_request {
	double arrival_s;
	uint32_t service; /* name */
	uint32_t input_tokens, output_tokens;
};

struct td_requests {
	struct td_request *requests;
	uint32_t count, room;
	struct td_names names;
	uint32_t skipped;
};

struct td_node {
	uint32_t name, model; /* names */
	uint32_t gpus, cpu_milli, memory_mib;
	uint64_t gpu_memory_bytes; /* 0 unknown */
	uint32_t line;             /* of its file */
};

struct td_nodes {
	struct td_node *nodes;
	uint32_t count, room;
	uint32_t gpus; /* of all */
	struct td_names names;
	uint32_t skipped;
	char unknown[TD_TRACE_UNKNOWN_MAX];
};

/*
 * With skip_bad, bad lines are counted and left out; otherwise the first one ends the reading with
 * its file and line in err. On failure nothing needs to be released. The *_take functions read an
 * open file, which they do not close; fuzzers call them.
 */
int td_trace_read(const char *path, bool skip_bad, struct td_trace *ret, struct td_err *err);
int td_trace_take(struct td_csv *csv, bool skip_bad, struct td_trace *ret, struct td_err *err);
void td_trace_deinit(struct td_trace *trace);

int td_requests_read(const char *path, bool skip_bad, struct td_requests *ret, struct td_err *err);
int td_requests_take(
	struct td_csv *csv, bool skip_bad, struct td_requests *ret, struct td_err *err);
void td_requests_deinit(struct td_requests *requests);

int td_nodes_read(const char *path, bool skip_bad, struct td_nodes *ret, struct td_err *err);
int td_nodes_take(struct td_csv *csv, bool skip_bad, struct td_nodes *ret, struct td_err *err);
void td_nodes_deinit(struct td_nodes *nodes);

/* The number of a text, new or not; TD_TRACE_NONE for "", or when memory is out. */
uint32_t td_names_add(struct td_names *names, const char *text);
/* "" for TD_TRACE_NONE. */
const char *td_names_text(const struct td_names *names, uint32_t name);
void td_names_deinit(struct td_names *names);
