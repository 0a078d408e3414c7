/*
 * Graphs: a launch counts as the kernels that the graph contains, and takes the memory of its
 * allocation nodes.
 *
 * Every launch reads the table of executable graphs. So the table has a fixed size and is read
 * without a lock: a graph is at one of PROBES places after the hash of its handle. A graph that
 * finds no free place counts as one kernel. From then on, graphs that are not in the table have
 * their memory looked up under the lock.
 *
 * A launch cannot be undone, so its memory is asked for before it: all the memory to which its
 * allocation nodes have addresses. Nodes share it as far as their lifetimes do not overlap. Before
 * later launches only memory that was trimmed since is asked for (outside.h). What the launch did
 * not take is given back.
 *
 *   no memory     --launch: all is asked for--> has memory
 *   has memory    --launch: nothing is asked for--> has memory
 *   has memory    --trim--> has a part --launch: as much as was trimmed is asked for--> has memory
 *   has memory    --updated to a graph with other addresses--> no memory
 *   has memory    --destroyed--> the source graph keeps it --instantiated anew--> has memory
 *   the source graph keeps it --that graph is destroyed--> forgotten
 *
 * The addresses belong to the source graph, of which one executable graph exists at a time: the
 * next one finds the memory of the last at the same addresses.
 */
#include "preload/outside/graphs.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/objects.h"
#include "preload/base/lock.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/gate/gate.h"
#include "preload/gate/meter.h"
#include "preload/outside/outside.h"

#define PLACES      4096
#define PROBES      32
#define DEPTH_MAX   8  /* most levels of graphs within graphs that are read */
#define DEVICES_MAX 16 /* most devices of one graph; memory on further ones is not counted */
#define BUCKETS     256
#define TRIES       3
#define GRANULE     (2ull << 20) /* the driver allocates graph memory in multiples of this */
#define UPLOADS     2ull         /* CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD */

#define LOST ((CUresult)-1) /* not the driver's: memory that the launch relied on was trimmed */

struct exec {
	_Atomic uintptr_t handle; /* 0: free; written last, cleared first */
	_Atomic uint32_t kernels;
	_Atomic bool allocates;
};

struct range {
	CUdevice device;
	uint64_t from, to;
};

/* The memory of an executable graph on one device. */
struct memory {
	struct memory *next;
	const void *exec;  /* the executable graph; NULL: destroyed */
	const void *graph; /* the graph that it was instantiated from; NULL: that was destroyed */
	uint64_t bytes;
	uint64_t launched_at; /* the mark of trims (outside.h), or TD_NEVER_LAUNCHED */
	CUdevice device;
	size_t count;
	const struct range *ranges; /* allocated behind the struct, merged; a copy has none */
};

/* taken by writers, and to use memories */
static struct td_lock lock = TD_LOCK_INIT(TD_RANK_BACKEND);
static struct exec execs[PLACES];
static struct memory *memories[BUCKETS]; /* hashed by executable graph */
/* what destroyed executable graphs have left, hashed by source graph */
static struct memory *left[BUCKETS];
static _Atomic bool crowded; /* some graph has found no place; never reset */

static struct exec *exec_place(uintptr_t handle, unsigned probe)
{
	return &execs[((handle * 0x9e3779b97f4a7c15ull >> 40) + probe) % PLACES];
}

static struct memory **bucket_of(struct memory **table, const void *handle)
{
	return &table[((uintptr_t)handle * 0x9e3779b97f4a7c15ull >> 40) % BUCKETS];
}

static struct memory **bucket(const void *exec)
{
	return bucket_of(memories, exec);
}

static struct exec *find_exec(uintptr_t handle)
{
	for (unsigned i = 0; i < PROBES; i++)
		if (atomic_load_explicit(&exec_place(handle, i)->handle, memory_order_acquire) ==
			handle)
			return exec_place(handle, i);
	return NULL;
}

/* -- reading a graph -- */

struct content {
	uint32_t kernels;
	struct range *ranges; /* address ranges of allocation nodes, in units of GRANULE */
	size_t count, room;
};

