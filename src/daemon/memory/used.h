/*
 * Takes the clients' reports of their memory (USED, STATS) and their requests (ASK). A figure is
 * cut to the size of the largest possible device, and a part to the size of its whole.
 */
#pragma once

#include <stdint.h>

struct td_client;
struct td_msg_ask;
struct td_msg_stats;
struct td_msg_used;
struct td_node;

/*
 * Cuts the figure to a size that no device exceeds, so that sums over all of its clients cannot
 * overflow.
 */
uint64_t td_used_bounded(uint64_t bytes);

/* Takes an exact report, which also acknowledges a GRANT. All limits are based on it. */
void td_used_report(struct td_node *node, struct td_client *client, const struct td_msg_used *msg,
	uint64_t now_ns);

/* Takes figures that are only for people, policies and events. */
void td_used_stats(struct td_node *node, struct td_client *client, const struct td_msg_stats *msg,
	uint64_t now_ns);

/* Takes a request. Returns 0, or -EPROTO if the client already waits for a verdict. */
int td_used_ask(struct td_node *node, struct td_client *client, const struct td_msg_ask *msg,
	uint64_t now_ns);
