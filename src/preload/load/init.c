/*
 * cuInit, where the program is to see some of the GPUs (place.h). The driver reads
 * CUDA_VISIBLE_DEVICES in cuInit. So that variable selects the GPUs, and everything that the driver
 * says of devices agrees.
 *
 * The program's environment is not changed: for the time of the call, `environ` is another array.
 * Threads that read theirs meanwhile find the same strings in either; setenv() would move strings
 * and the array under them. A variable that a thread sets in that time goes into the other array,
 * which is then kept.
 *
 * Within a job, CUDA_VISIBLE_DEVICES means what it means in a container with these GPUs: its
 * indices count the job's GPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/visible.h"
#include "preload/agent/place.h"
#include "preload/base/lock.h"
#include "preload/base/page.h"
#include "preload/driver/real.h"

#define VARIABLE "CUDA_VISIBLE_DEVICES"

/* Held around the driver's cuInit, which waits for no work. */
static struct td_lock lock = TD_LOCK_INIT(TD_RANK_INIT);
static bool initialised; /* guarded by lock */

/*
 * Makes "CUDA_VISIBLE_DEVICES=GPU-...,GPU-...": the job's GPUs, or those of them that the program
 * asks for.
 */
static char *make_entry(void)
{
	uint32_t order[TD_GPU_MAX], count;
	struct td_placed placed;
	size_t used;
	char *entry = malloc(sizeof(VARIABLE "=") + TD_GPU_MAX * TD_UUID_TEXT);

	if (!entry)
		return NULL;
	td_place_get(&placed);
	count = td_visible(
		getenv(VARIABLE), (const uint8_t(*)[16])placed.uuid, placed.count, order);
	used = (size_t)sprintf(entry, VARIABLE "=");
	for (uint32_t i = 0; i < count; i++)
		used += (size_t)sprintf(entry + used, "%s%s", i ? "," : "", placed.text[order[i]]);
	return entry;
}

static bool is_variable(const char *entry)
{
	return !strncmp(entry, VARIABLE "=", sizeof(VARIABLE));
}

/* Returns a copy of the array with this entry, or NULL if malloc failed. */
static char **copy_with(char **before, char *entry)
{
	size_t count = 0, n = 0;
	char **copy;

	while (before && before[count])
		count++;
	copy = malloc((count + 2) * sizeof(*copy));
	if (!copy)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (!is_variable(before[i]))
			copy[n++] = before[i];
	copy[n++] = entry;
	copy[n] = NULL;
	return copy;
}

/*
 * Returns the program's own value of the variable; NULL: it has none. A thread's setenv() may have
 * moved the array meanwhile, but not the strings.
 */
static const char *find_variable(char **array)
{
	for (; array && *array; array++)
		if (is_variable(*array))
			return *array + sizeof(VARIABLE);
	return NULL;
}

/* Another thread has set a variable meanwhile, so `environ` is a third array by now. */
static void restore_variable(const char *value)
{
	if (value)
		(void)setenv(VARIABLE, value, 1);
	else
		(void)unsetenv(VARIABLE);
}

static CUresult initialise(unsigned flags)
{
	char **before = environ, *entry = make_entry(), **copy;
	const char *value = find_variable(before);
	CUresult r;

	copy = entry ? copy_with(before, entry) : NULL;
	if (!copy) {
		free(entry);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	environ = copy;
	r = td_real.cuInit(flags);
	if (environ == copy)
		environ = before;
	else
		restore_variable(value);
	/* The copy is never freed, because another thread may be reading it. */
	initialised = !r;
	return r;
}

CUresult td_hook_cuInit(unsigned flags)
{
	CUresult r;

	td_begin();
	if (td_gate_disabled() || !td_place_is_wanted())
		return td_real.cuInit(flags);
	td_lock_take(&lock);
	r = initialised ? td_real.cuInit(flags) : initialise(flags);
	td_lock_drop(&lock);
	return r;
}

void td_init_forked(void)
{
	td_lock_reset(&lock);
}
