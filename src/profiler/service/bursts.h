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
	uint64_t least_ns; /* the shortest latency in the present burst */
	uint32_t failed;
};

/*
 * Prepares, without connecting. Once *stop is set, nothing waits any more. Returns 0, or -errno
 * with a message in err.
 */
int td_bursts_init(struct td_bursts *bursts, const char *url, uint32_t batch_max,
	const volatile sig_atomic_t *stop, struct td_err *err);
void td_bursts_deinit(struct td_bursts *bursts);

/* Sends one request. Returns whether it was answered. */
bool td_bursts_is_up(struct td_bursts *bursts);

/*
 * Measures `count` bursts of `batch` requests, after two that do not count. The latency is the
 * given quantile of the bursts' latencies (nearest rank). Returns 0; -EIO, with a message in err: a
 * request failed; -EINTR: *stop was set.
 */
int td_bursts_measure(struct td_bursts *bursts, uint32_t batch, uint32_t count, double quantile,
	double *ret_latency_s, struct td_err *err);
