/*
 * Decides whether the MPS server of a GPU hangs. A hung server reports that it is active, and its
 * clients wait without end (MuxFlow 4.2). So it is tested: by a canary, a short-lived client with a
 * trivial piece of work (server/gpus/canary.h). This module decides when to send one, and what its
 * end means. Pure.
 *
 *   QUIET   --a client has ended without LEFT-->                        SUSPECT
 *   QUIET   --clients have launched, and nothing has ended for quiet_ns--> SUSPECT
 *   SUSPECT --the canary is sent-->                                     TRIED
 *   TRIED   --its work has ended-->                                     QUIET
 *   TRIED   --tried_ns are over-->                                      HUNG
 *   TRIED   --it could not be started, or had an error-->               SUSPECT, in retry_ns
 *   any     --the server has ended, or is another one-->                QUIET
 *
 * A client that ends without LEFT while a canary is under way causes another canary after it. Long
 * kernels do not delay a canary: under MPS it runs beside them. If it does not, the worst result is
 * the restart of a server whose clients would have waited longer than tried_ns anyway.
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

/* A zeroed struct is valid: QUIET, and nothing seen yet. */
struct td_hang {
	enum td_hang_state state;
	/* in state TRIED: another client died, so the server will be suspected once more */
	bool again;
	int server; /* the server's process id; 0: none */
	/* the user of the server; its clients and the canary run as the same */
	uint32_t uid;
	uint64_t suspect_ns; /* since when the state is not QUIET */
	/*
	 * in state TRIED: the deadline of the canary; otherwise no canary is sent before this time
	 */
	uint64_t until_ns;
	uint64_t launched, ended; /* sums over all clients, as last reported */
	/* when `ended` changed last, or when the first launch after that came */
	uint64_t ended_ns;
	bool waits; /* launches have come since `ended` changed last */
};

struct td_hang_params {
	uint64_t quiet_ns, tried_ns, retry_ns;
};
/* The defaults: quiet_ns is 5 s, tried_ns 2 s, retry_ns 10 s. */
extern const struct td_hang_params td_hang_default;

/* A client of the server ended without LEFT, or left while its work was in flight. */
void td_hang_died(struct td_hang *hang, uint64_t now_ns);
/* Takes the server's process id; 0 if there is no server. */
void td_hang_server(struct td_hang *hang, int server);
/*
 * Takes the number of launches of all clients, and the GPU time of their work that has ended.
 * Either sum falls when a client leaves.
 */
void td_hang_progress(struct td_hang *hang, const struct td_hang_params *params, uint64_t launched,
	uint64_t ended, uint64_t now_ns);

/* Returns whether to send a canary now. */
bool td_hang_wants_canary(const struct td_hang *hang, uint64_t now_ns);
void td_hang_sent(struct td_hang *hang, const struct td_hang_params *params, uint64_t now_ns);
enum td_canary_end {
	TD_CANARY_WELL,
	TD_CANARY_FAILED, /* the canary could not test the server */
};
void td_hang_canary(struct td_hang *hang, const struct td_hang_params *params,
	enum td_canary_end end, uint64_t now_ns);
/* Returns true once, when the state becomes HUNG. */
bool td_hang_step(struct td_hang *hang, uint64_t now_ns);
/* Returns when td_hang_step() or a canary is due; UINT64_MAX if no time is known. */
uint64_t td_hang_wakeup(
	const struct td_hang *hang, const struct td_hang_params *params, uint64_t now_ns);
