/*
 * The daemon finds a hung MPS server (model/hang.h) by clients that have died with work in flight,
 * and by clients whose work has stopped ending.
 */
#pragma once

#include <stdint.h>

struct td_client;
struct td_msg_left;
struct td_node;
struct td_process;

/* LEFT. One that cannot drain in time is let go of by the server, and then says so again. */
void td_hangs_left(
	const struct td_node *node, struct td_process *process, const struct td_msg_left *msg);
/* Has the server of a client of MPS end its contexts. After that it may be killed. */
void td_hangs_let_go(const struct td_node *node, const struct td_client *client);
/* The process is gone; its clients are there still. */
void td_hangs_gone(struct td_node *node, const struct td_process *process, uint64_t now_ns);

/* Looks at what the clients have launched, and at what has ended. */
void td_hangs_look(struct td_node *node, uint64_t now_ns);
