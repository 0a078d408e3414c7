/*
 * The options, driven by a table: there is one setter and one formatter per type. Everything else
 * follows from options.def.
 */
#include "daemon/model/options/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "daemon/model/machine/cpuset.h"
#include "policy/policy.h"

enum kind {
	KIND_policy,
	KIND_bool,
	KIND_duration,
	KIND_ratio,
	KIND_size,
	KIND_limit,
	KIND_path,
	KIND_cpus,
	KIND_count,
	KIND_jobs,
	KIND_gpus,
	KIND_mps,
	KIND_meter,
};

static const char *const mps_names[TD_MPS_OPTION_N] = {"off", "auto", "on"};

static const struct option {
	const char *key;
	enum kind kind;
	size_t offset;
	const char *initial, *least, *most, *unit, *help;
} table[] = {
#define OPTION(key, type, field, initial, least, most, unit, help)                                 \
	{key, KIND_##type, offsetof(struct td_options, field), initial, least, most, unit, help},
#include "daemon/model/options/options.def"
#undef OPTION
};

#define COUNT (sizeof(table) / sizeof(table[0]))
/* The smallest valid share of a GPU's size. */
#define SHARE_LEAST_PPM 1000
/* How many bytes of an error's text are kept behind the position in a file. */
#define KEPT (TD_ERR_MSG_MAX - 112)

/*
 * Returns what the policy needs and the node does not have. While the node's abilities are unknown,
 * nothing counts as missing.
 */
static uint32_t lacks(const struct td_options *options, const struct td_policy *policy)
{
	return options->has ? td_policy_lacks(policy, options->has) : 0;
}

/*
 * Sets the error for an unknown policy. It lists the policies that this node can run. A policy that
 * exists but cannot run here has an error of its own, which says what is missing.
 */
static int fail_policy(const struct td_options *options, const char *value, struct td_err *err)
{
	char can[96] = "", cannot[96] = "";

	for (size_t i = 0; td_policies[i]; i++) {
		char *names = lacks(options, td_policies[i]) ? cannot : can;
		size_t used = strlen(names);

		snprintf(names + used, sizeof(can) - used, "%s%s", used ? ", " : "",
			td_policies[i]->name);
	}
	return td_err_set(err, -EINVAL, "\"%.64s\" is not a policy: expected one of %s%s%s%s",
		value, can, *cannot ? "; " : "", cannot,
		*cannot ? " need what this node cannot do: see tandem policies" : "");
}

/* Writes what is missing to buf, such as "see the SM clock, set the batch of a service". */
static void list_lacking(uint32_t lacking, char *buf, size_t len)
{
	size_t used = 0;

	*buf = 0;
	for (uint32_t bit = 0; bit < TD_ABILITY_N && used < len; bit++) {
		if (!(lacking >> bit & 1))
			continue;
		used += (size_t)snprintf(
			buf + used, len - used, "%s%s", used ? ", " : "", td_ability_at(bit)->text);
	}
}

static int set_policy(struct td_options *options, const char *value, struct td_err *err)
{
	const struct td_policy *policy = td_policy_find(value);
	char lacking[KEPT - 64];

	if (!policy)
		return fail_policy(options, value, err);
	if (lacks(options, policy)) {
		list_lacking(lacks(options, policy), lacking, sizeof(lacking));
		return td_err_set(err, -ENOTSUP,
			"policy \"%.64s\" needs what this node cannot do: %s", value, lacking);
	}
	options->policy = policy;
	return 0;
}

/*
 * Sets a size. Refuses sizes with which no program could use the GPU: below the option's own bound,
 * or below the smallest share.
 */
static int set_size(
	char (*ret)[TD_LIMIT_TEXT], const struct option *o, const char *value, struct td_err *err)
{
	bool is_share = strchr(value, '%') != NULL;
	uint64_t given = 0, least = SHARE_LEAST_PPM;
	int r = td_parse_limit(value, NULL);
	char expected[160];

	if (!is_share)
		(void)td_parse_size(o->least, 0, &least, NULL);
	if (!r)
		r = td_parse_size(value, is_share ? TD_PPM : 0, &given, NULL);
	if (!r && given < least)
		r = -ERANGE;
	snprintf(expected, sizeof(expected),
		"a size from %s to below 16777216Ti such as 8Gi, or a share from %g%% to 100%% "
		"such as 40%%",
		o->least, SHARE_LEAST_PPM / 1e4);
	if (r)
		return td_err_expected(err, r, value, expected);
	strcpy(*ret, value);
	return 0;
}

static int set_limit(char (*ret)[TD_LIMIT_TEXT], const char *value, struct td_err *err)
{
	int r = strcmp(value, "none") ? td_parse_limit(value, NULL) : 0;

	if (r)
		return td_err_expected(err, r, value, TD_EXPECTED_LIMIT ", or none");
	strcpy(*ret, value);
	return 0;
}

static int set_cpus(char (*ret)[TD_CPUSET_CPUS], const char *value, struct td_err *err)
{
	if (strcmp(value, "none") && !td_cpuset_parse(value))
		return td_err_expected(
			err, -EINVAL, value, "CPUs such as 0-3,8, of at most 107 bytes, or none");
	strcpy(*ret, value);
	return 0;
}

/* Sets a path. The option's initial value is a word that is valid beside paths. */
static int set_path(char (*ret)[108], const struct option *o, const char *value, struct td_err *err)
{
	char expected[80];

	snprintf(expected, sizeof(expected), "an absolute path of at most 107 bytes, or %s",
		o->initial);
	if ((*value != '/' && strcmp(value, o->initial)) || strlen(value) >= sizeof(*ret))
		return td_err_expected(err, -EINVAL, value, expected);
	strcpy(*ret, value);
	return 0;
}

/* Sets the error for a value that is out of the option's bounds or not of its kind. */
static int fail_bounds(const struct option *o, int code, const char *kind, const char *value,
	const char *least, struct td_err *err)
{
	char expected[128];

	snprintf(expected, sizeof(expected), "%s from %s to %s such as %s", kind,
		o->least[0] ? o->least : least, o->most, o->initial);
	return td_err_expected(err, code, value, expected);
}

static int set_duration(
	uint64_t *ret, const struct option *o, const char *value, struct td_err *err)
{
	uint64_t ns = 0, least = 0, most = UINT64_MAX;
	int r = td_parse_duration(value, &ns, NULL);

	if (o->least[0])
		(void)td_parse_duration(o->least, &least, NULL);
	(void)td_parse_duration(o->most, &most, NULL);
	if (!r && (ns < least || ns > most))
		r = -ERANGE;
	if (r)
		return fail_bounds(o, r, "a time (a number alone is seconds)", value, "0s", err);
	*ret = ns;
	return 0;
}

static int set_ratio(uint32_t *ret, const struct option *o, const char *value, struct td_err *err)
{
	uint32_t ppm = 0, least = 0, most = TD_PPM;
	int r = td_parse_ratio(value, &ppm, NULL);

	if (o->least[0])
		(void)td_parse_ratio(o->least, &least, NULL);
	(void)td_parse_ratio(o->most, &most, NULL);
	if (!r && (ppm < least || ppm > most))
		r = -ERANGE;
	if (r)
		return fail_bounds(o, r, "a share", value, "0%", err);
	*ret = ppm;
	return 0;
}

static int set_count(uint32_t *ret, const struct option *o, const char *value, struct td_err *err)
{
	uint64_t count = 0, least = 0, most = UINT32_MAX;
	int r;

	(void)td_parse_u64(o->least, 0, UINT32_MAX, &least, NULL);
	(void)td_parse_u64(o->most, 0, UINT32_MAX, &most, NULL);
	r = td_parse_u64(value, least, most, &count, NULL);
	if (r)
		return fail_bounds(o, r, "a whole number", value, "0", err);
	*ret = (uint32_t)count;
	return 0;
}

static int set_jobs(uint32_t *ret, const char *value, struct td_err *err)
{
	uint64_t jobs = UINT32_MAX;
	int r = strcmp(value, "none") ? td_parse_u64(value, 0, TD_CLIENT_MAX, &jobs, NULL) : 0;
	char expected[64];

	snprintf(expected, sizeof(expected), "a whole number from 0 to %u, or none",
		(unsigned)TD_CLIENT_MAX);
	if (r)
		return td_err_expected(err, r, value, expected);
	*ret = (uint32_t)jobs;
	return 0;
}

static int set_gpus(uint64_t *ret, const char *value, struct td_err *err)
{
	uint64_t ppm = UINT64_MAX;
	char expected[64];
	int r = 0;

	if (!strcmp(value, "auto"))
		ppm = TD_QUOTA_AUTO;
	else if (strcmp(value, "none"))
		r = td_parse_gpus(value, TD_GPU_MAX, &ppm, NULL);
	snprintf(expected, sizeof(expected), "a number from 0 to %u such as 1.5, auto or none",
		(unsigned)TD_GPU_MAX);
	if (r)
		return td_err_expected(err, r, value, expected);
	*ret = ppm;
	return 0;
}

static int set_mps(enum td_mps_option *ret, const char *value, struct td_err *err)
{
	for (unsigned i = 0; i < TD_MPS_OPTION_N; i++) {
		if (strcmp(value, mps_names[i]))
			continue;
		*ret = i;
		return 0;
	}
	return td_err_expected(err, -EINVAL, value, "off, auto or on");
}

static const char *const meter_names[] = {
	[TD_METER_AUTO] = "auto", [TD_METER_ON] = "on", [TD_METER_OFF] = "off"};

static int set_meter(enum td_meter_option *ret, const char *value, struct td_err *err)
{
	for (unsigned i = 0; i < sizeof(meter_names) / sizeof(meter_names[0]); i++) {
		if (strcmp(meter_names[i], value))
			continue;
		*ret = (enum td_meter_option)i;
		return 0;
	}
	return td_err_expected(err, -EINVAL, value, "auto, on or off");
}

static int set_option(
	struct td_options *options, const struct option *o, const char *value, struct td_err *err)
{
	void *field = (char *)options + o->offset;

	switch (o->kind) {
	case KIND_policy: return set_policy(options, value, err);
	case KIND_bool: return td_parse_bool(value, field, err);
	case KIND_duration: return set_duration(field, o, value, err);
	case KIND_ratio: return set_ratio(field, o, value, err);
	case KIND_size: return set_size(field, o, value, err);
	case KIND_limit: return set_limit(field, value, err);
	case KIND_path: return set_path(field, o, value, err);
	case KIND_cpus: return set_cpus(field, value, err);
	case KIND_count: return set_count(field, o, value, err);
	case KIND_jobs: return set_jobs(field, value, err);
	case KIND_gpus: return set_gpus(field, value, err);
	case KIND_mps: return set_mps(field, value, err);
	case KIND_meter: return set_meter(field, value, err);
	}
	return -EINVAL;
}

void td_options_init(struct td_options *options)
{
	memset(options, 0, sizeof(*options));
	for (size_t i = 0; i < COUNT; i++)
		(void)set_option(options, &table[i], table[i].initial, NULL);
}

/* A group of more options than this (muxflow.load, ...) is listed as "muxflow.*". */
#define GROUP_MAX 4

static size_t group_len(const char *key)
{
	const char *dot = strchr(key, '.');

	return dot ? (size_t)(dot + 1 - key) : 0;
}

/* Counts the options in the group of the i-th option: up to the i-th, or all of them. */
static unsigned count_group(size_t i, bool up_to)
{
	size_t len = group_len(table[i].key);
	unsigned n = 0;

	for (size_t k = 0; len && k < (up_to ? i + 1 : COUNT); k++)
		n += !strncmp(table[k].key, table[i].key, len);
	return n;
}

/* Writes the list of keys to buf, such as "policy, quantum, muxflow.*". */
static void list_keys(char *buf, size_t len)
{
	size_t used = 0;

	*buf = 0;
	for (size_t i = 0; i < COUNT && used < len; i++) {
		bool grouped = count_group(i, false) > GROUP_MAX;

		if (grouped && count_group(i, true) > 1)
			continue;
		used += (size_t)snprintf(buf + used, len - used, "%s%.*s%s", i ? ", " : "",
			grouped ? (int)group_len(table[i].key) : 64, table[i].key,
			grouped ? "*" : "");
	}
}

int td_options_set(
	struct td_options *options, const char *key, const char *value, struct td_err *err)
{
	char keys[KEPT - 80] = "";

	for (size_t i = 0; i < COUNT; i++) {
		struct td_err why = {0};
		int r;

		if (strcmp(table[i].key, key))
			continue;
		r = set_option(options, &table[i], value, &why);
		return r ? td_err_set(err, r, "%s: %.*s", key, KEPT, why.msg) : 0;
	}
	list_keys(keys, sizeof(keys));
	return td_err_set(
		err, -EINVAL, "\"%.64s\" is not an option: expected one of %s", key, keys);
}

/* Returns the text without blanks at both ends; changes it in place. */
static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r\n", end[-1]))
		*--end = 0;
	return text;
}

