/*
 * GPM: averages between two samples of the server's counters. The model knows when a kernel ran, on
 * how many SMs, and what went over the link. The other metrics are NOT_SUPPORTED one by one, as
 * NVML reports it for a metric.
 */
#include <stdlib.h>

#include "softgpu/nvml/nvml_local.h"

struct nvmlGpmSample_st {
	struct sg_gpm_sample counters;
	bool is_taken;
	unsigned device;
};

API nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *ret)
{
	int r = sg_nvml_check(device, ret);

	if (!r && ret->version != NVML_GPM_SUPPORT_VERSION)
		r = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	/* Only GPUs of the Hopper generation and later support GPM. */
	if (!r)
		ret->isSupportedDevice = device->info.compute_major >= 9;
	return r;
}

API nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *ret)
{
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

API nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
	if (!sample)
		return NVML_ERROR_INVALID_ARGUMENT;
	free(sample);
	return NVML_SUCCESS;
}

API nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
	struct sg_msg msg;
	int r = sg_nvml_check(device, sample);

	if (!r && device->info.compute_major < 9)
		r = NVML_ERROR_NOT_SUPPORTED;
	if (!r)
		r = sg_nvml_ask(device, SG_GPM, &msg, &sample->counters, sizeof(sample->counters));
	if (r)
		return r;
	sample->is_taken = true;
	sample->device = device->index;
	return NVML_SUCCESS;
}

static double share(uint64_t part_ns, uint64_t ns)
{
	double percent = 100.0 * (double)part_ns / (double)ns;

	return percent < 100.0 ? percent : 100.0;
}

static double mib_per_s(uint64_t bytes, uint64_t ns)
{
	return (double)bytes / (1 << 20) / ((double)ns / 1e9);
}

static void fill(
	nvmlGpmMetric_t *metric, const struct sg_gpm_sample *a, const struct sg_gpm_sample *b)
{
	static char names[][24] = {"Graphics Util", "SM Util", "PCIe TX", "PCIe RX", "%", "MiB/s"};
	uint64_t ns = b->time_ns - a->time_ns;

	metric->nvmlReturn = NVML_SUCCESS;
	switch (metric->metricId) {
	case NVML_GPM_METRIC_GRAPHICS_UTIL:
		metric->value = share(b->busy_ns - a->busy_ns, ns);
		metric->metricInfo.shortName = metric->metricInfo.longName = names[0];
		metric->metricInfo.unit = names[4];
		return;
	case NVML_GPM_METRIC_SM_UTIL:
		metric->value = share(b->sm_busy_ns - a->sm_busy_ns, ns);
		metric->metricInfo.shortName = metric->metricInfo.longName = names[1];
		metric->metricInfo.unit = names[4];
		return;
	case NVML_GPM_METRIC_PCIE_TX_PER_SEC:
		metric->value = mib_per_s(b->out_bytes - a->out_bytes, ns);
		metric->metricInfo.shortName = metric->metricInfo.longName = names[2];
		metric->metricInfo.unit = names[5];
		return;
	case NVML_GPM_METRIC_PCIE_RX_PER_SEC:
		metric->value = mib_per_s(b->in_bytes - a->in_bytes, ns);
		metric->metricInfo.shortName = metric->metricInfo.longName = names[3];
		metric->metricInfo.unit = names[5];
		return;
	default: metric->nvmlReturn = NVML_ERROR_NOT_SUPPORTED; metric->value = 0;
	}
}

API nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
	const struct nvmlGpmSample_st *a, *b;

	if (!get)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (get->version != NVML_GPM_METRICS_GET_VERSION)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (get->numMetrics > sizeof(get->metrics) / sizeof(get->metrics[0]))
		return NVML_ERROR_INVALID_ARGUMENT;
	a = get->sample1;
	b = get->sample2;
	/* Both samples must be of one device, the second one later. */
	if (!a || !b || !a->is_taken || !b->is_taken || a->device != b->device ||
		b->counters.time_ns <= a->counters.time_ns)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < get->numMetrics; i++)
		fill(&get->metrics[i], &a->counters, &b->counters);
	return NVML_SUCCESS;
}
