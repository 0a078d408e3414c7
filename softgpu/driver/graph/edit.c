/*
 * Operations on existing graphs: clones, removal of nodes and edges, queries of neighbours,
 * drawings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/graph/graph.h"

static struct CUgraphNode_st *node_at(struct td_list *it)
{
	return td_container_of(it, struct CUgraphNode_st, link);
}

/* -- copies -- */

/* copies[] is indexed by the original node's index. */

static bool copy_node(
	struct CUgraph_st *copy, const struct CUgraphNode_st *node, struct CUgraphNode_st **copies)
{
	struct sg_work *work = sg_work_copy(node->work);
	struct CUgraphNode_st *fresh;

	if ((node->work && !work) ||
		sg_node_add(copy, node->type, work, node->event, NULL, 0, &fresh))
		return false;
	copies[node->index] = fresh;
	fresh->origin = (struct CUgraphNode_st *)node;
	fresh->priority = node->priority;
	if (!node->child)
		return true;
	fresh->child = sg_graph_clone(node->child);
	if (fresh->child)
		fresh->child->parent = fresh;
	return fresh->child;
}

static bool copy_edges(const struct CUgraphNode_st *node, struct CUgraphNode_st **copies)
{
	struct CUgraphNode_st *fresh = copies[node->index];
	struct CUgraphNode_st **after =
		calloc(node->after_count + 1, sizeof(struct CUgraphNode_st *));

	if (!after)
		return false;
	free(fresh->after);
	fresh->after = after;
	fresh->after_count = node->after_count;
	for (size_t i = 0; i < node->after_count; i++)
		after[i] = copies[node->after[i]->index];
	return true;
}

struct CUgraph_st *sg_graph_clone(struct CUgraph_st *graph)
{
	struct CUgraphNode_st **copies =
		calloc(graph->node_count + 1, sizeof(struct CUgraphNode_st *));
	struct CUgraph_st *copy = copies ? sg_graph_new() : NULL;
	bool whole = copy;
	struct td_list *it;

	if (!copy) {
		free(copies);
		return NULL;
	}
	sg_graph_renumber(graph);
	copy->context = graph->context;
	copy->cloned_from = graph->id;
	td_list_for_each (it, &graph->nodes)
		whole = whole && copy_node(copy, node_at(it), copies);
	td_list_for_each (it, &graph->nodes)
		whole = whole && copy_edges(node_at(it), copies);
	td_list_for_each (it, &graph->order)
		if (whole)
			sg_node_put_last(copies[td_container_of(it, struct CUgraphNode_st, in_order)
							->index]);
	free(copies);
	if (!whole) {
		sg_graph_free(copy);
		return NULL;
	}
	sg_user_refs_copy(graph->user, &copy->user);
	return copy;
}

API CUresult cuGraphClone(CUgraph *ret, CUgraph graph)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (!ret || !sg_graph_is_live(graph) || graph->capturing) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (graph->has_memory) {
		/*
		 * cuda.h: "Cloning is not supported for graphs which contain memory allocation
		 * nodes"
		 */
		r = CUDA_ERROR_NOT_SUPPORTED;
	} else {
		*ret = sg_graph_clone(graph);
		r = *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphNodeFindInClone(CUgraphNode *ret, CUgraphNode original, CUgraph clone)
{
	struct CUgraphNode_st *found = NULL;
	struct td_list *it;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (ret && sg_graph_is_live(clone) && sg_node_is_live(original) &&
		original->graph->id == clone->cloned_from)
		td_list_for_each (it, &clone->nodes)
			if (node_at(it)->origin == original)
				found = node_at(it);
	sg_graph_unlock();
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = found;
	return CUDA_SUCCESS;
}

/* -- removal -- */

static void cut(struct CUgraphNode_st *to, const struct CUgraphNode_st *from)
{
	for (size_t i = 0; i < to->after_count; i++) {
		if (to->after[i] != from)
			continue;
		memmove(to->after + i, to->after + i + 1,
			(to->after_count - i - 1) * sizeof(struct CUgraphNode_st *));
		to->after_count--;
		return;
	}
}

API CUresult cuGraphDestroyNode(CUgraphNode node)
{
	struct td_list *it;
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (!sg_node_is_live(node) || node->graph->capturing) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (node->graph->has_memory || node->graph->parent) {
		/* cuda.h: "Nodes and edges of the graph cannot be deleted." */
		r = CUDA_ERROR_NOT_SUPPORTED;
	} else {
		td_list_for_each (it, &node->graph->nodes)
			cut(node_at(it), node);
		sg_node_free(node);
	}
	sg_graph_unlock();
	return r;
}

static bool has_edge(const struct CUgraphNode_st *from, const struct CUgraphNode_st *to)
{
	for (size_t i = 0; i < to->after_count; i++)
		if (to->after[i] == from)
			return true;
	return false;
}

static int remove_dependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
	const CUgraphEdgeData *edges, size_t count)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (!sg_graph_is_live(graph) || (count && (!from || !to)))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (graph->has_memory)
		r = CUDA_ERROR_NOT_SUPPORTED;
	else
		r = sg_check_edges(edges, count);
	for (size_t i = 0; !r && i < count; i++)
		if (!sg_graph_holds(graph, from[i]) || !sg_graph_holds(graph, to[i]) ||
			!has_edge(from[i], to[i]))
			r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < count; i++)
		cut(to[i], from[i]);
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphRemoveDependencies(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	return remove_dependencies(graph, from, to, NULL, count);
}

API CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *edges, size_t count)
{
	return remove_dependencies(graph, from, to, edges, count);
}

/* -- neighbours; *count works as in cuGraphGetNodes -- */

static int list_neighbours(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges,
	size_t *count, bool dependents)
{
	struct td_list *it;
	size_t n = 0, room;
	int r = sg_ready();

	if (r)
		return r;
	if (!count || (edges && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	room = nodes ? *count : 0;
	pthread_mutex_lock(&sg_graph_lock);
	if (!sg_node_is_live(node)) {
		sg_graph_unlock();
		return CUDA_ERROR_INVALID_VALUE;
	}
	td_list_for_each (it, &node->graph->nodes) {
		struct CUgraphNode_st *other = node_at(it);

		if (!(dependents ? has_edge(node, other) : has_edge(other, node)))
			continue;
		if (n < room)
			nodes[n] = other;
		n++;
	}
	sg_graph_unlock();
	for (size_t i = n; i < room; i++)
		nodes[i] = NULL;
	if (edges && room)
		memset(edges, 0, room * sizeof(*edges));
	*count = nodes && n > room ? room : n;
	return CUDA_SUCCESS;
}

API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
	return list_neighbours(node, nodes, NULL, count, false);
}

API CUresult cuGraphNodeGetDependencies_v2(
	CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
	return list_neighbours(node, nodes, edges, count, false);
}

API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
	return list_neighbours(node, nodes, NULL, count, true);
}

API CUresult cuGraphNodeGetDependentNodes_v2(
	CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *count)
{
	return list_neighbours(node, nodes, edges, count, true);
}

/* -- drawings -- */

static const char *type_name(int type)
{
	static const char *const names[] = {"kernel", "memcpy", "memset", "host", "graph", "empty",
		"wait event", "record event", "signal", "wait", "alloc", "free",
		"memory operations"};

	return type >= 0 && (size_t)type < sizeof(names) / sizeof(names[0]) ? names[type] : "?";
}

static void draw(FILE *file, struct CUgraph_st *graph, unsigned *last_cluster)
{
	unsigned cluster = (*last_cluster)++;
	struct td_list *it;

	sg_graph_renumber(graph);
	fprintf(file, "subgraph cluster_%u {\n", cluster);
	td_list_for_each (it, &graph->nodes) {
		const struct CUgraphNode_st *node = node_at(it);

		fprintf(file, "\"n%u_%zu\" [label=\"%zu %s\"];\n", cluster, node->index,
			node->index, type_name(node->type));
		for (size_t i = 0; i < node->after_count; i++)
			fprintf(file, "\"n%u_%zu\" -> \"n%u_%zu\";\n", cluster,
				node->after[i]->index, cluster, node->index);
		if (node->child)
			draw(file, node->child, last_cluster);
	}
	fprintf(file, "}\n");
}

/* The flags only ask for more details, so they are ignored. */
API CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned flags)
{
	unsigned clusters = 0;
	FILE *file;
	int r = sg_ready();

	(void)flags;
	if (r)
		return r;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	file = fopen(path, "we");
	if (!file)
		return CUDA_ERROR_OPERATING_SYSTEM;
	pthread_mutex_lock(&sg_graph_lock);
	if (sg_graph_is_live(graph)) {
		fprintf(file, "digraph dot {\n");
		draw(file, graph, &clusters);
		fprintf(file, "}\n");
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	sg_graph_unlock();
	if (fclose(file) && !r)
		r = CUDA_ERROR_OPERATING_SYSTEM;
	return r;
}
