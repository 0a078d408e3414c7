/*
 * libnvidia-ml.so.1 of the software GPU: initialisation, devices, and the server's figures.
 *
 * Utilisation is measured over the last whole window of 200 ms (NVML's own window is between 1/6 s
 * and 1 s): the share of it in which a kernel, a set or a copy within the device ran. `memory` is
 * the share in which a copy over the link ran, because the model does not know when kernels access
 * DRAM. Power, temperature and clock come from src/model/load. Figures that the model lacks are
 * NOT_SUPPORTED.
 *
 * Initialisation is counted, as NVML's is. A forked child must initialise the library itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/time.h"
#include "base/uuid.h"
#include "softgpu/nvml/nvml_local.h"

/* The bound is above the number of processes that the server lists. */
#define PROCESSES_MAX 512
#define PPM_PER_CENT  10000u
/*
 * The slack in comparing times of samples: within one sample they differ by less than this, between
 * samples by more.
 */
#define SAMPLE_SLACK_US 10000u

API const char *nvmlErrorString(nvmlReturn_t result);

/* guards the variables below while they change */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sg_client *client;
static unsigned users;
static uint32_t device_count;
static struct nvmlDevice_st devices[SG_GPU_MAX];

int sg_nvml_ready(void)
{
	return users && sg_client_is_ours(client) ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

int sg_nvml_ask(nvmlDevice_t device, uint32_t type, struct sg_msg *msg, void *extra, size_t len)
{
	int r = sg_nvml_ready();

	if (r)
		return r;
	if (device < devices || device >= devices + device_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*msg = (struct sg_msg){.type = type, .gpu = device->index};
	if (sg_client_request(client, msg, extra, len, NULL))
		return NVML_ERROR_GPU_IS_LOST;
	if (msg->error)
		return msg->error == SG_ERR_LOST ? NVML_ERROR_GPU_IS_LOST : NVML_ERROR_UNKNOWN;
	return NVML_SUCCESS;
}

int sg_nvml_check(nvmlDevice_t device, const void *out)
{
	int r = sg_nvml_ready();

	if (!r && (!out || device < devices || device >= devices + device_count))
		r = NVML_ERROR_INVALID_ARGUMENT;
	return r;
}

nvmlDevice_t sg_nvml_device(unsigned index)
{
	return index < SG_GPU_MAX ? &devices[index] : NULL;
}

/* Called with lock held. */
static int connect_to_server(void)
{
	char dir[256];

	if (!sg_dir(dir, sizeof(dir)) ||
		sg_client_new_with_notices(dir, sg_nvml_notice, &client, &device_count))
		return NVML_ERROR_DRIVER_NOT_LOADED;
	sg_nvml_forget();
	for (unsigned i = 0; i < device_count; i++) {
		struct sg_msg msg = {.type = SG_GPU_INFO, .gpu = i};

		devices[i].index = i;
		if (sg_client_request(
			    client, &msg, &devices[i].info, sizeof(devices[i].info), NULL) ||
			msg.error) {
			sg_client_free(client);
			client = NULL;
			return NVML_ERROR_DRIVER_NOT_LOADED;
		}
	}
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlInit_v2(void)
{
	int r = NVML_SUCCESS;

	pthread_mutex_lock(&lock);
	if (client && !sg_client_is_ours(client)) {
		sg_client_free(client);
		client = NULL;
		users = 0;
	}
	if (!client)
		r = connect_to_server();
	if (!r)
		users++;
	pthread_mutex_unlock(&lock);
	return r;
}

API nvmlReturn_t nvmlInit(void)
{
	return nvmlInit_v2();
}

API nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
	/* both flags restrict work on absent or unattached GPUs, of which there are none */
	(void)flags;
	return nvmlInit_v2();
}

API nvmlReturn_t nvmlShutdown(void)
{
	int r;

	pthread_mutex_lock(&lock);
	r = sg_nvml_ready();
	if (!r && --users == 0) {
		sg_client_free(client);
		client = NULL;
		device_count = 0;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

API const char *nvmlErrorString(nvmlReturn_t result)
{
#define X(name, number, text) {number, text},
	static const struct {
		int number;
		const char *text;
	} texts[] = {NVML_RESULTS(X)};
#undef X

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].number == result)
			return texts[i].text;
	return "unknown error";
}

static int put_text(char *buf, unsigned len, const char *text)
{
	int r = sg_nvml_ready();

	if (r)
		return r;
	if (!buf)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) >= len)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(buf, text);
	return NVML_SUCCESS;
}

