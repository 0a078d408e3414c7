/*
 * Event sets. The server reports Xids to every process that has initialised NVML. A set keeps a
 * bounded number of events until the program fetches them.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "softgpu/nvml/nvml_local.h"

#define KEPT 64

struct nvmlEventSet_st {
	unsigned long long types[SG_GPU_MAX];
	nvmlEventData_t events[KEPT];
	unsigned first, count;
	struct nvmlEventSet_st *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static struct nvmlEventSet_st *sets;

__attribute__((constructor)) static void prepare(void)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attributes);
}

/* Called with lock held. */
static bool is_live(nvmlEventSet_t set)
{
	for (const struct nvmlEventSet_st *s = sets; s; s = s->next)
		if (s == set)
			return true;
	return false;
}

/* Adds an event to a set. If the set is full, its oldest event is dropped. */
static void put(struct nvmlEventSet_st *set, const nvmlEventData_t *event)
{
	set->events[(set->first + set->count) % KEPT] = *event;
	if (set->count < KEPT)
		set->count++;
	else
		set->first = (set->first + 1) % KEPT;
}

void sg_nvml_notice(const struct sg_msg *msg)
{
	nvmlDevice_t device = sg_nvml_device(msg->gpu);
	const nvmlEventData_t event = {device, NVML_EVENT_TYPE_XID_CRITICAL_ERROR, msg->value,
		NVML_NO_INSTANCE, NVML_NO_INSTANCE};

	if (msg->engine != SG_FAULT_XID || !device)
		return;
	pthread_mutex_lock(&lock);
	for (struct nvmlEventSet_st *set = sets; set; set = set->next)
		if (set->types[msg->gpu] & NVML_EVENT_TYPE_XID_CRITICAL_ERROR)
			put(set, &event);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *ret)
{
	struct nvmlEventSet_st *set;
	int r = sg_nvml_ready();

	if (!r && !ret)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r)
		return r;
	set = calloc(1, sizeof(*set));
	if (!set)
		return NVML_ERROR_MEMORY;
	pthread_mutex_lock(&lock);
	set->next = sets;
	sets = set;
	pthread_mutex_unlock(&lock);
	*ret = set;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	int r = sg_nvml_ready();

	if (r)
		return r;
	r = NVML_ERROR_INVALID_ARGUMENT;
	pthread_mutex_lock(&lock);
	for (struct nvmlEventSet_st **s = &sets; *s; s = &(*s)->next) {
		if (*s != set)
			continue;
		*s = set->next;
		free(set);
		r = NVML_SUCCESS;
		break;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
	int r = sg_nvml_check(device, types);

	if (!r)
		*types = NVML_EVENT_TYPE_XID_CRITICAL_ERROR;
	return r;
}

API nvmlReturn_t nvmlDeviceRegisterEvents(
	nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	int r = sg_nvml_check(device, set);

	if (r)
		return r;
	if (types & ~(unsigned long long)NVML_EVENT_TYPE_XID_CRITICAL_ERROR)
		return NVML_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&lock);
	if (is_live(set))
		set->types[device->index] |= types;
	else
		r = NVML_ERROR_INVALID_ARGUMENT;
	pthread_mutex_unlock(&lock);
	return r;
}

API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
	struct timespec until;
	int r = sg_nvml_ready(), late = 0;

	if (!r && !data)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r)
		return r;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&lock);
	while (is_live(set) && !set->count && late != ETIMEDOUT)
		late = pthread_cond_timedwait(&changed, &lock, &until);
	if (!is_live(set)) {
		r = NVML_ERROR_INVALID_ARGUMENT;
	} else if (!set->count) {
		r = NVML_ERROR_TIMEOUT;
	} else {
		*data = set->events[set->first];
		set->first = (set->first + 1) % KEPT;
		set->count--;
	}
	pthread_mutex_unlock(&lock);
	return r;
}
