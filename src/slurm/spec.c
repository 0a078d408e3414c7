/* Parses the value of --tandem; see spec.h. */
#include "slurm/spec.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

#define PPM_OF_HUNDREDTH 10000u

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
	const char *key, *variable;
	int (*check)(const char *text, struct td_err *err);
} keys[TD_SLURM_KEY_N] = {
#define KEY(key, variable, check, help) {#key, variable, check},
	TD_SLURM_KEYS(KEY)
#undef KEY
};

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
	char expected[128] = "";
	size_t used = 0;

	for (uint32_t k = 0; k < TD_SLURM_KEY_N; k++)
		used += (size_t)snprintf(expected + used, sizeof(expected) - used, "%s%s=VALUE",
			!k                       ? ""
			: k + 1 < TD_SLURM_KEY_N ? ", "
						 : " or ",
			keys[k].key);
	return td_err_expected(err, -EINVAL, word, expected);
}

/* Parses a word KEY=VALUE. */
static int parse_setting(char *word, struct td_slurm_spec *spec, struct td_err *err)
{
	char *value = strchr(word, '=');
	struct td_err inner = {0};
	uint32_t k = 0;

	if (!value)
		return refuse_key(word, err);
	*value = 0;
	while (k < TD_SLURM_KEY_N && strcmp(keys[k].key, word))
		k++;
	if (k == TD_SLURM_KEY_N) {
		*value = '=';
		return refuse_key(word, err);
	}
	value++;
	if (*spec->value[k])
		return td_err_set(err, -EINVAL, "%s= is given twice", keys[k].key);
	if (keys[k].check(value, &inner))
		return td_err_set(err, -EINVAL, "%s=: %s", keys[k].key, inner.msg);
	if (strlen(value) >= TD_SLURM_VALUE_MAX)
		return td_err_set(err, -EINVAL,
			"%s=: \"%.40s...\" is too long: expected up to %u "
			"characters",
			keys[k].key, value, TD_SLURM_VALUE_MAX - 1);
	strcpy(spec->value[k], value);
	return 0;
}

static int check_together(const struct td_slurm_spec *spec, struct td_err *err)
{
	const char *slack = spec->value[TD_SLURM_KEY_slack];

	if (*slack && strcmp(spec->value[TD_SLURM_KEY_class], "guaranteed"))
		return td_err_set(err, -EINVAL,
			"slack=: \"%s\" has no effect on a job that is not guaranteed: expected "
			"class=guaranteed with it",
			slack);
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
	r = check_together(&spec, err);
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
	if (key == TD_SLURM_KEY_mem && spec->hundredths < 100)
		snprintf(ret_value, TD_SLURM_VALUE_MAX, "%u%%", spec->hundredths);
	else if (key == TD_SLURM_KEY_weight && spec->hundredths < 100)
		snprintf(ret_value, TD_SLURM_VALUE_MAX, "%u", spec->hundredths);
	else if (key == TD_SLURM_KEY_weight)
		strcpy(ret_value, "100");
	else if (key == TD_SLURM_KEY_class)
		strcpy(ret_value, "besteffort");
}

const char *td_slurm_spec_variable(const struct td_slurm_spec *spec, uint32_t at, char *ret_value)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < TD_SLURM_KEY_N; k++) {
		strcpy(ret_value, spec->value[k]);
		if (!*ret_value)
			set_default(spec, k, ret_value);
		if (*ret_value && n++ == at)
			return keys[k].variable;
	}
	if (n++ == at) {
		strcpy(ret_value, *spec->value[TD_SLURM_KEY_soft] ? "swap" : "auto");
		return "TANDEM_BACKEND";
	}
	return NULL;
}
