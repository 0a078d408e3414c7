/*
 * The daemon finds a hung MPS server (model/hang.h) by clients that have died with work in flight,
 * and by clients whose work has stopped ending.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "policy/algo/control/health.h"

struct td_client;
struct td_msg_left;
struct td_node;
struct td_nvml_gpu;
struct td_process;

/* LEFT. One that cannot drain in time is let go of by the server, and then says so again. */
void td_hangs_left(
	const struct td_node *node, struct td_process *process, const struct td_msg_left *msg);
/* Has the server of a client of MPS end its contexts. After that it may be killed. */
void td_hangs_let_go(const struct td_node *node, const struct td_client *client);
/* The process is gone; its clients are there still. */
void td_hangs_gone(struct td_node *node, const struct td_process *process, uint64_t now_ns);

/* Tells whose the last Xid of the GPU is. server: the pid of the MPS server, 0: none is known. */
enum td_xid_of td_hangs_xid_of(
	const struct td_node *node, const struct td_nvml_gpu *listed, pid_t server);
/*
 * Looks at the last Xid of a GPU of the table. One that ends programs, and of which nobody tells
 * whose it is, makes MPS suspect. server_ns: when the server was started.
 */
void td_hangs_xid(
	struct td_node *node, uint32_t index, pid_t server, uint64_t server_ns, uint64_t now_ns);

/* Looks at what the clients have launched, and at what has ended. */
void td_hangs_look(struct td_node *node, uint64_t now_ns);
