/*
 * Look-ups in the table of driver symbols; see symbols.h. The rows are sorted by look-up name, so
 * all versions and flavours of a name are neighbours.
 */
#include "cuda/symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cuda/types.h"

const struct td_symbol td_symbols[TD_SYMBOL_N] = {
#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	{#symbol, kinds, since, TD_FLAVOUR_##flavour, TD_CLASS_OF_##class, sizeof(name) - 1},
#include "cuda/symbols.def"
#undef SYMBOL
};

#define SYMBOL(symbol, name, since, flavour, class, stream, kinds)                                 \
	_Static_assert(sizeof(#symbol) <= TD_SYMBOL_MAX && sizeof(kinds) <= TD_KINDS_MAX, #symbol);
#include "cuda/symbols.def"
#undef SYMBOL

/* Compares like strcmp() with the look-up name of the row. */
static int compare(const struct td_symbol *row, const char *name)
{
	int order = strncmp(row->symbol, name, row->name_len);

	return order || !name[row->name_len] ? order : -1;
}

/* Returns the index of the first row of that name, or TD_SYMBOL_N. */
static size_t first_of(const char *name)
{
	size_t low = 0, high = TD_SYMBOL_N;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (compare(&td_symbols[middle], name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < TD_SYMBOL_N && !compare(&td_symbols[low], name) ? low : TD_SYMBOL_N;
}

const struct td_symbol *td_symbol_find(const char *name, int version, uint64_t flags)
{
	bool threads = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	const struct td_symbol *plain = NULL, *own = NULL;

	for (size_t i = first_of(name); i < TD_SYMBOL_N && !compare(&td_symbols[i], name); i++) {
		const struct td_symbol *row = &td_symbols[i];

		if (row->since > version)
			continue;
		if (row->flavour == TD_FLAVOUR_PLAIN)
			plain = row; /* the last match is taken, as versions rise within a name */
		else
			own = row;
	}
	return threads && own ? own : plain;
}

static bool ends_with_digits(const char *from)
{
	size_t digits = strspn(from, "0123456789");

	return digits && !from[digits];
}

/* Removes suffixes such as _ptsz, _ptds and _v2 from an exported name. */
static void cut_suffixes(char *name)
{
	char *at = strrchr(name, '_');

	if (at && (!strcmp(at, "_ptsz") || !strcmp(at, "_ptds"))) {
		*at = '\0';
		at = strrchr(name, '_');
	}
	if (at && at[1] == 'v' && ends_with_digits(at + 2))
		*at = '\0';
}

const struct td_symbol *td_symbol_by_export(const char *exported)
{
	char name[TD_SYMBOL_MAX];
	size_t len = strlen(exported);

	if (len >= sizeof(name))
		return NULL;
	memcpy(name, exported, len + 1);
	cut_suffixes(name);
	for (size_t i = first_of(name); i < TD_SYMBOL_N && !compare(&td_symbols[i], name); i++)
		if (!strcmp(td_symbols[i].symbol, exported))
			return &td_symbols[i];
	return NULL;
}
