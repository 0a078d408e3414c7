/*
 * Answers the request for the policies: which of them this node can run, what the others lack, and
 * what the policy in force has decided for each GPU.
 */
#include <stdio.h>

#include "base/time.h"
#include "daemon/node/abilities.h"
#include "daemon/server/peers/peer_internal.h"
#include "policy/algo/control/health.h"
#include "policy/algo/control/sysmonitor.h"

static const char *state_of(const struct td_node *node, const struct td_policy *policy)
{
	if (policy == node->policy)
		return "decides";
	if (policy == node->options.policy)
		return "waits";
	return td_policy_lacks(policy, node->options.has) ? "lacks" : "able";
}

static void send_lack(struct td_peer *peer, const struct td_policy *policy, uint32_t bit)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_lack};

	snprintf(msg.lack.policy, sizeof(msg.lack.policy), "%s", policy->name);
	snprintf(msg.lack.ability, sizeof(msg.lack.ability), "%s", td_ability_at(bit)->id);
	(void)td_abilities_sentence(bit, msg.lack.sentence, sizeof(msg.lack.sentence));
	td_peer_send(peer, &msg);
}

static uint32_t send_policy(struct td_peer *peer, const struct td_policy *policy)
{
	const struct td_node *node = &peer->server->node;
	uint32_t lacks = td_policy_lacks(policy, node->options.has), rows = 1;
	struct td_msg msg = {.type = TD_MSG_TYPE_policy};

	snprintf(msg.policy.name, sizeof(msg.policy.name), "%s", policy->name);
	snprintf(msg.policy.summary, sizeof(msg.policy.summary), "%s", policy->summary);
	snprintf(msg.policy.state, sizeof(msg.policy.state), "%s", state_of(node, policy));
	msg.policy.lacks = (uint32_t)__builtin_popcount(lacks);
	td_peer_send(peer, &msg);
	for (uint32_t bit = 0; bit < TD_ABILITY_N; bit++) {
		if (!(lacks >> bit & 1))
			continue;
		send_lack(peer, policy, bit);
		rows++;
	}
	return rows;
}

uint32_t td_tool_send_policies(struct td_peer *peer)
{
	uint32_t rows = 0;

	td_abilities_look(&peer->server->node);
	for (const struct td_policy *const *p = td_policies; *p; p++)
		rows += send_policy(peer, *p);
	return rows;
}

void td_tool_add_verdict(struct td_msg_gpu *gpu, const struct td_node *node, uint32_t index)
{
	const struct td_gpu_verdict *verdict = &node->verdicts[index];
	uint64_t now_ns = td_time_now_ns();

	gpu->sm_share_ppm = verdict->sm_share_ppm;
	if (!verdict->known)
		return;
	snprintf(gpu->monitor, sizeof(gpu->monitor), "%s",
		td_sysmonitor_name((enum td_sysmonitor_state)verdict->state));
	snprintf(gpu->health, sizeof(gpu->health), "%s",
		td_health_name((enum td_health_state)verdict->health));
	gpu->accepts = verdict->accepts;
	gpu->load_ppm = verdict->load_ppm;
	gpu->duty_ppm = verdict->duty_ppm;
	gpu->overlimit_ns = verdict->until_ns > now_ns ? verdict->until_ns - now_ns : 0;
}
