/*
 * Runs the thread that waits for NVML; see sampler.h. All shared state is under one lock, which the
 * thread never holds while it asks NVML.
 */
#include "gpu/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "gpu/figures.h"
#include "gpu/xid_queue.h"

/* At the daemon's end a call of NVML is waited for this long at most. */
#define PATIENCE_NS TD_NS_PER_S

struct td_sampler {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool has_thread; /* used by the loop only */
	int fd;
	char *library;
	/* Guarded by `lock`. */
	bool wanted, asked, absent, quit;
	uint64_t period_ns, glance_period_ns;
	struct td_sample sample;
	char log_path[TD_SAMPLER_PATH];
	/* Used by the thread only. */
	struct td_nvml *nvml;
	struct td_sample fresh;
	struct td_xid_log log;
	char opened[TD_SAMPLER_PATH]; /* path of the log that is open; "": none is */
	/*
	 * By index in the sample: the GPU's UUID, its Xids, and its recent figures. NULL: memory
	 * was short.
	 */
	struct {
		uint8_t uuid[16];
		struct td_xid_queue xids;
		struct td_figures *figures;
	} seen[TD_NVML_GPU_MAX];
};

/*
 * A figure of a GPU is a mean over this time, because a single sample may fall between two kernels.
 */
#define MEAN_NS TD_NS_PER_S

static bool all_are_lost(const struct td_nvml_gpu *gpus, int count)
{
	bool lost = count > 0;

	for (int i = 0; i < count; i++)
		lost &= gpus[i].lost;
	return lost;
}

static void take_rows(struct td_sampler *sampler, uint64_t now_ns)
{
	struct td_xid_row row;

	while (td_xid_log_take(&sampler->log, &row))
		for (uint32_t i = 0; i < sampler->fresh.gpu_count; i++) {
			if (memcmp(&sampler->fresh.gpus[i].pci, &row.gpu, sizeof(row.gpu)) != 0)
				continue;
			td_xid_queue_line(&sampler->seen[i].xids, row.xid, row.pid, now_ns);
		}
}

static void take_xids(struct td_sampler *sampler, uint64_t now_ns)
{
	uint32_t index, xid;

	take_rows(sampler, now_ns);

	while (td_nvml_xid(sampler->nvml, &index, &xid))
		for (uint32_t i = 0; i < sampler->fresh.gpu_count; i++) {
			if (sampler->fresh.gpus[i].index != index)
				continue;
			td_xid_queue_event(&sampler->seen[i].xids, xid, now_ns);
		}
}

/*
 * Returns the record of recent figures at an index. It begins anew if there is another GPU than in
 * the sample before.
 */
static struct td_figures *figures_of(struct td_sampler *sampler, uint32_t place)
{
	const uint8_t *uuid = sampler->fresh.gpus[place].uuid;

	if (!sampler->seen[place].figures)
		sampler->seen[place].figures = calloc(1, sizeof(struct td_figures));
	if (memcmp(sampler->seen[place].uuid, uuid, 16)) {
		memcpy(sampler->seen[place].uuid, uuid, 16);
		sampler->seen[place].xids = (struct td_xid_queue){.count = 0};
		if (sampler->seen[place].figures)
			sampler->seen[place].figures->count = 0;
	}
	return sampler->seen[place].figures;
}

/* Reads clocks, utilisation and Xids. The caller must not hold the lock. */
static void take_glance(struct td_sampler *sampler)
{
	struct td_figure figures[TD_NVML_FIGURES_MAX];
	uint64_t now_ns = td_time_now_ns();

	for (uint32_t i = 0; i < sampler->fresh.gpu_count; i++) {
		struct td_nvml_gpu *gpu = &sampler->fresh.gpus[i];
		struct td_figures *kept = figures_of(sampler, i);
		uint32_t count = td_nvml_glance(sampler->nvml, gpu, now_ns, figures);
		struct td_figures_mean mean;

		for (uint32_t k = 0; kept && k < count; k++)
			td_figures_add(kept, &figures[k]);
		if (!kept || !count)
			continue;
		mean = td_figures_mean(kept, now_ns > MEAN_NS ? now_ns - MEAN_NS : 0);
		if (gpu->known & TD_GPU_KNOWS_UTILISATION)
			gpu->utilisation_ppm = mean.utilisation_ppm;
		gpu->throttle = mean.throttle;
	}
	take_xids(sampler, now_ns);
	for (uint32_t i = 0; i < sampler->fresh.gpu_count; i++) {
		struct td_xid_error error = td_xid_queue_show(&sampler->seen[i].xids, now_ns);

		sampler->fresh.gpus[i].xid = error.xid;
		sampler->fresh.gpus[i].xid_ns = error.ns;
		sampler->fresh.gpus[i].xid_pid = error.pid;
	}
	sampler->fresh.glance_ns = now_ns;
}

/* Takes a sample. Returns true if there is no NVML here. The caller must not hold the lock. */
static bool take_sample(struct td_sampler *sampler)
{
	int n = -ENODEV;

	/* Try twice, so that a driver that was replaced meanwhile is found at once. */
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
	if (sampler->nvml)
		take_glance(sampler);
	sampler->fresh.time_ns = td_time_now_ns();
	return !sampler->nvml;
}

