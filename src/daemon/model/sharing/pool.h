/*
 * Decides how much of a shared resource one user may have: the dynamic thresholds of Choudhury and
 * Hahne ("Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM ToN 6(2),
 * 1998) with alpha = 1. A user may get more while he has less than is free. So a single user gets
 * at most a half, and two get a third each. With any number of users, as much as each of them has
 * is left for the next. An early user is not cut back: later users get less until he gives some
 * back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A counted resource. Only the daemon's owner and root may use the last `reserve` units of `total`.
 */
struct td_pool {
	uint64_t total, reserve;
};

/* Returns whether a user who has `has` may get more, while all users together have `used`. */
bool td_pool_allows(const struct td_pool *pool, uint64_t used, uint64_t has, bool is_owner);
