/*
 * NVML's figures of the node's GPUs, as of the last sample. A thread asks NVML (gpu/sampler.h), so
 * the loop never waits for a driver.
 */
#pragma once

#include "daemon/server/loop.h"
#include "gpu/sampler.h"

struct td_watch {
	struct td_source source;
	struct td_loop *loop;
	struct td_sampler *sampler; /* NULL: none could be made; everything is unknown then */
	uint64_t period_ns;
	bool wanted;
	char log[TD_SAMPLER_PATH]; /* as it was set last */
	struct td_sample sample;
};

/* Requests the first sample at once: its order gives the GPUs their numbers. */
void td_watch_init(struct td_watch *watch, struct td_loop *loop, uint64_t period_ns);
void td_watch_deinit(struct td_watch *watch);

/* Samples go on while this is so: clients are on a GPU. */
void td_watch_set(struct td_watch *watch, bool wanted, uint64_t period_ns);

/* So often clocks, utilisation and Xids are looked at in between; 0: not. */
void td_watch_set_glance(struct td_watch *watch, uint64_t period_ns);

/* The kernel's log: a path, or "auto" (options.def). */
void td_watch_set_log(struct td_watch *watch, const char *path);

/* Requests one more sample as soon as possible. */
void td_watch_ask(struct td_watch *watch);

/*
 * Is the sample as young as samples get? If not, one is requested, and the loop turns when it is
 * there.
 */
bool td_watch_is_fresh(struct td_watch *watch, uint64_t now_ns);
