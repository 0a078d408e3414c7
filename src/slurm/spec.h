/*
 * The value of --tandem: how much of a GPU a Slurm job asks for, and its settings.
 *
 *   SHARE[,KEY=VALUE]...     0.5   0.25,mem=8Gi   2   0.5,class=guaranteed,slack=1%
 *
 * SHARE is a part of one GPU in hundredths, 0.01 to 1, or a whole number of GPUs on each node. The
 * keys are those of TD_SLURM_KEYS; they mean the same as the options of `tandem run`. Without mem=,
 * a share below 1 limits the memory to that part of the GPU. Without weight=, it is the weight in
 * hundredths: a job with twice the share has turns of twice the length.
 *
 * Pure. srun, sbatch and salloc parse it to refuse a bad value early, slurmctld to count it, and
 * slurmstepd to set the environment of the job's programs, which libtandem.so reads.
 */
#pragma once

#include <stdint.h>

#include "base/parse.h"

struct td_err;

#define TD_SLURM_SPEC_MAX  256u /* the bytes of the text with its NUL */
#define TD_SLURM_GPUS_MAX  64u
#define TD_SLURM_VALUE_MAX TD_LIMIT_TEXT

/* KEY(key, the variable of libtandem.so, the function that checks a value, help) */
#define TD_SLURM_KEYS(KEY)                                                                         \
	KEY(mem, "TANDEM_MEM", check_limit, "the most memory on each GPU: 8Gi, 40%")               \
	KEY(soft, "TANDEM_MEM_SOFT", check_limit, "the part of it on the GPU itself")              \
	KEY(class, "TANDEM_CLASS", check_class, "online, guaranteed or besteffort")                \
	KEY(weight, "TANDEM_WEIGHT", check_weight, "share among equals, 1 to 1000")                \
	KEY(duty, "TANDEM_DUTY", check_duty, "the most of a GPU's time: 30%")                      \
	KEY(slack, "TANDEM_SLACK", check_slack, "guaranteed: how much longer steps may take")

enum td_slurm_key {
#define KEY(key, variable, check, help) TD_SLURM_KEY_##key,
	TD_SLURM_KEYS(KEY)
#undef KEY
		TD_SLURM_KEY_N,
};

struct td_slurm_spec {
	/* the share on each node, in hundredths of a GPU */
	uint32_t hundredths;
	/* how many GPUs the job may use on each node */
	uint32_t gpus;
	char value[TD_SLURM_KEY_N][TD_SLURM_VALUE_MAX]; /* "": the key was not given */
};

/* Returns 0, or -EINVAL with the offending text in err. */
int td_slurm_spec_parse(const char *text, struct td_slurm_spec *ret, struct td_err *err);

/*
 * Returns the name of the variable of a job's programs with the index `at` (0, 1, 2, ...), and
 * writes its value, at most TD_SLURM_VALUE_MAX bytes. Returns NULL behind the last one.
 */
const char *td_slurm_spec_variable(const struct td_slurm_spec *spec, uint32_t at, char *ret_value);
