/* This file implements job_keys.h. */
#include "proto/job_keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

static int check_limit(const char *text, struct td_err *err)
{
	return td_parse_limit(text, err);
}

static int check_class(const char *text, struct td_err *err)
{
	if (!strcmp(text, "online") || !strcmp(text, "guaranteed") || !strcmp(text, "besteffort"))
		return 0;
	return td_err_expected(err, -EINVAL, text, "online, guaranteed or besteffort");
}

static int check_weight(const char *text, struct td_err *err)
{
	uint64_t weight;

	return td_parse_u64(text, 1, 1000, &weight, err);
}

static int check_duty(const char *text, struct td_err *err)
{
	uint32_t ppm;

	return td_parse_duty(text, &ppm, err);
}

static int check_slack(const char *text, struct td_err *err)
{
	uint32_t ppm;

	return td_parse_slack(text, &ppm, err);
}

static const struct {
	const char *name, *variable;
	int (*check)(const char *text, struct td_err *err);
} keys[TD_JOB_KEY_N] = {
#define KEY(key, variable, check, help) {#key, variable, check},
	TD_JOB_KEYS(KEY)
#undef KEY
};

const char *td_job_key_name(uint32_t key)
{
	return keys[key].name;
}

const char *td_job_key_variable(uint32_t key)
{
	return keys[key].variable;
}

uint32_t td_job_key_find(const char *name)
{
	uint32_t k = 0;

	while (k < TD_JOB_KEY_N && strcmp(keys[k].name, name))
		k++;
	return k;
}

int td_job_key_check(uint32_t key, const char *value, struct td_err *err)
{
	int r = keys[key].check(value, err);

	if (!r && strlen(value) >= TD_JOB_VALUE_MAX)
		return td_err_set(err, -EINVAL,
			"\"%.40s...\" is too long: expected up to %u characters", value,
			TD_JOB_VALUE_MAX - 1);
	return r;
}

int td_job_keys_check(char (*values)[TD_JOB_VALUE_MAX], struct td_err *err)
{
	const char *slack = values[TD_JOB_KEY_slack];

	if (*slack && strcmp(values[TD_JOB_KEY_class], "guaranteed"))
		return td_err_set(err, -EINVAL,
			"slack=: \"%s\" has no effect on a job that is not guaranteed: expected "
			"class=guaranteed with it",
			slack);
	return 0;
}

void td_job_keys_list(char *ret, size_t room, const char *before, const char *behind)
{
	size_t used = 0;

	for (uint32_t k = 0; k < TD_JOB_KEY_N && used < room; k++)
		used += (size_t)snprintf(ret + used, room - used, "%s%s%s%s",
			!k                     ? ""
			: k + 1 < TD_JOB_KEY_N ? ", "
					       : " or ",
			before, keys[k].name, behind);
}
