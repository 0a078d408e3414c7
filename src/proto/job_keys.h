/*
 * The settings of a job that a cluster's users may give beside its share of a GPU: the keys of
 * Slurm's --tandem (slurm/spec.h), and of the annotations of a pod, such as tandem.dev/class
 * (kubernetes/admission). They mean the same as the options of `tandem run`.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/parse.h"

struct td_err;

#define TD_JOB_VALUE_MAX TD_LIMIT_TEXT /* the bytes of a value with its NUL */

/* KEY(key, the variable of libtandem.so, the function that checks a value, help) */
#define TD_JOB_KEYS(KEY)                                                                           \
	KEY(mem, "TANDEM_MEM", check_limit, "the most memory on each GPU: 8Gi, 40%")               \
	KEY(soft, "TANDEM_MEM_SOFT", check_limit, "the part of it on the GPU itself")              \
	KEY(class, "TANDEM_CLASS", check_class, "online, guaranteed or besteffort")                \
	KEY(weight, "TANDEM_WEIGHT", check_weight, "share among equals, 1 to 1000")                \
	KEY(duty, "TANDEM_DUTY", check_duty, "the most of a GPU's time: 30%")                      \
	KEY(slack, "TANDEM_SLACK", check_slack, "guaranteed: how much longer steps may take")

enum td_job_key {
#define KEY(key, variable, check, help) TD_JOB_KEY_##key,
	TD_JOB_KEYS(KEY)
#undef KEY
		TD_JOB_KEY_N,
};

/* The key's name, such as "mem", and its variable, such as "TANDEM_MEM". */
const char *td_job_key_name(uint32_t key);
const char *td_job_key_variable(uint32_t key);

/* The key of that name, or TD_JOB_KEY_N. */
uint32_t td_job_key_find(const char *name);

/* Returns 0, or -EINVAL or -ERANGE with an error that quotes the value. */
int td_job_key_check(uint32_t key, const char *value, struct td_err *err);

/*
 * Checks the values of one job together. An empty value was not given. Returns 0, or -EINVAL with
 * a sentence.
 */
int td_job_keys_check(char (*values)[TD_JOB_VALUE_MAX], struct td_err *err);

/*
 * Writes all keys for an error, such as "mem=VALUE, soft=VALUE or slack=VALUE", with `before` and
 * `behind` around each.
 */
void td_job_keys_list(char *ret, size_t room, const char *before, const char *behind);
