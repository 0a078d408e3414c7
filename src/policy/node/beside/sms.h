/*
 * The SMs that protected jobs leave on a GPU, for besteffort work beside them under MPS, and when
 * such work that runs already gets another share of them.
 *
 * MuxFlow (4.3, Fig. 8) gives offline work the SMs that the online work does not use. What counts
 * is the share that its kernels take while they run, not their activity over the time: a service
 * that keeps 70 % of the SMs busy for 30 % of the time leaves 30 % of them, not 79 %.
 *
 * A change stops the program for a while, and needs of one window vary. So shares come in steps of
 * a tenth of the GPU, and a share changes only when the other one has been wanted without a break:
 * a smaller one for TD_RESHARE_SHRINK_NS, since it protects others, a larger one for
 * TD_RESHARE_GROW_NS, by the least that was left in that time. A program whose share has changed
 * keeps it for TD_MOVES_REST_MIN_NS at least, and gets a larger one only after TD_MOVES_REST_TIMES
 * the pause (moves.h): a long pause, as on a stalled machine, must not delay what protects others.
 */
#pragma once

#include "policy/policy.h"

/*
 * Returns the share that the clients of classes up to `up_to` leave (ONLINE: online ones;
 * GUARANTEED: both), in whole percents and at least 10 %. A client whose need is not known counts
 * as the whole GPU. 0: there is no such client, so there is no bound.
 */
uint32_t td_sms_left_ppm(const struct td_view *view, uint32_t gpu, enum td_class up_to);

#define TD_RESHARE_STEP_PPM  100000u
#define TD_RESHARE_SHRINK_NS 300000000ull
#define TD_RESHARE_GROW_NS   2000000000ull

/* A zeroed struct is valid. */
struct td_reshare {
	uint32_t client; /* the client's id */
	bool wanted, grows;
	uint32_t least_ppm; /* the least that was left since then */
	uint64_t since_ns;
};

/*
 * Returns the share that the client is to get now; 0: it keeps the one that it has. left_ppm: what
 * the others leave; 0: there is no bound. To be called in each step for the same client.
 * *ret_wakeup_ns: when to step again at the latest; left alone if nothing is wanted.
 */
uint32_t td_sms_reshare(struct td_reshare *reshare, const struct td_client_view *client,
	uint32_t left_ppm, uint64_t now_ns, uint64_t *ret_wakeup_ns);
