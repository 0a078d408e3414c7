/* A hash table whose chains start with the newest name, so that inner scopes hide outer ones. */
#include "ptx/parse/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void sg_ptx_names_deinit(struct names *n)
{
	free(n->names);
	free(n->buckets);
	*n = (struct names){0};
}

static void link_name(struct names *n, uint32_t index)
{
	struct name *name = &n->names[index];

	name->bucket = (uint32_t)(td_hash_bytes(name->at, name->len) & (n->bucket_count - 1));
	name->next = n->buckets[name->bucket];
	n->buckets[name->bucket] = index + 1;
}

static int grow(struct names *n)
{
	uint32_t capacity = n->capacity ? n->capacity * 2 : 64;
	struct name *names = realloc(n->names, capacity * sizeof(*names));
	uint32_t *buckets;

	if (!names)
		return -ENOMEM;
	n->names = names;
	buckets = calloc(capacity, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	free(n->buckets);
	n->buckets = buckets;
	n->capacity = n->bucket_count = capacity;
	for (uint32_t k = 0; k < n->count; k++)
		link_name(n, k);
	return 0;
}

static struct name *find_name(const struct names *n, const char *at, uint32_t len)
{
	uint32_t k;

	if (!n->bucket_count)
		return NULL;
	k = n->buckets[td_hash_bytes(at, len) & (n->bucket_count - 1)];
	for (; k; k = n->names[k - 1].next) {
		struct name *name = &n->names[k - 1];

		if (name->len == len && !memcmp(name->at, at, len))
			return name;
	}
	return NULL;
}

int sg_ptx_names_add(struct names *n, const char *at, uint32_t len, const struct symbol *symbol)
{
	struct name *there = find_name(n, at, len);
	int r;

	if (there && there->scope == n->scope)
		return -EEXIST;
	if (n->count == n->capacity) {
		r = grow(n);
		if (r)
			return r;
	}
	n->names[n->count] =
		(struct name){.at = at, .len = len, .scope = n->scope, .symbol = *symbol};
	n->names[n->count].symbol.scope = n->scope;
	link_name(n, n->count++);
	return 0;
}

struct symbol *sg_ptx_names_find(const struct names *n, const char *at, uint32_t len)
{
	struct name *name = find_name(n, at, len);

	return name ? &name->symbol : NULL;
}

void sg_ptx_names_open(struct names *n)
{
	n->scope++;
}

void sg_ptx_names_close(struct names *n)
{
	while (n->count && n->names[n->count - 1].scope == n->scope) {
		struct name *name = &n->names[--n->count];

		n->buckets[name->bucket] = name->next;
	}
	n->scope--;
}
