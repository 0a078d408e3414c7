/*
 * Mudi: inference services share their GPUs with training tasks under latency objectives (4, 5).
 *
 * Purpose. The latency of a service over its share of the SMs shows how much a training task
 * disturbs it. Mudi predicts that curve from the task's network before it runs, puts the task where
 * the curve is flattest, and then trades the service's batch against its share so that the task
 * runs fastest while the objective holds.
 *
 *   a training task with layers Psi arrives:
 *     for each service i, for b in {16, 32, ..., 512}:
 *       curve(i, b, Psi) <- predicted k1, k2, Delta_0, l_0                           (predict.h)
 *     device <- least mean |slope| over its service's curves                        (selector.h)
 *   on that device:
 *     share <- the largest cut-off point
 *     candidates <- batches that hold the objective with it
 *     batch <- GP-LCB over the candidates, by the task's iteration times         (batch_tuner.h)
 *     share <- smallest that holds the objective with that batch, + 10 %           (slo_share.h)
 *   when the request rate has moved by half:
 *     share <- smallest that holds the objective with the present batch, + 10 %
 *     candidates, batch as above; the share stays
 *   when the monitor sees that the objective is missed:
 *     margin <- margin x 0.9, tuned anew for margin x objective, because the curve errs, or the
 *     percentile is longer than fill and batch
 *   where no shadow instance can be started the share is the one that the service has: only the
 *   batch is searched for, and the margin decides about pauses
 *   no candidate with all that training can spare, which keeps "a partition of at least 10 % of
 *   the GPU" (7.4): training is paused
 *
 * The monitor's part is in section 6: "In cases where the Monitor detects that the SLO is at risk
 * of being violated, it triggers adaptive batching or resource scaling". A changed share means a
 * new process under MPS: the executor starts a shadow instance and switches over.
 *
 * Invariants
 * - batch and share in force hold margin x objective by the curves;
 * - if none does, training is paused and the service has the whole GPU;
 * - a service beside training has TD_MUDI_SHARE_MAX at most;
 * - there are at most iterations_max changes of the batch per tuning;
 * - a task goes to a device that accepts it and has a place and the memory, or to none;
 * - same predictors, same observations: same device, batch and share.
 */
#pragma once

#include "policy/algo/fit/batch_tuner.h"
#include "policy/algo/fit/mudi_curve.h"
#include "policy/algo/fit/selector.h"
#include "policy/algo/fit/slo_share.h"

/*
 * Returns the device for a task, or UINT32_MAX if there is none. scores is scratch, one per
 * service; devices[].service indexes the services.
 */
uint32_t td_mudi_assign(const struct td_mudi_service *services, uint32_t service_count,
	const struct td_selector_device *devices, uint32_t device_count,
	const double layers[TD_MUDI_LAYERS], uint64_t needed_bytes, double *scores);

struct td_mudi_device {
	struct td_batch_tuner tuner;
	struct td_slo slo; /* the objective and the rate of the last tuning */
	uint32_t batch;
	double share;
	/*
	 * The part of the objective to tune for; 0 means 1, as long as the objective was never
	 * missed. The caller sets it to what was learnt for the same tasks.
	 */
	double margin;
	/* The share that the service was started with and keeps; 0: it can get another one. */
	double share_fixed;
	/*
	 * The largest batch that the service can run with; 0: the largest that its curves hold for.
	 */
	uint32_t batch_max;
	bool paused, tuned, keeps_share;
};

#define TD_MUDI_BATCH_MIN  16u
#define TD_MUDI_BATCH_MAX  512u
#define TD_MUDI_ITERATIONS 25u
#define TD_MUDI_SHARE_MAX  0.9

/* Starts a tuning because a task has come. slo->batch is not used. */
void td_mudi_begin(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS], const struct td_slo *slo);

/* Starts a tuning from the present batch because the rate has changed. */
void td_mudi_rescale(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS], const struct td_slo *slo);

/* Starts a tuning for a smaller part of the objective, because the objective was missed. */
void td_mudi_miss(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS]);

/*
 * Takes back one miss and starts a tuning, because the objective was held for long enough; the
 * caller decides how long that is. Returns false if there was no miss.
 */
bool td_mudi_recover(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS]);

/* Tells whether, by the curves, some batch holds the objective beside such a task. */
bool td_mudi_fits(const struct td_mudi_service *service, const double layers[TD_MUDI_LAYERS],
	const struct td_slo *slo);

/*
 * Takes the task's iteration time under the present batch. Returns true if batch or share have
 * changed.
 */
bool td_mudi_observe(struct td_mudi_device *device, const struct td_mudi_service *service,
	const double layers[TD_MUDI_LAYERS], double iteration_s);
