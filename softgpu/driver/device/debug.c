/*
 * Profiler control, core dumps and logs. softgpu implements none of them. The calls succeed as far
 * as a program needs to switch them on and off; with SOFTGPU_DEBUG set, they say on stderr that
 * they do nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/driver/driver.h"

enum {
	CU_COREDUMP_ENABLE_ON_EXCEPTION = 1,
	CU_COREDUMP_TRIGGER_HOST = 2,
	CU_COREDUMP_LIGHTWEIGHT = 3,
	CU_COREDUMP_ENABLE_USER_TRIGGER = 4,
	CU_COREDUMP_FILE = 5,
	CU_COREDUMP_PIPE = 6,
	CU_COREDUMP_GENERATION_FLAGS = 7,
	COREDUMP_N,
};
#define TEXT_MAX 1024u /* "string of up to 1023 characters" */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	bool is_set;
	bool on;
	int flags;
	char text[TEXT_MAX];
} settings[COREDUMP_N];

static void say(const char *call)
{
	if (getenv("SOFTGPU_DEBUG"))
		fprintf(stderr, "softgpu: %s does nothing here\n", call);
}

API CUresult cuProfilerStart(void)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (!r)
		say("cuProfilerStart");
	return r;
}

API CUresult cuProfilerStop(void)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	if (!r)
		say("cuProfilerStop");
	return r;
}

static bool is_text(int attribute)
{
	return attribute == CU_COREDUMP_FILE || attribute == CU_COREDUMP_PIPE;
}

/* Returns the defaults that cuda.h describes. */
static void default_text(int attribute, char *out)
{
	char host[256] = "localhost";

	(void)gethostname(host, sizeof(host) - 1);
	snprintf(out, TEXT_MAX, "%s.%s.%d",
		attribute == CU_COREDUMP_FILE ? "core.cuda" : "corepipe.cuda", host, getpid());
}

static size_t size_of(int attribute)
{
	return is_text(attribute)                          ? TEXT_MAX
	       : attribute == CU_COREDUMP_GENERATION_FLAGS ? sizeof(int)
							   : sizeof(bool);
}

static int check(int attribute, const size_t *size)
{
	int r = sg_ready();

	if (r)
		return r;
	return !size || attribute < CU_COREDUMP_ENABLE_ON_EXCEPTION || attribute >= COREDUMP_N
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

static int get_coredump(int attribute, void *value, size_t *size)
{
	int r = check(attribute, size);

	if (r)
		return r;
	if (!value) {
		*size = size_of(attribute);
		return CUDA_SUCCESS;
	}
	if (*size < (is_text(attribute) ? 1 : size_of(attribute)))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (is_text(attribute)) {
		if (!settings[attribute].is_set)
			default_text(attribute, settings[attribute].text);
		snprintf(value, *size, "%s", settings[attribute].text);
	} else if (attribute == CU_COREDUMP_GENERATION_FLAGS) {
		*(int *)value = settings[attribute].flags;
	} else {
		*(bool *)value = settings[attribute].is_set ? settings[attribute].on
							    : attribute == CU_COREDUMP_TRIGGER_HOST;
	}
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static int set_coredump(const char *call, int attribute, const void *value, const size_t *size)
{
	int r = check(attribute, size);

	if (r)
		return r;
	if (!value || !*size || *size > TEXT_MAX ||
		(!is_text(attribute) && *size < size_of(attribute)))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	settings[attribute].is_set = true;
	if (is_text(attribute))
		snprintf(settings[attribute].text, TEXT_MAX, "%.*s", (int)*size,
			(const char *)value);
	else if (attribute == CU_COREDUMP_GENERATION_FLAGS)
		settings[attribute].flags = *(const int *)value;
	else
		settings[attribute].on = *(const bool *)value;
	pthread_mutex_unlock(&lock);
	say(call);
	return CUDA_SUCCESS;
}

/* A context's attributes are those of the process here. */
API CUresult cuCoredumpGetAttribute(int attribute, void *value, size_t *size)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	return r ? r : get_coredump(attribute, value, size);
}

API CUresult cuCoredumpGetAttributeGlobal(int attribute, void *value, size_t *size)
{
	return get_coredump(attribute, value, size);
}

API CUresult cuCoredumpSetAttribute(int attribute, void *value, size_t *size)
{
	struct CUctx_st *context;
	int r = sg_current(&context);

	return r ? r : set_coredump("cuCoredumpSetAttribute", attribute, value, size);
}

API CUresult cuCoredumpSetAttributeGlobal(int attribute, void *value, size_t *size)
{
	return set_coredump("cuCoredumpSetAttributeGlobal", attribute, value, size);
}

/* -- logs: they are always empty -- */

typedef void (*log_callback)(void *data, int level, char *message, size_t length);

API CUresult cuLogsRegisterCallback(log_callback callback, void *data, void **ret)
{
	static char registered;

	(void)data;
	if (!callback)
		return CUDA_ERROR_INVALID_VALUE;
	if (ret)
		*ret = &registered;
	say("cuLogsRegisterCallback");
	return CUDA_SUCCESS;
}

API CUresult cuLogsUnregisterCallback(void *handle)
{
	return handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuLogsCurrent(unsigned *position, unsigned flags)
{
	if (!position || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*position = 0;
	return CUDA_SUCCESS;
}

API CUresult cuLogsDumpToFile(unsigned *position, const char *path, unsigned flags)
{
	FILE *file;

	(void)position;
	if (!path || flags)
		return CUDA_ERROR_INVALID_VALUE;
	file = fopen(path, "we");
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	fclose(file);
	return CUDA_SUCCESS;
}

API CUresult cuLogsDumpToMemory(unsigned *position, char *buffer, size_t *size, unsigned flags)
{
	(void)position;
	if (!buffer || !size || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (*size)
		*buffer = 0;
	*size = 0;
	return CUDA_SUCCESS;
}
