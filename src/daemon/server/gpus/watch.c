/* Connects the sampler's thread with the loop; see watch.h. */
#include "daemon/server/gpus/watch.h"

#include <stdio.h>
#include <string.h>

static void sample_ready(struct td_source *source, uint32_t events)
{
	struct td_watch *watch = (struct td_watch *)source;

	(void)events;
	td_sampler_take(watch->sampler, &watch->sample);
}

void td_watch_init(struct td_watch *watch, struct td_loop *loop, uint64_t period_ns)
{
	memset(watch, 0, sizeof(*watch));
	watch->loop = loop;
	watch->period_ns = period_ns;
	if (td_sampler_new(NULL, period_ns, &watch->sampler))
		return;
	watch->source = (struct td_source){td_sampler_fd(watch->sampler), sample_ready, true};
	if (td_loop_add(loop, &watch->source)) {
		td_sampler_free(watch->sampler);
		watch->sampler = NULL;
		return;
	}
	td_sampler_ask(watch->sampler);
}

void td_watch_deinit(struct td_watch *watch)
{
	if (!watch->sampler)
		return;
	td_loop_remove(watch->loop, &watch->source);
	td_sampler_free(watch->sampler);
	watch->sampler = NULL;
}

void td_watch_set(struct td_watch *watch, bool wanted, uint64_t period_ns)
{
	if (!watch->sampler)
		return;
	if (period_ns != watch->period_ns)
		td_sampler_set_period(watch->sampler, period_ns);
	if (wanted != watch->wanted)
		td_sampler_want(watch->sampler, wanted);
	watch->period_ns = period_ns;
	watch->wanted = wanted;
}

void td_watch_set_glance(struct td_watch *watch, uint64_t period_ns)
{
	if (watch->sampler)
		td_sampler_set_glance(watch->sampler, period_ns);
}

void td_watch_set_log(struct td_watch *watch, const char *path)
{
	if (!watch->sampler || !strcmp(path, watch->log))
		return;
	snprintf(watch->log, sizeof(watch->log), "%s", path);
	td_sampler_set_log(watch->sampler, strcmp(path, "auto") ? path : "/dev/kmsg");
}

void td_watch_ask(struct td_watch *watch)
{
	if (watch->sampler)
		td_sampler_ask(watch->sampler);
}

bool td_watch_is_fresh(struct td_watch *watch, uint64_t now_ns)
{
	if (!watch->sampler)
		return true;
	if (watch->sample.time_ns && now_ns < watch->sample.time_ns + watch->period_ns)
		return true;
	td_sampler_ask(watch->sampler);
	return false;
}