static void add_range(struct content *c, const struct td_alloc_node *node)
{
	if (node->pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE || !node->bytes)
		return;
	if (c->count == c->room) {
		size_t room = c->room ? 2 * c->room : 16;
		struct range *more = realloc(c->ranges, room * sizeof(*more));

		if (!more)
			return;
		c->ranges = more;
		c->room = room;
	}
	c->ranges[c->count++] =
		(struct range){node->pool.location.id, node->address / GRANULE * GRANULE,
			(node->address + node->bytes + GRANULE - 1) / GRANULE * GRANULE};
}

static void add_graph(struct content *c, void *graph, unsigned depth);

static void add_node(struct content *c, void *node, unsigned depth)
{
	struct td_alloc_node alloc;
	void *inside;
	int type;

	if (td_real.cuGraphNodeGetType(node, &type))
		return;
	if (type == TD_NODE_KERNEL)
		c->kernels++;
	else if (type == TD_NODE_GRAPH && td_real.cuGraphChildGraphNodeGetGraph &&
		 !td_real.cuGraphChildGraphNodeGetGraph(node, &inside))
		add_graph(c, inside, depth + 1);
	else if (type == TD_NODE_ALLOC && td_real.cuGraphMemAllocNodeGetParams &&
		 !td_real.cuGraphMemAllocNodeGetParams(node, &alloc))
		add_range(c, &alloc);
}

static void add_graph(struct content *c, void *graph, unsigned depth)
{
	size_t count = 0;
	void **nodes;

	if (depth == DEPTH_MAX || !td_real.cuGraphGetNodes || !td_real.cuGraphNodeGetType ||
		td_real.cuGraphGetNodes(graph, NULL, &count) || !count)
		return;
	nodes = calloc(count, sizeof(*nodes));
	if (nodes && !td_real.cuGraphGetNodes(graph, nodes, &count))
		for (size_t i = 0; i < count; i++)
			add_node(c, nodes[i], depth);
	free(nodes);
}

