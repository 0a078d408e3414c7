/*
 * Takes the clients' reports of their memory (USED, STATS) and their questions (ASK). A figure is
 * cut to the size of a device, and a part to the size of the whole.
 */
#pragma once

#include <stdint.h>

struct td_client;
struct td_msg_ask;
struct td_msg_stats;
struct td_msg_used;
struct td_node;

/* No device has that much, and sums over all clients of it do not overflow. */
uint64_t td_used_bounded(uint64_t bytes);

/* Exact, and the acknowledgement of a GRANT: all limits go by this. */
void td_used_report(struct td_node *node, struct td_client *client, const struct td_msg_used *msg,
	uint64_t now_ns);

/* Figures for people, policies and events. */
void td_used_stats(struct td_node *node, struct td_client *client, const struct td_msg_stats *msg,
	uint64_t now_ns);

/* 0, or -EPROTO: it waits for an answer already. */
int td_used_ask(struct td_node *node, struct td_client *client, const struct td_msg_ask *msg,
	uint64_t now_ns);
