/* One connection, for the files that implement the server. */
#pragma once

#include "daemon/execute/actions.h"
#include "daemon/server/outbox.h"
#include "daemon/server/peer.h"

struct td_peer {
	struct td_source source; /* first: the loop hands it back */
	struct td_source end; /* readable once a client process has ended; below 0: nobody tells */
	uint64_t start_ticks; /* of the process: td_procfs_stat; 0: not known */
	struct td_list of_server;
	struct td_list waiting; /* to be read from: in its user's line (fair.h) */
	struct td_list held;    /* among those that are sent what they were told in this step */
	struct td_server *server;
	struct td_user *user;
	pid_t pid;
	uid_t uid;
	uint64_t silent_since_ns;          /* it has said nothing yet; 0: it has */
	struct td_process *process;        /* a client process, after HELLO */
	struct td_supervisor *supervisor;  /* after SUPERVISE */
	struct td_gate_page *gate;         /* its page, mapped here */
	const struct td_meter_page *meter; /* its meter page, mapped here read-only */
	struct td_outbox out;
	uint64_t stuck_since_ns; /* while the outbox is not empty: when it read something last */
	uint32_t events;         /* that the loop is to report */
	bool waits;              /* for what it is to read: nothing is read of it meanwhile */
	bool is_answered;        /* at this moment */
	bool follows;            /* a tool that wants every event */
	uint64_t gpus_asked_ns;  /* a tool that waits for the GPUs' state since then; 0: none */
	bool asks_policies;      /* and wants to know what policies lack, not the state itself */
	/* WATCH: a round each period; 0: none was asked for. The next one is due then. */
	uint64_t watch_period_ns, watch_next_ns;
	/* An answer that is sent in parts (answers.c). Type 0: none. */
	struct {
		uint32_t type; /* of the request */
		uint32_t rows; /* sent so far */
		/*
		 * next: where the answer goes on, which is the id of a process or client, or the
		 * number of an event. until: the first event that is no part of the answer;
		 * UINT64_MAX: all later events are.
		 */
		uint64_t next, until;
		char job[TD_STR_MAX + 1]; /* explain, get and view: whom it is about */
	} answer;
	/* The acts that it has asked for, and that have not ended; how many it was told of. */
	uint64_t acts[TD_ACTS_MAX];
	uint32_t act_count, act_rows;
	bool broken; /* to be dropped at the end of the turn */
};

/* -- accept.c -- */
/* Those who wait are taken; then the loop calls td_peer_ready() for them. */
void td_accept_ready(struct td_source *source, uint32_t events);
void td_peer_ready(struct td_source *source, uint32_t events);
/* How many connections there can be. */
struct td_pool td_accept_all(void);
/* Are there descriptors for the ends of all processes, too? */
bool td_accept_can_watch(void);

/* -- unread.c -- */
/* The loop reports EPOLLIN of the peer already. */
void td_peer_init_unread(struct td_peer *peer);
void td_peer_forget_unread(struct td_peer *peer);
/* May the next packet be read? The loop reports accordingly from now on. */
bool td_peer_may_be_read(struct td_peer *peer);
/* The connection takes packets again. */
void td_peer_flush(struct td_peer *peer);
/* td_tool_request() and td_tool_turn(), whose answers are sent to their end. */
int td_peer_answer(struct td_peer *peer, const struct td_msg *msg, uint64_t now_ns);
uint64_t td_peer_answer_later(struct td_peer *peer, uint64_t now_ns);
/* Reads on of who may be read from again, and breaks one that has read nothing for long where its
 * user has no more room. When to be called again, or UINT64_MAX. */
uint64_t td_peer_look_at_outbox(struct td_peer *peer, uint64_t now_ns);
/* Sends, or marks the peer broken. What a program is told while the server holds waits. */
void td_peer_send(struct td_peer *peer, const struct td_msg *msg);
/* The server holds no more. */
void td_peer_send_held(struct td_server *server);
/* END: the answer had so many rows. ERROR: -errno and a sentence instead of them. */
void td_peer_finish(struct td_peer *peer, uint32_t rows);
void td_peer_fail(struct td_peer *peer, int code, const char *text);
/* Returns the number of rows: 0 where the peer may not see it. */
uint32_t td_peer_send_event(struct td_peer *peer, const struct td_event *event);

/*
 * Answers a tool that waits for the GPUs' state, if that is there or takes too long. Returns when
 * to be called again, or UINT64_MAX.
 */
uint64_t td_tool_turn(struct td_peer *peer, uint64_t now_ns);

/* A POLICY for each policy, and its LACKs. Returns how many rows that is. */
uint32_t td_tool_send_policies(struct td_peer *peer);

/* Adds what the policy thinks of the GPU of that index. */
void td_tool_add_verdict(struct td_msg_gpu *gpu, const struct td_node *node, uint32_t index);

/* ACT. */
void td_tool_act(struct td_peer *peer, const struct td_msg_act *msg, uint64_t now_ns);
/* The act has changed its state: is that news to it? */
void td_tool_acted(struct td_peer *peer, const struct td_act *act);

/* WATCH: is a round due that the peer has room for? Sends it. */
bool td_tool_is_round_due(const struct td_peer *peer, uint64_t now_ns);
void td_tool_send_round(struct td_peer *peer, uint64_t now_ns);

/* -- answers.c -- */
/* The request of this type is to be answered; nothing is sent yet. */
void td_answer_ask(struct td_peer *peer, uint32_t type, const char *job);
/* And the first part is sent. */
void td_answer_begin(struct td_peer *peer, uint32_t type, const char *job, uint64_t now_ns);
void td_answer_begin_events(struct td_peer *peer, const struct td_msg_events *msg, uint64_t now_ns);
/* The next part: is one due, after the peer has read those before? Sends it. */
bool td_answer_is_due(const struct td_peer *peer);
void td_answer_send_part(struct td_peer *peer, uint64_t now_ns);

/* -- tools.c: rows of answers. Each returns their number. -- */
/* Other users' processes appear only as sums. */
bool td_tool_may_see(const struct td_peer *peer, uid_t uid);
/* A row for each GPU of the process, or one. */
uint32_t td_tool_send_process(struct td_peer *peer, struct td_process *process, uint64_t now_ns);
/* The sums of other users' processes on a GPU: a row, or none where they have none. */
uint32_t td_tool_send_others(struct td_peer *peer, uint32_t gpu);
/* All GPUs, in the order of their numbers. */
uint32_t td_tool_send_gpus(struct td_peer *peer);
/* The id and settings. */
uint32_t td_tool_send_settings(struct td_peer *peer, const struct td_job *job);
/* The index among the GPUs that jobs use or have used; gpu_count: there is none. */
uint32_t td_tool_gpu_index(const struct td_node *node, const uint8_t *uuid);

/* Handles a message of a supervisor. 0, or -EPROTO for a message that a supervisor may not send. */
int td_supervise_message(struct td_peer *peer, const struct td_msg *msg, uint64_t now_ns);

/* A tool's request. 0, or -EPROTO for a message that is none. */
int td_tool_request(struct td_peer *peer, const struct td_msg *msg, uint64_t now_ns);

/*
 * The end of the process may be known before its last messages are read. Whether it has left MPS is
 * one of these.
 */
void td_peer_hear_last_words(struct td_peer *peer, uint64_t now_ns);
