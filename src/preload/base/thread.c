/*
 * Creates the library's threads; see thread.h. A stack costs only address space. How much stack the
 * driver needs is not known, so it is not small.
 */
#include "preload/base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "base/stack.h"

#define STACK_BYTES ((size_t)1024 * 1024)

/* Stack size with room for thread-local storage. Written once, at load, before threads exist. */
static size_t stack_bytes = STACK_BYTES;

void td_thread_init(void)
{
	stack_bytes = td_stack_bytes(STACK_BYTES);
}

static void *run_thread(void *arg)
{
	void *(*run)(void *) = (void *(*)(void *))arg;

	(void)prctl(PR_SET_NAME, "tandem");
	return run(NULL);
}

int td_thread_start(void *(*run)(void *arg))
{
	int saved = errno, r;
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;

	if (pthread_attr_init(&attributes))
		return -ENOMEM;
	(void)pthread_attr_setstacksize(&attributes, stack_bytes);
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, &attributes, run_thread, (void *)run);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	errno = saved;
	return -r;
}
