/*
 * Does the MPS server of a GPU hang? A hung one reports that it is active, and its clients wait
 * without end (MuxFlow 4.2). It is not asked but tried: a canary, a short-lived client with a
 * trivial piece of work (server/canary.h). This is when one is sent, and what its end means. Pure.
 *
 *   QUIET   --a client has ended without LEFT-->                        SUSPECT
 *   QUIET   --clients have launched, and nothing has ended for quiet_ns--> SUSPECT
 *   SUSPECT --the canary is sent-->                                     TRIED
 *   TRIED   --its work has ended-->                                     QUIET
 *   TRIED   --tried_ns are over-->                                      HUNG
 *   TRIED   --it could not be started, or had an error-->               SUSPECT, in retry_ns
 *   any     --the server has ended, or is another one-->                QUIET
 *
 * A client that ends without LEFT while a canary is under way causes another one after it. Long
 * kernels do not hang a canary: under MPS it runs beside them. Where it does not, the worst is that
 * a server is restarted whose clients would have waited longer than tried_ns anyway.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum td_hang_state {
	TD_HANG_QUIET,
	TD_HANG_SUSPECT,
	TD_HANG_TRIED,
	TD_HANG_HUNG,
};

/* Zeroed: QUIET, and nothing seen. */
struct td_hang {
	enum td_hang_state state;
	bool again;               /* TRIED: suspect once more */
	int server;               /* pid; 0: none */
	uint32_t uid;             /* of the server: its clients', and so a canary's */
	uint64_t suspect_ns;      /* since when it is not QUIET */
	uint64_t until_ns;        /* TRIED: the end of its time; QUIET: not tried before */
	uint64_t launched, ended; /* counters of all clients, as seen last */
	uint64_t ended_ns;        /* when the second has changed, or the first after the second */
	bool waits;               /* something was launched since */
};

struct td_hang_params {
	uint64_t quiet_ns, tried_ns, retry_ns;
};
/* quiet_ns 5 s, tried_ns 2 s, retry_ns 10 s. */
extern const struct td_hang_params td_hang_default;

/* A client of the server has ended without LEFT, or has left with work in flight. */
void td_hang_died(struct td_hang *hang, uint64_t now_ns);
/* The pid of the server; 0: there is none. */
void td_hang_server(struct td_hang *hang, int server);
/*
 * The launches of all clients, and how much GPU time of them has ended. Either sum falls when a
 * client goes.
 */
void td_hang_progress(struct td_hang *hang, const struct td_hang_params *params, uint64_t launched,
	uint64_t ended, uint64_t now_ns);

/* Is a canary to be sent now? */
bool td_hang_wants_canary(const struct td_hang *hang, uint64_t now_ns);
void td_hang_sent(struct td_hang *hang, const struct td_hang_params *params, uint64_t now_ns);
enum td_canary_end {
	TD_CANARY_WELL,
	TD_CANARY_FAILED, /* it could not try */
};
void td_hang_canary(struct td_hang *hang, const struct td_hang_params *params,
	enum td_canary_end end, uint64_t now_ns);
/* True: it is HUNG, and was not before. */
bool td_hang_step(struct td_hang *hang, uint64_t now_ns);
/* When td_hang_step() or a canary is due, UINT64_MAX: no time is known. */
uint64_t td_hang_wakeup(
	const struct td_hang *hang, const struct td_hang_params *params, uint64_t now_ns);
