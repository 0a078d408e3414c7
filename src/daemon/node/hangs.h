/*
 * The daemon suspects that an MPS server hangs (model/measure/hang.h) when clients died with work
 * in flight, or when the work of clients has stopped ending.
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

/*
 * Handles LEFT. A process that cannot drain in time has the server end its contexts, and then sends
 * LEFT again.
 */
void td_hangs_left(
	const struct td_node *node, struct td_process *process, const struct td_msg_left *msg);
/* Has the MPS server end the contexts of this client. After that the client may be killed. */
void td_hangs_let_go(const struct td_node *node, const struct td_client *client);
/* Handles the end of a process; its clients still exist. */
void td_hangs_gone(struct td_node *node, const struct td_process *process, uint64_t now_ns);

/*
 * Returns which program the GPU's last Xid belongs to. server is the pid of the MPS server; 0:
 * unknown.
 */
enum td_xid_of td_hangs_xid_of(
	const struct td_node *node, const struct td_nvml_gpu *listed, pid_t server);
/*
 * Checks the last Xid of a GPU of the table. If it is of a kind that ends programs, and no program
 * is known as its cause, MPS becomes suspect. server_ns is when the server was started.
 */
void td_hangs_xid(
	struct td_node *node, uint32_t index, pid_t server, uint64_t server_ns, uint64_t now_ns);

/* Compares the clients' launches with the work that has ended. */
void td_hangs_look(struct td_node *node, uint64_t now_ns);
