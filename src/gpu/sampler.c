/* The thread that waits for NVML; see sampler.h. Everything it shares is under one lock, which it never holds while it asks. */
#include "gpu/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"

/* How long an end of the daemon may wait for a call of NVML. */
#define PATIENCE_NS TD_NS_PER_S

struct td_sampler {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread; /* the loop's */
	int fd;
	char *library;
	/* lock */
	bool wanted, asked, absent, quit;
	uint64_t period_ns;
	struct td_sample sample;
	/* the thread's */
	struct td_nvml *nvml;
	struct td_sample fresh;
};

static bool all_are_lost(const struct td_nvml_gpu *gpus, int count)
{
	bool lost = count > 0;

	for (int i = 0; i < count; i++)
		lost &= gpus[i].lost;
	return lost;
}

/* Without the lock. True: there is no NVML here. */
static bool take_sample(struct td_sampler *sampler)
{
	int n = -ENODEV;

	/* Twice: a driver that was replaced under us is found anew at once. */
	for (int i = 0; i < 2; i++) {
		if (!sampler->nvml && td_nvml_open(sampler->library, &sampler->nvml))
			break;
		n = td_nvml_sample(sampler->nvml, sampler->fresh.gpus);
		if (n >= 0 && (i || !all_are_lost(sampler->fresh.gpus, n)))
			break;
		td_nvml_close(sampler->nvml);
		sampler->nvml = NULL;
		n = -ENODEV;
	}
	sampler->fresh.gpu_count = n > 0 ? (uint32_t)n : 0;
	sampler->fresh.use_count = n > 0 ? td_nvml_uses(sampler->nvml, sampler->fresh.gpus,
						   sampler->fresh.gpu_count, sampler->fresh.uses)
					 : 0;
	sampler->fresh.time_ns = td_time_now_ns();
	return !sampler->nvml;
}

/* lock is held. Waits until a sample is due; false: quit. */
static bool wait_until_due(struct td_sampler *sampler)
{
	while (!sampler->quit && !sampler->asked) {
		uint64_t due_ns = sampler->sample.time_ns + sampler->period_ns;
		struct timespec due = {
			(time_t)(due_ns / TD_NS_PER_S), (long)(due_ns % TD_NS_PER_S)};

		if (!sampler->wanted || sampler->absent)
			pthread_cond_wait(&sampler->changed, &sampler->lock);
		else if (td_time_now_ns() >= due_ns)
			break;
		else
			pthread_cond_timedwait(&sampler->changed, &sampler->lock, &due);
	}
	sampler->asked = false;
	return !sampler->quit;
}

static void *serve(void *arg)
{
	struct td_sampler *sampler = arg;
	bool absent;

	pthread_mutex_lock(&sampler->lock);
	while (wait_until_due(sampler)) {
		pthread_mutex_unlock(&sampler->lock);
		absent = take_sample(sampler);
		pthread_mutex_lock(&sampler->lock);
		sampler->absent = absent;
		sampler->sample = sampler->fresh;
		(void)eventfd_write(sampler->fd, 1);
	}
	pthread_mutex_unlock(&sampler->lock);
	td_nvml_close(sampler->nvml);
	return NULL;
}

static void start(struct td_sampler *sampler)
{
	sigset_t all, before;

	if (sampler->has_thread)
		return;
	/* Signals are the loop's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sampler->has_thread = pthread_create(&sampler->thread, NULL, serve, sampler) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int td_sampler_new(const char *library, uint64_t period_ns, struct td_sampler **ret)
{
	struct td_sampler *sampler = calloc(1, sizeof(*sampler));
	pthread_condattr_t attributes;

	if (!sampler)
		return -ENOMEM;
	sampler->library = library ? strdup(library) : NULL;
	sampler->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (sampler->fd < 0 || (library && !sampler->library)) {
		int r = sampler->fd < 0 ? -errno : -ENOMEM;

		if (sampler->fd >= 0)
			close(sampler->fd);
		free(sampler->library);
		free(sampler);
		return r;
	}
	sampler->period_ns = period_ns;
	pthread_mutex_init(&sampler->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&sampler->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	*ret = sampler;
	return 0;
}

void td_sampler_free(struct td_sampler *sampler)
{
	struct timespec until;

	if (!sampler)
		return;
	pthread_mutex_lock(&sampler->lock);
	sampler->quit = true;
	pthread_cond_signal(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
	if (sampler->has_thread) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += (time_t)(PATIENCE_NS / TD_NS_PER_S);
		if (pthread_timedjoin_np(sampler->thread, NULL, &until))
			return; /* its memory stays, as the thread may still use it */
	}
	pthread_cond_destroy(&sampler->changed);
	pthread_mutex_destroy(&sampler->lock);
	close(sampler->fd);
	free(sampler->library);
	free(sampler);
}

int td_sampler_fd(const struct td_sampler *sampler)
{
	return sampler->fd;
}

void td_sampler_want(struct td_sampler *sampler, bool wanted)
{
	pthread_mutex_lock(&sampler->lock);
	if (wanted != sampler->wanted) {
		sampler->wanted = wanted;
		sampler->absent = false;
		pthread_cond_signal(&sampler->changed);
	}
	pthread_mutex_unlock(&sampler->lock);
	if (wanted)
		start(sampler);
}

void td_sampler_set_period(struct td_sampler *sampler, uint64_t period_ns)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->period_ns = period_ns;
	pthread_cond_signal(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
}

void td_sampler_ask(struct td_sampler *sampler)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->asked = true;
	pthread_cond_signal(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
	start(sampler);
}

void td_sampler_take(struct td_sampler *sampler, struct td_sample *ret)
{
	eventfd_t count;

	(void)eventfd_read(sampler->fd, &count);
	pthread_mutex_lock(&sampler->lock);
	*ret = sampler->sample;
	pthread_mutex_unlock(&sampler->lock);
}
