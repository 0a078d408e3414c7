/* The administrator's comment of a job; see comment.h. */
#include "slurm/comment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define WHY "why: "

/* Copies the word at text, which ends at a blank or at the end. Returns what follows, or NULL. */
static const char *take_word(const char *text, char *ret, size_t len)
{
	size_t n = strcspn(text, " ");

	if (n >= len)
		return NULL;
	memcpy(ret, text, n);
	ret[n] = 0;
	return text[n] ? text + n + 1 : text + n;
}

static int parse_places(char *word, struct td_slurm_comment *c)
{
	char *gpus = strchr(word, ':');

	if (!gpus || gpus == word || gpus - word >= (long)sizeof(c->node))
		return -EINVAL;
	*gpus++ = 0;
	strcpy(c->node, word);
	for (char *next; gpus; gpus = next) {
		uint64_t gpu;

		next = strchr(gpus, '+');
		if (next)
			*next++ = 0;
		if (c->gpus == TD_SLURM_GPUS_MAX ||
			td_parse_u64(gpus, 0, TD_SLURM_GPUS_MAX - 1, &gpu, NULL))
			return -EINVAL;
		c->gpu[c->gpus++] = (uint32_t)gpu;
	}
	return 0;
}

static int parse_word(char *word, struct td_slurm_comment *c)
{
	if (!strncmp(word, "epoch=", 6))
		return td_parse_u64(word + 6, 0, UINT64_MAX / 2, &c->epoch, NULL) ? -EINVAL : 0;
	if (!strncmp(word, "run=", 4)) {
		uint64_t run;

		if (td_parse_u64(word + 4, 0, UINT32_MAX - 1, &run, NULL))
			return -EINVAL;
		c->run = (uint32_t)run;
		return 0;
	}
	if (!strncmp(word, "on=", 3))
		return c->gpus ? -EINVAL : parse_places(word + 3, c);
	if (strcmp(word, "guest"))
		return -EINVAL;
	c->guest = true;
	return 0;
}

int td_slurm_comment_parse(const char *text, struct td_slurm_comment *ret)
{
	struct td_slurm_comment c = {.run = TD_SLURM_ANY_RUN};
	char word[TD_SLURM_COMMENT_MAX];

	if (!text || strncmp(text, "tandem=", 7))
		return -EINVAL;
	text = take_word(text + 7, c.spec, sizeof(c.spec));
	while (text && *text) {
		if (!strncmp(text, WHY, strlen(WHY))) {
			snprintf(c.why, sizeof(c.why), "%s", text + strlen(WHY));
			break;
		}
		text = take_word(text, word, sizeof(word));
		if (text && parse_word(word, &c))
			return -EINVAL;
	}
	if (!text)
		return -EINVAL;
	*ret = c;
	return 0;
}

char *td_slurm_comment_write(const struct td_slurm_comment *c, char *ret)
{
	size_t len = TD_SLURM_COMMENT_MAX, used;

	used = (size_t)snprintf(
		ret, len, "tandem=%s epoch=%llu", c->spec, (unsigned long long)c->epoch);
	for (uint32_t k = 0; k < c->gpus && used < len; k++)
		used += (size_t)snprintf(ret + used, len - used, "%s%s%s%u",
			k ? "+" : " on=", k ? "" : c->node, k ? "" : ":", c->gpu[k]);
	if (c->gpus && c->run != TD_SLURM_ANY_RUN && used < len)
		used += (size_t)snprintf(ret + used, len - used, " run=%u", c->run);
	if (c->guest && used < len)
		used += (size_t)snprintf(ret + used, len - used, " guest");
	if (*c->why && used < len)
		snprintf(ret + used, len - used, " " WHY "%s", c->why);
	return ret;
}
