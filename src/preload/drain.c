/* The drain thread; see drain.h. One job at a time: begun is its number, ended the last that is over. */
#include "preload/drain.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "preload/client.h"
#include "preload/gate.h"
#include "preload/real.h"

#define CONTEXTS_MAX 64
#define STACK        (256 * 1024)
#define POLL_NS      1000000

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool started;
	uint64_t begun, ended, ended_ns;
	CUcontext contexts[CONTEXTS_MAX];
	unsigned count;
} drain = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void synchronize(const CUcontext *contexts, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!td_real.cuCtxSetCurrent(contexts[i]))
			(void)td_real
				.cuCtxSynchronize(); /* an error of the program's work is the program's to see */
	(void)td_real.cuCtxSetCurrent(NULL);
}

static void *serve(void *arg)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)arg;
	td_gate_own_thread();
	if (td_real.cuThreadExchangeStreamCaptureMode)
		(void)td_real.cuThreadExchangeStreamCaptureMode(&mode);
	pthread_mutex_lock(&drain.lock);
	for (;;) {
		CUcontext contexts[CONTEXTS_MAX];
		unsigned count = drain.count;

		if (drain.ended == drain.begun) {
			pthread_cond_wait(&drain.changed, &drain.lock);
			continue;
		}
		memcpy(contexts, drain.contexts, sizeof(contexts));
		pthread_mutex_unlock(&drain.lock);
		synchronize(contexts, count);
		pthread_mutex_lock(&drain.lock);
		drain.ended = drain.begun;
		drain.ended_ns = now_ns();
		pthread_cond_broadcast(&drain.changed);
	}
	return NULL;
}

/* drain.lock is held. */
static bool start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;

	if (drain.started)
		return true;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	drain.started = pthread_create(&thread, &attributes, serve, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return drain.started;
}

bool td_drain_begin(const CUcontext *contexts, unsigned count)
{
	bool begun = false;

	if (td_client_captures())
		return false;
	pthread_mutex_lock(&drain.lock);
	if (start() && drain.ended == drain.begun) {
		memcpy(drain.contexts, contexts, count * sizeof(*contexts));
		drain.count = count;
		drain.begun++;
		begun = true;
		pthread_cond_broadcast(&drain.changed);
	}
	pthread_mutex_unlock(&drain.lock);
	return begun;
}

bool td_drain_ended(void)
{
	bool ended;

	pthread_mutex_lock(&drain.lock);
	ended = drain.ended == drain.begun;
	pthread_mutex_unlock(&drain.lock);
	return ended;
}

uint64_t td_drain_ended_ns(void)
{
	uint64_t ns;

	pthread_mutex_lock(&drain.lock);
	ns = drain.ended_ns;
	pthread_mutex_unlock(&drain.lock);
	return ns;
}

static void nap(void)
{
	const struct timespec pause = {0, POLL_NS};

	nanosleep(&pause, NULL);
}

bool td_drain(const CUcontext *contexts, unsigned count, uint64_t deadline_ns)
{
	bool done = false;

	while (!td_drain_begin(contexts, count)) {
		if (now_ns() >= deadline_ns)
			return false;
		nap();
	}
	pthread_mutex_lock(&drain.lock);
	while (!done && now_ns() < deadline_ns) {
		struct timespec until;

		done = drain.ended == drain.begun;
		if (done)
			break;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 50 * 1000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		pthread_cond_timedwait(&drain.changed, &drain.lock, &until);
	}
	pthread_mutex_unlock(&drain.lock);
	return done;
}

void td_drain_forked(void)
{
	pthread_mutex_init(&drain.lock, NULL);
	pthread_cond_init(&drain.changed, NULL);
	drain.started = false;
	drain.begun = drain.ended = 0;
}
