/* Reads the value of --restart; see restart.h. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "cli/supervise/restart.h"

#define EXPECTED                                                                                   \
	"no, on-failure or always, and behind the last two :N or :N/TIME with N from 1 to 1000, "  \
	"such as on-failure:5 or on-failure:5/10m"

static int parse_bound(const char *text, struct td_restart *ret)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char number[16];
	uint64_t most;

	if (len >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, len);
	number[len] = 0;
	if (td_parse_u64(number, 1, TD_RESTARTS_MAX, &most, NULL))
		return -EINVAL;
	ret->most = (uint32_t)most;
	if (slash && (td_parse_duration(slash + 1, &ret->window_ns, NULL) || !ret->window_ns))
		return -EINVAL;
	return 0;
}

int td_restart_parse(const char *text, struct td_restart *ret, struct td_err *err)
{
	static const char *const words[TD_RESTART_N] = {"no", "on-failure", "always"};
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	struct td_restart read = {.when = TD_RESTART_N};

	for (unsigned i = 0; i < TD_RESTART_N; i++)
		if (len == strlen(words[i]) && !strncmp(text, words[i], len))
			read.when = (enum td_restart_when)i;
	if (read.when == TD_RESTART_N ||
		(colon && (read.when == TD_RESTART_NEVER || parse_bound(colon + 1, &read))))
		return td_err_expected(err, -EINVAL, text, EXPECTED);
	*ret = read;
	return 0;
}
