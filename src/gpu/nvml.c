/*
 * Opens NVML by dlopen; see nvml.h. Each function is looked up by its newest name first, because
 * old drivers lack the newer names.
 */
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"
#include "gpu/figures.h"
#include "gpu/nvml_abi.h"

/*
 * FUNCTION(field, name, older name or NULL). The type is that of the newest name; the listed older
 * forms have the same type.
 */
#define FUNCTIONS(FUNCTION)                                                                        \
	FUNCTION(init, nvmlInit_v2, "nvmlInit")                                                    \
	FUNCTION(shutdown, nvmlShutdown, NULL)                                                     \
	FUNCTION(count, nvmlDeviceGetCount_v2, "nvmlDeviceGetCount")                               \
	FUNCTION(by_index, nvmlDeviceGetHandleByIndex_v2, "nvmlDeviceGetHandleByIndex")            \
	FUNCTION(uuid, nvmlDeviceGetUUID, NULL)                                                    \
	FUNCTION(name, nvmlDeviceGetName, NULL)                                                    \
	FUNCTION(memory, nvmlDeviceGetMemoryInfo, NULL)                                            \
	FUNCTION(utilisation, nvmlDeviceGetUtilizationRates, NULL)                                 \
	FUNCTION(clock, nvmlDeviceGetClockInfo, NULL)                                              \
	FUNCTION(temperature, nvmlDeviceGetTemperature, NULL)                                      \
	FUNCTION(power, nvmlDeviceGetPowerUsage, NULL)                                             \
	FUNCTION(mig, nvmlDeviceGetMigMode, NULL)                                                  \
	FUNCTION(max_clock, nvmlDeviceGetMaxClockInfo, NULL)                                       \
	FUNCTION(throttle, nvmlDeviceGetCurrentClocksEventReasons,                                 \
		"nvmlDeviceGetCurrentClocksThrottleReasons")                                       \
	FUNCTION(samples, nvmlDeviceGetSamples, NULL)                                              \
	FUNCTION(pci, nvmlDeviceGetPciInfo_v3, NULL)                                               \
	FUNCTION(index, nvmlDeviceGetIndex, NULL)                                                  \
	FUNCTION(event_set_create, nvmlEventSetCreate, NULL)                                       \
	FUNCTION(event_set_free, nvmlEventSetFree, NULL)                                           \
	FUNCTION(event_register, nvmlDeviceRegisterEvents, NULL)                                   \
	FUNCTION(event_wait, nvmlEventSetWait_v2, NULL)                                            \
	FUNCTION(gpm_query, nvmlGpmQueryDeviceSupport, NULL)                                       \
	FUNCTION(gpm_alloc, nvmlGpmSampleAlloc, NULL)                                              \
	FUNCTION(gpm_free, nvmlGpmSampleFree, NULL)                                                \
	FUNCTION(gpm_sample, nvmlGpmSampleGet, NULL)                                               \
	FUNCTION(gpm_metrics, nvmlGpmMetricsGet, NULL)                                             \
	FUNCTION(processes, nvmlDeviceGetComputeRunningProcesses_v3,                               \
		"nvmlDeviceGetComputeRunningProcesses_v2")

#define PPM_PER_CENT 10000u
/* The maximum number of processes on one GPU that are read. If there are more, none is reported. */
#define PROCESSES_MAX 256

struct td_nvml {
	void *library;
#define FUNCTION(field, newest, older) newest##_fn field;
	FUNCTIONS(FUNCTION)
#undef FUNCTION
	/* Indexed by NVML's number of the GPU. */
	struct {
		/* Time of the newest utilisation sample that was read. */
		unsigned long long seen_us;
		nvmlGpmSample_t before, spare;
		bool was_asked, has_gpm, has_before, registered;
	} gpus[TD_NVML_GPU_MAX];
	nvmlEventSet_t events;
};