static int by_place(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

/* Sorts by device and address, and joins ranges that overlap or touch. */
static void merge(struct content *c)
{
	size_t n = 0;

	if (c->count)
		qsort(c->ranges, c->count, sizeof(*c->ranges), by_place);
	for (size_t i = 0; i < c->count; i++) {
		struct range r = c->ranges[i], *last = n ? &c->ranges[n - 1] : NULL;

		if (!last || last->device != r.device || r.from > last->to)
			c->ranges[n++] = r;
		else if (r.to > last->to)
			last->to = r.to;
	}
	c->count = n;
}

/* Makes the record of one device's ranges. Returns NULL if malloc failed. */
static struct memory *memory_new(
	const void *exec, const void *graph, const struct range *ranges, size_t count)
{
	struct memory *m = calloc(1, sizeof(*m) + count * sizeof(*ranges));

	if (!m)
		return NULL;
	*m = (struct memory){.exec = exec,
		.graph = graph,
		.launched_at = TD_NEVER_LAUNCHED,
		.device = ranges->device,
		.count = count,
		.ranges = memcpy(m + 1, ranges, count * sizeof(*ranges))};
	for (size_t i = 0; i < count; i++)
		m->bytes += ranges[i].to - ranges[i].from;
	return m;
}

/* Returns a list with one entry per device. */
static struct memory *memory_of(struct content *c, const void *exec, const void *graph)
{
	struct memory *list = NULL, *m;

	merge(c);
	for (size_t i = 0, end; i < c->count; i = end) {
		for (end = i + 1; end < c->count && c->ranges[end].device == c->ranges[i].device;)
			end++;
		m = memory_new(exec, graph, &c->ranges[i], end - i);
		if (!m)
			break;
		m->next = list;
		list = m;
	}
	return list;
}

static bool has_same_ranges(const struct memory *a, const struct memory *b)
{
	if (a->device != b->device || a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (a->ranges[i].from != b->ranges[i].from || a->ranges[i].to != b->ranges[i].to)
			return false;
	return true;
}

/* If the addresses are the same, the memory of the earlier launch is still there. */
static void keep_mark(struct memory *now, const struct memory *before)
{
	for (; now; now = now->next)
		if (has_same_ranges(now, before))
			now->launched_at = before->launched_at;
}

static void keep_marks(struct memory *now, const struct memory *before)
{
	for (; before; before = before->next)
		keep_mark(now, before);
}

/* -- the tables of executable graphs -- */

/*
 * Unlinks and returns the memory of an executable graph or, with exec NULL, what a source graph
 * keeps. The caller holds the lock.
 */
static struct memory *take_from(struct memory **at, const void *exec, const void *graph)
{
	struct memory *list = NULL;

	while (*at) {
		struct memory *m = *at;

		if (m->exec != exec || (!exec && m->graph != graph)) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		m->next = list;
		list = m;
	}
	return list;
}

static struct memory *take_memories(const void *exec)
{
	return take_from(bucket(exec), exec, NULL);
}

static struct memory *take_left(const void *graph)
{
	return take_from(bucket_of(left, graph), NULL, graph);
}

static void free_memories(struct memory *list)
{
	while (list) {
		struct memory *next = list->next;

		free(list);
		list = next;
	}
}

/* Returns NULL if there is no place. The caller holds the lock. */
static struct exec *place_for(const void *handle)
{
	struct exec *at = find_exec((uintptr_t)handle);

	for (unsigned i = 0; !at && i < PROBES; i++)
		if (!exec_place((uintptr_t)handle, i)->handle)
			at = exec_place((uintptr_t)handle, i);
	return at;
}

/*
 * Enters an executable graph with its source graph and content. was_another: the handle belonged to
 * another graph before.
 */
static void remember(void *handle, const void *graph, struct content *c, bool was_another)
{
	struct memory *now = memory_of(c, handle, graph), *before, *was_left = NULL, **end = &now;
	bool allocates = now;
	struct exec *at;

	td_lock_take(&lock);
	before = take_memories(handle);
	if (!was_another)
		was_left = take_left(graph);
	keep_marks(now, was_another ? before : was_left);
	while (*end)
		end = &(*end)->next;
	*end = *bucket(handle);
	*bucket(handle) = now;
	at = place_for(handle);
	if (at) {
		atomic_store(&at->kernels, c->kernels);
		atomic_store(&at->allocates, allocates);
		atomic_store_explicit(&at->handle, (uintptr_t)handle, memory_order_release);
	} else {
		atomic_store(&crowded, true);
	}
	td_lock_drop(&lock);
	free_memories(was_left);
	free_memories(before);
}

/*
 * Keeps the memory of a destroyed executable graph for the next one of its source graph. Returns
 * the entries that cannot be kept. The caller holds the lock.
 */
static struct memory *leave_to_graph(struct memory *list)
{
	struct memory *rest = NULL;

	while (list) {
		struct memory *m = list, **to = m->graph && m->launched_at != TD_NEVER_LAUNCHED
							? bucket_of(left, m->graph)
							: &rest;

		list = m->next;
		m->exec = NULL;
		m->next = *to;
		*to = m;
	}
	return rest;
}

static void forget_exec(const void *handle)
{
	struct memory *before;
	struct exec *at;

	td_lock_take(&lock);
	at = find_exec((uintptr_t)handle);
	if (at)
		atomic_store(&at->handle, 0);
	before = leave_to_graph(take_memories(handle));
	td_lock_drop(&lock);
	free_memories(before);
}

/* The graph is destroyed: its handle and its nodes' addresses may be reused by another graph. */
static void forget_graph(const void *graph)
{
	struct memory *before;

	td_lock_take(&lock);
	before = take_left(graph);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct memory *m = memories[i]; m; m = m->next)
			if (m->graph == graph)
				m->graph = NULL;
	td_lock_drop(&lock);
	free_memories(before);
}

static unsigned copy_memories(const void *exec, struct memory *ret, unsigned max)
{
	unsigned n = 0;

	td_lock_take(&lock);
	for (const struct memory *m = *bucket(exec); m && n < max; m = m->next)
		if (m->exec == exec)
			ret[n++] = *m;
	td_lock_drop(&lock);
	return n;
}

static void note_launched(const void *exec, CUdevice device, uint64_t at)
{
	td_lock_take(&lock);
	for (struct memory *m = *bucket(exec); m; m = m->next)
		if (m->exec == exec && m->device == device)
			m->launched_at = at;
	td_lock_drop(&lock);
}

/* -- asking for memory -- */

struct claims {
	struct memory of[DEVICES_MAX];
	struct td_outside_claim claims[DEVICES_MAX];
	unsigned count;
};

static bool again(struct claims *c, CUresult r)
{
	for (unsigned i = 0; i < c->count; i++)
		if (td_outside_again(&c->claims[i], r))
			return true;
	return false;
}

static bool all_hold(struct claims *c)
{
	for (unsigned i = 0; i < c->count; i++)
		if (!td_outside_graph_holds(&c->claims[i]))
			return false;
	return true;
}

/* Settles the claims. exec NULL: the graph was not launched. */
static CUresult settle(struct claims *c, CUresult r, const void *exec)
{
	for (unsigned i = 0; i < c->count; i++) {
		uint64_t at = c->claims[i].trimmed_bytes;

		/*
		 * A launch cannot be undone. So memory that it took beyond the grant is counted
		 * too, and no other program is promised it.
		 */
		if (!r && c->claims[i].object)
			(void)td_outside_fits(&c->claims[i]);
		(void)td_outside_settle(&c->claims[i], r, TD_KEY_ADDRESS, 0);
		if (!r && exec)
			note_launched(exec, c->of[i].device, at);
	}
	return r;
}

static CUresult claim_one(struct td_outside_claim *ret, const struct memory *memory)
{
	/*
	 * Each device has one pool of graph memory, whose size the driver tells. No pool handle is
	 * as small as this key.
	 */
	struct td_object *pool =
		td_outside_pool((uint64_t)memory->device + 1, memory->device, TD_OUTSIDE_GRAPH);

	return pool ? td_outside_claim_graph(ret, pool, memory->bytes, memory->launched_at)
		    : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult claim_all(struct claims *ret)
{
	unsigned count = ret->count;
	CUresult r;

	(void)td_context_use();
	for (ret->count = 0; ret->count < count; ret->count++) {
		r = claim_one(&ret->claims[ret->count], &ret->of[ret->count]);
		if (r)
			return settle(ret, r, NULL);
	}
	return CUDA_SUCCESS;
}

/* -- hooks -- */

static void weigh(void *exec, void *graph, bool was_another)
{
	struct content content = {0};

	(void)td_context_use();
	add_graph(&content, graph, 0);
	remember(exec, graph, &content, was_another);
	free(content.ranges);
}

/*
 * Returns true if instantiating the graph also uploads it: then the graph takes its memory at once.
 * *ret is what has to be counted for it.
 */
static bool uploads(const void *params, void *graph, struct claims *ret)
{
	struct content content = {0};
	struct memory *list;

	ret->count = 0;
	if (!params || !(*(const uint64_t *)params & UPLOADS))
		return false;
	add_graph(&content, graph, 0);
	list = memory_of(&content, NULL, graph);
	td_lock_take(&lock);
	for (const struct memory *m = *bucket_of(left, graph); m; m = m->next)
		if (m->graph == graph)
			keep_mark(list, m);
	td_lock_drop(&lock);
	for (const struct memory *m = list; m && ret->count < DEVICES_MAX; m = m->next)
		ret->of[ret->count++] = *m;
	free_memories(list);
	free(content.ranges);
	return ret->count;
}

static CUresult instantiated(CUresult r, void **exec, void *graph)
{
	if (!r && exec && *exec)
		weigh(*exec, graph, false);
	return r;
}

#define INSTANTIATE(symbol, params)                                                                \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		struct claims claims;                                                              \
		struct td_marker *marker;                                                          \
		CUresult r = uploads(params, a1, &claims) ? claim_all(&claims) : CUDA_SUCCESS;     \
		if (r)                                                                             \
			return r;                                                                  \
		marker = td_gate_enter_naming();                                                   \
		r = td_real.symbol TD_ARGS_##symbol;                                               \
		td_gate_leave(marker);                                                             \
		return instantiated(settle(&claims, r, NULL), a0, a1);                             \
	}

INSTANTIATE(cuGraphInstantiate, NULL)
INSTANTIATE(cuGraphInstantiate_v2, NULL)
INSTANTIATE(cuGraphInstantiateWithFlags, NULL)
INSTANTIATE(cuGraphInstantiateWithParams, a2)
INSTANTIATE(cuGraphInstantiateWithParams_ptsz, a2)

/*
 * An update gives the executable graph the nodes of another graph. Unless their addresses are the
 * same, their memory is new.
 */
#define UPDATE(symbol)                                                                             \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		struct td_marker *marker = td_gate_enter_naming();                                 \
		CUresult r = td_real.symbol TD_ARGS_##symbol;                                      \
		td_gate_leave(marker);                                                             \
		if (!r)                                                                            \
			weigh(a0, a1, true);                                                       \
		return r;                                                                          \
	}