static int load_line(struct td_options *options, char *line, struct td_err *err)
{
	char *text = trim(line), *equals;

	if (!*text || *text == '#')
		return 0;
	equals = strchr(text, '=');
	if (!equals)
		return td_err_set(
			err, -EINVAL, "\"%.64s\" is not valid: expected key = value", text);
	*equals = 0;
	return td_options_set(options, trim(text), trim(equals + 1), err);
}

int td_options_load(struct td_options *options, const char *path, struct td_err *err)
{
	char line[512];
	FILE *file = fopen(path, "re");
	int r = 0;

	if (!file)
		return td_err_set(err, -errno, "%.128s: %s", path, strerror(errno));
	for (unsigned number = 1; !r && fgets(line, sizeof(line), file); number++) {
		struct td_err why = {0};

		r = load_line(options, line, &why);
		if (r)
			td_err_set(err, r, "%.80s:%u: %.*s", path, number, KEPT, why.msg);
	}
	fclose(file);
	return r;
}

static void format_duration(char *buf, size_t len, uint64_t ns)
{
	if (ns % 1000000000 == 0)
		snprintf(buf, len, "%llus", (unsigned long long)(ns / 1000000000));
	else if (ns % 1000000 == 0)
		snprintf(buf, len, "%llums", (unsigned long long)(ns / 1000000));
	else
		snprintf(buf, len, "%lluns", (unsigned long long)ns);
}

