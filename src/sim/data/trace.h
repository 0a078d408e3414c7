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

/*
 * Room for the names of columns that nothing reads: "a, b", or "" if there are none. Names that do
 * not fit are left out.
 */
#define TD_TRACE_UNKNOWN_MAX 128

/* A set of texts. */
struct td_names {
	char **text;
	uint32_t count, room;
	uint32_t *slots, slot_count; /* hash table of the texts */
};

struct td_trace_job {
	double submit_s, duration_s; /* duration_s below 0: the file has none */
	uint32_t gpus;
	uint32_t gpu_milli;         /* share of one GPU; 1000: whole GPUs */
	uint32_t id, tenant, model; /* indices in names; TD_TRACE_NONE: none */
	enum td_class class;
	uint64_t memory_bytes; /* needed on one GPU; 0: unknown */
	uint32_t cpu_milli, memory_mib;
	uint32_t batch;
	uint32_t line; /* line of the file */
};

struct td_trace {
	struct td_trace_job *jobs;
	uint32_t count, room;
	struct td_names names;
	uint32_t skipped;     /* number of bad lines */
	uint32_t gpuless;     /* jobs without a GPU, which are left out */
	uint32_t undated;     /* number of jobs without a duration */
	bool has_durations;   /* the file has the column */
	struct td_names sets; /* values of the column `trace`, for several traces in one file */
	char unknown[TD_TRACE_UNKNOWN_MAX];
};

struct td_request {
	double arrival_s;
	uint32_t service; /* index in names */
	uint32_t input_tokens, output_tokens;
};

struct td_requests {
	struct td_request *requests;
	uint32_t count, room;
	struct td_names names;
	uint32_t skipped;
};

struct td_node {
	uint32_t name, model; /* indices in names */
	uint32_t gpus, cpu_milli, memory_mib;
	uint64_t gpu_memory_bytes; /* 0: unknown */
	uint32_t line;             /* line of the file */
};

struct td_nodes {
	struct td_node *nodes;
	uint32_t count, room;
	uint32_t gpus; /* GPUs of all nodes */
	struct td_names names;
	uint32_t skipped;
	char unknown[TD_TRACE_UNKNOWN_MAX];
};

/*
 * Reads a file. With skip_bad, bad lines are counted and left out; without, the first one ends the
 * reading, and err has its file and line. On failure nothing needs to be released. The *_take
 * functions read a file that is open, and do not close it; fuzzers call them.
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

/*
 * Returns the index of a text, which is added if it is new; TD_TRACE_NONE for "", or if memory is
 * out.
 */
uint32_t td_names_add(struct td_names *names, const char *text);
/* Returns the text of an index, "" for TD_TRACE_NONE. */
const char *td_names_text(const struct td_names *names, uint32_t name);
void td_names_deinit(struct td_names *names);
