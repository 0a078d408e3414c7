/*
 * softgpu smi: what nvidia-smi prints, for the software GPUs, through their NVML. Table, -L, -q for what there is, --query-gpu and
 * --query-compute-apps as CSV. What the model does not have is [N/A], as it is there.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "gpu/nvml_abi.h"
#include "softgpu/cli/cli.h"

#define GPUS_MAX      16u
#define PROCESSES_MAX 512u
#define MIB           (1ull << 20)

static struct {
#define NVML(name, parameters) name##_fn name;
#include "gpu/nvml_functions.def"
#undef NVML
} nvml;

struct gpu {
	nvmlDevice_t device;
	unsigned index;
	char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE], uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	nvmlPciInfo_t pci;
	nvmlMemory_t memory;
	nvmlUtilization_t utilisation;
	unsigned celsius, power_mw, limit_mw, sm_mhz, max_sm_mhz;
	int pstate, major, minor;
	unsigned process_count;
	nvmlProcessInfo_v2_t processes[PROCESSES_MAX];
};

static struct gpu gpus[GPUS_MAX];
static unsigned gpu_count;
static char driver_version[96];
static int cuda_version;

static int load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return sg_cli_fail("%s", dlerror());
#define NVML(name, parameters) nvml.name = (name##_fn)dlsym(handle, #name);
#include "gpu/nvml_functions.def"
#undef NVML
	return nvml.nvmlInit_v2() ? sg_cli_fail("%s", "no server: softgpu start"), 1 : 0;
}

/* A GPU that is lost answers nothing: its figures stay 0. */
static void read_gpu(struct gpu *gpu, unsigned index)
{
	memset(gpu, 0, sizeof(*gpu));
	gpu->index = index;
	gpu->pstate = 8;
	gpu->process_count = PROCESSES_MAX;
	if (nvml.nvmlDeviceGetHandleByIndex_v2(index, &gpu->device))
		return;
	(void)nvml.nvmlDeviceGetName(gpu->device, gpu->name, sizeof(gpu->name));
	(void)nvml.nvmlDeviceGetUUID(gpu->device, gpu->uuid, sizeof(gpu->uuid));
	(void)nvml.nvmlDeviceGetPciInfo_v3(gpu->device, &gpu->pci);
	(void)nvml.nvmlDeviceGetMemoryInfo(gpu->device, &gpu->memory);
	(void)nvml.nvmlDeviceGetUtilizationRates(gpu->device, &gpu->utilisation);
	(void)nvml.nvmlDeviceGetTemperature(gpu->device, NVML_TEMPERATURE_GPU, &gpu->celsius);
	(void)nvml.nvmlDeviceGetPowerUsage(gpu->device, &gpu->power_mw);
	(void)nvml.nvmlDeviceGetEnforcedPowerLimit(gpu->device, &gpu->limit_mw);
	(void)nvml.nvmlDeviceGetClockInfo(gpu->device, NVML_CLOCK_SM, &gpu->sm_mhz);
	(void)nvml.nvmlDeviceGetMaxClockInfo(gpu->device, NVML_CLOCK_SM, &gpu->max_sm_mhz);
	(void)nvml.nvmlDeviceGetPerformanceState(gpu->device, &gpu->pstate);
	(void)nvml.nvmlDeviceGetCudaComputeCapability(gpu->device, &gpu->major, &gpu->minor);
	if (nvml.nvmlDeviceGetComputeRunningProcesses_v3(
		    gpu->device, &gpu->process_count, gpu->processes))
		gpu->process_count = 0;
}

static void read_all(void)
{
	(void)nvml.nvmlSystemGetDriverVersion(driver_version, sizeof(driver_version));
	(void)nvml.nvmlSystemGetCudaDriverVersion_v2(&cuda_version);
	gpu_count = 0;
	(void)nvml.nvmlDeviceGetCount_v2(&gpu_count);
	if (gpu_count > GPUS_MAX)
		gpu_count = GPUS_MAX;
	for (unsigned i = 0; i < gpu_count; i++)
		read_gpu(&gpus[i], i);
}

static unsigned mib(unsigned long long bytes)
{
	return (unsigned)((bytes + MIB / 2) / MIB);
}

static const char *process_name(unsigned pid)
{
	static char name[256];

	return nvml.nvmlSystemGetProcessName(pid, name, sizeof(name)) ? "[Not Found]" : name;
}

