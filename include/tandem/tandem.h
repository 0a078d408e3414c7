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

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A step (mini-batch) has ended and the next one begins. Call it once per step, from any thread, always at the same place of the loop; behind the
 * synchronisation, if the step has one, so that it is the GPU's work that is timed. Costs about 50 ns, and a wake-up of tandem's own thread
 * where a policy goes by steps. From the first call on no step is guessed.
 */
static inline void tandem_step(void)
{
	static int looked;
	static void (*step)(void);
	void *found;

	if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
		found = dlsym((void *)0 /* RTLD_DEFAULT, which needs _GNU_SOURCE */, "tandem_step");
		__atomic_store_n((void **)&step, found, __ATOMIC_RELAXED);
		__atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
	}
	if (step)
		step();
}

#ifdef __cplusplus
}
#endif

#endif
