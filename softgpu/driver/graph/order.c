/*
 * Edges. A graph keeps its nodes in a list in topological order, with numbers that increase along
 * the list. An edge to a later node needs no change. An edge to an earlier node moves the nodes
 * that it now depends on before it, unless they depend on it themselves, which would be a cycle.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/graph/graph.h"

/*
 * The initial distance between neighbours' numbers, which leaves room for nodes moved between them.
 */
#define ORDER_STEP (1ull << 32)

static struct CUgraphNode_st *ordered_at(struct td_list *it)
{
	return td_container_of(it, struct CUgraphNode_st, in_order);
}

/* The nodes found by a walk, each once. */
struct found {
	CUgraphNode *nodes;
	size_t count, room;
};

/* Nodes before `least` in the graph's order are skipped. */
static bool note_node(struct found *found, CUgraphNode node, uint64_t least)
{
	CUgraphNode *bigger;

	if (node->seen == node->graph->walks || node->order < least)
		return true;
	if (found->count == found->room) {
		bigger = realloc(found->nodes, (2 * found->room + 16) * sizeof(*bigger));
		if (!bigger)
			return false;
		found->nodes = bigger;
		found->room = 2 * found->room + 16;
	}
	node->seen = node->graph->walks;
	found->nodes[found->count++] = node;
	return true;
}

/*
 * Collects these nodes and all their transitive dependencies, back to `least` in the order. It is
 * not recursive, because a graph may be a chain of 100,000 nodes. The caller frees found->nodes.
 */
static int walk_back(CUgraphNode const *from, size_t count, uint64_t least, struct found *found)
{
	bool whole = true;

	*found = (struct found){0};
	if (count)
		from[0]->graph->walks++;
	for (size_t i = 0; whole && i < count; i++)
		whole = note_node(found, from[i], least);
	for (size_t i = 0; whole && i < found->count; i++)
		for (size_t k = 0; whole && k < found->nodes[i]->after_count; k++)
			whole = note_node(found, found->nodes[i]->after[k], least);
	return whole ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int sg_node_reaches(
	const struct CUgraphNode_st *from, CUgraphNode const *to, size_t count, bool *ret)
{
	struct found found;
	int r = walk_back(to, count, from->order, &found);

	free(found.nodes);
	*ret = count && from->seen == from->graph->walks;
	return r;
}

void sg_node_put_last(struct CUgraphNode_st *node)
{
	struct CUgraph_st *graph = node->graph;

	td_list_remove(&node->in_order);
	node->order = td_list_empty(&graph->order)
			      ? ORDER_STEP
			      : ordered_at(graph->order.prev)->order + ORDER_STEP;
	td_list_append(&graph->order, &node->in_order);
}

static int by_order(const void *a, const void *b)
{
	const CUgraphNode *first = a, *second = b;

	return (*first)->order < (*second)->order ? -1 : (*first)->order > (*second)->order;
}

/*
 * Moves the found nodes, which `to` will depend on and which are behind it, right before it. Their
 * order among each other is kept.
 */
static void move_before(CUgraphNode to, struct found *found)
{
	struct CUgraph_st *graph = to->graph;
	uint64_t low, step, order = 0;
	struct td_list *it;

	qsort(found->nodes, found->count, sizeof(*found->nodes), by_order);
	low = to->in_order.prev == &graph->order ? 0 : ordered_at(to->in_order.prev)->order;
	step = (to->order - low) / (found->count + 1);
	for (size_t i = 0; i < found->count; i++) {
		td_list_remove(&found->nodes[i]->in_order);
		td_list_insert_before(&to->in_order, &found->nodes[i]->in_order);
		found->nodes[i]->order = low + step * (i + 1);
	}
	if (step)
		return;
	td_list_for_each (it, &graph->order)
		ordered_at(it)->order = order += ORDER_STEP;
}

/* Adds an edge. Edges that exist already or would close a cycle are refused. */
static int add_edge(CUgraph graph, CUgraphNode from, CUgraphNode to)
{
	struct found found = {0};
	struct CUgraphNode_st **after;
	int r = CUDA_SUCCESS;

	if (!sg_graph_holds(graph, from) || !sg_graph_holds(graph, to))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < to->after_count; i++)
		if (to->after[i] == from)
			return CUDA_ERROR_INVALID_VALUE;
	after = realloc(to->after, (to->after_count + 1) * sizeof(*after));
	if (!after)
		return CUDA_ERROR_OUT_OF_MEMORY;
	to->after = after;
	/* An edge from an earlier to a later node never closes a cycle. */
	if (from->order >= to->order) {
		r = walk_back(&from, 1, to->order, &found);
		if (!r && to->seen == graph->walks)
			r = CUDA_ERROR_INVALID_VALUE;
		if (!r)
			move_before(to, &found);
		free(found.nodes);
	}
	if (!r)
		after[to->after_count++] = from;
	return r;
}

int sg_check_edges(const CUgraphEdgeData *edges, size_t count)
{
	static const CUgraphEdgeData plain;

	for (size_t i = 0; edges && i < count; i++)
		if (memcmp(&edges[i], &plain, sizeof(plain)))
			return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

static int add_dependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
	const CUgraphEdgeData *edges, size_t count)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (!sg_graph_is_live(graph) || (count && (!from || !to)))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = sg_check_edges(edges, count);
	for (size_t i = 0; !r && i < count; i++)
		r = add_edge(graph, from[i], to[i]);
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphAddDependencies(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	return add_dependencies(graph, from, to, NULL, count);
}

API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count)
{
	return add_dependencies(graph, from, to, edges, count);
}