/* -- the table -- */

#define RULE                                                                                       \
	"+---------------------------------------------------------------------------------------" \
	"--+\n"

static void print_gpu(const struct gpu *gpu)
{
	char power[32], memory[32];

	snprintf(power, sizeof(power), "%uW / %4uW", gpu->power_mw / 1000, gpu->limit_mw / 1000);
	snprintf(memory, sizeof(memory), "%uMiB / %6uMiB", mib(gpu->memory.used),
		mib(gpu->memory.total));
	printf("| %3u  %-24.24s       Off | %18s Off |                  N/A |\n", gpu->index,
		gpu->name, gpu->pci.busId);
	printf("| N/A  %3uC    P%-2d      %17s | %22s | %6u%%      Default |\n", gpu->celsius,
		gpu->pstate, power, memory, gpu->utilisation.gpu);
	printf("|                                         |                        |               "
	       "   N/A |\n"
	       "+-----------------------------------------+------------------------+---------------"
	       "-------+\n");
}

static void print_processes(void)
{
	bool any = false;

	printf("\n" RULE "| Processes:                                                             "
	       "                 |\n"
	       "|  GPU   GI   CI              PID   Type   Process name                        GPU "
	       "Memory |\n"
	       "|        ID   ID                                                               "
	       "Usage      |\n"
	       "|=================================================================================="
	       "=======|\n");
	for (unsigned i = 0; i < gpu_count; i++) {
		for (unsigned k = 0; k < gpus[i].process_count; k++) {
			const nvmlProcessInfo_v2_t *p = &gpus[i].processes[k];

			printf("| %4u   N/A  N/A %16u      C   %-34.34s %7uMiB |\n", gpus[i].index,
				p->pid, process_name(p->pid), mib(p->usedGpuMemory));
			any = true;
		}
	}
	if (!any)
		printf("|  No running processes found                                              "
		       "               |\n");
	printf(RULE);
}

static int print_table(const bool *wanted)
{
	char now[64], versions[256];
	time_t t = time(NULL);
	struct tm tm;

	localtime_r(&t, &tm);
	strftime(now, sizeof(now), "%a %b %e %H:%M:%S %Y", &tm);
	snprintf(versions, sizeof(versions),
		"SOFTGPU-SMI %-22s Driver Version: %-14s CUDA Version: %d.%d", TANDEM_VERSION,
		driver_version, cuda_version / 1000, cuda_version % 1000 / 10);
	printf("%s\n" RULE "| %-87.87s |\n", now, versions);
	printf("|-----------------------------------------+------------------------+---------------"
	       "-------+\n"
	       "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile "
	       "Uncorr. ECC |\n"
	       "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  "
	       "Compute M. |\n"
	       "|                                         |                        |               "
	       "MIG M. |\n"
	       "|=========================================+========================+==============="
	       "=======|\n");
	for (unsigned i = 0; i < gpu_count; i++)
		if (wanted[i])
			print_gpu(&gpus[i]);
	print_processes();
	return 0;
}

static int print_list(const bool *wanted)
{
	for (unsigned i = 0; i < gpu_count; i++)
		if (wanted[i])
			printf("GPU %u: %s (UUID: %s)\n", i, gpus[i].name, gpus[i].uuid);
	return 0;
}

/* -- -q -- */

