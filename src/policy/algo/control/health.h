/*
 * The health of a GPU whose programs share one MPS server: when to reset, and when to stop trying.
 *
 * Purpose. Under MPS one program's error reaches its neighbours. MuxFlow (4.2) summarises the
 * patterns (MPS server crashes, Xid 31, hangs) in a detector that resets the contexts and the MPS
 * server. This is that detector, without I/O: it is told what was seen and says what to do.
 *
 *   STARTING --good_samples in a row--> GOOD
 *   STARTING, GOOD --an error--> FAILED             the server is to be reset
 *   FAILED --the server has been started anew--> STARTING
 *   FAILED for the breaker_failures-th time within breaker_window_ns--> BROKEN
 *   BROKEN --breaker_ns are over--> FAILED, or STARTING if the server is good
 *   any state --an Xid of class DEVICE--> LOST      until the GPU is forgotten
 *
 * An error is a failed MPS server; or, with a server that runs, an Xid of class PROGRAM of the
 * server or a client, or work in flight of which nothing ends. The Xid of a program outside of MPS
 * ends that program alone, so it is none here; nor is one of which it is not known whose it is. An
 * Xid counts once, when its time is new: an old one does not fail a new server.
 *
 * Invariants
 *  - a reset is wanted in FAILED only, so never more often than breaker_failures in the window;
 *  - LOST is never left;
 *  - same calls, same answers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum td_xid_class {
	TD_XID_SHOWN,
	TD_XID_PROGRAM,
	TD_XID_DEVICE,
	TD_XID_N,
};

/* Returns the class of an Xid by xids.def; TD_XID_SHOWN for one that xids.def does not list. */
enum td_xid_class td_xid_class(uint32_t xid);

/* Returns the meaning of an Xid in a few words; NULL if xids.def does not list it. */
const char *td_xid_text(uint32_t xid);

enum td_health_state {
	TD_HEALTH_STARTING,
	TD_HEALTH_GOOD,
	TD_HEALTH_FAILED,
	TD_HEALTH_BROKEN,
	TD_HEALTH_LOST,
	TD_HEALTH_N,
};

/* Returns "starting", "good", "failed", "broken" or "lost". */
const char *td_health_name(enum td_health_state state);

#define TD_HEALTH_FAILURES_MAX 16

struct td_health_params {
	uint32_t good_samples; /* good samples in a row before work is placed */
	/*
	 * After so many failures within breaker_window_ns the MPS server is not reset for
	 * breaker_ns. At most TD_HEALTH_FAILURES_MAX.
	 */
	uint32_t breaker_failures;
	uint64_t breaker_window_ns, breaker_ns;
};

/* Five samples; the third failure in ten minutes stops the resets for ten minutes. */
#define TD_HEALTH_DEFAULT                                                                          \
	{                                                                                          \
		.good_samples = 5, .breaker_failures = 3, .breaker_window_ns = 600000000000ull,    \
		.breaker_ns = 600000000000ull                                                      \
	}
extern const struct td_health_params td_health_default;

enum td_health_server {
	TD_HEALTH_SERVER_NONE, /* programs run without MPS, or it is not known */
	TD_HEALTH_SERVER_RUNS,
	TD_HEALTH_SERVER_FAILED, /* it has died, or refuses clients */
};

enum td_xid_of {
	TD_XID_OF_UNKNOWN, /* not known yet */
	TD_XID_OF_MPS,     /* a server of MPS or one of its clients */
	TD_XID_OF_OTHER,
};

struct td_health_metrics {
	bool has_figures; /* this sample has figures of the GPU */
	enum td_health_server server;
	uint64_t server_ns; /* when the present server was started */
	uint32_t xid;       /* the last Xid; 0: none */
	uint64_t xid_ns;    /* when the last Xid came */
	bool hangs;         /* work is in flight, and none of it ends */
	enum td_xid_of xid_of;
};

/* A zeroed struct is in STARTING and has seen nothing. */
struct td_health {
	enum td_health_state state;
	uint32_t samples; /* good ones in a row, in STARTING */
	uint32_t failure_count;
	uint64_t failures_ns[TD_HEALTH_FAILURES_MAX]; /* times of the last failures, oldest first */
	uint64_t xid_ns;                              /* time of the last Xid that was handled */
	uint64_t server_ns;                           /* the start of the server that failed */
	uint64_t until_ns;                            /* when the state BROKEN ends */
};

/* Makes one step for a GPU. Returns the state after it. */
enum td_health_state td_health_step(struct td_health *health, const struct td_health_params *params,
	const struct td_health_metrics *metrics, uint64_t now_ns);
