/*
 * The supervisor's connection to the daemon. The daemon may be missing at any time. Then no orders
 * come, and a queued job is admitted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/proto.h"

struct td_link {
	char path[256]; /* the path of the socket; "": no daemon is used */
	int fd;         /* -1: not connected */
	uint64_t retry_ns, delay_ns;
	struct td_msg said; /* SUPERVISE with the present state */
	unsigned owed;      /* the number of SUPERVISE messages without an answer yet */
	bool has_answered;  /* ORDERED was sent over this connection */

	bool is_asking;        /* a question about admission has no answer yet */
	int ask_fd;            /* the connection for that question; -1: no daemon can be asked */
	uint64_t ask_until_ns; /* the deadline for that answer */
};

enum td_link_admission {
	TD_LINK_WAITS,    /* the daemon has not answered yet, or was asked nothing */
	TD_LINK_ADMITTED, /* the daemon agrees, or there is no daemon */
	TD_LINK_REFUSED,
	TD_LINK_ADMISSION_N,
};

void td_link_init(struct td_link *link, const char *path, const char *job, uint32_t can);
/*
 * Closes the connection. A daemon that cannot send an answer stops reading. So the last ORDERED is
 * only sure to be read if the daemon's own answers are read first; that is waited for, for a
 * moment.
 */
void td_link_deinit(struct td_link *link);

/*
 * Tells the daemon the pid of the program (0: none runs), how often it was started, and its
 * instance.
 */
void td_link_say(
	struct td_link *link, uint32_t pid, uint32_t epoch, uint64_t ordered, uint32_t instance);
/* Sends an answer to an order; the daemon that gave the order may be gone. */
void td_link_send(struct td_link *link, const struct td_msg *msg);
/* Connects and registers, if that is due. */
void td_link_tick(struct td_link *link, uint64_t now_ns);
/* Receives the next order without waiting. Returns false if there is none. */
bool td_link_recv(struct td_link *link, struct td_msg *ret, uint64_t now_ns);
/* Returns when td_link_tick() or td_link_admission() is due, or UINT64_MAX. */
uint64_t td_link_wake_ns(const struct td_link *link);

/* Asks whether a job of this class and limit may start. */
void td_link_ask(struct td_link *link, const struct td_msg_admit *admit, uint64_t now_ns);
enum td_link_admission td_link_admission(struct td_link *link, uint64_t now_ns);