static void print_details(const struct gpu *gpu)
{
	printf("GPU %s\n", gpu->pci.busId);
	printf("    Product Name                          : %s\n", gpu->name);
	printf("    Compute Capability                    : %d.%d\n", gpu->major, gpu->minor);
	printf("    GPU UUID                              : %s\n", gpu->uuid);
	printf("    Minor Number                          : %u\n", gpu->index);
	printf("    PCI\n        Bus                               : 0x%02X\n", gpu->pci.bus);
	printf("        Device                            : 0x%02X\n", gpu->pci.device);
	printf("        Domain                            : 0x%04X\n", gpu->pci.domain);
	printf("        Bus Id                            : %s\n", gpu->pci.busId);
	printf("    Fan Speed                             : N/A\n");
	printf("    Performance State                     : P%d\n", gpu->pstate);
	printf("    FB Memory Usage\n        Total                             : %u MiB\n",
		mib(gpu->memory.total));
	printf("        Used                              : %u MiB\n", mib(gpu->memory.used));
	printf("        Free                              : %u MiB\n", mib(gpu->memory.free));
	printf("    Compute Mode                          : Default\n");
	printf("    Utilization\n        GPU                               : %u %%\n",
		gpu->utilisation.gpu);
	printf("        Memory                            : %u %%\n", gpu->utilisation.memory);
	printf("    Temperature\n        GPU Current Temp                  : %u C\n", gpu->celsius);
	printf("    GPU Power Readings\n        Instantaneous Power Draw          : %.2f W\n",
		gpu->power_mw / 1000.0);
	printf("        Current Power Limit               : %.2f W\n", gpu->limit_mw / 1000.0);
	printf("    Clocks\n        Graphics                          : %u MHz\n", gpu->sm_mhz);
	printf("        SM                                : %u MHz\n", gpu->sm_mhz);
	printf("    Max Clocks\n        SM                                : %u MHz\n",
		gpu->max_sm_mhz);
	printf("    Processes%s\n",
		gpu->process_count ? "" : "                             : None");
	for (unsigned k = 0; k < gpu->process_count; k++)
		printf("        Process ID                        : %u\n"
		       "            Type                          : C\n"
		       "            Name                          : %s\n"
		       "            Used GPU Memory               : %u MiB\n",
			gpu->processes[k].pid, process_name(gpu->processes[k].pid),
			mib(gpu->processes[k].usedGpuMemory));
	printf("\n");
}

static int print_query(const bool *wanted)
{
	printf("\n==============SOFTGPU-SMI LOG==============\n\n"
	       "Driver Version                            : %s\n"
	       "CUDA Version                              : %d.%d\n\n"
	       "Attached GPUs                             : %u\n",
		driver_version, cuda_version / 1000, cuda_version % 1000 / 10, gpu_count);
	for (unsigned i = 0; i < gpu_count; i++)
		if (wanted[i])
			print_details(&gpus[i]);
	return 0;
}

/* -- CSV: FIELD(name, alias or NULL, unit, expression to print with format) -- */

struct field {
	const char *name, *alias, *unit;
	void (*print)(const struct gpu *gpu, const nvmlProcessInfo_v2_t *process);
};

#define GPU_FIELDS(FIELD)                                                                          \
	FIELD(timestamp, NULL, "", "%s", now_text())                                               \
	FIELD(name, "gpu_name", "", "%s", gpu->name)                                               \
	FIELD(index, NULL, "", "%u", gpu->index)                                                   \
	FIELD(uuid, "gpu_uuid", "", "%s", gpu->uuid)                                               \
	FIELD(count, NULL, "", "%u", gpu_count)                                                    \
	FIELD(driver_version, NULL, "", "%s", driver_version)                                      \
	FIELD(pci_bus_id, "gpu_bus_id", "", "%s", gpu->pci.busId)                                  \
	FIELD(compute_cap, NULL, "", "%d.%d", gpu->major, gpu->minor)                              \
	FIELD(pstate, NULL, "", "P%d", gpu->pstate)                                                \
	FIELD(memory_total, NULL, "MiB", "%u", mib(gpu->memory.total))                             \
	FIELD(memory_used, NULL, "MiB", "%u", mib(gpu->memory.used))                               \
	FIELD(memory_free, NULL, "MiB", "%u", mib(gpu->memory.free))                               \
	FIELD(utilization_gpu, NULL, "%", "%u", gpu->utilisation.gpu)                              \
	FIELD(utilization_memory, NULL, "%", "%u", gpu->utilisation.memory)                        \
	FIELD(temperature_gpu, NULL, "", "%u", gpu->celsius)                                       \
	FIELD(power_draw, "power.draw.instant", "W", "%.2f", gpu->power_mw / 1000.0)               \
	FIELD(power_limit, "enforced.power.limit", "W", "%.2f", gpu->limit_mw / 1000.0)            \
	FIELD(clocks_sm, "clocks.current.sm", "MHz", "%u", gpu->sm_mhz)                            \
	FIELD(clocks_gr, "clocks.current.graphics", "MHz", "%u", gpu->sm_mhz)                      \
	FIELD(clocks_max_sm, NULL, "MHz", "%u", gpu->max_sm_mhz)                                   \
	FIELD(compute_mode, NULL, "", "%s", "Default")                                             \
	FIELD(fan_speed, NULL, "%", "%s", "[N/A]")                                                 \
	FIELD(ecc_errors_uncorrected_volatile_total, NULL, "", "%s", "[N/A]")                      \
	FIELD(mig_mode_current, NULL, "", "%s", "[N/A]")

