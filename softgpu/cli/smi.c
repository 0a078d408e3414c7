/*
 * softgpu smi: prints what nvidia-smi prints, for the software GPUs, through their NVML: the table,
 * -L and -q. smi_fields.c has --query-gpu and --query-compute-apps as CSV. A figure that the model
 * lacks is N/A, and a figure that a lost GPU lacks is ERR!, as in nvidia-smi.
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
#include "base/program.h"
#include "softgpu/cli/cli.h"
#include "softgpu/cli/smi.h"

#define MIB (1ull << 20)

static struct {
#define NVML(name, parameters) name##_fn name;
#include "gpu/nvml_functions.def"
#undef NVML
} nvml;

static struct smi smi;

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
	gpu->lost =
		nvml.nvmlDeviceGetMemoryInfo(gpu->device, &gpu->memory) == NVML_ERROR_GPU_IS_LOST;
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
	(void)nvml.nvmlSystemGetDriverVersion(smi.driver_version, sizeof(smi.driver_version));
	(void)nvml.nvmlSystemGetCudaDriverVersion_v2(&smi.cuda_version);
	smi.gpu_count = 0;
	(void)nvml.nvmlDeviceGetCount_v2(&smi.gpu_count);
	if (smi.gpu_count > GPUS_MAX)
		smi.gpu_count = GPUS_MAX;
	for (unsigned i = 0; i < smi.gpu_count; i++)
		read_gpu(&smi.gpus[i], i);
}

unsigned sg_smi_mib(unsigned long long bytes)
{
	return (unsigned)((bytes + MIB / 2) / MIB);
}

const char *sg_smi_process_name(unsigned pid)
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
	snprintf(memory, sizeof(memory), "%uMiB / %6uMiB", sg_smi_mib(gpu->memory.used),
		sg_smi_mib(gpu->memory.total));
	printf("| %3u  %-24.24s       Off | %18s Off |                  N/A |\n", gpu->index,
		gpu->name, gpu->pci.busId);
	if (gpu->lost)
		printf("| ERR! ERR!    ERR!     %17s | %22s | %7s      %7s |\n", "ERR! / ERR!",
			"ERR! / ERR!", "ERR!", "ERR!");
	else
		printf("| N/A  %3uC    P%-2d      %17s | %22s | %6u%%      Default |\n",
			gpu->celsius, gpu->pstate, power, memory, gpu->utilisation.gpu);
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
	for (unsigned i = 0; i < smi.gpu_count; i++) {
		for (unsigned k = 0; k < smi.gpus[i].process_count; k++) {
			const nvmlProcessInfo_v2_t *p = &smi.gpus[i].processes[k];

			printf("| %4u   N/A  N/A %16u      C   %-34.34s %7uMiB |\n",
				smi.gpus[i].index, p->pid, sg_smi_process_name(p->pid),
				sg_smi_mib(p->usedGpuMemory));
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
		smi.driver_version, smi.cuda_version / 1000, smi.cuda_version % 1000 / 10);
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
	for (unsigned i = 0; i < smi.gpu_count; i++)
		if (wanted[i])
			print_gpu(&smi.gpus[i]);
	print_processes();
	return 0;
}

static int print_list(const bool *wanted)
{
	for (unsigned i = 0; i < smi.gpu_count; i++)
		if (wanted[i])
			printf("GPU %u: %s (UUID: %s)\n", i, smi.gpus[i].name, smi.gpus[i].uuid);
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
	if (gpu->lost) {
		printf("    GPU is lost\n\n");
		return;
	}
	printf("    Fan Speed                             : N/A\n");
	printf("    Performance State                     : P%d\n", gpu->pstate);
	printf("    FB Memory Usage\n        Total                             : %u MiB\n",
		sg_smi_mib(gpu->memory.total));
	printf("        Used                              : %u MiB\n",
		sg_smi_mib(gpu->memory.used));
	printf("        Free                              : %u MiB\n",
		sg_smi_mib(gpu->memory.free));
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
			gpu->processes[k].pid, sg_smi_process_name(gpu->processes[k].pid),
			sg_smi_mib(gpu->processes[k].usedGpuMemory));
	printf("\n");
}

static int print_query(const bool *wanted)
{
	printf("\n==============SOFTGPU-SMI LOG==============\n\n"
	       "Driver Version                            : %s\n"
	       "CUDA Version                              : %d.%d\n\n"
	       "Attached GPUs                             : %u\n",
		smi.driver_version, smi.cuda_version / 1000, smi.cuda_version % 1000 / 10,
		smi.gpu_count);
	for (unsigned i = 0; i < smi.gpu_count; i++)
		if (wanted[i])
			print_details(&smi.gpus[i]);
	return 0;
}

/* -- options -- */

