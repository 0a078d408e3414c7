/*
 * The fields of softgpu smi --query-gpu and --query-compute-apps, under nvidia-smi's names, and
 * their CSV.
 */
#include "softgpu/cli/smi.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "softgpu/cli/cli.h"

struct field {
	const char *name, *alias, *unit;
	bool is_known; /* the value is known even of a lost GPU */
	void (*print)(
		const struct smi *smi, const struct gpu *gpu, const nvmlProcessInfo_v2_t *process);
};

/*
 * FIELD(function, name, alias or NULL, unit, format, the expression to print): identity and state
 * of a GPU.
 */
#define WHO_FIELDS(FIELD)                                                                          \
	FIELD(timestamp, "timestamp", NULL, "", "%s", now_text())                                  \
	FIELD(driver, "driver_version", NULL, "", "%s", smi->driver_version)                       \
	FIELD(count, "count", NULL, "", "%u", smi->gpu_count)                                      \
	FIELD(name, "name", "gpu_name", "", "%s", gpu->name)                                       \
	FIELD(index, "index", NULL, "", "%u", gpu->index)                                          \
	FIELD(uuid, "uuid", "gpu_uuid", "", "%s", gpu->uuid)                                       \
	FIELD(bus_id, "pci.bus_id", "gpu_bus_id", "", "%s", gpu->pci.busId)
#define HOW_FIELDS(FIELD)                                                                          \
	FIELD(compute_cap, "compute_cap", NULL, "", "%d.%d", gpu->major, gpu->minor)               \
	FIELD(pstate, "pstate", NULL, "", "P%d", gpu->pstate)                                      \
	FIELD(total, "memory.total", NULL, "MiB", "%u", sg_smi_mib(gpu->memory.total))             \
	FIELD(used, "memory.used", NULL, "MiB", "%u", sg_smi_mib(gpu->memory.used))                \
	FIELD(free, "memory.free", NULL, "MiB", "%u", sg_smi_mib(gpu->memory.free))                \
	FIELD(busy, "utilization.gpu", NULL, "%", "%u", gpu->utilisation.gpu)                      \
	FIELD(memory_busy, "utilization.memory", NULL, "%", "%u", gpu->utilisation.memory)         \
	FIELD(celsius, "temperature.gpu", NULL, "", "%u", gpu->celsius)                            \
	FIELD(power, "power.draw", "power.draw.instant", "W", "%.2f", gpu->power_mw / 1000.0)      \
	FIELD(limit, "power.limit", "enforced.power.limit", "W", "%.2f", gpu->limit_mw / 1000.0)   \
	FIELD(sm_clock, "clocks.sm", "clocks.current.sm", "MHz", "%u", gpu->sm_mhz)                \
	FIELD(gr_clock, "clocks.gr", "clocks.current.graphics", "MHz", "%u", gpu->sm_mhz)          \
	FIELD(max_clock, "clocks.max.sm", NULL, "MHz", "%u", gpu->max_sm_mhz)                      \
	FIELD(mode, "compute_mode", NULL, "", "%s", "Default")                                     \
	FIELD(fan, "fan.speed", NULL, "%", "%s", "[N/A]")                                          \
	FIELD(ecc, "ecc.errors.uncorrected.volatile.total", NULL, "", "%s", "[N/A]")               \
	FIELD(mig, "mig.mode.current", NULL, "", "%s", "[N/A]")

#define APP_FIELDS(FIELD)                                                                          \
	FIELD(gpu_uuid, "gpu_uuid", NULL, "", "%s", gpu->uuid)                                     \
	FIELD(gpu_name, "gpu_name", NULL, "", "%s", gpu->name)                                     \
	FIELD(gpu_bus_id, "gpu_bus_id", NULL, "", "%s", gpu->pci.busId)                            \
	FIELD(pid, "pid", NULL, "", "%u", process->pid)                                            \
	FIELD(process, "process_name", "name", "", "%s", sg_smi_process_name(process->pid))        \
	FIELD(memory, "used_gpu_memory", "used_memory", "MiB", "%u",                               \
		sg_smi_mib(process->usedGpuMemory))

static const char *now_text(void)
{
	static char text[64];
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(text, sizeof(text), "%Y/%m/%d %H:%M:%S", &tm);
	snprintf(text + strlen(text), 16, ".%03u", (unsigned)(now.tv_nsec / 1000000) % 1000);
	return text;
}

#define PRINT(kind, function, ...)                                                                 \
	static void kind##_##function(                                                             \
		const struct smi *smi, const struct gpu *gpu, const nvmlProcessInfo_v2_t *process) \
	{                                                                                          \
		(void)smi;                                                                         \
		(void)gpu;                                                                         \
		(void)process;                                                                     \
		printf(__VA_ARGS__);                                                               \
	}
