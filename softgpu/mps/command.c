/* Commands of nvidia-cuda-mps-control; see command.h. Each is described by its arguments' names. */
#include "softgpu/mps/command.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"

#define DEVICE_MAX 63u
#define WORDS_MAX  6u
#define TEXT_MAX   256

static const struct {
	const char *name, *arguments;
} verbs[] = {
#define X(name, arguments) {#name, arguments},
	SG_MPS_COMMANDS(X)
#undef X
};

struct words {
	char text[TEXT_MAX];
	char *word[WORDS_MAX];
	size_t count;
};

/* Splits the line into words. Returns false if there are too many. */
static bool split(const char *line, struct words *words)
{
	char *rest = NULL;

	words->count = 0;
	if (snprintf(words->text, sizeof(words->text), "%s", line) >= (int)sizeof(words->text))
		return false;
	for (char *word = strtok_r(words->text, " \t\r\n", &rest); word;
		word = strtok_r(NULL, " \t\r\n", &rest)) {
		if (words->count == WORDS_MAX)
			return false;
		words->word[words->count++] = word;
	}
	return words->count > 0;
}

bool sg_mps_parse_percent(const char *text, double *ret)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !isfinite(value) || value <= 0 || value > 100)
		return false;
	*ret = value;
	return true;
}

static bool number(const char *text, uint64_t most, uint64_t *ret)
{
	struct td_err err = {0};

	return td_parse_u64(text, 0, most, ret, &err) == 0;
}

static bool pid_of(const char *text, pid_t *ret)
{
	uint64_t value;

	if (!number(text, INT_MAX, &value) || !value)
		return false;
	*ret = (pid_t)value;
	return true;
}

/* Reads the words by the arguments' names. Returns the first word that does not fit, or "". */
static const char *read_arguments(const struct words *words, struct sg_mps_command *ret)
{
	const char *names = verbs[ret->verb].arguments;
	uint64_t value;
	size_t i = 1;

	if (words->count > 1 && strstr(names, "-uid") && !strcmp(words->word[1], "-uid"))
		i = 2;
	else if (strstr(names, "-uid"))
		return "-uid is missing";
	for (const char *name = i == 2 ? strstr(names, "UID") : names; *name && *name != '[';
		name += strcspn(name, " "), name += *name == ' ') {
		const char *word = i < words->count ? words->word[i++] : "an argument is missing";
		bool good = false;

		if (!strncmp(name, "UID", 3)) {
			good = number(word, UINT_MAX, &value);
			ret->uid = (uid_t)(good ? value : 0);
		} else if (!strncmp(name, "PERCENT", 7)) {
			good = sg_mps_parse_percent(word, &ret->percent);
		} else if (!strncmp(name, "DEVICE", 6)) {
			good = number(word, DEVICE_MAX, &value);
			ret->device = (uint32_t)(good ? value : 0);
		} else if (!strncmp(name, "SIZE", 4)) {
			good = !td_parse_size(word, 0, &ret->bytes, NULL) && ret->bytes;
		} else {
			good = pid_of(
				word, !strncmp(name, "CLIENT", 6) ? &ret->client : &ret->server);
		}
		if (!good)
			return word;
	}
	if (i < words->count && strstr(names, "[-f]") && !strcmp(words->word[i], "-f")) {
		ret->force = true;
		i++;
	}
	if (i + 1 < words->count && strstr(names, "[-t") && !strcmp(words->word[i], "-t")) {
		if (!number(words->word[i + 1], 86400, &value))
			return words->word[i + 1];
		ret->force = true;
		ret->seconds = (uint32_t)value;
		i += 2;
	}
	return i < words->count ? words->word[i] : "";
}

int sg_mps_command_parse(
	const char *line, struct sg_mps_command *ret, char *error, size_t error_len)
{
	struct sg_mps_command command = {.verb = SG_MPS_VERB_N};
	struct words words;
	const char *wrong;

	if (!split(line, &words)) {
		snprintf(error, error_len, "not a command: see \"help\"");
		return -EINVAL;
	}
	for (unsigned v = 0; v < SG_MPS_VERB_N; v++)
		if (!strcmp(verbs[v].name, words.word[0]))
			command.verb = v;
	if (command.verb == SG_MPS_VERB_N) {
		snprintf(error, error_len, "\"%s\" is not a command: see \"help\"", words.word[0]);
		return -EINVAL;
	}
	wrong = read_arguments(&words, &command);
	if (*wrong) {
		snprintf(error, error_len, "%s: %s: expected %s %s", words.word[0], wrong,
			words.word[0], verbs[command.verb].arguments);
		return -EINVAL;
	}
	*ret = command;
	return 0;
}

char *sg_mps_command_help(char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = 0;
	for (unsigned v = 0; v < SG_MPS_VERB_N && used < len; v++)
		used += (size_t)snprintf(
			buf + used, len - used, "%s %s\n", verbs[v].name, verbs[v].arguments);
	return buf;
}
