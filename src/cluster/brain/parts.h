/* The parts of the brain that its files share: brain.c, nodes.c and why.c. */
#pragma once

#include "cluster/brain/brain.h"

#define TD_BRAIN_STOPS 256u

/* A node, as its last report says. */
struct td_brain_slot {
	uint32_t gpus;
	bool closed, closing; /* closing: a GPU of it is still up because a job is there */
	uint32_t not_in;
	uint64_t seen_ns;
};

struct td_brain {
	struct td_brain_params params;
	const struct td_brain_policy *policy;
	void *state; /* the policy's */
	struct td_name_table nodes, jobs, kinds, gpu_kinds;
	struct td_brain_knowledge knowledge;
	struct td_brain_slot *node;
	struct td_brain_job *job;
	uint32_t *kind_jobs; /* of each kind: its jobs */
	uint32_t *unsaid, unsaid_count;
	bool *is_up; /* of each GPU */
	/* For each GPU an enum td_inventory_bar: its node's, and the one in force. */
	uint8_t *verdict, *barred;
	uint8_t *gpu_kind;                      /* of each GPU: a number of gpu_kinds, or strange */
	uint32_t kind_gpus[TD_GUEST_GPU_KINDS]; /* how many GPUs are of each kind */
	uint32_t up, closing;
	uint64_t revision, check_ns;
	struct {
		char id[TD_NAME_MAX];
		uint64_t epoch;
	} stops[TD_BRAIN_STOPS];
	uint32_t stop_count;
};

/* Sends a placed or running job back: the policy and the job's state say so at once. */
void td_brain_lose(struct td_brain *brain, uint32_t job, enum td_brain_why why, uint64_t now_ns);
/* The kind of GPUs of which nothing is known: they have no name, or there are too many names. */
#define TD_BRAIN_STRANGE_GPU (TD_GUEST_GPU_KINDS - 1)
/* The node is new under its number, or has left it. */
void td_brain_gpus_are_strange(struct td_brain *b, uint32_t node);
/* Tells the policy what is known of a new kind of jobs. */
void td_brain_know_kind(struct td_brain *b, uint32_t kind);
/* Drops nodes that are silent, and closes GPUs that are to be closed and are free now. */
void td_brain_look_at_nodes(struct td_brain *brain, uint64_t now_ns);
