/*
 * The cost of connections for each user: their number, the bytes that they have not read, and the
 * complaints about them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "daemon/record/identity.h"
#include "daemon/record/complaints.h"

struct td_user {
	struct td_list of_users;
	struct td_identity who;
	uint32_t peers;
	size_t out_bytes; /* the bytes queued for his connections that they have not read */
	struct td_complaints complaints;
};

struct td_users {
	struct td_list list;
	size_t out_bytes; /* the sum over all users */
};

void td_users_init(struct td_users *users);
void td_users_deinit(struct td_users *users);

/*
 * Returns the user's entry, and makes it if there is none; NULL if memory is short. It stays as
 * long as the user has a connection, or a bucket of complaints that is not full. So no user gets a
 * fresh bucket by connecting again.
 */
struct td_user *td_users_get(struct td_users *users, struct td_identity who, uint64_t now_ns);
