/*
 * A libnvidia-ml.so.1 with three GPUs and many processes, for test_nvml_view.c: which of its
 * answers reach a program in a job, and how.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/nvml_abi.h"

#define API __attribute__((visibility("default")))

#define NVML(name, parameters) API nvmlReturn_t name parameters;
#include "gpu/nvml_functions.def"
#undef NVML

#define GPUS 3

/*
 * Processes OTHERS, OTHERS + 1, ... and among them the pid that the test sets. No process has such
 * a pid: Linux gives out none from 1 << 22 on.
 */
#define OTHERS (1u << 22)
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

/* As one that has GPUs to wake, in so many seconds. */
nvmlReturn_t nvmlInit_v2(void)
{
	const char *seconds = getenv("FAKE_NVML_WAKES");

	if (seconds)
		sleep((unsigned)atoi(seconds));
	return fake_result;
}

nvmlReturn_t nvmlShutdown(void)
{
	return fake_result;
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

/*
 * Lists the processes as NVML does. If the room is too small, *count tells how much is needed. Each
 * row has the first `size` bytes of nvmlProcessDetail_v1_t.
 */
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
		nvmlProcessDetail_v1_t row = {
			own ? fake_own_pid : OTHERS + i, 10 * i, NVML_NO_INSTANCE, i, 0};

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

LIST(nvmlDeviceGetAccountingPids, unsigned)

/* Rows whose process is their second number. */
static nvmlReturn_t sessions(unsigned *count, void *rows, size_t size)
{
	unsigned room = *count;

	*count = fake_process_count;
	if (room < fake_process_count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < fake_process_count; i++) {
		unsigned row[2] = {i, i == fake_process_count / 2 ? fake_own_pid : OTHERS + i};

		memcpy((char *)rows + i * size, row, sizeof(row));
	}
	return fake_result;
}

nvmlReturn_t nvmlDeviceGetEncoderSessions(
	nvmlDevice_t device, unsigned *count, nvmlEncoderSessionInfo_t *rows)
{
	(void)device;
	return sessions(count, rows, sizeof(*rows));
}

nvmlReturn_t nvmlDeviceGetFBCSessions(
	nvmlDevice_t device, unsigned *count, nvmlFBCSessionInfo_t *rows)
{
	(void)device;
	return sessions(count, rows, sizeof(*rows));
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(
	nvmlDevice_t device, nvmlProcessDetailList_t *info)
{
	(void)device;
	if (info->mode != 7)
		return NVML_ERROR_INVALID_ARGUMENT;
	return list(&info->numProcArrayEntries, info->procArray, sizeof(*info->procArray));
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(
	nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info)
{
	unsigned room = info->processSamplesCount;

	(void)device;
	info->processSamplesCount = fake_process_count;
	if (room < fake_process_count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < fake_process_count; i++)
		info->procUtilArray[i] =
			(nvmlProcessUtilizationInfo_v1_t){.timeStamp = info->lastSeenTimeStamp + i,
				.pid = i == fake_process_count / 2 ? fake_own_pid : OTHERS + i};
	return fake_result;
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid, void *ret)
{
	(void)device;
	*(unsigned *)ret = pid;
	return fake_result;
}

nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device, nvmlMemory_t *ret)
{
	return nvmlDeviceGetMemoryInfo(device, ret);
}

/* A byte that says which, from 0. */
nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const void *uuid, nvmlDevice_t *ret)
{
	return give(*(const unsigned char *)uuid, ret);
}

/* Every one is a part of the first GPU. */
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t part, nvmlDevice_t *ret)
{
	(void)part;
	return give(0, ret);
}

static nvmlReturn_t all(unsigned *count, nvmlDevice_t *devices, int must_fit)
{
	unsigned room = *count;

	if (!room)
		*count = GPUS;
	if (must_fit && room < GPUS) {
		*count = GPUS;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned i = 0; i < room && i < GPUS; i++)
		(void)give(i, &devices[i]);
	if (room > GPUS)
		*count = GPUS;
	return fake_result;
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(
	nvmlDevice_t device, int level, unsigned *count, nvmlDevice_t *devices)
{
	(void)device;
	return level == 50 ? all(count, devices, 0) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned cpu, unsigned *count, nvmlDevice_t *devices)
{
	return cpu == 3 ? all(count, devices, 0) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlUnitGetDevices(nvmlUnit_t unit, unsigned *count, nvmlDevice_t *devices)
{
	(void)unit;
	return all(count, devices, 1);
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, int *level)
{
	*level = (int)(10 * number(a) + number(b));
	return fake_result;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, int index, int *status)
{
	(void)index;
	return nvmlDeviceGetTopologyCommonAncestor(a, b, status);
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t a, nvmlDevice_t b, int *same)
{
	return nvmlDeviceGetTopologyCommonAncestor(a, b, same);
}

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
			i == fake_process_count / 2 ? fake_own_pid : OTHERS + i, since + i, i, 0, 0,
			0};
	return NVML_SUCCESS;
}