/*
 * Returns a version that begins with a number, for programs that parse one, and says that it is not
 * NVIDIA's driver.
 */
API nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned len)
{
	return put_text(version, len, TANDEM_VERSION "-softgpu");
}

API nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned len)
{
	return put_text(version, len, "13." TANDEM_VERSION "-softgpu");
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = 13000; /* the same as cuDriverGetVersion */
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
	int r = sg_nvml_ready();

	if (!r && !count)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (!r)
		*count = device_count;
	return r;
}

API nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
	return nvmlDeviceGetCount_v2(count);
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *ret)
{
	int r = sg_nvml_ready();

	if (!r && (!ret || index >= device_count))
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (!r)
		*ret = &devices[index];
	return r;
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *ret)
{
	return nvmlDeviceGetHandleByIndex_v2(index, ret);
}

API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *ret)
{
	char mine[TD_UUID_TEXT];
	int r = sg_nvml_ready();

	if (r)
		return r;
	if (!uuid || !ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < device_count; i++) {
		td_uuid_format(mine, devices[i].info.uuid);
		if (!strcasecmp(mine, uuid)) {
			*ret = &devices[i];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

/* These GPUs have no serial numbers. */
API nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *ret)
{
	int r = sg_nvml_ready();

	if (!r && (!serial || !ret))
		r = NVML_ERROR_INVALID_ARGUMENT;
	return r ? r : NVML_ERROR_NOT_FOUND;
}

API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *ret)
{
	unsigned domain, bus, device;
	int r = sg_nvml_ready();

	if (r)
		return r;
	if (!id || !ret || sscanf(id, "%x:%x:%x", &domain, &bus, &device) != 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < device_count; i++) {
		if (!domain && bus == devices[i].info.pci_bus &&
			device == devices[i].info.pci_device) {
			*ret = &devices[i];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *ret)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, ret);
}

API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned len)
{
	int r = sg_nvml_check(device, name);

	return r ? r : put_text(name, len, device->info.name);
}

API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned len)
{
	char text[TD_UUID_TEXT];
	int r = sg_nvml_check(device, uuid);

	if (r)
		return r;
	return put_text(uuid, len, td_uuid_format(text, device->info.uuid));
}

API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
	int r = sg_nvml_check(device, index);

	if (!r)
		*index = device->index;
	return r;
}

API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *ret)
{
	int r = sg_nvml_check(device, ret);

	if (r)
		return r;
	memset(ret, 0, sizeof(*ret));
	ret->bus = device->info.pci_bus & 0xff;
	ret->device = device->info.pci_device & 0xff;
	snprintf(ret->busIdLegacy, sizeof(ret->busIdLegacy), "0000:%02X:%02X.0", ret->bus,
		ret->device);
	snprintf(ret->busId, sizeof(ret->busId), "00000000:%02X:%02X.0", ret->bus, ret->device);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *ret)
{
	struct sg_gpu_state state;
	int r = sg_nvml_state(device, ret, &state);

	if (!r)
		*ret = (nvmlMemory_t){
			state.total_bytes, state.total_bytes - state.used_bytes, state.used_bytes};
	return r;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *ret)
{
	struct sg_gpu_state state;
	int r = sg_nvml_state(device, ret, &state);

	if (!r && ret->version != NVML_MEMORY_V2)
		r = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!r)
		*ret = (nvmlMemory_v2_t){NVML_MEMORY_V2, state.total_bytes, 0,
			state.total_bytes - state.used_bytes, state.used_bytes};
	return r;
}

