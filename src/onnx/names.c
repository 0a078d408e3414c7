/* See names.h. Open addressing, at most half full. */
#include "onnx/names.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SIZE 256u

/* FNV-1a, then mixed, as the low bits choose the slot. */
uint64_t td_name_hash(struct td_span name)
{
	uint64_t hash = 14695981039346656037u;

	for (const uint8_t *at = name.at; at < name.end; at++)
		hash = (hash ^ *at) * 1099511628211u;
	hash ^= hash >> 32;
	return hash ? hash : 1;
}

static uint64_t *slot_of(const struct td_names *names, uint64_t hash)
{
	size_t at = (size_t)hash & (names->size - 1);

	while (names->slots[at] && names->slots[at] != hash)
		at = (at + 1) & (names->size - 1);
	return &names->slots[at];
}

static int grow(struct td_names *names)
{
	struct td_names larger = {.size = names->size ? names->size * 2 : FIRST_SIZE};

	larger.slots = calloc(larger.size, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < names->size; i++)
		if (names->slots[i])
			*slot_of(&larger, names->slots[i]) = names->slots[i];
	larger.used = names->used;
	free(names->slots);
	*names = larger;
	return 0;
}

int td_names_add(struct td_names *names, uint64_t hash)
{
	uint64_t *slot;

	if (names->used == TD_NAMES_MAX)
		return td_names_has(names, hash) ? 0 : -E2BIG;
	if (names->used * 2 >= names->size && grow(names))
		return -ENOMEM;
	slot = slot_of(names, hash);
	names->used += !*slot;
	*slot = hash;
	return 0;
}

bool td_names_has(const struct td_names *names, uint64_t hash)
{
	return names->size && *slot_of(names, hash);
}

void td_names_free(struct td_names *names)
{
	free(names->slots);
	*names = (struct td_names){0};
}
