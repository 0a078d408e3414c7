/*
 * The supervisor's connection to the daemon. All of it may be missing at any time: then nothing is
 * ordered, and a queued job is admitted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/proto.h"

struct td_link {
	char path[256]; /* of the socket; "": there is no daemon to look for */
	int fd;         /* -1: not connected */
	uint64_t retry_ns, delay_ns;
	struct td_msg said; /* SUPERVISE, as it is so now */
	unsigned owed;      /* answers to SUPERVISE that have not come yet */
	bool has_answered;  /* ORDERED was sent on this connection */

	bool is_asking;        /* a question about admission waits for its answer */
	int ask_fd;            /* its connection; -1: nobody can be asked */
	uint64_t ask_until_ns; /* who has not answered by then says nothing */
};

enum td_link_admission {
	TD_LINK_WAITS,    /* or nothing was asked */
	TD_LINK_ADMITTED, /* or there is nobody who would say it */
	TD_LINK_REFUSED,
	TD_LINK_ADMISSION_N,
};

void td_link_init(struct td_link *link, const char *path, const char *job, uint32_t can);
/*
 * A daemon that cannot send an answer any more does not read further. So the last answer to an
 * order is only sure to be read if its own answers are waited for, which is done for a moment. */
void td_link_deinit(struct td_link *link);

/* Tells the daemon the pid of the program (0: none runs) and how often it was started. */
void td_link_say(struct td_link *link, uint32_t pid, uint32_t epoch, uint64_t ordered);
/* Sends an answer to an order; the daemon that gave the order may be gone. */
void td_link_send(struct td_link *link, const struct td_msg *msg);
/* Connects and registers, if that is due. */
void td_link_tick(struct td_link *link, uint64_t now_ns);
/* The next order, without waiting: true and *ret, or false. */
bool td_link_recv(struct td_link *link, struct td_msg *ret, uint64_t now_ns);
/* When tick or admission are due, or UINT64_MAX. */
uint64_t td_link_wake_ns(const struct td_link *link);

/* Asks whether a job of this class and limit may start. */
void td_link_ask(struct td_link *link, const struct td_msg_admit *admit, uint64_t now_ns);
enum td_link_admission td_link_admission(struct td_link *link, uint64_t now_ns);
