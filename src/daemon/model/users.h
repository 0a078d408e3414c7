/*
 * The cost of connections, by user: how many there are, how much is unread, and how many complaints
 * there were.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "daemon/record/complaints.h"

struct td_user {
	struct td_list of_users;
	uid_t uid;
	uint32_t peers;
	size_t out_bytes; /* kept for his peers, which have not read it */
	struct td_complaints complaints;
};

struct td_users {
	struct td_list list;
	size_t out_bytes; /* of all of them */
};

void td_users_init(struct td_users *users);
void td_users_deinit(struct td_users *users);

/* The user's row, new where there is none; NULL: memory is short. It stays for as long as the user
 * has a peer, or a bucket of complaints that is not full: nobody gets another by coming again. */
struct td_user *td_users_get(struct td_users *users, uid_t uid, uint64_t now_ns);
