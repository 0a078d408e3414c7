/*
 * The latency of a service's batch, by bursts of as many requests as make one.
 *
 * The service is to wait until a batch is full, or for long enough: then a burst is one batch. The
 * latency of a burst is that of the request that came last, from when it was sent to when it was
 * answered: the batch ran in that time, and nothing was waited for. It includes HTTP on both sides.
 */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "profiler/service/client.h"

struct td_err;

struct td_bursts {
	struct client client;
	const volatile sig_atomic_t *stop;
	uint64_t least_ns; /* of the present burst */
	uint32_t failed;
};

/*
 * Connects nowhere yet. Nothing is waited for any more once *stop is set. 0, or a negative errno
 * with a sentence.
 */
int td_bursts_init(struct td_bursts *bursts, const char *url, uint32_t batch_max,
	const volatile sig_atomic_t *stop, struct td_err *err);
void td_bursts_deinit(struct td_bursts *bursts);

/* Asks once. True: it was answered. */
bool td_bursts_is_up(struct td_bursts *bursts);

/*
 * Measures `count` bursts of `batch` requests after two that do not count. The latency is that
 * quantile of them, by nearest rank. 0; -EIO with a sentence: a request failed; -EINTR: *stop.
 */
int td_bursts_measure(struct td_bursts *bursts, uint32_t batch, uint32_t count, double quantile,
	double *ret_latency_s, struct td_err *err);
