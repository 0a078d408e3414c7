/* Question 11: what NVML and GPM know, how often it changes, and how late. */
#include "probe.h"

#include <string.h>

#include "gpu/nvml_abi.h"

const char probe_name[] = "nvml";
const char probe_question[] = "Which fields do NVML and GPM have, how often do they change, how "
			      "late do they follow a load, and what do they say per process?";

static char have[1500], lack[1500];

static void note(const char *name, int r)
{
	char *list = r ? lack : have;

	snprintf(list + strlen(list), sizeof(have) - strlen(list), " %s", name);
}

static void try_fields(void *device)
{
	static const char *const plain[] = {"nvmlDeviceGetPowerUsage",
		"nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetEncoderUtilization",
		"nvmlDeviceGetPcieThroughput", "nvmlDeviceGetTotalEnergyConsumption",
		"nvmlDeviceGetPerformanceState", "nvmlDeviceGetSamples",
		"nvmlDeviceGetProcessUtilization", "nvmlDeviceGetFieldValues",
		"nvmlDeviceGetMigMode", "nvmlGpmSampleAlloc", "nvmlGpmMetricsGet",
		"nvmlGpmQueryDeviceSupport", "nvmlEventSetWait_v2",
		"nvmlDeviceGetRunningProcessDetailList"};
	int (*get)(void *, void *);
	int (*clock)(void *, int, unsigned *);
	unsigned value[64];

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		note(plain[i], probe_nvml(plain[i]) == NULL);
	*(void **)&get = probe_nvml("nvmlDeviceGetUtilizationRates");
	note("utilisation", !get || get(device, value));
	*(void **)&get = probe_nvml("nvmlDeviceGetMemoryInfo");
	note("memory", !get || get(device, value));
	*(void **)&clock = probe_nvml("nvmlDeviceGetClockInfo");
	note("SM clock", !clock || clock(device, NVML_CLOCK_SM, value));
	*(void **)&clock = probe_nvml("nvmlDeviceGetTemperature");
	note("temperature", !clock || clock(device, 0, value));
}

static unsigned busy_percent(void *device)
{
	static nvmlDeviceGetUtilizationRates_fn get;
	nvmlUtilization_t rates = {0};

	if (!get)
		*(void **)&get = probe_nvml("nvmlDeviceGetUtilizationRates");
	return get && !get(device, &rates) ? rates.gpu : 0;
}

/* ms until the figure is above (or below) half, or -1; adds the intervals between changes. */
static double follow(void *device, bool up, struct probe_series *changes)
{
	uint64_t began = probe_now_ns(), changed = began,
		 most = probe_quick ? 600000000 : 3000000000;
	unsigned last = busy_percent(device);
	double ms = -1;

	while (probe_now_ns() - began < most) {
		unsigned now = busy_percent(device);

		if (now != last) {
			probe_add(changes, (double)(probe_now_ns() - changed) / 1e6);
			changed = probe_now_ns();
			last = now;
		}
		if (ms < 0 && (up ? now > 50 : now < 50))
			ms = (double)(probe_now_ns() - began) / 1e6;
		probe_sleep_ms(1);
	}
	return ms;
}

void probe_run(void)
{
	static struct probe_series changes, cost;
	nvmlDeviceGetComputeRunningProcesses_v3_fn processes;
	nvmlProcessInfo_v2_t rows[64];
	unsigned count = 64;
	char of_process[120] = "unknown";
	void *device;
	double up;
	int r;

	probe_begin();
	device = probe_nvml_device();
	if (!device)
		probe_answer("no NVML here, or it does not know the device");
	try_fields(device);
	for (int i = 0; i < 20; i++) {
		uint64_t t = probe_now_ns();

		(void)busy_percent(device);
		probe_add(&cost, probe_us_since(t));
	}
	probe_spin(NULL, 2u * (unsigned)probe_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
		probe_quick ? 600000000 : 3000000000);
	up = follow(device, true, &changes);
	MUST(cuCtxSynchronize);
	probe_value(up, "ms",
		"from the start of a load until utilisation says more than half (-1: never)");
	probe_value(follow(device, false, &changes), "ms",
		"from its end until it says less than half (-1: never)");
	probe_figure(&changes, "ms", "between two changes of utilisation");
	probe_figure(&cost, "us", "one query of utilisation");
	*(void **)&processes = probe_nvml("nvmlDeviceGetComputeRunningProcesses_v3");
	r = processes ? processes(device, &count, rows) : -1;
	if (!r && count)
		snprintf(of_process, sizeof(of_process), "%u, the first pid %u with %llu MiB",
			count, rows[0].pid, rows[0].usedGpuMemory >> 20);
	probe_answer("there:%s; not there:%s; processes: %s", have, lack, of_process);
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
