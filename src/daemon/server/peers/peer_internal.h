/* The struct of one connection, and the functions that the files of the server share. */
#pragma once

#include "daemon/execute/actions.h"
#include "daemon/record/identity.h"
#include "daemon/server/loop/outbox.h"
#include "daemon/server/peers/peer.h"

struct td_peer {
	struct td_source source; /* must be first: the loop hands it back */
	/* readable once the client process has ended; below 0: not available */
	struct td_source end;
	uint64_t start_ticks; /* the start time of the process (td_procfs_stat); 0: unknown */
	struct td_list of_server;
	struct td_list waiting; /* in its user's line while it is to be read from (fair.h) */
	struct td_list held;    /* in the server's list while messages to it are held */
	struct td_server *server;
	struct td_user *user;
	pid_t pid;
	struct td_identity who;
	/* since when the peer has sent nothing at all; 0: it has sent something */
	uint64_t silent_since_ns;
	struct td_process *process;       /* the client process, set by HELLO */
	struct td_supervisor *supervisor; /* the supervisor, set by SUPERVISE */
	struct td_gate_page *gate;        /* the peer's gate page, as mapped in the daemon */
	/* The peer's meter page, as mapped read-only in the daemon. */
	const struct td_meter_page *meter;
	struct td_outbox out;
	/* While messages wait in the outbox: when the peer last read one. */
	uint64_t stuck_since_ns;
	uint32_t events; /* the events that the loop reports for it */
	/*
	 * The peer must first read the packets that wait for it; until then nothing from it is
	 * read.
	 */
	bool waits;
	bool is_answered; /* a request of the peer is being answered at this moment */
	bool follows;     /* a tool that wants every event */
	/* Since when the tool waits for the state of the GPUs; 0: it does not. */
	uint64_t gpus_asked_ns;
	/* the tool wants to know what policies lack, and not the state itself */
	bool asks_policies;
	/*
	 * WATCH: the time between two rounds (0: none was asked for), and when the next one is due.
	 */
	uint64_t watch_period_ns, watch_next_ns;
	/* An answer that is sent in parts (answers.c). A type of 0 means that there is none. */
	struct {
		uint32_t type; /* the type of the request */
		uint32_t rows; /* the rows sent so far */
		/*
		 * next: where the answer goes on, which is the id of a process or client, or the
		 * number of an event. until: the first event that is no part of the answer;
		 * UINT64_MAX: all later events are.
		 */
		uint64_t next, until;
		/* the name of the job that explain, get or view is about */
		char job[TD_STR_MAX + 1];
	} answer;
	/*
	 * acts, act_count: the acts that it has asked for and that have not ended. act_rows: how
	 * many rows it was sent about them.
	 */
	uint64_t acts[TD_ACTS_MAX];
	uint32_t act_count, act_rows;
	bool broken; /* the peer is disconnected at the end of this turn of the loop */
};

/* -- accept.c -- */
/* Accepts waiting connections. The loop calls td_peer_ready() for them from then on. */
void td_accept_ready(struct td_source *source, uint32_t events);
void td_peer_ready(struct td_source *source, uint32_t events);
/* Returns how many connections there can be. */
struct td_pool td_accept_all(void);
/* Returns whether there are descriptors to watch the ends of all processes, too. */
bool td_accept_can_watch(void);

/* -- unread.c -- */
/* Called when a peer is new: the loop already reports EPOLLIN of it. */
void td_peer_init_unread(struct td_peer *peer);
void td_peer_forget_unread(struct td_peer *peer);
/* Returns whether the peer's next packet may be read, and sets what the loop reports of it. */
bool td_peer_may_be_read(struct td_peer *peer);
/* Sends kept packets after the connection has become writable. */
void td_peer_flush(struct td_peer *peer);
/*
 * These call td_tool_request() and td_tool_turn(). Answers that they begin are not bounded by the
 * user's room.
 */
int td_peer_answer(struct td_peer *peer, const struct td_msg *msg, uint64_t now_ns);
uint64_t td_peer_answer_later(struct td_peer *peer, uint64_t now_ns);
/*
 * Goes on reading from the peer if that is allowed again. Marks it broken if it has read nothing
 * for long and its user has no more room. Returns when to call it again, or UINT64_MAX.
 */