API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *ret)
{
	struct sg_gpu_state state;
	int r = sg_nvml_state(device, ret, &state);

	if (!r)
		*ret = (nvmlUtilization_t){
			(state.utilisation_ppm + PPM_PER_CENT / 2) / PPM_PER_CENT,
			(state.link_ppm + PPM_PER_CENT / 2) / PPM_PER_CENT};
	return r;
}

/* The model has one clock domain that moves, the SMs'; graphics is the same one. */
API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned *mhz)
{
	struct sg_gpu_state state;
	int r = sg_nvml_window(device, mhz, &state);

	if (!r && (type < 0 || type >= NVML_CLOCK_N))
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (!r && type != NVML_CLOCK_SM && type != NVML_CLOCK_GRAPHICS)
		r = NVML_ERROR_NOT_SUPPORTED;
	if (!r)
		*mhz = state.clock_mhz;
	return r;
}

API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned *mhz)
{
	int r = sg_nvml_check(device, mhz);

	if (!r && (type < 0 || type >= NVML_CLOCK_N))
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (!r && type != NVML_CLOCK_SM && type != NVML_CLOCK_GRAPHICS)
		r = NVML_ERROR_NOT_SUPPORTED;
	if (!r)
		*mhz = device->info.clock_mhz;
	return r;
}

/* The model's clock is low without load, and when the GPU is too hot. */
API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(
	nvmlDevice_t device, unsigned long long *reasons)
{
	struct sg_gpu_state state;
	int r = sg_nvml_window(device, reasons, &state);

	if (r)
		return r;
	if (!state.utilisation_ppm)
		*reasons = NVML_CLOCK_REASON_IDLE;
	else
		*reasons = state.clock_mhz < device->info.clock_mhz ? NVML_CLOCK_REASON_THERMAL : 0;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(
	nvmlDevice_t device, unsigned long long *reasons)
{
	return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

/* The wall clock's us at an instant of the model's clock. */
static unsigned long long wall_us(uint64_t ns)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return (unsigned long long)wall.tv_sec * 1000000 + (unsigned long long)wall.tv_nsec / 1000 -
	       (td_time_now_ns() - ns) / 1000;
}

/*
 * The model keeps the last whole window only, so there is one sample at most. Its time may differ
 * by a few us from call to call, as it is reckoned from two clocks.
 */
API nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, int kind, unsigned long long since_us,
	int *type, unsigned *count, nvmlSample_t *rows)
{
	struct sg_gpu_state state;
	unsigned long long at_us;
	int r = sg_nvml_window(device, type && count ? type : NULL, &state);

	if (r)
		return r;
	if (kind != NVML_GPU_UTILIZATION_SAMPLES)
		return NVML_ERROR_NOT_SUPPORTED;
	at_us = wall_us(state.window_end_ns);
	if (at_us <= since_us + SAMPLE_SLACK_US)
		return NVML_ERROR_NOT_FOUND;
	*type = NVML_VALUE_TYPE_UNSIGNED_INT;
	if (rows && !*count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	*count = 1;
	if (rows)
		*rows = (nvmlSample_t){.timeStamp = at_us,
			.sampleValue.uiVal =
				(state.utilisation_ppm + PPM_PER_CENT / 2) / PPM_PER_CENT};
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *celsius)
{
	struct sg_gpu_state state;
	int r = sg_nvml_state(device, celsius, &state);

	if (!r && sensor != NVML_TEMPERATURE_GPU)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (!r)
		*celsius = state.temperature_celsius;
	return r;
}

API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *mw)
{
	struct sg_gpu_state state;
	int r = sg_nvml_state(device, mw, &state);

	if (!r)
		*mw = state.power_mw;
	return r;
}

API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *mw)
{
	struct sg_gpu_state state;
	int r = sg_nvml_state(device, mw, &state);

	if (!r)
		*mw = state.max_power_mw;
	return r;
}

/*
 * *count is the number of rows on return; on entry it is the room for them. put() writes a row in
 * the version of the struct that the caller uses.
 */
