/* This file implements service.h. */
#include "daemon/model/services/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/model/services/profiles.h"

#define NS_PER_S   1e9
#define MEDIAN_PPM 500000u
#define TAIL_PPM   990000u

/* Returns by how much a count has grown; 0 if it has fallen. */
static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/*
 * Does the same for the low 32 bits of two counts, which may have wrapped round. A difference of
 * 2^31 or more means that the count has fallen, and gives 0.
 */
static uint32_t grown_low(uint32_t now, uint32_t before)
{
	uint32_t by = now - before;

	return by < 1u << 31 ? by : 0;
}

static void copy_page(const struct td_service *service, struct td_service_look *look)
{
	const struct td_service_page *page = service->page;
	const struct td_service_look *before = &service->before;

	/*
	 * Answers are read before arrivals, so that a request that comes in between counts as
	 * waiting.
	 */
	look->answered =
		before->answered + atomic_load_explicit(&page->answered, memory_order_relaxed);
	for (uint32_t i = 0; i < TD_HISTOGRAM_N; i++)
		look->latency[i] =
			before->latency[i] +
			(uint32_t)atomic_load_explicit(&page->latency[i], memory_order_relaxed);
	look->arrived =
		before->arrived + atomic_load_explicit(&page->arrived, memory_order_relaxed);
}

/* Each answer counts with the middle of its bucket. */
static uint64_t mean_ns(const uint64_t *counts, uint64_t total)
{
	double sum = 0;

	for (uint32_t i = 0; i < TD_HISTOGRAM_N; i++)
		sum += (double)counts[i] *
		       (double)(td_histogram_first_ns(i) + td_histogram_end_ns(i)) / 2;
	return total ? (uint64_t)(sum / (double)total) : 0;
}

static void compare(struct td_service *service, const struct td_service_look *first,
	const struct td_service_look *last)
{
	uint64_t counts[TD_HISTOGRAM_N];
	double seconds = (double)(last->time_ns - first->time_ns) / NS_PER_S;

	for (uint32_t i = 0; i < TD_HISTOGRAM_N; i++)
		counts[i] = grown_low(last->latency[i], first->latency[i]);
	service->rate_per_s = (double)grown(last->arrived, first->arrived) / seconds;
	service->p50_ns = td_histogram_quantile_ns(counts, MEDIAN_PPM);
	service->p99_ns = td_histogram_quantile_ns(counts, TAIL_PPM);
	service->mean_ns = mean_ns(counts, td_histogram_total(counts));
}

static void forget(struct td_service *service, const char *why)
{
	service->outside = TD_SERVICE_UNKNOWN;
	service->rate_per_s = 0;
	service->p50_ns = service->p99_ns = service->mean_ns = 0;
	service->waiting = 0;
	snprintf(service->why, sizeof(service->why), "%.*s", (int)sizeof(service->why) - 1, why);
}

bool td_service_is_known(const struct td_service *service)
{
	return service && service->outside != TD_SERVICE_UNKNOWN;
}

bool td_service_hear(struct td_service **service, const struct td_msg_figures *msg, uint64_t now_ns)
{
	bool is_new = !*service;
	struct td_service *s;

	if (is_new)
		*service = calloc(1, sizeof(**service));
	s = *service;
	if (!s || (!is_new && s->outside == TD_SERVICE_INSIDE))
		return false;
	snprintf(s->name, sizeof(s->name), "%.*s", (int)sizeof(s->name) - 1, msg->name);
	snprintf(s->source, sizeof(s->source), "%.*s", (int)sizeof(s->source) - 1, msg->source);
	s->objective_ns = msg->objective_ns;
	s->heard_ns = now_ns;
	forget(s, msg->why);
	if (!msg->known)
		return is_new;
	s->outside = msg->has_tail ? TD_SERVICE_ALL : TD_SERVICE_MEAN;
	s->rate_per_s = (double)msg->rate_milli / 1e3;
	s->mean_ns = msg->mean_ns;
	s->waiting = msg->waiting;
	s->p50_ns = msg->has_tail ? msg->p50_ns : 0;
	s->p99_ns = msg->has_tail ? msg->p99_ns : 0;
	return is_new;
}

void td_service_look(struct td_service *service, uint64_t now_ns)
{
	struct td_service_look *look;
	uint64_t waiting;
	uint32_t last;

	if (service && service->outside > TD_SERVICE_UNKNOWN &&
		now_ns > service->heard_ns + TD_SERVICE_OUTDATED_NS)
		forget(service, "tandem run has not read them for some seconds");
	if (!service || !service->page)
		return;
	last = (service->next + TD_SERVICE_LOOKS - 1) % TD_SERVICE_LOOKS;
	if (service->count && now_ns < service->looks[last].time_ns + TD_SERVICE_LOOK_NS)
		return;
	look = &service->looks[service->next];
	copy_page(service, look);
	look->time_ns = now_ns;
	waiting = grown(look->arrived, look->answered);
	service->waiting = waiting < UINT32_MAX ? (uint32_t)waiting : UINT32_MAX;
	service->batch = atomic_load_explicit(&service->page->batch, memory_order_relaxed);
	service->next = (service->next + 1) % TD_SERVICE_LOOKS;
	if (service->count < TD_SERVICE_LOOKS)
		service->count++;
	if (service->count > 1)
		compare(service,
			&service->looks[service->count < TD_SERVICE_LOOKS ? 0 : service->next],
			look);
}

void td_service_follow(struct td_service *service, const struct td_service *from)
{
	if (!service || !from || !from->page || strcmp(service->name, from->name) != 0)
		return;
	copy_page(from, &service->before);
	service->before.answered = service->before.arrived;
	memcpy(service->looks, from->looks, sizeof(service->looks));
	service->next = from->next;
	service->count = from->count;
	service->rate_per_s = from->rate_per_s;
	service->p50_ns = from->p50_ns;
	service->p99_ns = from->p99_ns;
	service->mean_ns = from->mean_ns;
}

const struct td_service_page *td_service_page_of(const struct td_meter_page *meter)
{
	return meter ? (const void *)((const char *)meter + TD_SERVICE_OFFSET) : NULL;
}

void td_service_free(struct td_service *service)
{
	if (service)
		td_profiles_drop(service->profile);
	free(service);
}

int td_service_declare(struct td_service **service, const struct td_msg_service *msg,
	const struct td_service_page *page)
{
	if (!msg->name[0])
		return -EINVAL;
	if (!*service) {
		*service = calloc(1, sizeof(**service));
		if (!*service)
			return 0;
	}
	if ((*service)->outside != TD_SERVICE_INSIDE)
		forget(*service, "");
	(*service)->outside = TD_SERVICE_INSIDE;
	(*service)->page = page;
	memcpy((*service)->name, msg->name, sizeof((*service)->name) - 1);
	(*service)->objective_ns = msg->objective_ns;
	(*service)->batch_max = msg->batch_max;
	return 0;
}
