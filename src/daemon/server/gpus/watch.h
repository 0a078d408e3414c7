/*
 * NVML's figures of the node's GPUs, as of the last sample. A thread reads NVML (gpu/sampler.h), so
 * that the loop never waits for a driver.
 */
#pragma once

#include "daemon/server/loop/loop.h"
#include "gpu/sampler.h"

struct td_watch {
	struct td_source source;
	struct td_loop *loop;
	struct td_sampler *sampler; /* NULL: it could not be started; everything is unknown then */
	uint64_t period_ns;
	bool wanted;
	char log[TD_SAMPLER_PATH]; /* the path of the kernel log, as it was set last */
	struct td_sample sample;
};

/*
 * Initialises the watch. Requests the first sample at once, since the GPUs get their numbers from
 * its order.
 */
void td_watch_init(struct td_watch *watch, struct td_loop *loop, uint64_t period_ns);
void td_watch_deinit(struct td_watch *watch);

/* Sets whether samples are taken (while clients are on a GPU), and how often. */
void td_watch_set(struct td_watch *watch, bool wanted, uint64_t period_ns);

/* Sets how often clocks, utilisation and Xids are read between two samples; 0: never. */
void td_watch_set_glance(struct td_watch *watch, uint64_t period_ns);

/* Sets the kernel log that is read: a path, or "auto" (options.def). */
void td_watch_set_log(struct td_watch *watch, const char *path);

/* Requests one more sample as soon as possible. */
void td_watch_ask(struct td_watch *watch);

/*
 * Returns whether the sample is as recent as samples get. If not, requests one; the loop turns when
 * it is there.
 */
bool td_watch_is_fresh(struct td_watch *watch, uint64_t now_ns);
