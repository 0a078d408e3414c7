/* A libnvidia-ml.so.1 with three GPUs and many processes, for test_nvml_view.c: which of its answers reach a program in a job, and how. */
#include <stdio.h>
#include <string.h>

#include "gpu/nvml_abi.h"

#define API __attribute__((visibility("default")))

#define NVML(name, parameters) API nvmlReturn_t name parameters;
#include "gpu/nvml_functions.def"
#undef NVML

#define GPUS 3

/* Processes 1000, 1001, ... and among them the pid that the test sets. */
API unsigned fake_process_count = 5;
API unsigned fake_own_pid;
API int fake_result; /* what every call returns, if not success */

static unsigned number(nvmlDevice_t device)
{
	return (unsigned)(unsigned long)device;
}

static nvmlReturn_t give(unsigned n, nvmlDevice_t *ret)
{
	if (fake_result)
		return fake_result;
	if (n >= GPUS)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = (nvmlDevice_t)(unsigned long)(n + 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = GPUS;
	return fake_result;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
	return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *ret)
{
	return give(index, ret);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *ret)
{
	return give(index, ret);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned len)
{
	unsigned n = number(device);

	snprintf(uuid, len, "GPU-%02x%02x%02x%02x-0000-0000-0000-000000000000", n, n, n, n);
	return fake_result;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *ret)
{
	char mine[64];

	for (unsigned i = 0; i < GPUS; i++) {
		(void)nvmlDeviceGetUUID((nvmlDevice_t)(unsigned long)(i + 1), mine, sizeof(mine));
		if (!strcmp(mine, uuid))
			return give(i, ret);
	}
	return fake_result ? fake_result : NVML_ERROR_NOT_FOUND;
}

/* "serial 0", "bus 0" */
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *ret)
{
	return give((unsigned)(serial[strlen(serial) - 1] - '0'), ret);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *ret)
{
	return nvmlDeviceGetHandleBySerial(id, ret);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *ret)
{
	return nvmlDeviceGetHandleBySerial(id, ret);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
	*index = number(device) - 1;
	return fake_result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *ret)
{
	(void)device;
	*ret = (nvmlMemory_t){1000, 400, 600};
	return fake_result;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *ret)
{
	(void)device;
	if (ret->version != NVML_MEMORY_V2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	*ret = (nvmlMemory_v2_t){NVML_MEMORY_V2, 1000, 50, 400, 550};
	return fake_result;
}

/* As NVML does it: too little room tells how much is needed. */
static nvmlReturn_t list(unsigned *count, void *rows, size_t size)
{
	unsigned room = *count;

	if (fake_result)
		return fake_result;
	if (room && !rows)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = fake_process_count;
	if (room < fake_process_count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < fake_process_count; i++) {
		/* the own one in the middle and at the end */
		unsigned own = i == fake_process_count / 2 || i == fake_process_count - 1;
		nvmlProcessInfo_v2_t row = {
			own ? fake_own_pid : 1000 + i, 10 * i, NVML_NO_INSTANCE, i};

		memcpy((char *)rows + i * size, &row, size);
	}
	return NVML_SUCCESS;
}

#define LIST(name, row)                                                                            \
	nvmlReturn_t name(nvmlDevice_t device, unsigned *count, row *rows)                         \
	{                                                                                          \
		(void)device;                                                                      \
		return list(count, rows, sizeof(row));                                             \
	}

LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_v2_t)

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *rows, unsigned *count, unsigned long long since)
{
	unsigned room = *count;

	(void)device;
	if (fake_result)
		return fake_result;
	*count = fake_process_count;
	if (!rows || room < fake_process_count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < fake_process_count; i++)
		rows[i] = (nvmlProcessUtilizationSample_t){
			i == fake_process_count / 2 ? fake_own_pid : 1000 + i, since + i, i, 0, 0,
			0};
	return NVML_SUCCESS;
}
