/* NVML by dlopen; see nvml.h. Each function is looked up by its newest name first, as old drivers lack the newer ones. */
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"
#include "gpu/nvml_abi.h"

/* FUNCTION(field, name, older name or NULL): the type is the newest name's; older forms that are listed have the same. */
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
	FUNCTION(processes, nvmlDeviceGetComputeRunningProcesses_v3,                               \
		"nvmlDeviceGetComputeRunningProcesses_v2")

#define PPM_PER_CENT 10000u
/* Of one GPU: where there are more, none is told. */
#define PROCESSES_MAX 256

struct td_nvml {
	void *library;
#define FUNCTION(field, newest, older) newest##_fn field;
	FUNCTIONS(FUNCTION)
#undef FUNCTION
};

static void *find(void *library, const char *newest, const char *older)
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
#define FUNCTION(field, newest, older) nvml->field = find(nvml->library, #newest, older);
	FUNCTIONS(FUNCTION)
#undef FUNCTION
	/* Without these a GPU cannot be told from another; the others are figures, each for itself. */
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
	(void)nvml->shutdown();
	dlclose(nvml->library);
	free(nvml);
}

static void ask(const struct td_nvml *nvml, nvmlDevice_t device, struct td_nvml_gpu *gpu)
{
	nvmlUtilization_t utilisation;
	nvmlMemory_t memory;
	unsigned current = 0, pending;
	int r = nvml->memory ? nvml->memory(device, &memory) : NVML_ERROR_FUNCTION_NOT_FOUND;

	gpu->lost = r == NVML_ERROR_GPU_IS_LOST;
	gpu->mig = nvml->mig && !nvml->mig(device, &current, &pending) && current;
	if (!r) {
		gpu->used_bytes = memory.used;
		gpu->total_bytes = memory.total;
		gpu->known |= TD_GPU_KNOWS_MEMORY;
	}
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
		ask(nvml, device, gpu);
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