#define APP_FIELDS(FIELD)                                                                          \
	FIELD(gpu_uuid, NULL, "", "%s", gpu->uuid)                                                 \
	FIELD(gpu_name, NULL, "", "%s", gpu->name)                                                 \
	FIELD(gpu_bus_id, NULL, "", "%s", gpu->pci.busId)                                          \
	FIELD(pid, NULL, "", "%u", process->pid)                                                   \
	FIELD(process_name, "name", "", "%s", process_name(process->pid))                          \
	FIELD(used_gpu_memory, "used_memory", "MiB", "%u", mib(process->usedGpuMemory))

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

/* Their names have dots where C has underscores; either finds the field. */
#define PRINT(kind, field, text)                                                                   \
	static void kind##_##field(const struct gpu *gpu, const nvmlProcessInfo_v2_t *process)     \
	{                                                                                          \
		(void)gpu;                                                                         \
		(void)process;                                                                     \
		text;                                                                              \
	}
#define GPU_PRINT(field, alias, unit, ...) PRINT(of_gpu, field, printf(__VA_ARGS__))
#define APP_PRINT(field, alias, unit, ...) PRINT(of_app, field, printf(__VA_ARGS__))
GPU_FIELDS(GPU_PRINT)
APP_FIELDS(APP_PRINT)

#define GPU_ROW(field, alias, unit, ...) {#field, alias, unit, of_gpu_##field},
#define APP_ROW(field, alias, unit, ...) {#field, alias, unit, of_app_##field},
static const struct field gpu_fields[] = {GPU_FIELDS(GPU_ROW){NULL, NULL, NULL, NULL}};
static const struct field app_fields[] = {APP_FIELDS(APP_ROW){NULL, NULL, NULL, NULL}};

static bool is_same(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (*a != *b && !(strchr("._", *a) && strchr("._", *b)))
			return false;
	return *a == *b;
}

struct column {
	const struct field *field;
	char name[64]; /* as it was asked for */
};

struct csv {
	struct column columns[32];
	unsigned count;
	bool no_header, no_units;
};

static int parse_columns(const char *list, const struct field *fields, struct csv *csv)
{
	char text[1024];

	if (snprintf(text, sizeof(text), "%s", list) >= (int)sizeof(text))
		return sg_cli_fail("%s", "too many fields");
	for (char *save, *name = strtok_r(text, ",", &save); name;
		name = strtok_r(NULL, ",", &save)) {
		const struct field *f = fields;

		while (f->name && !is_same(f->name, name) && !(f->alias && is_same(f->alias, name)))
			f++;
		if (!f->name || csv->count == 32)
			return sg_cli_fail("Field \"%s\" is not a valid field to query.", name);
		csv->columns[csv->count].field = f;
		snprintf(csv->columns[csv->count].name, sizeof(csv->columns[0].name), "%s", name);
		csv->count++;
	}
	return csv->count ? 0 : sg_cli_fail("%s", "which fields?");
}

static int parse_format(const char *format, struct csv *csv)
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

static void print_row(
	const struct csv *csv, const struct gpu *gpu, const nvmlProcessInfo_v2_t *process)
{
	for (unsigned i = 0; i < csv->count; i++) {
		const struct field *f = csv->columns[i].field;

		printf("%s", i ? ", " : "");
		f->print(gpu, process);
		if (!csv->no_units && *f->unit)
			printf(" %s", f->unit);
	}
	printf("\n");
}

static int print_csv(const struct csv *csv, const bool *wanted, bool apps)
{
	for (unsigned i = 0; !csv->no_header && i < csv->count; i++) {
		const char *unit = csv->columns[i].field->unit;

		printf("%s%s%s%s%s", i ? ", " : "", csv->columns[i].name,
			!csv->no_units && *unit ? " [" : "", csv->no_units ? "" : unit,
			!csv->no_units && *unit ? "]" : "");
	}
	printf("%s", csv->no_header ? "" : "\n");
	for (unsigned i = 0; i < gpu_count; i++) {
		if (!wanted[i])
			continue;
		if (!apps)
			print_row(csv, &gpus[i], NULL);
		for (unsigned k = 0; apps && k < gpus[i].process_count; k++)
			print_row(csv, &gpus[i], &gpus[i].processes[k]);
	}
	return 0;
}

