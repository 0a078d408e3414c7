/* This file implements tenants.h. */
#include "daemon/model/tenants.h"

#include <stdlib.h>

#include "daemon/model/job.h"
#include "daemon/model/node.h"

static struct td_tenant *user_at(struct td_list *it)
{
	return td_container_of(it, struct td_tenant, of_node);
}

struct td_tenant *td_tenants_find(const struct td_node *node, struct td_identity who)
{
	struct td_list *it;

	td_list_for_each (it, &node->tenants)
		if (td_identity_is_counted_as(user_at(it)->who, who))
			return user_at(it);
	return NULL;
}

struct td_tenant *td_tenants_join(struct td_node *node, struct td_identity who)
{
	struct td_tenant *user = td_tenants_find(node, who);

	if (!user) {
		user = calloc(1, sizeof(*user));
		if (!user)
			return NULL;
		user->who = who;
		td_list_append(&node->tenants, &user->of_node);
		node->tenant_count++;
	}
	user->jobs++;
	user->left_ns = 0;
	return user;
}

void td_tenants_leave(struct td_tenant *user)
{
	user->jobs--;
}

static void remove_tenant(struct td_node *node, struct td_tenant *user)
{
	node->tenant_count--;
	td_list_remove(&user->of_node);
	free(user);
}

uint64_t td_tenants_step(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = UINT64_MAX;
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &node->tenants) {
		struct td_tenant *user = user_at(it);

		if (user->jobs)
			continue;
		if (!user->left_ns)
			user->left_ns = now_ns;
		if (now_ns >= user->left_ns + TD_TENANT_STAYS_NS)
			remove_tenant(node, user);
		else if (user->left_ns + TD_TENANT_STAYS_NS < wakeup)
			wakeup = user->left_ns + TD_TENANT_STAYS_NS;
	}
	return wakeup;
}

void td_tenants_deinit(struct td_node *node)
{
	struct td_list *it, *tmp;

	td_list_for_each_safe (it, tmp, &node->tenants)
		remove_tenant(node, user_at(it));
}

void td_tenant_charge(struct td_job *job, uint64_t ppm)
{
	struct td_usage *used = &job->tenant->used;

	used->gpus_ppm += ppm - job->charged_ppm;
	used->jobs += (ppm != 0) - (uint32_t)(job->charged_ppm != 0);
	job->charged_ppm = ppm;
}
