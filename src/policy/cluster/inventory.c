/* Keeps lists of nodes by free GPUs and a tournament tree of loads; see inventory.h. */
#include "policy/cluster/inventory.h"

#include <errno.h>
#include <string.h>

#define NONE   UINT32_MAX
#define ABSENT UINT64_MAX

static uint32_t leaves_for(uint32_t gpus)
{
	uint32_t leaves = 1;

	while (leaves < gpus)
		leaves *= 2;
	return leaves;
}

/* Numbers of 32-bit words per GPU and per node in the caller's memory. The tree follows them. */
#define GPU_WORDS  (7 + TD_GUESTS)
#define NODE_WORDS 5

size_t td_inventory_bytes(uint32_t nodes, uint32_t gpus)
{
	size_t words = (size_t)gpus * GPU_WORDS + (size_t)nodes * NODE_WORDS + 2;

	return 2 * sizeof(uint64_t) * leaves_for(gpus) + words * sizeof(uint32_t);
}

static uint64_t bits_in(uint64_t set)
{
	uint64_t count = 0;

	for (; set; set &= set - 1)
		count++;
	return count;
}

/*
 * Returns the sort key of a GPU: its load, then its guests. So an idle GPU without guests comes
 * first.
 */
static uint64_t key_of(const struct td_inventory *v, uint32_t gpu)
{
	uint64_t load = v->load_ppm[gpu] + bits_in(v->unseen[gpu]) * v->assumed_ppm;

	if (v->guest_count[gpu] == TD_GUESTS || v->barred[gpu] != TD_BAR_NOTHING)
		return ABSENT;
	return load << 8 | v->guest_count[gpu];
}

static void put_leaf(struct td_inventory *v, uint32_t gpu, uint64_t key)
{
	uint32_t at = v->leaves + gpu;

	v->tree[at] = key;
	while (at > 1) {
		uint64_t left = v->tree[at & ~1u], right = v->tree[at | 1u];

		at /= 2;
		v->tree[at] = left < right ? left : right;
	}
}

static uint64_t limit_of(uint32_t limit_ppm)
{
	return (uint64_t)limit_ppm << 8;
}

/* Brings the lists and the tree up to date with a GPU that has changed. */
static void update(struct td_inventory *v, uint32_t gpu)
{
	uint64_t before = v->tree[v->leaves + gpu], now = key_of(v, gpu);

	if (now == before)
		return;
	v->changes++;
	v->below += now < limit_of(v->limit_ppm);
	v->below -= before < limit_of(v->limit_ppm);
	put_leaf(v, gpu, now);
}

static uint32_t least_loaded(const struct td_inventory *v)
{
	uint32_t at = 1;

	while (at < v->leaves)
		at = 2 * at + (v->tree[2 * at] > v->tree[2 * at + 1]);
	return at - v->leaves;
}

static void unlink_node(struct td_inventory *v, uint32_t node)
{
	if (v->previous[node] != NONE)
		v->next[v->previous[node]] = v->next[node];
	else
		v->bucket[v->free_count[node]] = v->next[node];
	if (v->next[node] != NONE)
		v->previous[v->next[node]] = v->previous[node];
}

static void link_node(struct td_inventory *v, uint32_t node)
{
	uint32_t *first = &v->bucket[v->free_count[node]];

	v->previous[node] = NONE;
	v->next[node] = *first;
	if (*first != NONE)
		v->previous[*first] = node;
	*first = node;
}

static bool is_free(const struct td_inventory *v, uint32_t gpu)
{
	return v->holder[gpu] == TD_NO_JOB && v->reserved[gpu] == TD_NO_JOB &&
	       v->barred[gpu] != TD_BAR_ALL;
}

static bool is_idle(const struct td_inventory *v, uint32_t gpu)
{
	return is_free(v, gpu) && !v->guest_count[gpu];
}

static void recount(struct td_inventory *v, uint32_t gpu, bool was_free)
{
	uint32_t node = v->node[gpu];

	if (was_free == is_free(v, gpu))
		return;
	unlink_node(v, node);
	v->free_count[node] += was_free ? -1u : 1u;
	link_node(v, node);
}

static void carve(struct td_inventory *v, void *memory)
{
	uint32_t *words = (uint32_t *)((uint64_t *)memory + (size_t)2 * v->leaves);
	uint32_t **per_gpu[] = {&v->node, &v->holder, &v->reserved, &v->load_ppm, &v->unseen,
		&v->guest_count, &v->barred};
	uint32_t **per_node[] = {&v->free_count, &v->next, &v->previous, &v->pools};

	v->tree = memory;
	for (size_t i = 0; i < sizeof(per_gpu) / sizeof(per_gpu[0]); i++) {
		*per_gpu[i] = words;
		words += v->gpu_count;
	}
	v->guest = words;
	words += (size_t)v->gpu_count * TD_GUESTS;
	for (size_t i = 0; i < sizeof(per_node) / sizeof(per_node[0]); i++) {
		*per_node[i] = words;
		words += v->node_count;
	}
	v->first_gpu = words;
}

