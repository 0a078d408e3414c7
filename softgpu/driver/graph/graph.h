/*
 * Graphs. A node holds the same operation that a stream would queue, as a template, and a launch
 * copies it. Capture therefore only redirects a stream's operations into a graph.
 * graph.c: graphs and nodes by hand. order.c: edges. edit.c: clones, removal, drawings. params.c:
 * getting and setting what a node does. memory.c: allocation nodes. exec.c: executable graphs.
 * stream/capture.c: graphs from streams. user_object.c: user objects, which graphs keep alive.
 * sg_graph_lock guards graphs, nodes, executable graphs and captures. It comes before a context's
 * lock.
 */
#pragma once

#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph/graph_abi.h"

struct CUgraphNode_st {
	struct td_list link; /* in graph->nodes, in order of creation */
	struct CUgraph_st *graph;
	int type;
	size_t index;            /* among the graph's nodes; set by sg_graph_renumber() */
	struct td_list in_order; /* in graph->order */
	uint64_t order;          /* increases along graph->order */
	uint64_t seen;           /* number of the last walk that visited it */
	struct sg_work *work;    /* owned; NULL for EMPTY, GRAPH, WAIT_EVENT, EVENT_RECORD */
	struct CUevent_st *event;
	struct CUgraph_st *child; /* of a GRAPH node: its own copy */
	/* in a clone: the node it was copied from, only compared, never dereferenced */
	struct CUgraphNode_st *origin;
	struct CUgraphNode_st **after;
	size_t after_count;
	void **params; /* last array that cuGraphKernelNodeGetParams returned */
	int priority;
};

struct sg_user_ref;

struct CUgraph_st {
	struct td_list link;         /* in sg_graphs */
	struct td_list nodes, order; /* order: each node after its dependencies */
	size_t node_count;
	uint64_t walks;
	struct CUctx_st *context;      /* context of the first operation; NULL: none yet */
	struct CUgraphNode_st *parent; /* the node that owns this child graph */
	uint64_t cloned_from;          /* id of the original; 0: not a clone */
	struct sg_user_ref *user;
	uint64_t id;        /* unique; tells graphs at the same address apart */
	unsigned capturing; /* captures into it; it cannot be destroyed meanwhile */
	/*
	 * The graph has allocation or free nodes, so it cannot be cloned, edited or instantiated
	 * twice.
	 */
	bool has_memory;
};

extern pthread_mutex_t sg_graph_lock;
extern struct td_list sg_graphs;

/*
 * Releases sg_graph_lock, then runs the destructors of user objects whose last reference is gone.
 * The lock is only ever released by this function.
 */
void sg_graph_unlock(void);

/* -- all with sg_graph_lock held -- */
struct CUgraph_st *sg_graph_new(void);
void sg_graph_free(struct CUgraph_st *graph);
bool sg_graph_is_live(CUgraph graph);
bool sg_node_is_live(CUgraphNode node);
void sg_node_free(struct CUgraphNode_st *node);
bool sg_graph_holds(const struct CUgraph_st *graph, CUgraphNode node);
void sg_graph_renumber(struct CUgraph_st *graph);
/* Takes ownership of work, also on failure. after may be NULL. */
int sg_node_add(struct CUgraph_st *graph, int type, struct sg_work *work, struct CUevent_st *event,
	CUgraphNode const *after, size_t after_count, CUgraphNode *ret);
/*
 * Tells whether a path leads from node `from` to one of the nodes `to`, or `from` is one of them.
 * Returns OUT_OF_MEMORY or CUDA_SUCCESS.
 */
int sg_node_reaches(
	const struct CUgraphNode_st *from, CUgraphNode const *to, size_t count, bool *ret);
/* Moves a node behind all others in the graph's order, where a new node would be. */
void sg_node_put_last(struct CUgraphNode_st *node);
/* Returns the context that a kernel node names; NULL names the current one. */
int sg_node_context(CUcontext named, struct CUctx_st **ret);
/* Accepts only plain edges, without ports and types. */
int sg_check_edges(const CUgraphEdgeData *edges, size_t count);
/* Copies a graph; the copy's nodes know their originals. Returns NULL if there is no memory. */
struct CUgraph_st *sg_graph_clone(struct CUgraph_st *graph);

