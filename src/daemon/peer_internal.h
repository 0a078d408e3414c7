/* What peer.c and tools.c share: one connection. */
#pragma once

#include "daemon/outbox.h"
#include "daemon/peer.h"

struct td_peer {
	struct td_source source; /* first: the loop hands it back */
	struct td_source end; /* readable once a client process has ended; below 0: nobody tells */
	uint64_t start_ticks; /* of the process: td_procfs_stat; 0: not known */
	struct td_list of_server;
	struct td_list waiting; /* to be read from: in its user's line (fair.h) */
	struct td_server *server;
	struct td_user *user;
	pid_t pid;
	uid_t uid;
	uint64_t silent_since_ns;          /* it has said nothing yet; 0: it has */
	struct td_process *process;        /* a client process, after HELLO */
	struct td_gate_page *gate;         /* its page, mapped here */
	const struct td_meter_page *meter; /* likewise, read-only */
	struct td_outbox out;
	bool follows;           /* a tool that wants every event */
	uint64_t gpus_asked_ns; /* a tool that waits for the GPUs' state since then; 0: none */
	bool broken;            /* to be dropped at the end of the turn */
};

/* Sends, or marks the peer broken. */
void td_peer_send(struct td_peer *peer, const struct td_msg *msg);
void td_peer_send_event(struct td_peer *peer, const struct td_event *event);

/* Answers a tool that waits for the GPUs' state, if that is there or too long in coming. When to be called again, or UINT64_MAX. */
uint64_t td_tool_turn(struct td_peer *peer, uint64_t now_ns);

/* A tool's request. 0, or -EPROTO for a message that is none. */
int td_tool_request(struct td_peer *peer, const struct td_msg *msg, uint64_t now_ns);