int td_inventory_init(struct td_inventory *v, void *memory, const uint32_t *node_gpus,
	uint32_t nodes, uint32_t assumed_ppm)
{
	uint32_t gpu = 0;

	*v = (struct td_inventory){.node_count = nodes, .assumed_ppm = assumed_ppm};
	if (!nodes)
		return -EINVAL;
	for (uint32_t n = 0; n < nodes; n++) {
		if (!node_gpus[n] || node_gpus[n] > TD_NODE_GPUS_MAX)
			return -EINVAL;
		v->gpu_count += node_gpus[n];
		if (node_gpus[n] > v->node_gpus_max)
			v->node_gpus_max = node_gpus[n];
	}
	v->leaves = leaves_for(v->gpu_count);
	carve(v, memory);
	memset(v->bucket, 0xff, sizeof(v->bucket));
	memset(v->holder, 0xff, v->gpu_count * sizeof(uint32_t));
	memset(v->reserved, 0xff, v->gpu_count * sizeof(uint32_t));
	memset(v->load_ppm, 0, v->gpu_count * sizeof(uint32_t));
	memset(v->unseen, 0, v->gpu_count * sizeof(uint32_t));
	memset(v->guest_count, 0, v->gpu_count * sizeof(uint32_t));
	memset(v->barred, 0, v->gpu_count * sizeof(uint32_t));
	memset(v->pools, 0xff, v->node_count * sizeof(uint32_t));
	memset(v->tree, 0xff, (size_t)2 * v->leaves * sizeof(uint64_t));
	for (uint32_t n = 0; n < nodes; n++) {
		v->first_gpu[n] = gpu;
		v->free_count[n] = node_gpus[n];
		for (uint32_t k = 0; k < node_gpus[n]; k++, gpu++) {
			v->node[gpu] = n;
			update(v, gpu);
		}
	}
	v->first_gpu[nodes] = gpu;
	for (uint32_t n = nodes; n--;)
		link_node(v, n);
	v->idle = gpu;
	return 0;
}

void td_inventory_watch(struct td_inventory *v, uint32_t limit_ppm)
{
	v->limit_ppm = limit_ppm;
	v->below = 0;
	for (uint32_t g = 0; g < v->gpu_count; g++)
		v->below += v->tree[v->leaves + g] < limit_of(limit_ppm);
}

void td_inventory_set_load(struct td_inventory *v, uint32_t gpu, uint32_t load_ppm)
{
	v->load_ppm[gpu] = load_ppm;
	v->unseen[gpu] = 0;
	update(v, gpu);
}

static bool is_unseen(const struct td_inventory *v, uint32_t gpu, uint32_t who)
{
	return v->unseen[gpu] >> who & 1;
}

static void set_unseen(struct td_inventory *v, uint32_t gpu, uint32_t who, bool unseen)
{
	v->unseen[gpu] = (v->unseen[gpu] & ~(1u << who)) | (uint32_t)unseen << who;
}

void td_inventory_hold(struct td_inventory *v, uint32_t gpu, uint32_t job)
{
	bool was_free = is_free(v, gpu);

	v->idle -= is_idle(v, gpu);
	v->holder[gpu] = job;
	v->idle += is_idle(v, gpu);
	set_unseen(v, gpu, TD_GUESTS, job != TD_NO_JOB);
	update(v, gpu);
	recount(v, gpu, was_free);
}

void td_inventory_bar(struct td_inventory *v, uint32_t gpu, enum td_inventory_bar bar)
{
	bool was_free = is_free(v, gpu);

	v->idle -= is_idle(v, gpu);
	v->barred[gpu] = bar;
	v->idle += is_idle(v, gpu);
	update(v, gpu);
	recount(v, gpu, was_free);
}

void td_inventory_reserve(struct td_inventory *v, uint32_t gpu, uint32_t job)
{
	bool was_free = is_free(v, gpu);

	v->idle -= is_idle(v, gpu);
	v->reserved[gpu] = job;
	v->idle += is_idle(v, gpu);
	recount(v, gpu, was_free);
}

void td_inventory_add_guest(struct td_inventory *v, uint32_t gpu, uint32_t job)
{
	set_unseen(v, gpu, v->guest_count[gpu], true);
	v->idle -= is_idle(v, gpu);
	v->guest[gpu * TD_GUESTS + v->guest_count[gpu]++] = job;
	update(v, gpu);
}