static void *find_function(void *library, const char *newest, const char *older)
{
	void *function = dlsym(library, newest);

	return function || !older ? function : dlsym(library, older);
}

int td_nvml_open(const char *library, struct td_nvml **ret)
{
	struct td_nvml *nvml = calloc(1, sizeof(*nvml));

	if (!nvml)
		return -ENOMEM;
	nvml->library = dlopen(library ? library : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library)
		goto err_free;
#define FUNCTION(field, newest, older) nvml->field = find_function(nvml->library, #newest, older);
	FUNCTIONS(FUNCTION)
#undef FUNCTION
	/*
	 * Without these functions GPUs cannot be told apart. Each other function gives one figure.
	 */
	if (!nvml->init || !nvml->shutdown || !nvml->count || !nvml->by_index || !nvml->uuid ||
		nvml->init() != NVML_SUCCESS)
		goto err_close;
	*ret = nvml;
	return 0;

err_close:
	dlclose(nvml->library);
err_free:
	free(nvml);
	return TD_NVML_ABSENT;
}

void td_nvml_close(struct td_nvml *nvml)
{
	if (!nvml)
		return;
	for (unsigned i = 0; i < TD_NVML_GPU_MAX; i++) {
		if (!nvml->gpus[i].has_gpm)
			continue;
		(void)nvml->gpm_free(nvml->gpus[i].before);
		(void)nvml->gpm_free(nvml->gpus[i].spare);
	}
	if (nvml->events)
		(void)nvml->event_set_free(nvml->events);
	(void)nvml->shutdown();
	dlclose(nvml->library);
	free(nvml);
}

/* -- GPM -- */

static bool begin_gpm(struct td_nvml *nvml, nvmlDevice_t device, unsigned index)
{
	nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};

	if (nvml->gpus[index].was_asked)
		return nvml->gpus[index].has_gpm;
	nvml->gpus[index].was_asked = true;
	if (!nvml->gpm_query || !nvml->gpm_alloc || !nvml->gpm_free || !nvml->gpm_sample ||
		!nvml->gpm_metrics || nvml->gpm_query(device, &support) ||
		!support.isSupportedDevice || nvml->gpm_alloc(&nvml->gpus[index].before))
		return false;
	if (nvml->gpm_alloc(&nvml->gpus[index].spare)) {
		(void)nvml->gpm_free(nvml->gpus[index].before);
		return false;
	}
	nvml->gpus[index].has_gpm = true;
	return true;
}

/* Computes the activity of the SMs between the last sample and this one. */
static void ask_gpm(struct td_nvml *nvml, nvmlDevice_t device, struct td_nvml_gpu *gpu)
{
	nvmlGpmMetricsGet_t get = {.version = NVML_GPM_METRICS_GET_VERSION, .numMetrics = 1};
	nvmlGpmSample_t now;
	unsigned i = gpu->index;

	if (i >= TD_NVML_GPU_MAX || !begin_gpm(nvml, device, i) ||
		nvml->gpm_sample(device, nvml->gpus[i].spare))
		return;
	now = nvml->gpus[i].spare;
	get.sample1 = nvml->gpus[i].before;
	get.sample2 = now;
	get.metrics[0].metricId = NVML_GPM_METRIC_SM_UTIL;
	if (nvml->gpus[i].has_before && !nvml->gpm_metrics(&get) && !get.metrics[0].nvmlReturn &&
		get.metrics[0].value >= 0 && get.metrics[0].value <= 100) {
		gpu->sm_activity_ppm = (uint32_t)(get.metrics[0].value * PPM_PER_CENT);
		gpu->known |= TD_GPU_KNOWS_SM_ACTIVITY;
	}
	nvml->gpus[i].spare = nvml->gpus[i].before;
	nvml->gpus[i].before = now;
	nvml->gpus[i].has_before = true;
}

/* -- Xids -- */

