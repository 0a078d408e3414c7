/* What peer.c and tools.c share: one connection. */
#pragma once

#include "daemon/peer.h"

struct td_peer {
	struct td_source source; /* first: the loop hands it back */
	struct td_list of_server;
	struct td_server *server;
	pid_t pid;
	uid_t uid;
	struct td_process *process; /* a client process, after HELLO */
	struct td_gate_page *gate;  /* its page, mapped here */
	bool follows;               /* a tool that wants every event */
	bool broken;                /* to be dropped at the end of the turn */
};

/* Sends, or marks the peer broken. */
void td_peer_send(struct td_peer *peer, const struct td_msg *msg);
void td_peer_send_event(struct td_peer *peer, const struct td_event *event);

/* A tool's request. 0, or -EPROTO for a message that is none. */
int td_tool_request(struct td_peer *peer, const struct td_msg *msg, uint64_t now_ns);
