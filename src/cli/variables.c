/*
 * Checks the values of a job's settings, from options of `tandem run` or the environment.
 * libtandem.so ignores invalid values, because it may not print.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli/cli.h"

/* -- values -- */

static int check_word(const char *value, const char *const *words, struct td_err *err)
{
	char expected[128] = "";
	size_t used = 0;

	for (const char *const *w = words; *w; w++)
		if (!strcmp(*w, value))
			return 0;
	for (const char *const *w = words; *w; w++)
		used += (size_t)snprintf(expected + used, sizeof(expected) - used, "%s%s",
			w == words ? ""
			: w[1]     ? ", "
				   : " or ",
			*w);
	return td_err_expected(err, -EINVAL, value, expected);
}

int td_cli_check_class(const char *value, struct td_err *err)
{
	static const char *const words[] = {"online", "guaranteed", "besteffort", NULL};

	return check_word(value, words, err);
}

int td_cli_check_upgrade(const char *value, struct td_err *err)
{
	static const char *const words[] = {"guaranteed", "online", "none", NULL};

	return check_word(value, words, err);
}

int td_cli_check_backend(const char *value, struct td_err *err)
{
	static const char *const words[] = {"auto", "plain", "swap", "managed", NULL};

	return check_word(value, words, err);
}

static int check_host_full(const char *value, struct td_err *err)
{
	static const char *const words[] = {"stay", "refuse", NULL};

	return check_word(value, words, err);
}

int td_cli_check_weight(const char *value, struct td_err *err)
{
	uint64_t weight;

	return td_parse_u64(value, 1, 1000, &weight, err);
}

int td_cli_check_limit(const char *value, struct td_err *err)
{
	return td_parse_limit(value, err);
}

int td_cli_check_duty(const char *value, struct td_err *err)
{
	uint32_t ppm;

	return td_parse_duty(value, &ppm, err);
}

int td_cli_check_slack(const char *value, struct td_err *err)
{
	uint32_t ppm;

	return td_parse_slack(value, &ppm, err);
}

static int check_duration(const char *value, struct td_err *err)
{
	uint64_t ns;

	return td_parse_duration(value, &ns, err);
}

static int check_layers(const char *value, struct td_err *err)
{
	uint32_t counts[TD_LAYER_KINDS];

	return td_layers_parse(value, counts, err);
}

int td_cli_check(const char *where, const char *value, td_check_fn check)
{
	struct td_err err = {0};

	return check(value, &err) ? td_cli_fail("%s: %s", where, err.msg) : 0;
}

/* -- variables -- */

static const struct {
	const char *name;
	td_check_fn check;
} variables[] = {{"TANDEM_MEM", td_cli_check_limit},
	{"NVIDIA_GPU_MEMORY_LIMIT", td_cli_check_limit}, {"TANDEM_MEM_SOFT", td_cli_check_limit},
	{"TANDEM_DUTY", td_cli_check_duty}, {"TANDEM_SLACK", td_cli_check_slack},
	{"TANDEM_CLASS", td_cli_check_class}, {"TANDEM_UPGRADE", td_cli_check_upgrade},
	{"TANDEM_WEIGHT", td_cli_check_weight}, {"TANDEM_BACKEND", td_cli_check_backend},
	{"TANDEM_LAYERS", check_layers}, {"TANDEM_HOST_LIMIT", td_cli_check_limit},
	{"TANDEM_HOST_FULL", check_host_full}, {"TANDEM_DRAIN_DEADLINE", check_duration},
	{"TANDEM_IDLE", check_duration}, {"TANDEM_GRACE", check_duration}};

bool td_cli_check_variables(
	bool (*each)(void *arg, const char *name, const struct td_err *err), void *arg)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *value = getenv(variables[i].name);
		struct td_err err = {0};

		if (value && *value && variables[i].check(value, &err) &&
			!each(arg, variables[i].name, &err))
			return false;
	}
	return true;
}