static void watch_xids(struct td_nvml *nvml, nvmlDevice_t device, unsigned index)
{
	if (index >= TD_NVML_GPU_MAX || nvml->gpus[index].registered || !nvml->event_set_create ||
		!nvml->event_set_free || !nvml->event_register || !nvml->event_wait)
		return;
	nvml->gpus[index].registered = true;
	if (!nvml->events && nvml->event_set_create(&nvml->events)) {
		nvml->events = NULL;
		return;
	}
	(void)nvml->event_register(device, NVML_EVENT_TYPE_XID_CRITICAL_ERROR, nvml->events);
}

bool td_nvml_xid(struct td_nvml *nvml, uint32_t *ret_index, uint32_t *ret_xid)
{
	nvmlEventData_t event;
	unsigned index;

	while (nvml->events && !nvml->event_wait(nvml->events, &event, 0)) {
		if (event.eventType != NVML_EVENT_TYPE_XID_CRITICAL_ERROR || !nvml->index ||
			nvml->index(event.device, &index))
			continue;
		*ret_index = index;
		*ret_xid = (uint32_t)event.eventData;
		return true;
	}
	return false;
}

/* -- a glance -- */

/*
 * Reads the utilisation samples newer than the last one read. The driver keeps about a minute of
 * them.
 */
static unsigned read_samples(
	struct td_nvml *nvml, nvmlDevice_t device, unsigned index, nvmlSample_t *ret_rows)
{
	unsigned count = TD_NVML_FIGURES_MAX;
	int type = 0;

	if (!nvml->samples ||
		nvml->samples(device, NVML_GPU_UTILIZATION_SAMPLES, nvml->gpus[index].seen_us,
			&type, &count, ret_rows) ||
		type != NVML_VALUE_TYPE_UNSIGNED_INT)
		return 0;
	if (count > TD_NVML_FIGURES_MAX)
		count = TD_NVML_FIGURES_MAX;
	if (count)
		nvml->gpus[index].seen_us = ret_rows[count - 1].timeStamp;
	return count;
}

uint32_t td_nvml_glance(struct td_nvml *nvml, struct td_nvml_gpu *gpu, uint64_t now_ns,
	struct td_figure *ret_figures)
{
	nvmlSample_t rows[TD_NVML_FIGURES_MAX];
	struct td_figure figure = {.time_ns = now_ns, .utilisation_ppm = gpu->utilisation_ppm};
	unsigned long long throttle = 0;
	nvmlDevice_t device;
	unsigned count;

	if (gpu->lost || gpu->index >= TD_NVML_GPU_MAX || nvml->by_index(gpu->index, &device) ||
		!nvml->clock || nvml->clock(device, NVML_CLOCK_SM, &gpu->sm_mhz))
		return 0;
	gpu->known |= TD_GPU_KNOWS_CLOCK;
	if (nvml->throttle && !nvml->throttle(device, &throttle)) {
		gpu->throttle = throttle;
		gpu->known |= TD_GPU_KNOWS_THROTTLE;
	}
	figure.sm_mhz = gpu->sm_mhz;
	figure.throttle = gpu->throttle;
	count = read_samples(nvml, device, gpu->index, rows);
	if (!count) {
		*ret_figures = figure;
		return 1;
	}
	for (unsigned i = 0; i < count; i++) {
		uint64_t age_ns = (rows[count - 1].timeStamp - rows[i].timeStamp) * 1000;

		figure.time_ns = age_ns < now_ns ? now_ns - age_ns : 0;
		figure.utilisation_ppm = rows[i].sampleValue.uiVal * PPM_PER_CENT;
		ret_figures[i] = figure;
	}
	gpu->utilisation_ppm = figure.utilisation_ppm;
	gpu->known |= TD_GPU_KNOWS_UTILISATION;
	return count;
}