static int list_processes(nvmlDevice_t device, unsigned *count, void *rows,
	void (*put)(void *rows, unsigned i, const struct sg_process *process))
{
	struct sg_process *processes;
	unsigned room;
	struct sg_msg msg;
	int r = sg_nvml_check(device, count);

	if (r)
		return r;
	room = *count;
	if (room && !rows)
		return NVML_ERROR_INVALID_ARGUMENT;
	processes = malloc(PROCESSES_MAX * sizeof(*processes));
	if (!processes)
		return NVML_ERROR_MEMORY;
	r = sg_nvml_ask(device, SG_PROCESSES, &msg, processes, PROCESSES_MAX * sizeof(*processes));
	if (!r) {
		*count = (unsigned)msg.value;
		if (msg.value > room)
			r = NVML_ERROR_INSUFFICIENT_SIZE;
		for (unsigned i = 0; !r && i < msg.value; i++)
			put(rows, i, &processes[i]);
	}
	free(processes);
	return r;
}

static void put_v1(void *rows, unsigned i, const struct sg_process *process)
{
	((nvmlProcessInfo_v1_t *)rows)[i] =
		(nvmlProcessInfo_v1_t){process->pid, process->memory_bytes};
}

static void put_v2(void *rows, unsigned i, const struct sg_process *process)
{
	((nvmlProcessInfo_v2_t *)rows)[i] = (nvmlProcessInfo_v2_t){
		process->pid, process->memory_bytes, NVML_NO_INSTANCE, NVML_NO_INSTANCE};
}

API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(
	nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *rows)
{
	return list_processes(device, count, rows, put_v1);
}

API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(
	nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *rows)
{
	return list_processes(device, count, rows, put_v2);
}

API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *rows)
{
	return list_processes(device, count, rows, put_v2);
}

/* Lists graphics processes, of which there are none. */
static int list_none(nvmlDevice_t device, unsigned *count)
{
	int r = sg_nvml_check(device, count);

	if (!r)
		*count = 0;
	return r;
}

API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(
	nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *rows)
{
	(void)rows;
	return list_none(device, count);
}

API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(
	nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *rows)
{
	(void)rows;
	return list_none(device, count);
}

API nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(
	nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *rows)
{
	(void)rows;
	return list_none(device, count);
}

/* This GPU never reports processes as MPS processes. */
API nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(
	nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *rows)
{
	(void)rows;
	return list_none(device, count);
}

API nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(
	nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *rows)
{
	(void)rows;
	return list_none(device, count);
}

API nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(
	nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *rows)
{
	(void)rows;
	return list_none(device, count);
}

/* -- what nvidia-smi shows besides -- */

/* The state is P0 while the GPU runs at its highest clock, and P8 when it is idle. */
API nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, int *ret)
{
	struct sg_gpu_state state;
	int r = sg_nvml_state(device, ret, &state);

	if (!r)
		*ret = state.utilisation_ppm ? 0 : 8;
	return r;
}

/* Anybody may use it. */
API nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, int *ret)
{
	int r = sg_nvml_check(device, ret);

	if (!r)
		*ret = 0;
	return r;
}

API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *ret)
{
	return nvmlDeviceGetIndex(device, ret);
}

API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
	int r = sg_nvml_check(device, current && pending ? current : NULL);

	if (r)
		return r;
	if (!(device->info.features & SG_FEATURE_MIG))
		return NVML_ERROR_NOT_SUPPORTED;
	*current = *pending = 1;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	int r = sg_nvml_check(device, major && minor ? major : NULL);

	if (r)
		return r;
	*major = (int)device->info.compute_major;
	*minor = (int)device->info.compute_minor;
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned *mw)
{
	return nvmlDeviceGetEnforcedPowerLimit(device, mw);
}

/* The command as it was called. */
API nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned len)
{
	char path[64];
	FILE *file;
	size_t n;
	int r = sg_nvml_ready();

	if (r)
		return r;
	if (!name || !len)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	file = fopen(path, "re");
	if (!file)
		return NVML_ERROR_NOT_FOUND;
	n = fread(name, 1, len - 1, file);
	name[n] = 0;
	fclose(file);
	return n ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
