/* Question 18: clock, power and temperature under load. */
#include "probe.h"

#include "gpu/nvml_abi.h"

const char probe_name[] = "clocks";
const char probe_question[] =
	"What do SM clock, power and temperature do under a sustained load of 20 s?";

void probe_run(void)
{
	static struct probe_series clock_mhz, power_w, temperature_c;
	nvmlDeviceGetClockInfo_fn clock;
	nvmlDeviceGetPowerUsage_fn power;
	nvmlDeviceGetTemperature_fn temperature;
	unsigned seconds = probe_quick ? 1 : 20, blocks, value, before = 0, first = 0;
	void *device;

	probe_begin();
	device = probe_nvml_device();
	*(void **)&clock = probe_nvml("nvmlDeviceGetClockInfo");
	*(void **)&power = probe_nvml("nvmlDeviceGetPowerUsage");
	*(void **)&temperature = probe_nvml("nvmlDeviceGetTemperature");
	if (!device || !clock || !power || !temperature)
		probe_answer("no NVML here, or it lacks these");
	blocks = 8u * (unsigned)probe_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	(void)clock(device, NVML_CLOCK_SM, &before);
	for (unsigned i = 0; i < seconds * 10; i++) {
		probe_spin(NULL, blocks, probe_quick ? 2000000 : 100000000);
		if (!clock(device, NVML_CLOCK_SM, &value)) {
			first = i ? first : value;
			probe_add(&clock_mhz, value);
		}
		if (!power(device, &value))
			probe_add(&power_w, value / 1e3);
		if (!temperature(device, NVML_TEMPERATURE_GPU, &value))
			probe_add(&temperature_c, value);
		MUST(cuCtxSynchronize);
	}
	probe_figure(&clock_mhz, "MHz", "SM clock under load");
	probe_figure(&power_w, "W", "power under load");
	probe_figure(&temperature_c, "C", "temperature under load");
	probe_answer("SM clock %u MHz before, %u MHz at the start of the load", before, first);
}

int probe_role(const char *role)
{
	(void)role;
	return 2;
}