static void ask_gpu(const struct td_nvml *nvml, nvmlDevice_t device, struct td_nvml_gpu *gpu)
{
	nvmlUtilization_t utilisation;
	nvmlMemory_t memory;
	nvmlPciInfo_t pci;
	unsigned current = 0, pending;
	int r = nvml->memory ? nvml->memory(device, &memory) : NVML_ERROR_FUNCTION_NOT_FOUND;

	gpu->lost = r == NVML_ERROR_GPU_IS_LOST;
	gpu->mig = nvml->mig && !nvml->mig(device, &current, &pending) && current;
	if (!r) {
		gpu->used_bytes = memory.used;
		gpu->total_bytes = memory.total;
		gpu->known |= TD_GPU_KNOWS_MEMORY;
	}
	if (nvml->pci && !nvml->pci(device, &pci))
		gpu->pci = (struct td_pci){pci.domain, pci.bus, pci.device};
	if (nvml->utilisation && !nvml->utilisation(device, &utilisation)) {
		gpu->utilisation_ppm = utilisation.gpu * PPM_PER_CENT;
		gpu->known |= TD_GPU_KNOWS_UTILISATION;
	}
	if (nvml->clock && !nvml->clock(device, NVML_CLOCK_SM, &gpu->sm_mhz))
		gpu->known |= TD_GPU_KNOWS_CLOCK;
	if (nvml->temperature &&
		!nvml->temperature(device, NVML_TEMPERATURE_GPU, &gpu->temperature_celsius))
		gpu->known |= TD_GPU_KNOWS_TEMPERATURE;
	if (nvml->power && !nvml->power(device, &gpu->power_mw))
		gpu->known |= TD_GPU_KNOWS_POWER;
	if (!nvml->max_clock || nvml->max_clock(device, NVML_CLOCK_SM, &gpu->sm_max_mhz))
		gpu->sm_max_mhz = 0;
}

int td_nvml_sample(struct td_nvml *nvml, struct td_nvml_gpu *ret_gpus)
{
	unsigned count = 0;
	bool answered = false;
	int n = 0;

	if (nvml->count(&count) != NVML_SUCCESS)
		return -ENODEV;
	for (unsigned i = 0; i < count && n < TD_NVML_GPU_MAX; i++) {
		struct td_nvml_gpu *gpu = &ret_gpus[n];
		char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE], name[NVML_DEVICE_NAME_V2_BUFFER_SIZE];
		nvmlDevice_t device;

		*gpu = (struct td_nvml_gpu){.index = i};
		if (nvml->by_index(i, &device) || nvml->uuid(device, text, sizeof(text)) ||
			strncmp(text, "GPU-", 4) || td_uuid_parse(text, gpu->uuid))
			continue;
		if (nvml->name && !nvml->name(device, name, sizeof(name)))
			snprintf(gpu->name, sizeof(gpu->name), "%.63s", name);
		ask_gpu(nvml, device, gpu);
		ask_gpm(nvml, device, gpu);
		watch_xids(nvml, device, i);
		answered |= gpu->known || gpu->lost;
		n++;
	}
	return n && !answered ? -ENODEV : n;
}

uint32_t td_nvml_uses(struct td_nvml *nvml, const struct td_nvml_gpu *gpus, uint32_t count,
	struct td_nvml_use *ret_uses)
{
	nvmlProcessInfo_v2_t rows[PROCESSES_MAX];
	uint32_t n = 0;

	for (uint32_t i = 0; nvml->processes && i < count; i++) {
		unsigned room = PROCESSES_MAX;
		nvmlDevice_t device;

		if (gpus[i].lost || nvml->by_index(gpus[i].index, &device) ||
			nvml->processes(device, &room, rows))
			continue;
		for (unsigned k = 0; k < room && n < TD_NVML_USE_MAX; k++)
			if (rows[k].usedGpuMemory != NVML_VALUE_NOT_AVAILABLE)
				ret_uses[n++] =
					(struct td_nvml_use){i, rows[k].pid, rows[k].usedGpuMemory};
	}
	return n;
}
