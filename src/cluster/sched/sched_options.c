/* This file implements sched_options.h. */
#include "cluster/sched/sched_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/time.h"

static void log_line(const char *line)
{
	td_log(TD_LOG_INFO, "%s", line);
}

void td_sched_settings_init(struct td_sched_settings *settings, bool has_profiles)
{
	char host[64] = "";

	*settings = (struct td_sched_settings){.scheduler = {.brain = td_brain_default,
						       .lease_s = 10,
						       .period_ns = 250 * TD_NS_PER_MS,
						       .log = log_line}};
	settings->scheduler.brain.repeat_ns = TD_NS_PER_S;
	(void)gethostname(host, sizeof(host) - 1);
	snprintf(settings->name, sizeof(settings->name), "%s.%d", host, (int)getpid());
	settings->scheduler.name = settings->name;
	settings->has_profiles = has_profiles;
}

/* Takes a policy that td_sched_settings_check() refuses, too: its sentence says why. */
static int take_policy(const char *text, struct td_sched_settings *settings, struct td_err *err)
{
	const struct td_brain_policy *policy = td_brain_policy_find(text);
	struct td_text expected = {0};
	int r;

	settings->scheduler.brain.policy = policy;
	if (policy)
		return 0;
	for (uint32_t k = 0; (policy = td_brain_policy_at(k)); k++)
		if (settings->has_profiles || !policy->by_program)
			td_text_add(&expected, "%s%s", expected.length ? ", " : "", policy->name);
	r = td_err_expected(err, -EINVAL, text, expected.text ? expected.text : "a policy");
	td_text_deinit(&expected);
	return r;
}

static int take_quota(const char *text, struct td_brain_params *params, struct td_err *err)
{
	const char *equals = strrchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : 0;
	struct td_brain_tenant *tenant;
	uint64_t quota;
	int r = td_parse_u64(equals ? equals + 1 : text, 0, 1000000, &quota, err);

	if (r)
		return r;
	if (!equals) {
		params->tenants[0].quota = (uint32_t)quota;
		return 0;
	}
	if (!len || len >= TD_NAME_MAX)
		return td_err_expected(err, -EINVAL, text, "TENANT=GPUS");
	if (params->tenant_count == TD_TENANTS_MAX)
		return td_err_set(err, -E2BIG, "\"%s\": at most %u tenants can have a quota", text,
			TD_TENANTS_MAX - 1);
	tenant = &params->tenants[params->tenant_count++];
	memcpy(tenant->name, text, len);
	tenant->name[len] = 0;
	tenant->quota = (uint32_t)quota;
	return 0;
}

/* Parses a time between two bounds. */
static int take_time(const char *text, uint64_t min_ns, uint64_t max_ns, const char *expected,
	uint64_t *ret, struct td_err *err)
{
	uint64_t ns;

	if (td_parse_duration(text, &ns, NULL))
		return td_err_expected(err, -EINVAL, text, expected);
	if (ns < min_ns || ns > max_ns)
		return td_err_expected(err, -ERANGE, text, expected);
	*ret = ns;
	return 0;
}

int td_sched_settings_take(
	struct td_sched_settings *settings, int letter, const char *text, struct td_err *err)
{
	struct td_brain_params *brain = &settings->scheduler.brain;
	uint64_t lease_ns = 0;
	int r;

	switch (letter) {
	case 'P': return take_policy(text, settings, err);
	case 'Q': return take_quota(text, brain, err);
	case 'r':
		return take_time(text, TD_NS_PER_S, 3600 * TD_NS_PER_S, "1s to 1h",
			&brain->shape.restart_ns, err);
	case 'M':
		return take_time(text, TD_NS_PER_S, 86400 * TD_NS_PER_S, "1s to 24h",
			&brain->shape.match_ns, err);
	case 'i':
		return take_time(text, 10 * TD_NS_PER_MS, 60 * TD_NS_PER_S, "10ms to 60s",
			&settings->scheduler.period_ns, err);
	case 's':
		return take_time(text, 5 * TD_NS_PER_S, 86400 * TD_NS_PER_S, "5s to 24h",
			&brain->start_ns, err);
	case 'n':
		if (!*text || strlen(text) >= sizeof(settings->name))
			return td_err_expected(err, -EINVAL, text, "up to 127 characters");
		strcpy(settings->name, text);
		return 0;
	case 'l':
		r = take_time(
			text, 2 * TD_NS_PER_S, 600 * TD_NS_PER_S, "2s to 10m", &lease_ns, err);
		if (!r)
			settings->scheduler.lease_s = (uint32_t)(lease_ns / TD_NS_PER_S);
		return r;
	case 'x':
		if (!*text)
			return td_err_expected(err, -EINVAL, text, "the path of a file");
		settings->scheduler.metrics = text;
		return 0;
	case 'q': settings->scheduler.log = NULL; return 0;
	default: return 1;
	}
}

int td_sched_settings_check(
	const struct td_sched_settings *settings, const char *why, struct td_err *err)
{
	const struct td_brain_policy *policy = settings->scheduler.brain.policy;

	if (!policy->by_program || !*why)
		return 0;
	return td_err_set(err, -ENOTSUP,
		"--policy %s goes by profiles of programs, and there are none: %s", policy->name,
		why);
}