static void format_gpus(char *buf, size_t len, uint64_t ppm)
{
	if (ppm == UINT64_MAX)
		snprintf(buf, len, "none");
	else if (ppm == TD_QUOTA_AUTO)
		snprintf(buf, len, "auto");
	else
		snprintf(buf, len, "%.10g", (double)ppm / TD_PPM);
}

bool td_options_row(const struct td_options *options, size_t i, struct td_option_row *ret)
{
	const void *field;

	if (i >= COUNT)
		return false;
	field = (const char *)options + table[i].offset;
	*ret = (struct td_option_row){
		.key = table[i].key, .unit = table[i].unit, .help = table[i].help};
	switch (table[i].kind) {
	case KIND_policy: {
		const struct td_policy *policy;

		memcpy(&policy, field, sizeof(policy));
		snprintf(ret->value, sizeof(ret->value), "%s", policy->name);
		break;
	}
	case KIND_bool:
		snprintf(ret->value, sizeof(ret->value), "%s", *(const bool *)field ? "on" : "off");
		break;
	case KIND_duration:
		format_duration(ret->value, sizeof(ret->value), *(const uint64_t *)field);
		break;
	case KIND_ratio:
		snprintf(ret->value, sizeof(ret->value), "%g%%", *(const uint32_t *)field / 1e4);
		break;
	case KIND_count:
		snprintf(ret->value, sizeof(ret->value), "%u", *(const uint32_t *)field);
		break;
	case KIND_jobs: {
		uint32_t jobs = *(const uint32_t *)field;

		snprintf(ret->value, sizeof(ret->value), jobs == UINT32_MAX ? "none" : "%u", jobs);
		break;
	}
	case KIND_gpus:
		format_gpus(ret->value, sizeof(ret->value), *(const uint64_t *)field);
		break;
	case KIND_mps:
		snprintf(ret->value, sizeof(ret->value), "%s",
			mps_names[*(const enum td_mps_option *)field]);
		break;
	case KIND_meter:
		snprintf(ret->value, sizeof(ret->value), "%s",
			meter_names[*(const enum td_meter_option *)field]);
		break;
	case KIND_path:
	case KIND_cpus:
	case KIND_limit:
	case KIND_size: snprintf(ret->value, sizeof(ret->value), "%s", (const char *)field); break;
	}
	return true;
}

uint64_t td_options_capacity(const struct td_options *options, uint64_t total_bytes)
{
	uint64_t bytes = total_bytes;

	(void)td_parse_size(options->capacity, total_bytes, &bytes, NULL);
	return bytes < total_bytes ? bytes : total_bytes;
}

/* Returns the size of the machine's memory. It does not change, so it is read only once. */
static uint64_t host_bytes(void)
{
	static uint64_t bytes;

	if (!bytes)
		bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	return bytes;
}

uint64_t td_options_host(const struct td_options *options)
{
	uint64_t bytes = UINT64_MAX;

	if (strcmp(options->host_limit, "none"))
		(void)td_parse_size(options->host_limit, host_bytes(), &bytes, NULL);
	return bytes;
}
