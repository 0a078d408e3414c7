/* Parses the value of --tandem; see spec.h. */
#include "slurm/spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

#define PPM_OF_HUNDREDTH 10000u

static int expect_share(const char *text, struct td_err *err)
{
	return td_err_expected(err, -EINVAL, text,
		"a part of a GPU in hundredths from 0.01 to 1, or a whole number of GPUs up to 64");
}

static int parse_share(const char *text, struct td_slurm_spec *spec, struct td_err *err)
{
	uint64_t ppm;

	if (td_parse_gpus(text, TD_SLURM_GPUS_MAX, &ppm, NULL) || !ppm ||
		ppm > TD_SLURM_GPUS_MAX * 1000000ull || ppm % PPM_OF_HUNDREDTH ||
		(ppm > 1000000 && ppm % 1000000))
		return expect_share(text, err);
	spec->hundredths = (uint32_t)(ppm / PPM_OF_HUNDREDTH);
	spec->gpus = ppm > 1000000 ? (uint32_t)(ppm / 1000000) : 1;
	return 0;
}

static int refuse_key(const char *word, struct td_err *err)
{
	char expected[128];

	td_job_keys_list(expected, sizeof(expected), "", "=VALUE");
	return td_err_expected(err, -EINVAL, word, expected);
}

/* Parses a word KEY=VALUE. */
static int parse_setting(char *word, struct td_slurm_spec *spec, struct td_err *err)
{
	char *value = strchr(word, '=');
	struct td_err inner = {0};
	uint32_t k;

	if (!value)
		return refuse_key(word, err);
	*value = 0;
	k = td_job_key_find(word);
	if (k == TD_JOB_KEY_N) {
		*value = '=';
		return refuse_key(word, err);
	}
	value++;
	if (*spec->value[k])
		return td_err_set(err, -EINVAL, "%s= is given twice", word);
	if (td_job_key_check(k, value, &inner))
		return td_err_set(err, -EINVAL, "%s=: %s", word, inner.msg);
	strcpy(spec->value[k], value);
	return 0;
}

int td_slurm_spec_parse(const char *text, struct td_slurm_spec *ret, struct td_err *err)
{
	struct td_slurm_spec spec = {0};
	char copy[TD_SLURM_SPEC_MAX];
	int r;

	if (!text || strlen(text) >= sizeof(copy))
		return expect_share(text ? text : "", err);
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~')
			return expect_share(text, err);
	strcpy(copy, text);
	for (char *word = copy, *next; word; word = next) {
		next = strchr(word, ',');
		if (next)
			*next++ = 0;
		r = word == copy ? parse_share(word, &spec, err) : parse_setting(word, &spec, err);
		if (r)
			return r;
	}
	r = td_job_keys_check(spec.value, err);
	if (!r)
		*ret = spec;
	return r;
}

/*
 * Sets the default value of a key. A share of one GPU means that share of its memory, and a weight
 * in proportion.
 */
static void set_default(const struct td_slurm_spec *spec, uint32_t key, char *ret_value)
{
	if (key == TD_JOB_KEY_mem && spec->hundredths < 100)
		snprintf(ret_value, TD_JOB_VALUE_MAX, "%u%%", spec->hundredths);
	else if (key == TD_JOB_KEY_weight && spec->hundredths < 100)
		snprintf(ret_value, TD_JOB_VALUE_MAX, "%u", spec->hundredths);
	else if (key == TD_JOB_KEY_weight)
		strcpy(ret_value, "100");
	else if (key == TD_JOB_KEY_class)
		strcpy(ret_value, "besteffort");
}

const char *td_slurm_spec_variable(const struct td_slurm_spec *spec, uint32_t at, char *ret_value)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < TD_JOB_KEY_N; k++) {
		strcpy(ret_value, spec->value[k]);
		if (!*ret_value)
			set_default(spec, k, ret_value);
		if (*ret_value && n++ == at)
			return td_job_key_variable(k);
	}
	if (n++ == at) {
		strcpy(ret_value, *spec->value[TD_JOB_KEY_soft] ? "swap" : "auto");
		return "TANDEM_BACKEND";
	}
	return NULL;
}
