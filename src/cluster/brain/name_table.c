/* A table from names to numbers; see name_table.h. */
#include "cluster/brain/name_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

int td_name_table_init(struct td_name_table *names, uint32_t max, int downwards)
{
	*names = (struct td_name_table){.max = max, .heads = 1};
	while (names->heads < max)
		names->heads *= 2;
	names->head = malloc(names->heads * sizeof(*names->head));
	names->next = malloc(max * sizeof(*names->next));
	names->name = calloc(max, sizeof(*names->name));
	if (!names->head || !names->next || !names->name) {
		td_name_table_deinit(names);
		return -ENOMEM;
	}
	memset(names->head, 0xff, names->heads * sizeof(*names->head));
	names->free = TD_NO_NAME;
	for (uint32_t k = 0; k < max; k++) {
		uint32_t at = downwards ? k : max - 1 - k;

		names->next[at] = names->free;
		names->free = at;
	}
	return 0;
}

void td_name_table_deinit(struct td_name_table *names)
{
	free(names->head);
	free(names->next);
	free(names->name);
	*names = (struct td_name_table){0};
}

static uint32_t *chain_of(const struct td_name_table *names, const char *name)
{
	return &names->head[td_hash_str(name) & (names->heads - 1)];
}

uint32_t td_name_table_find(const struct td_name_table *names, const char *name)
{
	uint32_t at = *chain_of(names, name);

	while (at != TD_NO_NAME && strcmp(names->name[at], name))
		at = names->next[at];
	return at;
}

uint32_t td_name_table_add(struct td_name_table *names, const char *name)
{
	uint32_t at = names->free, *chain = chain_of(names, name);

	if (at == TD_NO_NAME || !*name || strlen(name) >= TD_NAME_MAX)
		return TD_NO_NAME;
	names->free = names->next[at];
	strcpy(names->name[at], name);
	names->next[at] = *chain;
	*chain = at;
	names->count++;
	return at;
}

void td_name_table_remove(struct td_name_table *names, uint32_t at)
{
	uint32_t *link = chain_of(names, names->name[at]);

	while (*link != at)
		link = &names->next[*link];
	*link = names->next[at];
	names->name[at][0] = 0;
	names->next[at] = names->free;
	names->free = at;
	names->count--;
}
