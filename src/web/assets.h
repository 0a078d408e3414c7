/* The files of the web page, which are embedded in the program. */
#pragma once

#include <stddef.h>

struct td_asset {
	const char *path, *type, *text;
	size_t length;
};

/* Returns the file at that path, or NULL if there is none. */
const struct td_asset *td_asset_find(const char *path);
