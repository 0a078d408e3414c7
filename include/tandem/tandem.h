/*
 * Hints of a program to tandem. None is required: programs run under tandem unchanged. A program
 * that reports its steps is protected, and shares, by their true length; otherwise tandem finds
 * steps in the pattern of its GPU work.
 *
 * Header only: the first call looks the library up, and where it is not loaded the calls do
 * nothing. So there is nothing to link with (except -ldl before glibc 2.34), and the program runs
 * as well without tandem. C99 and C++.
 */
#ifndef TANDEM_TANDEM_H
#define TANDEM_TANDEM_H

#include <dlfcn.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The function of that name in libtandem.so, looked up once; NULL without tandem. */
static inline void *tandem_function_(const char *name, int *looked, void **function)
{
	if (!__atomic_load_n(looked, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(function,
			dlsym((void *)0 /* RTLD_DEFAULT, which needs _GNU_SOURCE */, name),
			__ATOMIC_RELAXED);
		__atomic_store_n(looked, 1, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(function, __ATOMIC_RELAXED);
}

/*
 * Reports that a step (mini-batch) has ended and the next one begins. Call it once per step, from
 * any thread, always at the same place of the loop, after the step's synchronisation if it has one,
 * so that the GPU's work is timed. Costs about 50 ns, and a wake-up of tandem's own thread where a
 * policy goes by steps. After the first call no step is guessed.
 */
static inline void tandem_step(void)
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_step", &looked, &function);

	if (found)
		((void (*)(void))found)();
}

/*
 * Returns the bytes by which this process exceeds its present limit on a device (by its ordinal);
 * mostly 0. A program that caches memory frees as much of it at the end of a step, and nothing has
 * to be copied. Otherwise tandem stops the process for a moment and moves its memory to the host.
 */
static inline size_t tandem_excess(int device)
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_excess", &looked, &function);

	return found ? ((size_t(*)(int))found)(device) : 0;
}

/* Reports that so many bytes of this process on a device are only cached and could be freed now. */
static inline void tandem_cached(int device, size_t bytes)
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_cached", &looked, &function);

	if (found)
		((void (*)(int, size_t))found)(device, bytes);
}

/*
 * For an allocator, at the end of a step: reports the most and the least that the program had in
 * use on a device since the last step, without cached memory. tandem ps --json and tandem explain
 * show it, with tandem_cached's figure, to tell how much a job needs.
 */
static inline void tandem_used(int device, size_t most, size_t least)
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_used", &looked, &function);

	if (found)
		((void (*)(int, size_t, size_t))found)(device, most, least);
}

#ifdef __cplusplus
}
#endif

#endif
