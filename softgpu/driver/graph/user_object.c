/*
 * User objects: resources of the program that live as long as the graphs which need them. Each
 * graph holds references, and so does each launch until it is complete. The destructor runs after
 * the last reference is dropped and after sg_graph_lock is released: it may not make CUDA calls,
 * but it may wait for a thread that makes one.
 */
#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

struct CUuserObject_st {
	struct td_list link;
	void *pointer;
	CUhostFn destroy;
	unsigned references;
};
typedef struct CUuserObject_st *CUuserObject;

struct sg_user_ref {
	struct CUuserObject_st *object;
	unsigned count;
	struct sg_user_ref *next;
};

/* Guarded by sg_graph_lock. */
static struct td_list objects = {&objects, &objects}, gone = {&gone, &gone};

static bool is_live(CUuserObject object)
{
	struct td_list *it;

	td_list_for_each (it, &objects)
		if (td_container_of(it, struct CUuserObject_st, link) == object)
			return true;
	return false;
}

static void put(struct CUuserObject_st *object, unsigned count)
{
	object->references -= count;
	if (object->references)
		return;
	td_list_remove(&object->link);
	td_list_append(&gone, &object->link);
}

static struct CUuserObject_st *take_gone(void)
{
	struct td_list *first = gone.next;

	if (first == &gone)
		return NULL;
	td_list_remove(first);
	return td_container_of(first, struct CUuserObject_st, link);
}

void sg_graph_unlock(void)
{
	struct CUuserObject_st *object;

	while ((object = take_gone())) {
		bool before = sg_in_host_function;

		pthread_mutex_unlock(&sg_graph_lock);
		sg_in_host_function = true;
		object->destroy(object->pointer);
		sg_in_host_function = before;
		free(object);
		pthread_mutex_lock(&sg_graph_lock);
	}
	pthread_mutex_unlock(&sg_graph_lock);
}

void sg_user_refs_drop(struct sg_user_ref **refs)
{
	while (*refs) {
		struct sg_user_ref *ref = *refs;

		*refs = ref->next;
		put(ref->object, ref->count);
		free(ref);
	}
}

static int hold(struct sg_user_ref **refs, struct CUuserObject_st *object, unsigned count)
{
	struct sg_user_ref *ref = *refs;

	while (ref && ref->object != object)
		ref = ref->next;
	if (!ref) {
		ref = calloc(1, sizeof(*ref));
		if (!ref)
			return CUDA_ERROR_OUT_OF_MEMORY;
		ref->object = object;
		ref->next = *refs;
		*refs = ref;
	}
	ref->count += count;
	return CUDA_SUCCESS;
}

void sg_user_refs_copy(struct sg_user_ref *from, struct sg_user_ref **to)
{
	for (; from; from = from->next)
		if (!hold(to, from->object, from->count))
			from->object->references += from->count;
}

API CUresult cuUserObjectCreate(
	CUuserObject *ret, void *pointer, CUhostFn destroy, unsigned references, unsigned flags)
{
	CUuserObject object;
	int r = sg_ready();

	if (r)
		return r;
	/* cuda.h: "CU_USER_OBJECT_NO_DESTRUCTOR_SYNC ... must be set". */
	if (!ret || !destroy || !references || references > INT32_MAX ||
		flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	object = calloc(1, sizeof(*object));
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->pointer = pointer;
	object->destroy = destroy;
	object->references = references;
	pthread_mutex_lock(&sg_graph_lock);
	td_list_append(&objects, &object->link);
	sg_graph_unlock();
	*ret = object;
	return CUDA_SUCCESS;
}

API CUresult cuUserObjectRetain(CUuserObject object, unsigned count)
{
	int r = sg_ready();

	if (r)
		return r;
	r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_graph_lock);
	if (count && count <= INT32_MAX && is_live(object)) {
		object->references += count;
		r = CUDA_SUCCESS;
	}
	sg_graph_unlock();
	return r;
}

API CUresult cuUserObjectRelease(CUuserObject object, unsigned count)
{
	int r = sg_ready();

	if (r)
		return r;
	r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_graph_lock);
	if (count && is_live(object) && count <= object->references) {
		put(object, count);
		r = CUDA_SUCCESS;
	}
	sg_graph_unlock();
	return r;
}

/* With CU_GRAPH_USER_OBJECT_MOVE the caller's references become the graph's. */
API CUresult cuGraphRetainUserObject(
	CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
	int r = sg_ready();

	if (r)
		return r;
	pthread_mutex_lock(&sg_graph_lock);
	if (!count || count > INT32_MAX || flags > CU_GRAPH_USER_OBJECT_MOVE ||
		!sg_graph_is_live(graph) || !is_live(object) ||
		(flags && count > object->references))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		r = hold(&graph->user, object, count);
	if (!r && !flags)
		object->references += count;
	sg_graph_unlock();
	return r;
}

API CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count)
{
	int r = sg_ready();

	if (r)
		return r;
	r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sg_graph_lock);
	for (struct sg_user_ref **p = sg_graph_is_live(graph) ? &graph->user : NULL; p && *p;
		p = &(*p)->next) {
		struct sg_user_ref *ref = *p;

		if (ref->object != object || !count || count > ref->count)
			continue;
		ref->count -= count;
		if (!ref->count) {
			*p = ref->next;
			free(ref);
		}
		put(object, count);
		r = CUDA_SUCCESS;
		break;
	}
	sg_graph_unlock();
	return r;
}
