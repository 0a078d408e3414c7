/*
 * Reads NVML without waiting for it: a thread asks NVML, and the loop reads the last answer. The
 * first request starts the thread, which sleeps while nobody wants anything.
 *
 *   idle --want(true) or ask()--> sampling --each period while wanted--> sampling
 *   sampling --nobody wants--> idle
 *
 * All calls are for one thread, the loop's, and none waits for NVML.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/nvml.h"

struct td_sampler;

struct td_sample {
	uint64_t time_ns;   /* when the sample was taken; 0: there is none yet */
	uint64_t glance_ns; /* when its clocks, utilisation and Xids were last read */
	uint32_t gpu_count;
	struct td_nvml_gpu gpus[TD_NVML_GPU_MAX];
	uint32_t use_count;
	struct td_nvml_use uses[TD_NVML_USE_MAX];
};

/* Makes a sampler. library NULL: NVIDIA's. Returns 0 or -errno. */
int td_sampler_new(const char *library, uint64_t period_ns, struct td_sampler **ret);
/*
 * Frees the sampler. A thread that hangs within NVML is left behind; the process is about to end.
 */
void td_sampler_free(struct td_sampler *sampler);

/* Returns a descriptor that is readable after each sample, until td_sampler_take() is called. */
int td_sampler_fd(const struct td_sampler *sampler);

/*
 * td_sampler_want() starts or stops sampling once a period. If there is no NVML, it is looked for
 * only once. td_sampler_set_period() changes the period.
 */
void td_sampler_want(struct td_sampler *sampler, bool wanted);
void td_sampler_set_period(struct td_sampler *sampler, uint64_t period_ns);

/*
 * Sets how often clocks, utilisation and Xids are read between samples while they are wanted; 0:
 * never.
 */
void td_sampler_set_glance(struct td_sampler *sampler, uint64_t period_ns);

/*
 * Sets the path of the kernel's log, which tells the process of an Xid (xid_log.h); "": none. The
 * log is read from its present end on.
 */
#define TD_SAMPLER_PATH 108
void td_sampler_set_log(struct td_sampler *sampler, const char *path);

/* Requests one sample as soon as possible. */
void td_sampler_ask(struct td_sampler *sampler);

void td_sampler_take(struct td_sampler *sampler, struct td_sample *ret);
