/*
 * Graphs. A node holds the operation that a stream would have been given, as a template: launching copies it. So capture is nothing but a
 * stream's operations going to a graph.
 *
 * graph.c: graphs and nodes by hand. order.c: edges. edit.c: clones, removal, drawings. params.c: what a node does, told and changed.
 * memory.c: allocation nodes. exec.c: executable graphs. stream/capture.c: graphs from streams. user_object.c: what graphs keep alive.
 *
 * sg_graph_lock guards graphs, nodes, executable graphs and captures; it comes before a context's lock.
 */
#pragma once

#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph/graph_abi.h"

struct CUgraphNode_st {
	struct td_list link; /* in graph->nodes, in order of creation */
	struct CUgraph_st *graph;
	int type;
	size_t index;            /* among the graph's nodes; kept by sg_graph_renumber() */
	struct td_list in_order; /* in graph->order */
	uint64_t order;          /* grows along that list */
	uint64_t seen;           /* by that walk */
	struct sg_work *work;    /* owned; NULL for EMPTY, GRAPH, WAIT_EVENT, EVENT_RECORD */
	struct CUevent_st *event;
	struct CUgraph_st *child; /* of a GRAPH node: its own copy */
	struct CUgraphNode_st
		*origin; /* of a clone's node: what it was made from; never followed */
	struct CUgraphNode_st **after;
	size_t after_count;
	void **params; /* as cuGraphKernelNodeGetParams gave them out last */
	int priority;
};

struct sg_user_ref;

struct CUgraph_st {
	struct td_list link;         /* in sg_graphs */
	struct td_list nodes, order; /* order: each node behind all that it comes after */
	size_t node_count;
	uint64_t walks;
	struct CUctx_st *context;      /* of the first operation; NULL: none yet */
	struct CUgraphNode_st *parent; /* whose child it is: goes with it */
	uint64_t cloned_from;          /* id; 0: not */
	struct sg_user_ref *user;
	uint64_t id;        /* of it alone, when another lies where it was */
	unsigned capturing; /* not to be destroyed */
	bool has_memory; /* allocation or free nodes: cannot be cloned, cut or instantiated twice */
};

extern pthread_mutex_t sg_graph_lock;
extern struct td_list sg_graphs;

/* Gives sg_graph_lock back, and runs the destructors of user objects that nothing refers to any more. Every unlocking goes through it. */
void sg_graph_unlock(void);

/* -- all with sg_graph_lock held -- */
struct CUgraph_st *sg_graph_new(void);
void sg_graph_free(struct CUgraph_st *graph);
bool sg_graph_is_live(CUgraph graph);
bool sg_node_is_live(CUgraphNode node);
void sg_node_free(struct CUgraphNode_st *node);
bool sg_graph_holds(const struct CUgraph_st *graph, CUgraphNode node);
void sg_graph_renumber(struct CUgraph_st *graph);
/* Takes over work, also on failure. after may be NULL. */
int sg_node_add(struct CUgraph_st *graph, int type, struct sg_work *work, struct CUevent_st *event,
	CUgraphNode const *after, size_t after_count, CUgraphNode *ret);
/* Is there a path from node `from` to one of `to`, or is it among them? OUT_OF_MEMORY or CUDA_SUCCESS. */
int sg_node_reaches(
	const struct CUgraphNode_st *from, CUgraphNode const *to, size_t count, bool *ret);
/* As a fresh one's would be: behind all others, in the graph's order. */
void sg_node_put_last(struct CUgraphNode_st *node);
/* The context that a kernel node names; NULL is the current one. */
int sg_node_context(CUcontext named, struct CUctx_st **ret);
/* Only edges without ports and types are there. */
int sg_check_edges(const CUgraphEdgeData *edges, size_t count);
/* A copy that knows what it was made from; NULL: no memory. */
struct CUgraph_st *sg_graph_clone(struct CUgraph_st *graph);

struct sg_work *sg_work_copy(const struct sg_work *work);
void sg_work_free(struct sg_work *work);

/* -- operations that belong to no stream yet; *ret is malloc'ed -- */
int sg_work_kernel(
	struct CUctx_st *context, const CUDA_KERNEL_NODE_PARAMS_v1 *params, struct sg_work **ret);
int sg_work_memcpy(const CUDA_MEMCPY3D *copy, struct sg_work **ret);
int sg_work_memset(const CUDA_MEMSET_NODE_PARAMS *set, struct sg_work **ret);
int sg_work_host(const CUDA_HOST_NODE_PARAMS *host, struct sg_work **ret);
int sg_work_mem_ops(const CUstreamBatchMemOpParams *ops, unsigned count, struct sg_work **ret);
int sg_work_record(struct CUevent_st *event, struct sg_work **ret);
/* Waits for what another process has recorded by now. */
int sg_work_shared_wait(const struct CUevent_st *event, struct sg_work **ret);
/* A kernel's function may have been unloaded. */
bool sg_work_is_valid(struct CUctx_st *context, const struct sg_work *work);

/* -- and what they were made from; params: to be freed, of the work's own bytes -- */
int sg_work_kernel_params(
	const struct sg_work *work, CUDA_KERNEL_NODE_PARAMS_v1 *ret, void ***ret_params);
bool *sg_work_cooperative(struct sg_work *work);
void sg_work_host_params(const struct sg_work *work, CUDA_HOST_NODE_PARAMS *ret);
/* INVALID_VALUE: an executable graph's copy or set cannot become this one (cuGraphExecMemcpyNodeSetParams, ...MemsetNode..., cuGraphExecUpdate);
 * one_row: a copy neither was nor becomes one of several rows. */
int sg_work_check_change(const struct sg_work *from, const struct sg_work *to, bool one_row);
const CUstreamBatchMemOpParams *sg_work_mem_ops_of(struct sg_work *work, unsigned *ret_count);

/* -- memory.c -- */
struct sg_graph_block;
/* The block of an allocation or free operation. */
struct sg_graph_block *sg_work_block(const struct sg_work *work);
/* These two take sg_graph_lock themselves. */
int sg_work_alloc(CUDA_MEM_ALLOC_NODE_PARAMS *params, struct sg_work **ret);
int sg_work_free_block(uint64_t address, struct sg_work **ret);
/* A graph that frees it, in which it was allocated or not, says so once. INVALID_VALUE: it is said already. */
int sg_graph_block_note_free(struct sg_graph_block *block, const struct CUgraph_st *graph);
void sg_graph_block_note_alloc(struct sg_graph_block *block, const struct CUgraph_st *graph);
void sg_block_alloc_params(const struct sg_graph_block *block, CUDA_MEM_ALLOC_NODE_PARAMS *ret);
uint64_t sg_block_address(const struct sg_graph_block *block);
/* Before a launch, in the order of its steps: may it be, and is there memory? */
int sg_graph_block_check(struct sg_graph_block *block, bool allocates, bool auto_free);
/* Of a launch's own copy of the operation. */
void sg_graph_block_commit(struct sg_work *work);
/* cuMemAllocAsync and cuMemFreeAsync in a capturing stream. */
int sg_capture_alloc(struct CUstream_st *stream, uint64_t bytes, CUdeviceptr *ret);
int sg_capture_free(struct CUstream_st *stream, CUdeviceptr address);

/* -- user_object.c: references that a graph holds; with sg_graph_lock held -- */
void sg_user_refs_copy(struct sg_user_ref *from, struct sg_user_ref **to);
void sg_user_refs_drop(struct sg_user_ref **refs);