/*
 * Removes a guest; the last guest takes its entry. Returns true if the monitor had not seen it yet.
 */
static bool take_out(struct td_inventory *v, uint32_t gpu, uint32_t job)
{
	uint32_t *guests = v->guest + (size_t)gpu * TD_GUESTS;

	for (uint32_t k = 0; k < v->guest_count[gpu]; k++) {
		uint32_t last = v->guest_count[gpu] - 1;
		bool unseen = is_unseen(v, gpu, k);

		if (guests[k] != job)
			continue;
		guests[k] = guests[last];
		set_unseen(v, gpu, k, is_unseen(v, gpu, last));
		set_unseen(v, gpu, last, false);
		v->guest_count[gpu] = last;
		v->idle += is_idle(v, gpu);
		update(v, gpu);
		return unseen;
	}
	return false;
}

void td_inventory_remove_guest(struct td_inventory *v, uint32_t gpu, uint32_t job)
{
	(void)take_out(v, gpu, job);
}

void td_inventory_promote(struct td_inventory *v, uint32_t gpu, uint32_t job)
{
	bool unseen = take_out(v, gpu, job);

	td_inventory_hold(v, gpu, job);
	set_unseen(v, gpu, TD_GUESTS, unseen);
	update(v, gpu);
}

/*
 * Writes up to `count` GPUs of a node that are free or reserved for the job: those with guests, or
 * those without. Returns their number.
 */
static uint32_t take_some(const struct td_inventory *v, uint32_t node, uint32_t job, bool guests,
	uint32_t count, uint32_t *ret_gpus)
{
	uint32_t found = 0;

	for (uint32_t g = v->first_gpu[node]; g < v->first_gpu[node + 1] && found < count; g++)
		if (v->holder[g] == TD_NO_JOB && v->barred[g] != TD_BAR_ALL &&
			guests == (v->guest_count[g] > 0) &&
			(v->reserved[g] == TD_NO_JOB || v->reserved[g] == job))
			ret_gpus[found++] = g;
	return found;
}

static uint32_t take_from_node(const struct td_inventory *v, uint32_t node, uint32_t job,
	uint32_t count, uint32_t *ret_gpus)
{
	uint32_t found = take_some(v, node, job, false, count, ret_gpus);

	return found + take_some(v, node, job, true, count - found, ret_gpus + found);
}

void td_inventory_set_pools(struct td_inventory *v, uint32_t node, uint32_t pools)
{
	v->pools[node] = pools;
	v->changes++;
}

static bool node_is_in(const struct td_inventory *v, uint32_t node, uint32_t pool)
{
	return pool == TD_ANYWHERE || (v->pools[node] >> pool & 1);
}

bool td_inventory_is_in(const struct td_inventory *v, uint32_t gpu, uint32_t pool)
{
	return node_is_in(v, v->node[gpu], pool);
}

/* Returns the first node of the pool with k free GPUs, or NONE. */
static uint32_t first_in(const struct td_inventory *v, uint32_t k, uint32_t pool)
{
	uint32_t n = v->bucket[k];

	while (n != NONE && !node_is_in(v, n, pool))
		n = v->next[n];
	return n;
}

/*
 * Returns the node with the fewest free GPUs that suffice; if none has enough, the one with most.
 */
static uint32_t best_fit(const struct td_inventory *v, uint32_t count, uint32_t pool)
{
	uint32_t node;

	for (uint32_t k = count; k <= TD_NODE_GPUS_MAX; k++)
		if ((node = first_in(v, k, pool)) != NONE)
			return node;
	for (uint32_t k = count; k-- > 1;)
		if ((node = first_in(v, k, pool)) != NONE)
			return node;
	return NONE;
}

/*
 * Takes nodes that are wholly free until there are `count` GPUs; the last node may have more GPUs
 * than are needed. Returns the number of GPUs.
 */
static uint32_t take_whole_nodes(
	const struct td_inventory *v, uint32_t count, uint32_t pool, uint32_t *ret_gpus)
{
	uint32_t found = 0;

	for (uint32_t k = TD_NODE_GPUS_MAX; k && found < count; k--)
		for (uint32_t n = v->bucket[k]; n != NONE && found < count; n = v->next[n])
			if (node_is_in(v, n, pool) &&
				(v->first_gpu[n + 1] - v->first_gpu[n] == k || k >= count - found))
				found += take_from_node(
					v, n, TD_NO_JOB, count - found, ret_gpus + found);
	return found;
}

