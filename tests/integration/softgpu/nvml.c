/*
 * libnvidia-ml.so.1 of the software GPU, opened as programs open it, against the driver's answers
 * about the same GPUs.
 */
#include "cuda.h"

#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include "gpu/nvml_abi.h"

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);
CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream);

static void *library;

#define CALL(name, ...) ((name##_fn)find(#name))(__VA_ARGS__)

static void *find(const char *name)
{
	void *function;

	if (!library)
		library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		test_fail(__FILE__, __LINE__, "%s", dlerror());
	function = dlsym(library, name);
	if (!function)
		test_fail(__FILE__, __LINE__, "%s", dlerror());
	return function;
}

static nvmlDevice_t first(void)
{
	nvmlDevice_t device;

	OK(CALL(nvmlInit_v2));
	OK(CALL(nvmlDeviceGetHandleByIndex_v2, 0u, &device));
	return device;
}

TEST(nothing_answers_before_init_and_after_the_last_shutdown)
{
	unsigned count;

	CHECK_EQ(CALL(nvmlDeviceGetCount_v2, &count), NVML_ERROR_UNINITIALIZED);
	CHECK_EQ(CALL(nvmlShutdown), NVML_ERROR_UNINITIALIZED);
	OK(CALL(nvmlInit));
	OK(CALL(nvmlInit_v2));
	OK(CALL(nvmlShutdown));
	OK(CALL(nvmlDeviceGetCount_v2, &count));
	CHECK_EQ(count, 2);
	OK(CALL(nvmlShutdown));
	CHECK_EQ(CALL(nvmlDeviceGetCount_v2, &count), NVML_ERROR_UNINITIALIZED);
}

TEST(versions_say_that_this_is_software)
{
	char text[80];
	int version;

	OK(CALL(nvmlInit_v2));
	OK(CALL(nvmlSystemGetDriverVersion, text, 80u));
	CHECK(strstr(text, "softgpu"));
	OK(CALL(nvmlSystemGetNVMLVersion, text, 80u));
	CHECK(strstr(text, "softgpu"));
	CHECK_EQ(CALL(nvmlSystemGetDriverVersion, text, 3u), NVML_ERROR_INSUFFICIENT_SIZE);
	OK(CALL(nvmlSystemGetCudaDriverVersion, &version));
	CHECK_EQ(version, 13000);
	CHECK_STR(CALL(nvmlErrorString, NVML_ERROR_NOT_SUPPORTED), "not supported by this device");
	OK(CALL(nvmlShutdown));
}

