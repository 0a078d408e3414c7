/*
 * The admission of one pod: what it asks for is checked, and its settings become variables of its
 * containers.
 *
 *   resources.limits[tandem.dev/gpu]: 50      1 to 99 hundredths of a GPU, or 100, 200, ...
 *   metadata.annotations[tandem.dev/class]    a key of TD_JOB_KEYS -> the variable TANDEM_CLASS
 *   spec.schedulerName                        ours, where the pod names none
 *
 * Each container that asks for GPUs gets the variables; one that it has already stays as it is.
 * The library, the daemon's socket and the share itself come from the device plugin (service.h),
 * not from here: it knows the node. Pure, with JSON of jansson.
 */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "kubernetes/sched/annotations.h"

#define TD_ADMISSION_GPUS_MAX 64u /* of one container, as TD_SLICES_GPUS */

struct td_admission_options {
	const char *resource;  /* "tandem.dev/gpu" */
	const char *scheduler; /* NULL: a pod keeps the scheduler that it has */
};

enum td_admission_verdict {
	TD_ADMISSION_UNCHANGED,
	TD_ADMISSION_CHANGED,
	TD_ADMISSION_REFUSED,
	TD_ADMISSION_N,
};

struct td_admission {
	enum td_admission_verdict verdict;
	struct td_err err; /* why it was refused */
	json_t *patch;     /* the operations of RFC 6902 */
	json_t *warnings;  /* sentences for the user */
};

/*
 * Judges a pod. Returns 0, or -ENOMEM. Anything that is not where a pod has it counts as missing:
 * the API server checks the pod's shape. td_admission_deinit() frees *ret, also after an error.
 */
int td_admission_judge(
	const struct td_admission_options *options, const json_t *pod, struct td_admission *ret);
/*
 * Judges a change of a pod: what the scheduler has written stays, and so does the class, by which
 * it has placed the pod. The scheduler itself writes with the pod's binding and its status, about
 * which an admission is not asked. Returns as td_admission_judge().
 */
int td_admission_judge_change(const struct td_admission_options *options, const json_t *before,
	const json_t *pod, struct td_admission *ret);
void td_admission_deinit(struct td_admission *admission);