static uint32_t take_anywhere(
	const struct td_inventory *v, uint32_t count, uint32_t pool, uint32_t *ret_gpus)
{
	uint32_t found = 0;

	for (int guests = v->idle ? 0 : 1; guests < 2; guests++)
		for (uint32_t k = 1; k <= TD_NODE_GPUS_MAX; k++)
			for (uint32_t n = v->bucket[k]; n != NONE && found < count; n = v->next[n])
				if (node_is_in(v, n, pool))
					found += take_some(v, n, TD_NO_JOB, guests, count - found,
						ret_gpus + found);
	return found;
}

uint32_t td_inventory_find_free_in(const struct td_inventory *v, uint32_t job, uint32_t count,
	bool same_node, uint32_t pool, uint32_t *ret_gpus)
{
	uint32_t node;

	if (!same_node)
		return take_anywhere(v, count, pool, ret_gpus);
	if (count > v->node_gpus_max)
		return take_whole_nodes(v, count, pool, ret_gpus);
	node = best_fit(v, count, pool);
	return node == NONE ? 0 : take_from_node(v, node, job, count, ret_gpus);
}

uint32_t td_inventory_find_free(const struct td_inventory *v, uint32_t job, uint32_t count,
	bool same_node, uint32_t *ret_gpus)
{
	return td_inventory_find_free_in(v, job, count, same_node, TD_ANYWHERE, ret_gpus);
}

/* Returns the least loaded GPU of the pool that is behind `last` (NONE: the first one), or NONE. */
static uint32_t next_loaded(
	const struct td_inventory *v, uint32_t last, uint64_t limit, uint32_t pool)
{
	uint64_t least = limit, from = last == NONE ? 0 : v->tree[v->leaves + last];
	uint32_t best = NONE;

	for (uint32_t g = 0; g < v->gpu_count; g++) {
		uint64_t key = v->tree[v->leaves + g];

		if (key < least && (last == NONE || key > from || (key == from && g > last)) &&
			td_inventory_is_in(v, g, pool)) {
			least = key;
			best = g;
		}
	}
	return best;
}

uint32_t td_inventory_find_least_loaded_in(struct td_inventory *v, uint32_t count,
	uint32_t limit_ppm, uint32_t pool, uint32_t *ret_gpus)
{
	uint32_t found = 0, last = NONE;

	if (pool == TD_ANYWHERE)
		return td_inventory_find_least_loaded(v, count, limit_ppm, ret_gpus);
	while (found < count && (last = next_loaded(v, last, limit_of(limit_ppm), pool)) != NONE)
		ret_gpus[found++] = last;
	return found;
}

/*
 * Finds the `count` least loaded GPUs of a node, least first. Returns the key of the last one;
 * ABSENT: there are too few.
 */
static uint64_t least_on(const struct td_inventory *v, uint32_t node, uint32_t count,
	uint64_t limit, uint32_t *ret_gpus)
{
	const uint64_t *keys = v->tree + v->leaves;
	uint32_t found = 0;

	for (uint32_t g = v->first_gpu[node]; g < v->first_gpu[node + 1]; g++) {
		uint32_t k = found < count ? found : count - 1;

		if (keys[g] >= limit || (found == count && keys[g] >= keys[ret_gpus[k]]))
			continue;
		found += found < count;
		for (; k && keys[g] < keys[ret_gpus[k - 1]]; k--)
			ret_gpus[k] = ret_gpus[k - 1];
		ret_gpus[k] = g;
	}
	return found == count ? keys[ret_gpus[count - 1]] : ABSENT;
}

uint32_t td_inventory_find_least_loaded_on_one(const struct td_inventory *v, uint32_t count,
	uint32_t limit_ppm, uint32_t pool, uint32_t *ret_gpus)
{
	uint32_t gpus[TD_NODE_GPUS_MAX], found = 0;
	uint64_t least = ABSENT;

	if (!count || count > TD_NODE_GPUS_MAX)
		return 0;
	for (uint32_t n = 0; n < v->node_count; n++) {
		uint64_t key = node_is_in(v, n, pool)
				       ? least_on(v, n, count, limit_of(limit_ppm), gpus)
				       : ABSENT;

		if (key >= least)
			continue;
		least = key;
		found = count;
		memcpy(ret_gpus, gpus, count * sizeof(*gpus));
	}
	return found;
}

uint32_t td_inventory_find_least_loaded(
	struct td_inventory *v, uint32_t count, uint32_t limit_ppm, uint32_t *ret_gpus)
{
	uint32_t found = 0;

	while (found < count && v->tree[1] < limit_of(limit_ppm)) {
		ret_gpus[found] = least_loaded(v);
		put_leaf(v, ret_gpus[found++], ABSENT);
	}
	for (uint32_t k = 0; k < found; k++)
		put_leaf(v, ret_gpus[k], key_of(v, ret_gpus[k]));
	return found;
}