TEST(devices_are_those_of_the_driver)
{
	char name[96], driver_name[96], text[96], mine[96], pci[32];
	nvmlDevice_t device, again;
	nvmlPciInfo_t info;
	int count;
	unsigned index;
	CUuuid uuid;

	OK(cuInit(0));
	OK(CALL(nvmlInit_v2));
	OK(cuDeviceGetCount(&count));
	CHECK_EQ(count, 2);
	for (int i = 0; i < count; i++) {
		OK(CALL(nvmlDeviceGetHandleByIndex_v2, (unsigned)i, &device));
		OK(CALL(nvmlDeviceGetIndex, device, &index));
		CHECK_EQ(index, i);
		OK(CALL(nvmlDeviceGetName, device, name, 96u));
		OK(cuDeviceGetName(driver_name, 96, i));
		CHECK_STR(name, driver_name);
		OK(CALL(nvmlDeviceGetUUID, device, text, 96u));
		OK(cuDeviceGetUuid_v2(&uuid, i));
		strcpy(mine, "GPU-");
		for (int k = 0; k < 16; k++)
			sprintf(mine + strlen(mine),
				k == 4 || k == 6 || k == 8 || k == 10 ? "-%02x" : "%02x",
				uuid.bytes[k]);
		CHECK_STR(text, mine);
		OK(CALL(nvmlDeviceGetHandleByUUID, text, &again));
		CHECK(again == device);
		OK(CALL(nvmlDeviceGetPciInfo_v3, device, &info));
		OK(cuDeviceGetPCIBusId(pci, sizeof(pci), i));
		CHECK_STR(info.busIdLegacy, pci);
		OK(CALL(nvmlDeviceGetHandleByPciBusId_v2, info.busId, &again));
		CHECK(again == device);
		OK(CALL(nvmlDeviceGetHandleByPciBusId_v2, pci, &again));
		CHECK(again == device);
	}
	CHECK_EQ(CALL(nvmlDeviceGetHandleByIndex_v2, 2u, &device), NVML_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(CALL(nvmlDeviceGetHandleByUUID, "GPU-0", &device), NVML_ERROR_NOT_FOUND);
	CHECK_EQ(CALL(nvmlDeviceGetHandleByPciBusId_v2, "0000:99:00.0", &device),
		NVML_ERROR_NOT_FOUND);
	CHECK_EQ(CALL(nvmlDeviceGetName, (nvmlDevice_t)mine, name, 96u),
		NVML_ERROR_INVALID_ARGUMENT);
	OK(CALL(nvmlShutdown));
}

TEST(memory_and_processes_are_what_the_driver_shows)
{
	nvmlDevice_t device = first();
	nvmlMemory_v2_t memory2 = {.version = NVML_MEMORY_V2};
	nvmlProcessInfo_v2_t rows[4];
	nvmlProcessInfo_v1_t old[4];
	nvmlMemory_t memory;
	size_t free_bytes, total;
	CUdeviceptr address;
	unsigned count = 0;

	OK(CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, NULL));
	CHECK_EQ(count, 0);
	begin();
	OK(cuMemAlloc_v2(&address, 10 * MIB));
	OK(cuMemGetInfo_v2(&free_bytes, &total));
	OK(CALL(nvmlDeviceGetMemoryInfo, device, &memory));
	CHECK_EQ(memory.total, total);
	CHECK_EQ(memory.free, free_bytes);
	CHECK_EQ(memory.used, 11 * MIB); /* the context's 1 MiB too */
	OK(CALL(nvmlDeviceGetMemoryInfo_v2, device, &memory2));
	CHECK_EQ(memory2.used, memory.used);
	CHECK_EQ(memory2.reserved, 0);
	memory2.version = 7;
	CHECK_EQ(CALL(nvmlDeviceGetMemoryInfo_v2, device, &memory2),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	CHECK_EQ(CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, NULL),
		NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQ(count, 1);
	OK(CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, rows));
	CHECK_EQ(rows[0].pid, getpid());
	CHECK_EQ(rows[0].usedGpuMemory, 11 * MIB);
	/* Managed pages are on the device, and no process's. */
	OK(cuMemAllocManaged(&address, 4 * MIB, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemPrefetchAsync(address, 4 * MIB, 0, NULL));
	OK(cuCtxSynchronize());
	OK(CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, rows));
	CHECK_EQ(rows[0].usedGpuMemory, 11 * MIB);
	OK(CALL(nvmlDeviceGetComputeRunningProcesses_v2, device, &count, rows));
	CHECK_EQ(rows[0].gpuInstanceId, NVML_NO_INSTANCE);
	count = 4;
	OK(CALL(nvmlDeviceGetComputeRunningProcesses, device, &count, old));
	CHECK_EQ(count, 1);
	CHECK_EQ(old[0].usedGpuMemory, 11 * MIB);
	count = 4;
	OK(CALL(nvmlDeviceGetGraphicsRunningProcesses_v3, device, &count, rows));
	CHECK_EQ(count, 0);
	end();
	OK(CALL(nvmlDeviceGetMemoryInfo, device, &memory));
	CHECK_EQ(memory.used, 0);
	OK(CALL(nvmlShutdown));
}

