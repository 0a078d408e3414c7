/*
 * The nodes of the brain: they join, report, close, fall silent and leave; see brain.h. A node's
 * GPUs have numbers of their own for good: node x node_gpus_max + index.
 */
#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "cluster/brain/parts.h"

#define CHECK_NS TD_NS_PER_S /* silent nodes are looked for this often */

uint32_t td_brain_gpus_up(const struct td_brain *b)
{
	return b->up;
}

bool td_brain_node_at(const struct td_brain *b, uint32_t at, struct td_brain_node_state *ret)
{
	uint32_t most = b->params.shape.node_gpus_max;

	if (at >= b->nodes.max || !*b->nodes.name[at])
		return false;
	*ret = (struct td_brain_node_state){
		.name = b->nodes.name[at], .gpus = b->node[at].gpus, .closed = b->node[at].closed};
	for (uint32_t k = 0; k < ret->gpus; k++) {
		ret->full += b->barred[at * most + k] == TD_BAR_GUESTS;
		ret->shut += b->barred[at * most + k] == TD_BAR_ALL;
	}
	return true;
}

bool td_brain_knows_node(const struct td_brain *b, const char *name)
{
	return td_name_table_find(&b->nodes, name) != TD_NO_NAME;
}

/* Bars jobs from a GPU that its node judges so, or that cannot be closed yet. */
static void set_bar(struct td_brain *b, uint32_t gpu, bool closing)
{
	uint8_t bar = closing ? TD_BAR_ALL : b->verdict[gpu];

	if (bar == b->barred[gpu])
		return;
	b->policy->bar(b->state, gpu, (enum td_inventory_bar)bar);
	b->barred[gpu] = bar;
}

/* Brings the GPUs of a node up or down. One on which jobs are is barred until it is free. */
static void set_gpus(struct td_brain *b, uint32_t at)
{
	struct td_brain_slot *node = &b->node[at];
	uint32_t most = b->params.shape.node_gpus_max;
	bool closing = false;

	for (uint32_t k = 0; k < most; k++) {
		uint32_t gpu = at * most + k;
		bool up = k < node->gpus && !node->closed;

		bool busy = up != b->is_up[gpu] && b->policy->gpu(b->state, gpu, up);

		closing |= busy;
		set_bar(b, gpu, busy);
		if (busy || up == b->is_up[gpu])
			continue;
		b->is_up[gpu] = up;
		b->up += up ? 1u : -1u;
	}
	b->closing += closing;
	b->closing -= node->closing;
	node->closing = closing;
}

/* Sends back the jobs on a node's GPUs from index `first` on. */
static void lose_from(struct td_brain *b, uint32_t node, uint32_t first, uint64_t now_ns)
{
	uint32_t most = b->params.shape.node_gpus_max, gpus[TD_GANG_MAX];

	for (uint32_t at = 0; at < b->jobs.max; at++) {
		uint32_t count, k = 0;

		if (!*b->jobs.name[at] || !b->job[at].known || b->job[at].phase == TD_BRAIN_WAITING)
			continue;
		count = b->policy->gpus(b->state, at, gpus);
		while (k < count && (gpus[k] / most != node || gpus[k] % most < first))
			k++;
		if (k < count)
			td_brain_lose(b, at, TD_WHY_NODE_LOST, now_ns);
	}
}

int td_brain_node_seen(struct td_brain *b, const struct td_brain_node *seen, uint64_t now_ns)
{
	uint32_t at = td_name_table_find(&b->nodes, seen->name);
	struct td_brain_slot *node;

	if (!seen->gpus || seen->gpus > b->params.shape.node_gpus_max || !*seen->name ||
		!memchr(seen->name, 0, sizeof(seen->name)))
		return -EINVAL;
	if (at == TD_NO_NAME) {
		at = td_name_table_add(&b->nodes, seen->name);
		if (at == TD_NO_NAME)
			return -ENOSPC;
		b->node[at] = (struct td_brain_slot){.closed = true};
		memset(b->verdict + (size_t)at * b->params.shape.node_gpus_max, TD_BAR_NOTHING,
			b->params.shape.node_gpus_max);
		td_brain_gpus_are_strange(b, at);
	}
	node = &b->node[at];
	node->seen_ns = now_ns;
	if (seen->not_in != node->not_in || !node->gpus)
		b->policy->pools(b->state, at, ~seen->not_in);
	node->not_in = seen->not_in;
	if (seen->gpus < node->gpus)
		lose_from(b, at, seen->gpus, now_ns);
	if (seen->gpus != node->gpus || seen->closed != node->closed) {
		node->gpus = seen->gpus;
		node->closed = seen->closed;
		set_gpus(b, at);
	}
	for (uint32_t k = 0; seen->load_ppm && k < node->gpus; k++)
		if (seen->load_ppm[k] != TD_BRAIN_LOAD_UNKNOWN)
			b->policy->load(b->state, at * b->params.shape.node_gpus_max + k,
				seen->load_ppm[k]);
	return 0;
}

static void note_verdict(
	struct td_brain *b, uint32_t gpu, bool answers, const struct td_brain_verdict *verdict)
{
	b->verdict[gpu] = !answers || !verdict || verdict->broken ? TD_BAR_ALL
			  : verdict->accepts                      ? TD_BAR_NOTHING
								  : TD_BAR_GUESTS;
	if (verdict && verdict->load_ppm != TD_BRAIN_LOAD_UNKNOWN)
		b->policy->load(b->state, gpu, verdict->load_ppm);
}

void td_brain_node_judged(struct td_brain *b, const char *name, bool answers,
	const struct td_brain_verdict *gpus, uint32_t count)
{
	uint32_t at = td_name_table_find(&b->nodes, name), most = b->params.shape.node_gpus_max;

	if (at == TD_NO_NAME)
		return;
	for (uint32_t k = 0; k < most; k++) {
		if (gpus)
			note_verdict(b, at * most + k, answers, k < count ? &gpus[k] : NULL);
		else
			b->verdict[at * most + k] = TD_BAR_NOTHING;
	}
	set_gpus(b, at);
}

static void drop_node(struct td_brain *b, uint32_t at, uint64_t now_ns)
{
	lose_from(b, at, 0, now_ns);
	b->node[at].gpus = 0;
	set_gpus(b, at);
	td_brain_gpus_are_strange(b, at);
	td_name_table_remove(&b->nodes, at);
}

void td_brain_node_left(struct td_brain *b, const char *name, uint64_t now_ns)
{
	uint32_t at = td_name_table_find(&b->nodes, name);

	if (at != TD_NO_NAME)
		drop_node(b, at, now_ns);
}

static void look_for_silent(struct td_brain *b, uint64_t now_ns)
{
	if (!b->params.silent_ns || now_ns < b->check_ns)
		return;
	b->check_ns = now_ns + CHECK_NS;
	for (uint32_t n = 0; n < b->nodes.max; n++)
		if (*b->nodes.name[n] && now_ns - b->node[n].seen_ns > b->params.silent_ns)
			drop_node(b, n, now_ns);
}

static void close_what_is_free(struct td_brain *b)
{
	for (uint32_t n = 0; b->closing && n < b->nodes.max; n++)
		if (b->node[n].closing)
			set_gpus(b, n);
}

void td_brain_look_at_nodes(struct td_brain *b, uint64_t now_ns)
{
	look_for_silent(b, now_ns);
	if (b->closing)
		close_what_is_free(b);
}
