/*
 * Graphs. A node holds the operation that a stream would have been given, as a template: launching copies it. So capture is nothing but a
 * stream's operations going to a graph.
 *
 * sg_graph_lock guards graphs, nodes, executable graphs and captures; it comes before a context's lock.
 */
#pragma once

#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph_abi.h"

struct CUgraphNode_st {
	struct td_list link; /* in graph->nodes, in order of creation */
	struct CUgraph_st *graph;
	int type;
	size_t index;         /* among the graph's nodes; kept by renumber() */
	struct sg_work *work; /* owned; NULL for EMPTY, WAIT_EVENT, EVENT_RECORD */
	struct CUevent_st *event;
	struct CUgraphNode_st **after;
	size_t after_count;
};

struct CUgraph_st {
	struct td_list link; /* in sg_graphs */
	struct td_list nodes;
	size_t node_count;
	struct CUctx_st *context; /* of the first operation; NULL: none yet */
	bool capturing;           /* not to be destroyed */
};

extern pthread_mutex_t sg_graph_lock;
extern struct td_list sg_graphs;

/* All with sg_graph_lock held. */
struct CUgraph_st *sg_graph_new(void);
void sg_graph_free(struct CUgraph_st *graph);
bool sg_graph_is_live(CUgraph graph);
bool sg_node_is_live(CUgraphNode node);
/* Takes over work, also on failure. after may be NULL. */
int sg_node_add(struct CUgraph_st *graph, int type, struct sg_work *work, struct CUevent_st *event,
	CUgraphNode const *after, size_t after_count, CUgraphNode *ret);

/* Is there a path from node `from` to one of `to`, or is it among them? */
bool sg_node_reaches(const struct CUgraphNode_st *from, CUgraphNode const *to, size_t count);

struct sg_work *sg_work_copy(const struct sg_work *work);
void sg_work_free(struct sg_work *work);

/* Operations that belong to no stream yet; *ret is malloc'ed. */
int sg_work_kernel(
	struct CUctx_st *context, const CUDA_KERNEL_NODE_PARAMS_v1 *params, struct sg_work **ret);
int sg_work_memcpy(const CUDA_MEMCPY3D *copy, struct sg_work **ret);
int sg_work_memset(const CUDA_MEMSET_NODE_PARAMS *set, struct sg_work **ret);
int sg_work_host(const CUDA_HOST_NODE_PARAMS *host, struct sg_work **ret);
int sg_work_mem_ops(const CUstreamBatchMemOpParams *ops, unsigned count, struct sg_work **ret);
const CUstreamBatchMemOpParams *sg_work_mem_ops_of(struct sg_work *work, unsigned *ret_count);
int sg_work_record(struct CUevent_st *event, struct sg_work **ret);
/* A kernel's function may have been unloaded. */
bool sg_work_is_valid(struct CUctx_st *context, const struct sg_work *work);
struct CUevent_st *sg_event_find(struct CUctx_st *context, CUevent handle);