/* Ends when the GPU shows it, or fails when the kernel is over first. */
TEST(a_running_kernel_shows_as_load)
{
	struct timespec pause = {0, 5000000};
	nvmlDevice_t device = first();
	unsigned ms = 1500, mhz, idle_mhz, max_mhz, mw, idle_mw, celsius;
	void *params[] = {&ms};
	nvmlUtilization_t load;
	unsigned long long reasons;
	unsigned count = 1;
	nvmlSample_t sample;
	int type;

	begin();
	OK(CALL(nvmlDeviceGetUtilizationRates, device, &load));
	CHECK_EQ(load.gpu, 0);
	OK(CALL(nvmlDeviceGetClockInfo, device, NVML_CLOCK_SM, &idle_mhz));
	OK(CALL(nvmlDeviceGetCurrentClocksEventReasons, device, &reasons));
	CHECK_EQ(reasons, NVML_CLOCK_REASON_IDLE);
	OK(CALL(nvmlDeviceGetPowerUsage, device, &idle_mw));
	OK(launch(kernel("nap"), NULL, params));
	do {
		nanosleep(&pause, NULL);
		CHECK_EQ(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
		OK(CALL(nvmlDeviceGetUtilizationRates, device, &load));
	} while (load.gpu != 100);
	CHECK_EQ(load.memory, 0);
	OK(CALL(nvmlDeviceGetClockInfo, device, NVML_CLOCK_SM, &mhz));
	OK(CALL(nvmlDeviceGetMaxClockInfo, device, NVML_CLOCK_SM, &max_mhz));
	CHECK(idle_mhz < mhz && mhz <= max_mhz);
	OK(CALL(nvmlDeviceGetCurrentClocksEventReasons, device, &reasons));
	CHECK_EQ(reasons, 0);
	OK(CALL(nvmlDeviceGetSamples, device, NVML_GPU_UTILIZATION_SAMPLES, 0ull, &type, &count,
		&sample));
	CHECK(count == 1 && type == NVML_VALUE_TYPE_UNSIGNED_INT);
	CHECK_EQ(sample.sampleValue.uiVal, 100);
	CHECK_EQ(CALL(nvmlDeviceGetSamples, device, NVML_GPU_UTILIZATION_SAMPLES,
			 sample.timeStamp + 60000000, &type, &count, &sample),
		NVML_ERROR_NOT_FOUND);
	CHECK_EQ(CALL(nvmlDeviceGetSamples, device, 0, 0ull, &type, &count, &sample),
		NVML_ERROR_NOT_SUPPORTED);
	OK(CALL(nvmlDeviceGetPowerUsage, device, &mw));
	CHECK(mw > idle_mw);
	OK(CALL(nvmlDeviceGetTemperature, device, NVML_TEMPERATURE_GPU, &celsius));
	CHECK(celsius > 20 && celsius < 90);
	OK(cuCtxSynchronize());
	end();
	OK(CALL(nvmlShutdown));
}

TEST(what_the_model_does_not_have_is_not_supported)
{
	nvmlDevice_t device = first();
	unsigned mhz;

	CHECK_EQ(CALL(nvmlDeviceGetClockInfo, device, NVML_CLOCK_MEM, &mhz),
		NVML_ERROR_NOT_SUPPORTED);
	CHECK_EQ(CALL(nvmlDeviceGetMaxClockInfo, device, NVML_CLOCK_VIDEO, &mhz),
		NVML_ERROR_NOT_SUPPORTED);
	CHECK_EQ(CALL(nvmlDeviceGetClockInfo, device, 77, &mhz), NVML_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(CALL(nvmlDeviceGetTemperature, device, 5, &mhz), NVML_ERROR_INVALID_ARGUMENT);
	OK(CALL(nvmlShutdown));
}

TEST(a_fault_of_a_kernel_is_an_event_for_who_registered)
{
	nvmlDevice_t device = first(), other;
	CUdeviceptr nowhere = 4096;
	unsigned long long types;
	nvmlEventSet_t set, deaf;
	nvmlEventData_t event;
	unsigned value = 1;
	void *params[] = {&nowhere, &value};

	OK(CALL(nvmlDeviceGetHandleByIndex_v2, 1u, &other));
	OK(CALL(nvmlDeviceGetSupportedEventTypes, device, &types));
	OK(CALL(nvmlEventSetCreate, &set));
	OK(CALL(nvmlEventSetCreate, &deaf));
	CHECK_EQ(CALL(nvmlDeviceRegisterEvents, device, types | 2, set), NVML_ERROR_NOT_SUPPORTED);
	OK(CALL(nvmlDeviceRegisterEvents, device, types, set));
	OK(CALL(nvmlDeviceRegisterEvents, other, types, deaf));
	CHECK_EQ(CALL(nvmlEventSetWait_v2, set, &event, 0u), NVML_ERROR_TIMEOUT);
	begin();
	OK(launch(kernel("store"), NULL, params));
	CHECK_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(CALL(nvmlEventSetWait_v2, set, &event, 60000u));
	CHECK(event.device == device && event.eventType == NVML_EVENT_TYPE_XID_CRITICAL_ERROR);
	CHECK_EQ(event.eventData, 31);
	CHECK_EQ(CALL(nvmlEventSetWait_v2, set, &event, 0u), NVML_ERROR_TIMEOUT);
	CHECK_EQ(CALL(nvmlEventSetWait_v2, deaf, &event, 0u), NVML_ERROR_TIMEOUT);
	OK(CALL(nvmlEventSetFree, set));
	OK(CALL(nvmlEventSetFree, deaf));
	CHECK_EQ(CALL(nvmlEventSetFree, set), NVML_ERROR_INVALID_ARGUMENT);
	OK(CALL(nvmlShutdown));
}

/* One block on one of two SMs. */
TEST(gpm_tells_how_many_sms_were_active)
{
	static const unsigned ids[] = {NVML_GPM_METRIC_GRAPHICS_UTIL, NVML_GPM_METRIC_SM_UTIL,
		NVML_GPM_METRIC_PCIE_RX_PER_SEC, 5};
	nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};
	nvmlGpmMetricsGet_t get = {.version = NVML_GPM_METRICS_GET_VERSION, .numMetrics = 4};
	nvmlDevice_t device = first();
	static char bytes[1 << 20];
	CUdeviceptr at;
	unsigned ms = 200;
	void *params[] = {&ms};

	begin();
	OK(cuMemAlloc_v2(&at, sizeof(bytes)));
	OK(CALL(nvmlGpmQueryDeviceSupport, device, &support));
	CHECK_EQ(support.isSupportedDevice, 1);
	OK(CALL(nvmlGpmSampleAlloc, &get.sample1));
	OK(CALL(nvmlGpmSampleAlloc, &get.sample2));
	for (unsigned i = 0; i < 4; i++)
		get.metrics[i].metricId = ids[i];
	CHECK_EQ(CALL(nvmlGpmMetricsGet, &get), NVML_ERROR_INVALID_ARGUMENT); /* not taken yet */
	OK(CALL(nvmlGpmSampleGet, device, get.sample1));
	OK(launch(kernel("nap"), NULL, params));
	OK(cuMemcpyHtoD_v2(at, bytes, sizeof(bytes)));
	OK(cuCtxSynchronize());
	OK(CALL(nvmlGpmSampleGet, device, get.sample2));
	OK(CALL(nvmlGpmMetricsGet, &get));
	CHECK(get.metrics[0].value > 0 && get.metrics[0].value <= 100);
	/* Half of the SMs, but for what other work there was. */
	CHECK(get.metrics[1].value > 0.45 * get.metrics[0].value &&
		get.metrics[1].value < 0.55 * get.metrics[0].value);
	CHECK(get.metrics[2].value > 0);
	CHECK_EQ(get.metrics[3].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
	get.version = 9;
	CHECK_EQ(CALL(nvmlGpmMetricsGet, &get), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	get.version = NVML_GPM_METRICS_GET_VERSION;
	get.numMetrics = 1u << 30; /* more than there is room for */
	CHECK_EQ(CALL(nvmlGpmMetricsGet, &get), NVML_ERROR_INVALID_ARGUMENT);
	OK(CALL(nvmlGpmSampleFree, get.sample1));
	OK(CALL(nvmlGpmSampleFree, get.sample2));
	end();
	OK(CALL(nvmlShutdown));
}