struct request {
	struct csv csv;
	bool help, list, query, gpu_query, app_query;
	const char *format, *id;
	uint64_t loop_s;
};

/* Returns the value of --name=VALUE or --name VALUE; NULL if argv[*i] is another option. */
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
		} else if (!strcmp(argv[i], "--help-query-gpu") ||
			   !strcmp(argv[i], "--help-query-compute-apps")) {
			request->help = true;
			request->csv.apps = !strcmp(argv[i], "--help-query-compute-apps");
		} else if ((value = value_of("--query-gpu", argc, argv, &i))) {
			request->gpu_query = true;
			r = sg_smi_parse_columns(value, false, &request->csv);
		} else if ((value = value_of("--query-compute-apps", argc, argv, &i))) {
			request->app_query = true;
			r = sg_smi_parse_columns(value, true, &request->csv);
		} else if ((value = value_of("--format", argc, argv, &i))) {
			request->format = value;
			r = sg_smi_parse_format(value, &request->csv);
		} else if ((value = value_of("--id", argc, argv, &i)) ||
			   (value = value_of("-i", argc, argv, &i))) {
			request->id = value;
		} else if ((value = value_of("--loop", argc, argv, &i)) ||
			   (value = value_of("-l", argc, argv, &i))) {
			if (td_parse_u64(value, 1, 86400, &request->loop_s, &err))
				r = sg_cli_fail("--loop: %s", err.msg);
		} else {
			return sg_cli_fail(
				"\"%s\" is not an option of smi: see softgpu smi --help", argv[i]);
		}
		if (r)
			return r;
	}
	if (request->list + request->query + request->gpu_query + request->app_query > 1)
		return sg_cli_fail("%s", "expected one of -L, -q, --query-gpu and "
					 "--query-compute-apps");
	if (request->format && !request->gpu_query && !request->app_query)
		return sg_cli_fail("--format: \"%s\" has no effect: expected --query-gpu or "
				   "--query-compute-apps with it",
			request->format);
	if ((request->gpu_query || request->app_query) && !request->format)
		return sg_cli_fail(
			"%s", "\"--format=\" switch is missing. Please run with --format=csv");
	return 0;
}

/* Chooses GPUs by index, UUID or bus id; several are separated by commas. */
static int choose(const char *ids, bool *wanted)
{
	char text[512];
	bool any = false;

	for (unsigned i = 0; i < smi.gpu_count; i++)
		wanted[i] = !ids;
	if (!ids)
		return 0;
	snprintf(text, sizeof(text), "%s", ids);
	for (char *save, *id = strtok_r(text, ",", &save); id; id = strtok_r(NULL, ",", &save)) {
		bool found = false;

		for (unsigned i = 0; i < smi.gpu_count; i++) {
			char index[16];

			snprintf(index, sizeof(index), "%u", i);
			if (strcmp(index, id) && strcasecmp(smi.gpus[i].uuid, id) &&
				strcasecmp(smi.gpus[i].pci.busId, id) &&
				strcasecmp(smi.gpus[i].pci.busIdLegacy, id))
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
	if (request->gpu_query || request->app_query) {
		sg_smi_print_csv(&smi, &request->csv, wanted);
		return 0;
	}
	return request->query ? print_query(wanted) : print_table(wanted);
}

int sg_verb_smi(int argc, char **argv)
{
	static struct request request;
	char library[4096];
	int r = parse(argc, argv, &request);

	if (!r && request.help) {
		sg_smi_list_fields(request.csv.apps);
		return 0;
	}
	if (!r)
		r = sg_cli_library(library, sizeof(library), "libnvidia-ml.so.1", "nvml");
	if (!r)
		r = load(library);
	do {
		if (!r)
			r = print_once(&request);
		td_output_flush();
		if (request.loop_s)
			sleep((unsigned)request.loop_s);
		request.csv.no_header = true;
	} while (!r && request.loop_s && !ferror(stdout));
	return r;
}
