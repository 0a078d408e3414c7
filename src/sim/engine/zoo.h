/*
 * The services and training tasks of Mudi's evaluation, as far as measurements exist. They are the
 * ground truth of the experiments mudi-sim and mixed.
 *
 * Services. Latency over batch comes from ParvaGPU's table (A100, one process, the whole GPU), with
 * a share curve alpha + beta / x fitted to its five shares. vgg19, densenet201 and resnet152 stand
 * in for GPT2, RoBERTa and YOLOS, of which there is no table. The objective is three times what a
 * batch of 16 needs to fill and to run at 15 % of the greatest throughput, which is within 10 % of
 * the paper's for the two services that both have (137 and 119 ms, 150 and 120). Sensitivity is set
 * so that the mean over the nine tasks is the paper's 1.21 for ResNet50 and 1.67 for the stand-in
 * of GPT2, half-way for the others. Pressure is that of Gavel's nearest job.
 *
 * Tasks. They are the nearest of Gavel's jobs (P100 fit), with a share curve of MISO's median
 * alpha. Counts of layers are of the published architectures and share no parameter with any of
 * this.
 */
#pragma once

#include "policy/system/mudi.h"
#include "sim/data/profiles.h"
#include "sim/engine/service.h"

struct td_err;

#define TD_ZOO_SERVICES 6u
#define TD_ZOO_TASKS    9u
/*
 * The first 5 tasks are profiled beforehand. Schedulers know nothing of the others before they run.
 */
#define TD_ZOO_PROFILED 5u
/*
 * One kind of job is not in the paper's table: a notebook, which hardly uses its GPU. Its figures
 * are made up.
 */
#define TD_ZOO_NOTEBOOK 9u
#define TD_ZOO_KINDS    10u
#define TD_ZOO_SERIAL   0.63

struct td_zoo {
	struct td_service_kind services[TD_ZOO_SERVICES];
	double most_per_s[TD_ZOO_SERVICES]; /* greatest throughput on the whole GPU */
	struct td_profiles tasks;
	double layers[TD_ZOO_KINDS][TD_MUDI_LAYERS];
	/* Parts of the tasks in Table 3, normalised to a sum of 1. */
	double fractions[TD_ZOO_TASKS];
	int classes[TD_ZOO_TASKS]; /* 0: S, 1: M, 2: L, 3: XL */
};

int td_zoo_read(const char *data, struct td_zoo *ret, struct td_err *err);

/* Draws a task at random, each as likely as its part in Table 3. */
uint32_t td_zoo_draw_task(const struct td_zoo *zoo, uint64_t *random);

/*
 * A load curve has six levels, from 0.67 to 1.33 times a mean. The mean is `load` times 15 % of the
 * greatest throughput. It is a random walk: each interval goes a level up, down or none.
 */
#define TD_ZOO_INTERVALS   96u
#define TD_ZOO_INTERVAL_NS (1800 * 1000000000ull)
void td_zoo_rates(
	const struct td_zoo *zoo, uint32_t kind, double load, uint64_t *random, float *ret_rates);
