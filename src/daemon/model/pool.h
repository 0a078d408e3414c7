/*
 * How much one user may have of what all users share: the dynamic thresholds of Choudhury and Hahne
 * ("Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM ToN 6(2), 1998)
 * with alpha = 1. A user gets more while he has less than is free. So one user alone gets a half,
 * two get a third each, and however many there are, as much as each of them has is left for the
 * next. Who is there first is not cut back: those who come later get less until he gives back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A counted resource. Only the daemon's owner and root get the reserve, which is a part of the
 * total.
 */
struct td_pool {
	uint64_t total, reserve;
};

/* May a user who has `has` get more, while all users together have `used`? */
bool td_pool_allows(const struct td_pool *pool, uint64_t used, uint64_t has, bool is_owner);
