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
 * A program whose GPU the daemon has chosen learns only here which MPS it uses. The variables that
 * say so are added to its environment for good: the driver may read them later than in cuInit.
 *
 * Within a job, CUDA_VISIBLE_DEVICES means what it means in a container with these GPUs: its
 * indices count the job's GPUs.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cuda/visible.h"
#include "preload/agent/place.h"
#include "preload/base/lock.h"
#include "preload/base/page.h"
#include "preload/base/settings.h"
#include "preload/driver/real.h"

#define VARIABLE "CUDA_VISIBLE_DEVICES"
#define PIPE     "CUDA_MPS_PIPE_DIRECTORY"
#define SHARE    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"

/* Held around the driver's cuInit, which waits for no work. */
static struct td_lock lock = TD_LOCK_INIT(TD_RANK_INIT);
static bool initialised; /* guarded by lock */

/*
 * Makes "CUDA_VISIBLE_DEVICES=GPU-...,GPU-...": the job's GPUs, or those of them that the program
 * asks for.
 */
static char *make_entry(const struct td_placed *placed)
{
	uint32_t order[TD_GPU_MAX], count;
	size_t used;
	char *entry = malloc(sizeof(VARIABLE "=") + TD_GPU_MAX * TD_UUID_TEXT);

	if (!entry)
		return NULL;
	count = td_visible(
		getenv(VARIABLE), (const uint8_t(*)[16])placed->uuid, placed->count, order);
	used = (size_t)sprintf(entry, VARIABLE "=");
	for (uint32_t i = 0; i < count; i++)
		used += (size_t)sprintf(entry + used, "%s%s", i ? "," : "", placed->text[order[i]]);
	return entry;
}

static bool is_variable(const char *entry)
{
	return !strncmp(entry, VARIABLE "=", sizeof(VARIABLE));
}

/*
 * Returns a copy of the array with up to three more entries, or NULL if malloc failed. If the first
 * one is CUDA_VISIBLE_DEVICES, it takes the place of the program's own.
 */
static char **copy_with(char **before, char *entry, char *second, char *third)
{
	size_t count = 0, n = 0;
	char **copy;

	while (before && before[count])
		count++;
	copy = malloc((count + 4) * sizeof(*copy));
	if (!copy)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (!is_variable(before[i]) || !is_variable(entry))
			copy[n++] = before[i];
	copy[n++] = entry;
	copy[n++] = second;
	copy[n++] = second ? third : NULL;
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

/*
 * A child of `tandem run` is killed when that dies, and a client of MPS must not be. It gets
 * SIGTERM instead, as in child.c of the supervisor.
 */
static void soften_death(void)
{
	int signal = 0;

	if (!prctl(PR_GET_PDEATHSIG, &signal) && signal == SIGKILL)
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/*
 * Adds the variables of MPS to the environment, unless the user has chosen an MPS. The share is one
 * for each context, so that the program can have a larger one later (rehome.h).
 */
static void use_mps(const struct td_placed *placed)
{
	static char per_context[] = TD_SHARE_PER_CONTEXT "=1";
	char *pipe, *share = NULL, **copy;

	if (!*placed->mps || getenv(PIPE))
		return;
	pipe = malloc(sizeof(PIPE "=") + sizeof(placed->mps));
	if (placed->sm_share_ppm >= TD_PPM / 100 && !getenv(SHARE))
		share = malloc(sizeof(SHARE "=") + 8);
	if (pipe)
		sprintf(pipe, PIPE "=%s", placed->mps);
	if (share)
		sprintf(share, SHARE "=%u", placed->sm_share_ppm / (TD_PPM / 100) % 1000);
	copy = pipe ? copy_with(environ, pipe, share, per_context) : NULL;
	if (!copy) {
		free(pipe);
		free(share);
		return;
	}
	/* The array before is never freed, because another thread may be reading it. */
	environ = copy;
	if (share)
		td_settings.sm_share_ppm = placed->sm_share_ppm / (TD_PPM / 100) * (TD_PPM / 100);
	soften_death();
}

static CUresult initialise(unsigned flags)
{
	char **before, *entry, **copy;
	struct td_placed placed;
	const char *value;
	CUresult r;

	td_place_get(&placed);
	use_mps(&placed);
	before = environ;
	value = find_variable(before);
	entry = make_entry(&placed);
	copy = entry ? copy_with(before, entry, NULL, NULL) : NULL;
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
