/* See plan.h. */
#include "profiler/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"

#define FILE_MAX 65536u
#define BLANKS   " \t\r"

int td_profiler_check_name(const char *name, struct td_err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._+-";

	if (*name && !name[strspn(name, letters)] && strlen(name) < TD_PROGRAM_NAME)
		return 0;
	return td_err_set(err, -EINVAL,
		"\"%.64s\" is not a valid name: expected 1 to %d letters, digits, and . _ + -",
		name, TD_PROGRAM_NAME - 1);
}

/* The next word of a line, which is cut behind it; "" at the end. */
static char *take_word(char **at)
{
	char *word = *at + strspn(*at, BLANKS);
	size_t len = strcspn(word, BLANKS);

	*at = word + len;
	if (**at)
		*(*at)++ = 0;
	return word;
}

static int read_line(char *line, struct td_plan_program *ret, struct td_err *err)
{
	char *class = take_word(&line), *name = take_word(&line);

	line += strspn(line, BLANKS);
	if (strcmp(class, "online") && strcmp(class, "besteffort"))
		return td_err_set(err, -EINVAL,
			"\"%.64s\" is not valid: expected online or besteffort", class);
	if (td_profiler_check_name(name, err))
		return -EINVAL;
	if (!*line || strlen(line) >= sizeof(ret->command))
		return td_err_set(err, -EINVAL, "\"%.64s\": expected a command of 1 to %zu bytes",
			name, sizeof(ret->command) - 1);
	ret->online = !strcmp(class, "online");
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	snprintf(ret->command, sizeof(ret->command), "%s", line);
	return 0;
}

/* Behind the others of its class. */
static int add(struct td_plan *plan, const struct td_plan_program *program, struct td_err *err)
{
	uint32_t at = program->online ? plan->online_count : plan->count;

	for (uint32_t i = 0; i < plan->count; i++)
		if (!strcmp(plan->programs[i].name, program->name))
			return td_err_set(err, -EINVAL, "\"%.64s\" is there twice", program->name);
	if (plan->count == TD_PLAN_MAX)
		return td_err_set(err, -EINVAL, "\"%.64s\" is one too many: expected at most %u",
			program->name, TD_PLAN_MAX);
	memmove(&plan->programs[at + 1], &plan->programs[at],
		(plan->count - at) * sizeof(*plan->programs));
	plan->programs[at] = *program;
	plan->count++;
	plan->online_count += program->online;
	return 0;
}

/* Cuts the text into lines. */
static int read_lines(char *text, struct td_plan *plan, struct td_err *err)
{
	struct td_plan_program program;
	struct td_err why;

	for (unsigned number = 1; text; number++) {
		char *line = text, *end = strchr(text, '\n');

		text = end ? end + 1 : NULL;
		if (end)
			*end = 0;
		line += strspn(line, BLANKS);
		if (!*line || *line == '#')
			continue;
		if (read_line(line, &program, &why) || add(plan, &program, &why))
			return td_err_set(err, -EINVAL, "line %u: %.400s", number, why.msg);
	}
	if (!plan->online_count || plan->online_count == plan->count)
		return td_err_set(err, -EINVAL, "expected programs of both classes");
	return 0;
}

int td_plan_parse(const char *text, struct td_plan *ret_plan, struct td_err *err)
{
	td_auto_free struct td_plan *plan = calloc(1, sizeof(*plan));
	td_auto_free char *copy = strdup(text);
	int r;

	if (!plan || !copy)
		return td_err_set(err, -ENOMEM, "there is no memory");
	r = read_lines(copy, plan, err);
	if (!r)
		*ret_plan = *plan;
	return r;
}

int td_plan_load(const char *path, struct td_plan *ret_plan, struct td_err *err)
{
	td_auto_free char *text = calloc(1, FILE_MAX + 1);
	struct td_err why;
	FILE *file;
	size_t n;
	int r = 0;

	if (!text)
		return td_err_set(err, -ENOMEM, "there is no memory");
	file = fopen(path, "re");
	if (!file)
		return td_err_set(err, -errno, "\"%.200s\": %s", path, strerror(errno));
	n = fread(text, 1, FILE_MAX + 1, file);
	if (ferror(file))
		r = td_err_set(err, -EIO, "\"%.200s\" cannot be read", path);
	else if (n > FILE_MAX || strlen(text) < n)
		r = td_err_set(
			err, -EFBIG, "\"%.200s\" is no text of at most %u bytes", path, FILE_MAX);
	fclose(file);
	if (r)
		return r;
	r = td_plan_parse(text, ret_plan, &why);
	return r ? td_err_set(err, r, "\"%.100s\": %.380s", path, why.msg) : 0;
}

int td_plan_shares(const char *text, unsigned ret_percents[TD_PLAN_SHARES], uint32_t *ret_count,
	struct td_err *err)
{
	unsigned percents[TD_PLAN_SHARES];
	uint32_t count = 0;
	const char *at = text;

	for (;;) {
		char *end = NULL;
		unsigned long percent = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;

		if (!percent || percent > 100 || count == TD_PLAN_SHARES ||
			(count && percent <= percents[count - 1]))
			break;
		percents[count++] = (unsigned)percent;
		end += *end == '%';
		if (!*end) {
			memcpy(ret_percents, percents, count * sizeof(*percents));
			*ret_count = count;
			return 0;
		}
		if (*end != ',')
			break;
		at = end + 1;
	}
	return td_err_expected(
		err, -EINVAL, text, "ascending shares from 1 to 100, such as 20,40,60");
}