uint64_t td_peer_look_at_outbox(struct td_peer *peer, uint64_t now_ns);
/*
 * Sends the message, or marks the peer broken. Messages to programs wait while the server holds
 * them.
 */
void td_peer_send(struct td_peer *peer, const struct td_msg *msg);
/* Sends the held messages and stops holding. */
void td_peer_send_held(struct td_server *server);
/*
 * td_peer_finish() sends END with the number of rows. td_peer_fail() sends ERROR with -errno and a
 * sentence instead.
 */
void td_peer_finish(struct td_peer *peer, uint32_t rows);
void td_peer_fail(struct td_peer *peer, int code, const char *text);
/* Returns the number of rows sent: 0 if the peer may not see the event, else 1. */
uint32_t td_peer_send_event(struct td_peer *peer, const struct td_event *event);

/*
 * Answers a tool that waits for the GPUs' state, if the sample is there or takes too long. Returns
 * when to call it again, or UINT64_MAX.
 */
uint64_t td_tool_turn(struct td_peer *peer, uint64_t now_ns);

/* Sends a POLICY for each policy, with its LACKs. Returns the number of rows. */
uint32_t td_tool_send_policies(struct td_peer *peer);

/* Adds the policy's verdict on the GPU with that index. */
void td_tool_add_verdict(struct td_msg_gpu *gpu, const struct td_node *node, uint32_t index);

/* Handles ACT. */
void td_tool_act(struct td_peer *peer, const struct td_msg_act *msg, uint64_t now_ns);
/* Tells the peer about a change in the state of an action, if the peer waits for that action. */
void td_tool_acted(struct td_peer *peer, const struct td_act *act);

/*
 * WATCH: td_tool_is_round_due() returns whether a round is due and the peer has room for it. The
 * other one sends it.
 */
bool td_tool_is_round_due(const struct td_peer *peer, uint64_t now_ns);
void td_tool_send_round(struct td_peer *peer, uint64_t now_ns);

/* -- answers.c -- */
/* Notes that a request of this type is to be answered, and sends nothing yet. */
void td_answer_ask(struct td_peer *peer, uint32_t type, const char *job);
/* Like td_answer_ask(), but sends the first part of the answer at once. */
void td_answer_begin(struct td_peer *peer, uint32_t type, const char *job, uint64_t now_ns);
void td_answer_begin_events(struct td_peer *peer, const struct td_msg_events *msg, uint64_t now_ns);
/*
 * td_answer_is_due() returns whether the next part is due, after the peer has read the earlier
 * ones. The other one sends it.
 */
bool td_answer_is_due(const struct td_peer *peer);
void td_answer_send_part(struct td_peer *peer, uint64_t now_ns);

/* -- tools.c: the rows of answers; each function returns the number of rows that it sent -- */
/*
 * Returns whether the peer may see processes of that user. Other users' processes appear only as
 * sums.
 */
bool td_tool_may_see(const struct td_peer *peer, struct td_identity who);
/* Sends a row for each GPU of the process, or one row if it uses none. */
uint32_t td_tool_send_process(struct td_peer *peer, struct td_process *process, uint64_t now_ns);
/* Sends one row with the sums of other users' processes on a GPU, or none if they have none. */
uint32_t td_tool_send_others(struct td_peer *peer, uint32_t gpu);
/* Sends all GPUs, in the order of their numbers. */
uint32_t td_tool_send_gpus(struct td_peer *peer);
/* Sends the job's id and settings. */
uint32_t td_tool_send_settings(struct td_peer *peer, const struct td_job *job);
/*
 * Returns the GPU's index among those that jobs use or have used; gpu_count if it is not among
 * them.
 */
uint32_t td_tool_gpu_index(const struct td_node *node, const uint8_t *uuid);

/*
 * Handles a message of a supervisor. Returns 0, or -EPROTO for a message that a supervisor may not
 * send.
 */
int td_supervise_message(struct td_peer *peer, const struct td_msg *msg, uint64_t now_ns);

/* Handles a tool's request. Returns 0, or -EPROTO for a message that is not a request. */
int td_tool_request(struct td_peer *peer, const struct td_msg *msg, uint64_t now_ns);

/*
 * Reads the messages that a process sent before it ended. The daemon may hear of the end before it
 * has read them, and one of them tells whether the process had left MPS.
 */
void td_peer_hear_last_words(struct td_peer *peer, uint64_t now_ns);