enum due { DUE_QUIT, DUE_SAMPLE, DUE_GLANCE };

/* Returns when the next sample is due. The first one is due at once. Needs the lock. */
static uint64_t next_sample_ns(const struct td_sampler *sampler)
{
	return sampler->sample.time_ns ? sampler->sample.time_ns + sampler->period_ns : 0;
}

/* Returns when the next glance is due, if that is before the next sample. Needs the lock. */
static uint64_t glance_due_ns(const struct td_sampler *sampler, uint64_t due_ns)
{
	uint64_t at_ns = sampler->sample.glance_ns + sampler->glance_period_ns;

	return sampler->glance_period_ns && sampler->sample.gpu_count && at_ns < due_ns ? at_ns
											: due_ns;
}

/* Waits until something is due. Needs the lock. */
static enum due wait_until_due(struct td_sampler *sampler)
{
	enum due due_is = DUE_SAMPLE;

	while (!sampler->quit && !sampler->asked) {
		uint64_t sample_ns = next_sample_ns(sampler),
			 due_ns = glance_due_ns(sampler, sample_ns);
		struct timespec due = {
			(time_t)(due_ns / TD_NS_PER_S), (long)(due_ns % TD_NS_PER_S)};

		if (!sampler->wanted || sampler->absent)
			pthread_cond_wait(&sampler->changed, &sampler->lock);
		else if (td_time_now_ns() >= due_ns) {
			due_is = due_ns < sample_ns ? DUE_GLANCE : DUE_SAMPLE;
			break;
		} else
			pthread_cond_timedwait(&sampler->changed, &sampler->lock, &due);
	}
	if (sampler->asked)
		due_is = DUE_SAMPLE;
	sampler->asked = false;
	return sampler->quit ? DUE_QUIT : due_is;
}

/* Opens the log if its path has changed. Needs the lock, which is held only briefly. */
static void open_log(struct td_sampler *sampler)
{
	if (!strcmp(sampler->opened, sampler->log_path))
		return;
	strcpy(sampler->opened, sampler->log_path);
	td_xid_log_close(&sampler->log);
	td_xid_log_open(&sampler->log, sampler->opened);
}

static void *sampler_thread(void *arg)
{
	struct td_sampler *sampler = arg;
	bool absent = false;
	enum due due;

	pthread_mutex_lock(&sampler->lock);
	while ((due = wait_until_due(sampler)) != DUE_QUIT) {
		open_log(sampler);
		pthread_mutex_unlock(&sampler->lock);
		if (due == DUE_SAMPLE)
			absent = take_sample(sampler);
		else if (sampler->nvml)
			take_glance(sampler);
		pthread_mutex_lock(&sampler->lock);
		sampler->absent = absent;
		sampler->sample = sampler->fresh;
		(void)eventfd_write(sampler->fd, 1);
	}
	pthread_mutex_unlock(&sampler->lock);
	td_xid_log_close(&sampler->log);
	td_nvml_close(sampler->nvml);
	return NULL;
}

static void start_thread(struct td_sampler *sampler)
{
	sigset_t all, before;

	if (sampler->has_thread)
		return;
	/* Signals are for the loop, so the thread blocks them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sampler->has_thread = pthread_create(&sampler->thread, NULL, sampler_thread, sampler) == 0;
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
	sampler->log.fd = -1;
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
			return; /* its memory is not freed, as the thread may still use it */
	}
	pthread_cond_destroy(&sampler->changed);
	pthread_mutex_destroy(&sampler->lock);
	close(sampler->fd);
	for (unsigned i = 0; i < TD_NVML_GPU_MAX; i++)
		free(sampler->seen[i].figures);
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
		start_thread(sampler);
}

void td_sampler_set_period(struct td_sampler *sampler, uint64_t period_ns)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->period_ns = period_ns;
	pthread_cond_signal(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
}

void td_sampler_set_glance(struct td_sampler *sampler, uint64_t period_ns)
{
	pthread_mutex_lock(&sampler->lock);
	if (period_ns != sampler->glance_period_ns) {
		sampler->glance_period_ns = period_ns;
		pthread_cond_signal(&sampler->changed);
	}
	pthread_mutex_unlock(&sampler->lock);
}

void td_sampler_set_log(struct td_sampler *sampler, const char *path)
{
	pthread_mutex_lock(&sampler->lock);
	snprintf(sampler->log_path, sizeof(sampler->log_path), "%s", path);
	pthread_mutex_unlock(&sampler->lock);
}

void td_sampler_ask(struct td_sampler *sampler)
{
	pthread_mutex_lock(&sampler->lock);
	sampler->asked = true;
	pthread_cond_signal(&sampler->changed);
	pthread_mutex_unlock(&sampler->lock);
	start_thread(sampler);
}

void td_sampler_take(struct td_sampler *sampler, struct td_sample *ret)
{
	eventfd_t count;

	(void)eventfd_read(sampler->fd, &count);
	pthread_mutex_lock(&sampler->lock);
	*ret = sampler->sample;
	pthread_mutex_unlock(&sampler->lock);
}
