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
#include <stdint.h>

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

/* -- services -- */

/*
 * This process answers requests. With an objective for its 99th percentile of latency (0: none) the
 * policies keep it, where they can, by its own figures instead of guesses. batch_max is the largest
 * batch that it can work on; 0: not known. Call it once, before the first request. Returns 0, or
 * below 0 with a negative errno: the name is missing or longer than 63 bytes, or memory is short.
 * Without tandem it returns 0, and nothing is counted.
 */
static inline int tandem_service(const char *name, uint64_t objective_ns, uint32_t batch_max)
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_service", &looked, &function);

	return found ? ((int (*)(const char *, uint64_t, uint32_t))found)(
			       name, objective_ns, batch_max)
		     : 0;
}

/* Counts requests that arrived together. Returns a token for tandem_answered(). From any thread. */
static inline uint64_t tandem_arrived(uint32_t requests)
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_arrived", &looked, &function);

	return found ? ((uint64_t(*)(uint32_t))found)(requests) : 0;
}

/* So many of the requests of that token have been answered now. From any thread. */
static inline void tandem_answered(uint64_t token, uint32_t requests)
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_answered", &looked, &function);

	if (found)
		((void (*)(uint64_t, uint32_t))found)(token, requests);
}

/* Returns the batch to run with next: tandem's choice, or `mine` where it has chosen none. */
static inline uint32_t tandem_batch(uint32_t mine)
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_batch", &looked, &function);

	return found ? ((uint32_t(*)(uint32_t))found)(mine) : mine;
}

/*
 * Reports that this service can answer requests. If it is a second instance, which tandem has
 * started for another share of the SMs (tandem run --shadow), the first one gets SIGTERM now: it
 * should take no new requests, answer those that it has, and exit. Without this call an instance
 * counts as ready when it listens on each port on which the first one listens. Call it once, when
 * the first batch has run and the port, opened with SO_REUSEPORT, listens.
 */
static inline void tandem_ready(void)
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_ready", &looked, &function);

	if (found)
		((void (*)(void))found)();
}

/*
 * How many layers of each kind the network of this training job has, in this order: convolution,
 * linear, activation, embedding, encoder, decoder, flatten, batch normalisation, fully connected,
 * pooling, other. Services that it may run beside are chosen by that.
 */
static inline void tandem_layers(const uint32_t counts[11])
{
	static int looked;
	static void *function;
	void *found = tandem_function_("tandem_layers", &looked, &function);

	if (found)
		((void (*)(const uint32_t *))found)(counts);
}

#ifdef __cplusplus
}
#endif

#endif
