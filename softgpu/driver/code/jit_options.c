/* Implements jit_options.h. */
#include "softgpu/driver/code/jit_options.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cuda/types.h"

enum {
	CU_JIT_WALL_TIME = 2,
	CU_JIT_INFO_LOG_BUFFER = 3,
	CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
	CU_JIT_ERROR_LOG_BUFFER = 5,
	CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
	CU_JIT_NUM_OPTIONS = 35,
};

/* Returns where the option's value is, or NULL if the option was not given. */
static void **value_of(unsigned count, const int *options, void **values, int option)
{
	for (unsigned i = 0; i < count; i++)
		if (options[i] == option)
			return &values[i];
	return NULL;
}

/*
 * Reads a log buffer and its size, which are two separate options. cuda.h: "on output ... the
 * amount of the buffer used".
 */
static void read_log(
	unsigned count, const int *options, void **values, int buffer, struct sg_jit *ret)
{
	void **text = value_of(count, options, values, buffer);

	*ret = (struct sg_jit){.log_size = value_of(count, options, values, buffer + 1)};
	if (text && *text && ret->log_size) {
		ret->log = *text;
		ret->log_bytes = (size_t)(uintptr_t)*ret->log_size;
	}
	sg_jit_say(ret, "");
}

int sg_jit_read(unsigned count, const int *options, void **values, struct sg_jit *ret)
{
	struct sg_jit info;
	void **wall_time;

	*ret = (struct sg_jit){0};
	if (count && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++)
		if (options[i] < 0 || options[i] >= CU_JIT_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
	read_log(count, options, values, CU_JIT_INFO_LOG_BUFFER, &info);
	read_log(count, options, values, CU_JIT_ERROR_LOG_BUFFER, ret);
	wall_time = value_of(count, options, values, CU_JIT_WALL_TIME);
	if (wall_time)
		memset(wall_time, 0, sizeof(float)); /* in milliseconds */
	return CUDA_SUCCESS;
}

void sg_jit_say(const struct sg_jit *jit, const char *text)
{
	size_t written = 0;

	if (jit && jit->log && jit->log_bytes) {
		snprintf(jit->log, jit->log_bytes, "%s", text);
		written = *text ? strlen(jit->log) + 1 : 0;
	}
	if (jit && jit->log_size)
		*jit->log_size = (void *)(uintptr_t)written;
}