/* -- options -- */

struct request {
	struct csv csv;
	bool list, query, gpu_query, app_query;
	const char *format, *id;
	uint64_t loop_s;
};

/* The value of --name=VALUE or --name VALUE; NULL: not this option. */
static const char *value_of(const char *name, int argc, char **argv, int *i)
{
	size_t n = strlen(name);

	if (strncmp(argv[*i], name, n))
		return NULL;
	if (argv[*i][n] == '=')
		return argv[*i] + n + 1;
	return !argv[*i][n] && *i + 1 < argc ? argv[++*i] : NULL;
}

static int parse(int argc, char **argv, struct request *request)
{
	struct td_err err = {0};

	for (int i = 1; i < argc; i++) {
		const char *value;
		int r = 0;

		if (!strcmp(argv[i], "-L") || !strcmp(argv[i], "--list-gpus")) {
			request->list = true;
		} else if (!strcmp(argv[i], "-q") || !strcmp(argv[i], "--query")) {
			request->query = true;
		} else if ((value = value_of("--query-gpu", argc, argv, &i))) {
			request->gpu_query = true;
			r = parse_columns(value, gpu_fields, &request->csv);
		} else if ((value = value_of("--query-compute-apps", argc, argv, &i))) {
			request->app_query = true;
			r = parse_columns(value, app_fields, &request->csv);
		} else if ((value = value_of("--format", argc, argv, &i))) {
			request->format = value;
			r = parse_format(value, &request->csv);
		} else if ((value = value_of("--id", argc, argv, &i)) ||
			   (value = value_of("-i", argc, argv, &i))) {
			request->id = value;
		} else if ((value = value_of("--loop", argc, argv, &i)) ||
			   (value = value_of("-l", argc, argv, &i))) {
			if (td_parse_u64(value, 1, 86400, &request->loop_s, &err))
				r = sg_cli_fail("%s", err.msg);
		} else {
			return sg_cli_fail(
				"\"%s\" is not an option of smi: see softgpu --help", argv[i]);
		}
		if (r)
			return r;
	}
	if ((request->gpu_query || request->app_query) && !request->format)
		return sg_cli_fail(
			"%s", "\"--format=\" switch is missing. Please run with --format=csv");
	return 0;
}

/* By index, UUID or bus id; several with commas. */
static int choose(const char *ids, bool *wanted)
{
	char text[512];
	bool any = false;

	for (unsigned i = 0; i < gpu_count; i++)
		wanted[i] = !ids;
	if (!ids)
		return 0;
	snprintf(text, sizeof(text), "%s", ids);
	for (char *save, *id = strtok_r(text, ",", &save); id; id = strtok_r(NULL, ",", &save)) {
		bool found = false;

		for (unsigned i = 0; i < gpu_count; i++) {
			char index[16];

			snprintf(index, sizeof(index), "%u", i);
			if (strcmp(index, id) && strcasecmp(gpus[i].uuid, id) &&
				strcasecmp(gpus[i].pci.busId, id) &&
				strcasecmp(gpus[i].pci.busIdLegacy, id))
				continue;
			wanted[i] = found = any = true;
		}
		if (!found)
			return sg_cli_fail("No devices were found: \"%s\"", id);
	}
	return any ? 0 : sg_cli_fail("%s", "No devices were found");
}

static int print_once(const struct request *request)
{
	bool wanted[GPUS_MAX] = {false};
	int r;

	read_all();
	r = choose(request->id, wanted);
	if (r)
		return r;
	if (request->list)
		return print_list(wanted);
	if (request->gpu_query || request->app_query)
		return print_csv(&request->csv, wanted, request->app_query);
	return request->query ? print_query(wanted) : print_table(wanted);
}

int sg_verb_smi(int argc, char **argv)
{
	static struct request request;
	char library[4096];
	int r = parse(argc, argv, &request);

	if (!r)
		r = sg_cli_library(library, sizeof(library), "libnvidia-ml.so.1", "nvml");
	if (!r)
		r = load(library);
	do {
		if (!r)
			r = print_once(&request);
		fflush(stdout);
		if (request.loop_s)
			sleep((unsigned)request.loop_s);
		request.csv.no_header = true;
	} while (!r && request.loop_s);
	return r;
}
