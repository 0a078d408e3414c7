/* Executable graphs: exec.c makes and launches them, update.c changes them. */
#pragma once

#include "softgpu/driver/graph/graph.h"

struct step {
	int type;
	struct sg_work *work;
	struct CUevent_st *event;
	const struct CUgraphNode_st *node;
	struct CUgraphExec_st *child; /* of a GRAPH node */
	bool disabled;
};

struct CUgraphExec_st {
	struct td_list link;
	struct CUctx_st *context;
	uint64_t graph; /* id of the graph it was made from */
	struct sg_user_ref *user;
	uint64_t flags;
	struct step *steps; /* in a topological order */
	size_t count;
	size_t *where; /* index of each node's step, by node index */
	struct {
		size_t *after;
		size_t after_count;
		/* dependencies of each node, by node index; an update compares them */
	} * shape;
	struct sg_dependency last; /* the latest launch; the next one comes after it */
};

/* -- all with sg_graph_lock held -- */
bool sg_exec_is_live(CUgraphExec exec);
void sg_exec_free(struct CUgraphExec_st *exec);
/*
 * Fills an empty executable graph from the graph as it is now. After a failure sg_exec_free() frees
 * what was made.
 */
int sg_exec_fill(struct CUgraphExec_st *exec, struct CUgraph_st *graph);
