/*
 * An engine in memory, for tests: its jobs start when they are placed and end when the test says
 * so. It outlives the brains that use it, as a real one does, and counts what must not happen.
 */
#pragma once

#include "cluster/engine/engine.h"

enum td_local_state { TD_LOCAL_ABSENT, TD_LOCAL_WAITS, TD_LOCAL_RUNS, TD_LOCAL_ENDED };

struct td_local_job {
	struct td_brain_request request;
	enum td_local_state state;
	bool guest;
	uint64_t epoch, revision;
	char node[TD_GANG_MAX][TD_NAME_MAX];
	uint32_t gpu[TD_GANG_MAX];
	uint32_t starts;
	char why[256];
};

struct td_local {
	struct td_engine engine;
	struct td_local_job *job;
	uint32_t jobs;
	struct td_brain_node *node;
	uint32_t nodes;
	bool is_away;    /* every call fails with -EAGAIN */
	bool is_stuck;   /* jobs that run cannot be sent back */
	uint32_t twice;  /* placements of a job that ran already */
	uint32_t places; /* orders to place, also repeated ones */
};

/* Makes an engine with room for so many jobs and nodes. Returns 0 or -ENOMEM. */
int td_local_init(struct td_local *local, uint32_t jobs, uint32_t nodes);
void td_local_deinit(struct td_local *local);
/* They return the job, or NULL; a node without GPUs is gone. */
struct td_local_job *td_local_submit(
	struct td_local *local, const struct td_brain_request *request);
struct td_local_job *td_local_find(struct td_local *local, const char *id);
void td_local_node(struct td_local *local, const char *name, uint32_t gpus);
