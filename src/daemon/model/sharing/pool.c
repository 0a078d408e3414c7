/* This file implements pool.h. */
#include "daemon/model/sharing/pool.h"

bool td_pool_allows(const struct td_pool *pool, uint64_t used, uint64_t has, bool is_owner)
{
	uint64_t total = pool->total - (is_owner ? 0 : pool->reserve);

	if (used >= total)
		return false;
	return is_owner || has < total - used;
}