#define GPU_PRINT(function, name, alias, unit, ...) PRINT(of_gpu, function, __VA_ARGS__)
#define APP_PRINT(function, name, alias, unit, ...) PRINT(of_app, function, __VA_ARGS__)
WHO_FIELDS(GPU_PRINT)
HOW_FIELDS(GPU_PRINT)
APP_FIELDS(APP_PRINT)

#define WHO_ROW(function, name, alias, unit, ...) {name, alias, unit, true, of_gpu_##function},
#define HOW_ROW(function, name, alias, unit, ...) {name, alias, unit, false, of_gpu_##function},
#define APP_ROW(function, name, alias, unit, ...) {name, alias, unit, true, of_app_##function},
static const struct field gpu_fields[] = {
	WHO_FIELDS(WHO_ROW) HOW_FIELDS(HOW_ROW){NULL, NULL, NULL, false, NULL}};
static const struct field app_fields[] = {APP_FIELDS(APP_ROW){NULL, NULL, NULL, false, NULL}};

/* Some versions of nvidia-smi have a dot where others have an underscore. */
static bool is_same(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (*a != *b && !(strchr("._", *a) && strchr("._", *b)))
			return false;
	return *a == *b;
}

int sg_smi_parse_columns(const char *list, bool apps, struct csv *csv)
{
	char text[1024];

	csv->apps = apps;
	if (snprintf(text, sizeof(text), "%s", list) >= (int)sizeof(text))
		return sg_cli_fail("%s", "too many fields");
	for (char *save, *name = strtok_r(text, ",", &save); name;
		name = strtok_r(NULL, ",", &save)) {
		const struct field *f = apps ? app_fields : gpu_fields;

		while (f->name && !is_same(f->name, name) && !(f->alias && is_same(f->alias, name)))
			f++;
		if (!f->name || csv->count == COLUMNS_MAX)
			return sg_cli_fail("Field \"%s\" is not a valid field to query.", name);
		csv->columns[csv->count].field = f;
		snprintf(csv->columns[csv->count].name, sizeof(csv->columns[0].name), "%s", name);
		csv->count++;
	}
	return csv->count ? 0 : sg_cli_fail("%s", "which fields?");
}

int sg_smi_parse_format(const char *format, struct csv *csv)
{
	char text[128];

	snprintf(text, sizeof(text), "%s", format);
	for (char *save, *word = strtok_r(text, ",", &save); word;
		word = strtok_r(NULL, ",", &save)) {
		if (!strcmp(word, "noheader"))
			csv->no_header = true;
		else if (!strcmp(word, "nounits"))
			csv->no_units = true;
		else if (strcmp(word, "csv"))
			return sg_cli_fail(
				"\"%s\" is not a format: expected csv, noheader, nounits", word);
	}
	return 0;
}

static void print_row(const struct smi *smi, const struct csv *csv, const struct gpu *gpu,
	const nvmlProcessInfo_v2_t *process)
{
	for (unsigned i = 0; i < csv->count; i++) {
		const struct field *f = csv->columns[i].field;

		printf("%s", i ? ", " : "");
		if (gpu->lost && !f->is_known) {
			printf("[GPU is lost]");
			continue;
		}
		f->print(smi, gpu, process);
		if (!csv->no_units && *f->unit)
			printf(" %s", f->unit);
	}
	printf("\n");
}

static void print_header(const struct csv *csv)
{
	for (unsigned i = 0; i < csv->count; i++) {
		const char *unit = csv->columns[i].field->unit;

		printf("%s%s", i ? ", " : "", csv->columns[i].name);
		if (!csv->no_units && *unit)
			printf(" [%s]", unit);
	}
	printf("\n");
}

void sg_smi_print_csv(const struct smi *smi, const struct csv *csv, const bool *wanted)
{
	if (!csv->no_header)
		print_header(csv);
	for (unsigned i = 0; i < smi->gpu_count; i++) {
		const struct gpu *gpu = &smi->gpus[i];

		if (!wanted[i])
			continue;
		if (!csv->apps)
			print_row(smi, csv, gpu, NULL);
		for (unsigned k = 0; csv->apps && k < gpu->process_count; k++)
			print_row(smi, csv, gpu, &gpu->processes[k]);
	}
}

void sg_smi_list_fields(bool apps)
{
	printf("Fields of --query-%s:\n", apps ? "compute-apps" : "gpu");
	for (const struct field *f = apps ? app_fields : gpu_fields; f->name; f++) {
		printf("  \"%s\"", f->name);
		if (f->alias)
			printf(" or \"%s\"", f->alias);
		printf("%s%s%s\n", *f->unit ? " [" : "", f->unit, *f->unit ? "]" : "");
	}
}
