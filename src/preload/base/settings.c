/*
 * The settings from the environment; see settings.h. They are read once, at load: a later change of
 * the environment has no effect.
 */
#include "preload/base/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/time.h"
#include "proto/socket.h"
#include "proto/words.h"

#define WEIGHT_MAX 1000

struct td_settings td_settings;

void td_settings_reject(const char *name)
{
	const char *value = getenv(name);

	if (td_settings.rejected_count < TD_REJECTED_MAX)
		snprintf(td_settings.rejected[td_settings.rejected_count++],
			sizeof(td_settings.rejected[0]), "%s=%s", name, value ? value : "");
}

static uint8_t word_index(const char *name, const char *const *words, uint8_t fallback)
{
	const char *value = getenv(name);

	if (!value || !*value)
		return fallback;
	for (uint8_t i = 0; words[i]; i++)
		if (!strcmp(words[i], value))
			return i;
	td_settings_reject(name);
	return fallback;
}

static uint64_t duration(const char *name, uint64_t fallback_ns)
{
	const char *value = getenv(name);
	uint64_t ns;

	if (!value || !*value)
		return fallback_ns;
	if (!td_parse_duration(value, &ns, NULL))
		return ns;
	td_settings_reject(name);
	return fallback_ns;
}

static void text(const char *name, const char *fallback, char *ret, size_t len)
{
	const char *value = getenv(name);

	snprintf(ret, len, "%s", value && *value ? value : fallback);
}

static bool flag(const char *name)
{
	const char *value = getenv(name);
	bool on;

	if (!value || !*value)
		return false;
	/*
	 * An invalid value of TANDEM_DISABLE still disables: the user meant to switch tandem off.
	 */
	return td_parse_bool(value, &on, NULL) || on;
}

static uint32_t weight(void)
{
	const char *value = getenv("TANDEM_WEIGHT");
	uint64_t w;

	if (!value || !*value)
		return 1;
	if (!td_parse_u64(value, 1, WEIGHT_MAX, &w, NULL))
		return (uint32_t)w;
	td_settings_reject("TANDEM_WEIGHT");
	return 1;
}

/* Returns 0 if TANDEM_UPGRADE is not set, else 1 + the class. */
static uint8_t upgrade(void)
{
	static const char *const words[] = {"none", "online", "guaranteed", NULL};

	return word_index("TANDEM_UPGRADE", words, 0);
}

static uint32_t share(
	const char *name, int (*parse)(const char *text, uint32_t *ret_ppm, struct td_err *err))
{
	const char *value = getenv(name);
	uint32_t ppm;

	if (!value || !*value)
		return 0;
	if (!parse(value, &ppm, NULL))
		return ppm;
	td_settings_reject(name);
	return 0;
}

/* Reads the limit from the first of these two variables that is set. */
static void limit(const char *name, const char *also, char (*ret)[TD_LIMIT_TEXT])
{
	const char *const names[] = {name, also};

	**ret = 0;
	for (unsigned i = 0; i < 2 && names[i]; i++) {
		const char *value = getenv(names[i]);

		if (!value || !*value)
			continue;
		if (!td_parse_limit(value, NULL))
			strcpy(*ret, value);
		else
			td_settings_reject(names[i]);
		return;
	}
}

bool td_settings_share_is_per_context(void)
{
	const char *value = getenv(TD_SHARE_PER_CONTEXT);

	return value && !strcmp(value, "1");
}

/* This is CUDA's variable. Invalid values are ignored here, since CUDA refuses them. */
static uint32_t sm_share(void)
{
	const char *value = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	char text[32];
	uint32_t ppm = 0;

	if (!value || strlen(value) > sizeof(text) - 2)
		return 0;
	snprintf(text, sizeof(text), "%s%%", value);
	return td_parse_ratio(text, &ppm, NULL) ? 0 : ppm;
}

static void layers(uint32_t ret[TD_LAYER_KINDS])
{
	const char *value = getenv("TANDEM_LAYERS");
	uint32_t counts[TD_LAYER_KINDS];

	if (!value || !*value)
		return;
	if (!td_layers_parse(value, counts, NULL))
		memcpy(ret, counts, sizeof(counts));
	else
		td_settings_reject("TANDEM_LAYERS");
}

/*
 * `tandem run --shadow` sets this variable. A value that is not a number was not set by tandem
 * and is ignored.
 */
static uint32_t instance(void)
{
	const char *value = getenv("TANDEM_INSTANCE");
	uint64_t number = 0;

	return value && !td_parse_u64(value, 1, UINT32_MAX, &number, NULL) ? (uint32_t)number : 0;
}

void td_settings_read(void)
{
	static const char *const classes[] = {"online", "guaranteed", "besteffort", NULL};
	static const char *const when_full[] = {"stay", "refuse", NULL};
	static const char *const backends[] = {"plain", "swap", "managed", "auto", NULL};
	struct td_settings *s = &td_settings;
	int saved = errno;

	*s = (struct td_settings){.disabled = flag("TANDEM_DISABLE")};
	text("TANDEM_JOB", "", s->job, sizeof(s->job));
	text("TANDEM_NAME", program_invocation_short_name, s->name, sizeof(s->name));
	s->class = word_index("TANDEM_CLASS", classes, TD_CLASS_BESTEFFORT);
	s->upgrade = upgrade();
	s->backend = word_index("TANDEM_BACKEND", backends, TD_BACKEND_AUTO);
	s->weight = weight();
	s->instance = instance();
	s->sm_share_ppm = sm_share();
	if (!td_settings_share_is_per_context())
		s->sm_share_most_ppm = s->sm_share_ppm;
	s->duty_ppm = share("TANDEM_DUTY", td_parse_duty);
	s->slack_ppm = share("TANDEM_SLACK", td_parse_slack);
	layers(s->layers);
	limit("TANDEM_MEM", "NVIDIA_GPU_MEMORY_LIMIT", &s->mem);
	limit("TANDEM_MEM_SOFT", NULL, &s->mem_soft);
	limit("TANDEM_HOST_LIMIT", NULL, &s->host_limit);
	s->host_refuses = word_index("TANDEM_HOST_FULL", when_full, 0);
	s->drain_deadline_ns = duration("TANDEM_DRAIN_DEADLINE", 10 * TD_NS_PER_S);
	s->idle_ns = duration("TANDEM_IDLE", 3 * TD_NS_PER_MS);
	s->grace_ns = duration("TANDEM_GRACE", 2 * TD_NS_PER_S);
	/* Without a usable path the process runs without a daemon; `tandem doctor` says why. */
	if (!td_socket_path(s->socket, sizeof(s->socket)) || s->socket[0] != '/')
		s->socket[0] = '\0';
	errno = saved;
}
