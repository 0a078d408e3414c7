/*
 * What a program may tell tandem. Nothing here is needed: programs run under tandem unchanged. A program that says where its steps end is
 * protected, and shares, by their true length; otherwise tandem finds steps in the pattern of its GPU work.
 *
 * Header only: the library is looked up when the first call is made, and where it is not loaded the calls do nothing. So there is nothing to link
 * with (but -ldl before glibc 2.34), and the program runs as well without tandem. C99 and C++.
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
 * A step (mini-batch) has ended and the next one begins. Call it once per step, from any thread, always at the same place of the loop; behind the
 * synchronisation, if the step has one, so that it is the GPU's work that is timed. Costs about 50 ns, and a wake-up of tandem's own thread
 * where a policy goes by steps. From the first call on no step is guessed.
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
 * What this process has on a device (by its ordinal) beyond what it may have there now, in bytes; mostly 0. A program that keeps memory for later gives
 * as much of it back, at the end of a step, and nothing has to be copied. Else tandem stops the process for a moment and moves its memory to the host.
 */
static inline size_t tandem_excess(int device)
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_excess", &looked, &function);

	return found ? ((size_t(*)(int))found)(device) : 0;
}

/* Of what this process has on a device, so many bytes are only kept for later and could be given back now. */
static inline void tandem_cached(int device, size_t bytes)
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_cached", &looked, &function);

	if (found)
		((void (*)(int, size_t))found)(device, bytes);
}

/*
 * For an allocator, at the end of a step: the most and the least that the program had in use on a device since the last one, what is only kept for later
 * left out. tandem ps --json and tandem explain show it, with tandem_cached's figure, for who wants to know what a job needs.
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