struct sg_work *sg_work_copy(const struct sg_work *work);
void sg_work_free(struct sg_work *work);

/* -- operations that are not in a stream yet; *ret is malloc'ed -- */
int sg_work_kernel(
	struct CUctx_st *context, const CUDA_KERNEL_NODE_PARAMS_v1 *params, struct sg_work **ret);
int sg_work_memcpy(const CUDA_MEMCPY3D *copy, struct sg_work **ret);
int sg_work_memset(const CUDA_MEMSET_NODE_PARAMS *set, struct sg_work **ret);
int sg_work_host(const CUDA_HOST_NODE_PARAMS *host, struct sg_work **ret);
int sg_work_mem_ops(const CUstreamBatchMemOpParams *ops, unsigned count, struct sg_work **ret);
int sg_work_record(struct CUevent_st *event, struct sg_work **ret);
/* Makes an operation that waits for an IPC event as another process has last recorded it. */
int sg_work_shared_wait(const struct CUevent_st *event, struct sg_work **ret);
/* False if the function of a kernel has been unloaded. */
bool sg_work_is_valid(struct CUctx_st *context, const struct sg_work *work);

/* -- the parameters that operations were made from -- */
/* *ret_params must be freed; its entries point into the work. */
int sg_work_kernel_params(
	const struct sg_work *work, CUDA_KERNEL_NODE_PARAMS_v1 *ret, void ***ret_params);
bool *sg_work_cooperative(struct sg_work *work);
void sg_work_host_params(const struct sg_work *work, CUDA_HOST_NODE_PARAMS *ret);
/*
 * Checks a change of a copy or set in an executable graph against the rules of cuda.h
 * (cuGraphExecMemcpyNodeSetParams, cuGraphExecMemsetNodeSetParams, cuGraphExecUpdate). Returns
 * INVALID_VALUE if it is not allowed. With one_row, a copy of several rows is refused before and
 * after the change.
 */
int sg_work_check_change(const struct sg_work *from, const struct sg_work *to, bool one_row);
const CUstreamBatchMemOpParams *sg_work_mem_ops_of(struct sg_work *work, unsigned *ret_count);

/* -- memory.c -- */
struct sg_graph_block;
/* Returns the block that an allocation or free operation refers to. */
struct sg_graph_block *sg_work_block(const struct sg_work *work);
/* These two take sg_graph_lock themselves. */
int sg_work_alloc(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct sg_work **ret);
int sg_work_free_block(uint64_t address, struct sg_work **ret);
/*
 * Records that this graph frees the block, whether or not it allocated it. Returns INVALID_VALUE if
 * the block already has a free that excludes this one.
 */
int sg_graph_block_note_free(struct sg_graph_block *block, const struct CUgraph_st *graph);
void sg_graph_block_note_alloc(struct sg_graph_block *block, const struct CUgraph_st *graph);
void sg_block_alloc_params(const struct sg_graph_block *block, CUDA_MEM_ALLOC_NODE_PARAMS *ret);
uint64_t sg_block_address(const struct sg_graph_block *block);
/*
 * Checks one step before a launch, in the order of steps: may it run now, and is there memory for
 * it?
 */
int sg_graph_block_check(struct sg_graph_block *block, bool allocates, bool auto_free);
/*
 * Applies the effect of a step to the block's state, once the launch is certain. work is the
 * launch's own copy.
 */
void sg_graph_block_commit(struct sg_work *work);
/* cuMemAllocAsync and cuMemFreeAsync in a capturing stream. */
int sg_capture_alloc(struct CUstream_st *stream, uint64_t bytes, CUdeviceptr *ret);
int sg_capture_free(struct CUstream_st *stream, CUdeviceptr address);

/* -- user_object.c: references that a graph holds; called with sg_graph_lock held -- */
void sg_user_refs_copy(struct sg_user_ref *from, struct sg_user_ref **to);
void sg_user_refs_drop(struct sg_user_ref **refs);