UPDATE(cuGraphExecUpdate)
UPDATE(cuGraphExecUpdate_v2)

CUresult td_hook_cuGraphExecDestroy(void *a0)
{
	CUresult r;

	/*
	 * Before the call, because another graph may get the handle as soon as the driver has freed
	 * it.
	 */
	forget_exec(a0);
	r = td_real.cuGraphExecDestroy(a0);
	td_outside_refresh();
	return r;
}

CUresult td_hook_cuGraphDestroy(void *a0)
{
	CUresult r;

	forget_graph(a0);
	r = td_real.cuGraphDestroy(a0);
	td_outside_refresh();
	return r;
}

/* A call that submits a graph to a stream. */
struct submission {
	CUresult (*call)(void *exec, CUstream stream);
	void *exec;
	CUstream stream, named; /* named: the same stream, but not NULL */
	uint32_t flags;
	bool launches;
};

static CUresult submit(const struct submission *s, uint32_t kernels, struct claims *claims)
{
	struct td_marker *marker =
		td_gate_enter(s->stream, s->flags | td_submit_work(s->exec, 0, 0, 0));
	CUresult r;

	if (claims && !all_hold(claims)) {
		td_gate_leave(marker);
		return LOST;
	}
	if (s->launches && kernels > 1 && !td_context_is_capturing(s->named))
		td_gate_count(marker, kernels - 1);
	if (s->launches && td_meter_is_on(marker))
		td_meter_launch(
			marker, s->stream, s->flags, &(const struct td_shape){.function = s->exec});
	r = s->call(s->exec, s->stream);
	td_gate_leave(marker);
	return r;
}

