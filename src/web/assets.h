/* The files of the page, embedded. */
#pragma once

#include <stddef.h>

struct td_asset {
	const char *path, *type, *text;
	size_t length;
};

/* NULL: there is none at that path. */
const struct td_asset *td_asset_find(const char *path);
