/* Tells the policy what profiles say of programs; see brain.h. */
#include <string.h>

#include "cluster/brain/parts.h"

static void tell(struct td_brain *b, uint32_t gpu_kind, uint32_t kind)
{
	struct td_guest_known known = {.speeds = NULL};

	if (b->knowledge.look)
		b->knowledge.look(
			b->knowledge.arg, b->gpu_kinds.name[gpu_kind], b->kinds.name[kind], &known);
	b->policy->know(b->state, gpu_kind, kind, &known);
}

void td_brain_know_kind(struct td_brain *b, uint32_t kind)
{
	for (uint32_t g = 0; b->policy->know && g < b->gpu_kinds.max; g++)
		if (*b->gpu_kinds.name[g])
			tell(b, g, kind);
}

static void know_gpu_kind(struct td_brain *b, uint32_t gpu_kind)
{
	for (uint32_t k = 0; k < b->kinds.max; k++)
		if (*b->kinds.name[k])
			tell(b, gpu_kind, k);
}

void td_brain_know(struct td_brain *b, const struct td_brain_knowledge *knowledge)
{
	b->knowledge = knowledge ? *knowledge : (struct td_brain_knowledge){.look = NULL};
	for (uint32_t g = 0; b->policy->know && g < b->gpu_kinds.max; g++)
		if (*b->gpu_kinds.name[g])
			know_gpu_kind(b, g);
}

const void *td_brain_knows(const struct td_brain *b)
{
	return b->knowledge.arg;
}

static void set_gpu_kind(struct td_brain *b, uint32_t gpu, uint32_t kind)
{
	b->kind_gpus[b->gpu_kind[gpu]]--;
	b->kind_gpus[kind]++;
	b->gpu_kind[gpu] = (uint8_t)kind;
	b->policy->gpu_kind(b->state, gpu, kind);
}

void td_brain_gpus_are_strange(struct td_brain *b, uint32_t node)
{
	uint32_t most = b->params.shape.node_gpus_max;

	for (uint32_t k = 0; b->policy->gpu_kind && k < most; k++)
		set_gpu_kind(b, node * most + k, TD_BRAIN_STRANGE_GPU);
}

/* Returns the number of a new name. If there are too many, one that no GPU has any more ends. */
static uint32_t add_gpu_kind(struct td_brain *b, const char *name)
{
	uint32_t unused = 0, kind;

	while (unused < b->gpu_kinds.max && b->kind_gpus[unused])
		unused++;
	if (b->gpu_kinds.count == b->gpu_kinds.max && unused < b->gpu_kinds.max)
		td_name_table_remove(&b->gpu_kinds, unused);
	kind = td_name_table_add(&b->gpu_kinds, name);
	if (kind == TD_NO_NAME)
		return TD_BRAIN_STRANGE_GPU;
	know_gpu_kind(b, kind);
	return kind;
}

void td_brain_gpu_is(struct td_brain *b, const char *node, uint32_t gpu, const char *name)
{
	uint32_t at = td_name_table_find(&b->nodes, node), kind;

	if (!b->policy->gpu_kind || at == TD_NO_NAME || gpu >= b->params.shape.node_gpus_max)
		return;
	kind = td_name_table_find(&b->gpu_kinds, name);
	if (kind == TD_NO_NAME)
		kind = add_gpu_kind(b, name);
	set_gpu_kind(b, at * b->params.shape.node_gpus_max + gpu, kind);
}
