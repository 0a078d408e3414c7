/* Reads and writes lines of what was measured; see lesson.h. */
#include "profile/lesson.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "profile/service.h"

#define PPM 1000000u

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

size_t td_lesson_write(const struct td_lesson *lesson, char ret[TD_LESSON_TEXT])
{
	size_t n = 0;

	if (td_profile_check_name(lesson->service, NULL) || !*lesson->gpu ||
		!is_printable(lesson->gpu))
		return 0;
	n += (size_t)snprintf(ret, TD_LESSON_TEXT, "%s\t", lesson->service);
	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		n += (size_t)snprintf(
			ret + n, TD_LESSON_TEXT - n, "%s%" PRIu32, k ? "," : "", lesson->layers[k]);
	n += (size_t)snprintf(ret + n, TD_LESSON_TEXT - n,
		"\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\t%s\n", lesson->batch, lesson->share_ppm,
		lesson->latency_ns, lesson->gpu);
	return n;
}

static int parse_number(char **line, const char *end, uint64_t least, uint64_t most, uint64_t *ret,
	struct td_err *err)
{
	const char *text = strsep(line, end);

	if (!text)
		return td_err_set(err, -EINVAL, "the line ends too soon");
	return td_parse_u64(text, least, most, ret, err);
}

static int parse_layers(char **line, uint32_t ret[TD_MUDI_LAYERS], struct td_err *err)
{
	uint64_t count, sum = 0;

	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++) {
		const char *end = k + 1 < TD_MUDI_LAYERS ? "," : "\t";

		if (parse_number(line, end, 0, UINT32_MAX, &count, err))
			return -EINVAL;
		ret[k] = (uint32_t)count;
		sum += count;
	}
	return sum ? 0 : td_err_set(err, -EINVAL, "all counts of layers are 0");
}

int td_lesson_parse(char *line, struct td_lesson *ret, struct td_err *err)
{
	struct td_lesson lesson = {0};
	const char *name = strsep(&line, "\t");
	uint64_t batch, share_ppm;

	if (td_profile_check_name(name, err) || parse_layers(&line, lesson.layers, err) ||
		parse_number(&line, "\t", 1, TD_PROFILE_BATCH_MAX, &batch, err) ||
		parse_number(&line, "\t", 1, PPM, &share_ppm, err) ||
		parse_number(&line, "\t", 1, UINT64_MAX, &lesson.latency_ns, err))
		return -EINVAL;
	if (!line || !*line || strlen(line) >= sizeof(lesson.gpu) || !is_printable(line))
		return td_err_set(err, -EINVAL, "the name of the GPU is missing or not valid");
	snprintf(lesson.service, sizeof(lesson.service), "%s", name);
	snprintf(lesson.gpu, sizeof(lesson.gpu), "%s", line);
	lesson.batch = (uint32_t)batch;
	lesson.share_ppm = (uint32_t)share_ppm;
	*ret = lesson;
	return 0;
}
