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
#endif
