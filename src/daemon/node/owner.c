/* The privileges of root and of the daemon's owner; see node.h. */
#include "daemon/model/node.h"
#include "daemon/model/sharing/pool.h"

/* This many clients are kept for root and the daemon's owner. */
#define CLIENTS_RESERVED 64

bool td_node_is_owner(const struct td_node *node, struct td_identity who)
{
	return who.space == TD_SPACE_OWN && (!who.uid || who.uid == node->owner);
}

bool td_node_may_have_client(const struct td_node *node, struct td_identity who)
{
	static const struct td_pool clients = {.total = TD_CLIENT_MAX, .reserve = CLIENTS_RESERVED};
	uint32_t has = 0;
	struct td_list *it;

	td_list_for_each (it, &node->clients)
		has += td_identity_is_counted_as(td_client_at(it)->process->who, who);
	return td_pool_allows(&clients, node->client_count, has, td_node_is_owner(node, who));
}
