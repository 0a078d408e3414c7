/*
 * The value of --tandem: how much of a GPU a Slurm job asks for, and its settings.
 *
 *   SHARE[,KEY=VALUE]...     0.5   0.25,mem=8Gi   2   0.5,class=guaranteed,slack=1%
 *
 * SHARE is a part of one GPU in hundredths, 0.01 to 1, or a whole number of GPUs on each node. The
 * keys are those of TD_JOB_KEYS; they mean the same as the options of `tandem run`. Without mem=,
 * a share below 1 limits the memory to that part of the GPU. Without weight=, it is the weight in
 * hundredths: a job with twice the share has turns of twice the length.
 *
 * Pure. srun, sbatch and salloc parse it to refuse a bad value early, slurmctld to count it, and
 * slurmstepd to set the environment of the job's programs, which libtandem.so reads.
 */
#pragma once

#include <stdint.h>

#include "proto/job_keys.h"

struct td_err;

#define TD_SLURM_SPEC_MAX 256u /* the bytes of the text with its NUL */
#define TD_SLURM_GPUS_MAX 64u

struct td_slurm_spec {
	/* the share on each node, in hundredths of a GPU */
	uint32_t hundredths;
	/* how many GPUs the job may use on each node */
	uint32_t gpus;
	char value[TD_JOB_KEY_N][TD_JOB_VALUE_MAX]; /* "": the key was not given */
};

/* Returns 0, or -EINVAL with the offending text in err. */
int td_slurm_spec_parse(const char *text, struct td_slurm_spec *ret, struct td_err *err);

/*
 * Returns the name of the variable of a job's programs with the index `at` (0, 1, 2, ...), and
 * writes its value, at most TD_JOB_VALUE_MAX bytes. Returns NULL behind the last one.
 */
const char *td_slurm_spec_variable(const struct td_slurm_spec *spec, uint32_t at, char *ret_value);
