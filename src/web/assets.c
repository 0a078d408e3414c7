/* This file implements assets.h. */
#include "web/assets.h"

#include <string.h>

#include "web/assets_text.h"

static const struct td_asset assets[] = {
#define ASSET(id, path, type) {path, type, id, sizeof(id) - 1},
#include "web/assets.def"
#undef ASSET
};

const struct td_asset *td_asset_find(const char *path)
{
	for (size_t i = 0; i < sizeof(assets) / sizeof(assets[0]); i++)
		if (!strcmp(assets[i].path, path))
			return &assets[i];
	return NULL;
}
