/*
 * An NVML with made-up GPUs. With OLD it is an old driver, without the newer functions and with few
 * of the figures.
 */
#include <stdio.h>

#include "unit/gpu/fake_nvml.h"
#include "gpu/nvml_abi.h"

#define API __attribute__((visibility("default")))

#define NVML(name, parameters) API nvmlReturn_t name parameters;
#include "gpu/nvml_functions.def"
#undef NVML

#ifdef OLD
#define NEWEST(name) name
#else
#define NEWEST(name) name##_v2
API struct fake_nvml fake_nvml = {.count = 2};
#endif

nvmlReturn_t NEWEST(nvmlInit)(void)
{
#ifndef OLD
	if (fake_nvml.refuses) {
		fake_nvml.refused++;
		return NVML_ERROR_DRIVER_NOT_LOADED;
	}
	fake_nvml.users++;
#endif
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void)
{
#ifndef OLD
	fake_nvml.users--;
#endif
	return NVML_SUCCESS;
}

static int lost(void)
{
#ifdef OLD
	return 0;
#else
	return fake_nvml.lost;
#endif
}

nvmlReturn_t NEWEST(nvmlDeviceGetCount)(unsigned *count)
{
#ifdef OLD
	*count = 1;
#else
	*count = fake_nvml.count;
	fake_nvml.samples++;
#endif
	return NVML_SUCCESS;
}

nvmlReturn_t NEWEST(nvmlDeviceGetHandleByIndex)(unsigned index, nvmlDevice_t *ret)
{
	*ret = (nvmlDevice_t)(unsigned long)(index + 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned len)
{
	/* The third is a part of a GPU, as MIG makes them. */
	if ((unsigned long)device == 3)
		snprintf(uuid, len, "MIG-00112233-4455-6677-8899-aabbccddee03");
	else
		snprintf(uuid, len, "GPU-00112233-4455-6677-8899-AAbbccddee%02lx",
			(unsigned long)device);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *ret)
{
	*ret = (nvmlMemory_t){100 * (unsigned long)device, 60, 40};
	return lost();
}

#ifndef OLD
/* Two rows; of the second it is not told how much. */
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *rows)
{
	if (*count < 2)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	*count = 2;
	rows[0] = (nvmlProcessInfo_v2_t){
		.pid = 100 + (unsigned)(unsigned long)device, .usedGpuMemory = 30};
	rows[1] = (nvmlProcessInfo_v2_t){.pid = 7, .usedGpuMemory = NVML_VALUE_NOT_AVAILABLE};
	return lost();
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned len)
{
	snprintf(name, len, "fake %lu", (unsigned long)device);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *ret)
{
	(void)device;
	if (fake_nvml.blocked) {
		sem_post(&fake_nvml.entered);
		sem_wait(&fake_nvml.go);
	}
	*ret = (nvmlUtilization_t){fake_nvml.utilisation, 0};
	return lost();
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *mw)
{
	(void)device;
	*mw = 70000;
	return lost() ? lost() : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
	*index = (unsigned)(unsigned long)device - 1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *ret)
{
	*ret = (nvmlPciInfo_t){.bus = (unsigned)(unsigned long)device};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned *mhz)
{
	(void)device;
	*mhz = fake_nvml.clock;
	return type == NVML_CLOCK_SM && fake_nvml.clock ? lost() : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned *mhz)
{
	(void)device;
	(void)type;
	*mhz = 2000;
	return lost();
}

/* As old drivers call it. */
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(
	nvmlDevice_t device, unsigned long long *reasons)
{
	(void)device;
	*reasons = NVML_CLOCK_REASON_THERMAL;
	return lost();
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, int kind, unsigned long long since_us,
	int *type, unsigned *count, nvmlSample_t *rows)
{
	unsigned n = 0;

	(void)device;
	if (kind != NVML_GPU_UTILIZATION_SAMPLES)
		return NVML_ERROR_NOT_SUPPORTED;
	*type = NVML_VALUE_TYPE_UNSIGNED_INT;
	for (unsigned i = 1; i <= fake_nvml.buffered && n < *count; i++)
		if (i * 1000000ull > since_us)
			rows[n++] = (nvmlSample_t){i * 1000000ull, {.uiVal = i * 10}};
	*count = n;
	return n ? lost() : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *ret)
{
	*ret = (nvmlEventSet_t)8;
	fake_nvml.event_sets++;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	(void)set;
	fake_nvml.event_sets--;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(
	nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	(void)device;
	(void)set;
	return types == NVML_EVENT_TYPE_XID_CRITICAL_ERROR ? NVML_SUCCESS
							   : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
	(void)set;
	if (!fake_nvml.xid || timeout_ms)
		return NVML_ERROR_TIMEOUT;
	*data = (nvmlEventData_t){.device = (nvmlDevice_t)1,
		.eventType = NVML_EVENT_TYPE_XID_CRITICAL_ERROR,
		.eventData = fake_nvml.xid};
	fake_nvml.xid = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *ret)
{
	(void)device;
	ret->isSupportedDevice = fake_nvml.gpm != 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *ret)
{
	*ret = (nvmlGpmSample_t)(16l + fake_nvml.gpm_samples++);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
	(void)sample;
	fake_nvml.gpm_samples--;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
	(void)device;
	(void)sample;
	return lost();
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
	if (get->sample1 == get->sample2 || get->numMetrics != 1)
		return NVML_ERROR_INVALID_ARGUMENT;
	get->metrics[0].value = fake_nvml.gpm;
	get->metrics[0].nvmlReturn = NVML_SUCCESS;
	return NVML_SUCCESS;
}
#endif
