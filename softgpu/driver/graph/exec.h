/* Executable graphs, as exec.c makes and launches them and update.c changes them. */
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
	uint64_t graph; /* id of what it was made from */
	struct sg_user_ref *user;
	uint64_t flags;
	struct step *steps; /* in an order that keeps every edge */
	size_t count;
	size_t *where; /* the step of each node, by index */
	struct {
		size_t *after;
		size_t after_count;
	} * shape;                 /* of each node, by index: for updates */
	struct sg_dependency last; /* the last launch */
};

/* -- all with sg_graph_lock held -- */
bool sg_exec_is_live(CUgraphExec exec);
void sg_exec_free(struct CUgraphExec_st *exec);
/* Fills an empty one from the graph as it is now; on failure sg_exec_free() takes what there is. */
int sg_exec_fill(struct CUgraphExec_st *exec, struct CUgraph_st *graph);
