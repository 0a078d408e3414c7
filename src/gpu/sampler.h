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
	uint64_t time_ns;   /* when it was taken; 0: none yet */
	uint64_t glance_ns; /* when clocks, utilisation and Xids in it were looked at last */
	uint32_t gpu_count;
	struct td_nvml_gpu gpus[TD_NVML_GPU_MAX];
	uint32_t use_count;
	struct td_nvml_use uses[TD_NVML_USE_MAX];
};

/* library NULL: NVIDIA's. 0 or -errno. */
int td_sampler_new(const char *library, uint64_t period_ns, struct td_sampler **ret);
/* Leaves a thread that hangs within NVML behind; the process is about to end. */
void td_sampler_free(struct td_sampler *sampler);

/* Readable after each sample: td_sampler_take() makes it unreadable again. */
int td_sampler_fd(const struct td_sampler *sampler);

/*
 * Starts or stops sampling once a period. Where there is no NVML, it is looked for once, not each
 * period.
 */
void td_sampler_want(struct td_sampler *sampler, bool wanted);
void td_sampler_set_period(struct td_sampler *sampler, uint64_t period_ns);

/*
 * Looks at clocks, utilisation and Xids this often between samples while they are wanted; 0: not.
 */
void td_sampler_set_glance(struct td_sampler *sampler, uint64_t period_ns);

/*
 * The kernel's log, which tells whose an Xid is (xid_log.h). It is read from its end on. "": none.
 */
#define TD_SAMPLER_PATH 108
void td_sampler_set_log(struct td_sampler *sampler, const char *path);

/* Requests one sample as soon as possible. */
void td_sampler_ask(struct td_sampler *sampler);

void td_sampler_take(struct td_sampler *sampler, struct td_sample *ret);