/* An upload may or may not take the memory, so the next launch asks once more. */
static __attribute__((noinline)) CUresult submit_with_memory(
	const struct submission *s, uint32_t kernels)
{
	struct claims claims;
	unsigned tries = 0;
	CUresult r;

	do {
		claims.count = copy_memories(s->exec, claims.of, DEVICES_MAX);
		r = claim_all(&claims);
		if (r)
			return r;
		do
			r = submit(s, kernels, tries + 1 < TRIES ? &claims : NULL);
		while (again(&claims, r));
		r = settle(&claims, r, s->launches ? s->exec : NULL);
	} while (r == LOST && ++tries < TRIES);
	return r;
}

/* known NULL: the graph is not in the table, so it may allocate. */
static bool may_allocate(const struct exec *known)
{
	return atomic_load_explicit(known ? &known->allocates : &crowded, memory_order_relaxed);
}

/* td_real's function may be read before the gate: a program that has a graph does not move. */
#define WITH_GRAPH(symbol, own_stream, null_stream, is_launch)                                     \
	CUresult td_hook_##symbol TD_PARAMS_##symbol                                               \
	{                                                                                          \
		const struct exec *known = a0 ? find_exec((uintptr_t)a0) : NULL;                   \
		const struct submission s = {td_real.symbol, a0, stream,                           \
			stream ? stream : null_stream, own_stream, is_launch};                     \
		uint32_t kernels =                                                                 \
			known ? atomic_load_explicit(&known->kernels, memory_order_relaxed) : 0;   \
		if (may_allocate(known) && !td_context_is_capturing(s.named))                      \
			return submit_with_memory(&s, kernels);                                    \
		return submit(&s, kernels, NULL);                                                  \
	}

WITH_GRAPH(cuGraphLaunch, 0, CU_STREAM_LEGACY, true)
WITH_GRAPH(cuGraphLaunch_ptsz, TD_SUBMIT_OWN_NULL, CU_STREAM_PER_THREAD, true)
WITH_GRAPH(cuGraphUpload, 0, CU_STREAM_LEGACY, false)
WITH_GRAPH(cuGraphUpload_ptsz, TD_SUBMIT_OWN_NULL, CU_STREAM_PER_THREAD, false)

/* Drops all graphs in a forked child, with their sums. */
void td_graphs_forked(void)
{
	td_lock_reset(&lock);
	memset(execs, 0, sizeof(execs));
	memset(memories, 0, sizeof(memories));
	memset(left, 0, sizeof(left));
	atomic_store(&crowded, false);
}
