/*
 * Every function of nvml_hooks.def against a made-up libnvidia-ml.so.1 (tests/compat/fakenvml.c): a
 * job sees its own part, and a process without a job sees all of it. Functions are found by name,
 * as programs find them. Each case runs in a child, since the job's view is decided once.
 */
#include "test.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/nvml_abi.h"
#include "preload/agent/agent.h"
#include "preload/agent/place.h"
#include "preload/base/settings.h"
#include "preload/hooks/nvml.h"

#define UUID(n) "GPU-" n n n n "-0000-0000-0000-000000000000"
#define ROOM    600

#define EXPECT(cond)                                                                               \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #cond);               \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define NVML(name, parameters) nvmlReturn_t name parameters;
#include "gpu/nvml_functions.def"
#undef NVML

static struct {
#define NVML_HOOK(name) name##_fn name;
#include "preload/hooks/nvml_hooks.def"
#undef NVML_HOOK
} nvml;

static unsigned *process_count;
static int *result;

static void begin(const char *gpus, const char *mem)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);

	EXPECT(library != NULL);
	process_count = dlsym(library, "fake_process_count");
	result = dlsym(library, "fake_result");
	*(unsigned *)dlsym(library, "fake_own_pid") = (unsigned)getpid();
	setenv("TANDEM_GPUS", gpus, 1);
	setenv("TANDEM_MEM", mem, 1);
	td_settings_read();
	td_place_read();
#define NVML_HOOK(name)                                                                            \
	*(void **)&nvml.name = dlsym(library, #name);                                              \
	EXPECT(nvml.name != NULL && (void *)nvml.name == td_nvml_wrapper(#name));
#include "preload/hooks/nvml_hooks.def"
#undef NVML_HOOK
}

static void in_child(void (*run)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		run();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

#define CASE(id)                                                                                   \
	static void run_##id(void);                                                                \
	TEST(id)                                                                                   \
	{                                                                                          \
		in_child(run_##id);                                                                \
	}                                                                                          \
	static void run_##id(void)

static nvmlDevice_t gpu(unsigned n)
{
	return (nvmlDevice_t)(unsigned long)(n + 1);
}

/* -- the GPUs -- */

static void expect_count(unsigned expected)
{
	unsigned count = 99;

	EXPECT(!nvml.nvmlDeviceGetCount(&count) && count == expected);
	EXPECT(!nvml.nvmlDeviceGetCount_v2(&count) && count == expected);
}

static void expect_at(unsigned index, nvmlDevice_t expected)
{
	nvmlReturn_t r = expected ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
	nvmlDevice_t device = NULL;

	EXPECT(nvml.nvmlDeviceGetHandleByIndex(index, &device) == r && device == expected);
	device = NULL;
	EXPECT(nvml.nvmlDeviceGetHandleByIndex_v2(index, &device) == r && device == expected);
}

/* By each name that the n-th of NVML's GPUs has. */
static void expect_named(unsigned n, bool seen, unsigned index)
{
	static const char *const uuids[] = {UUID("01"), UUID("02"), UUID("03")};
	nvmlReturn_t r = seen ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
	nvmlDevice_t before = (nvmlDevice_t)&r, expected = seen ? gpu(n) : before, device;
	char name[] = "0";
	unsigned found;

	name[0] = (char)('0' + n);
	device = before;
	EXPECT(nvml.nvmlDeviceGetHandleByUUID(uuids[n], &device) == r && device == expected);
	device = before;
	EXPECT(nvml.nvmlDeviceGetHandleBySerial(name, &device) == r && device == expected);
	device = before;
	EXPECT(nvml.nvmlDeviceGetHandleByPciBusId(name, &device) == r && device == expected);
	device = before;
	EXPECT(nvml.nvmlDeviceGetHandleByPciBusId_v2(name, &device) == r && device == expected);
	EXPECT(!nvml.nvmlDeviceGetIndex(gpu(n), &found) && found == index);
}

CASE(a_job_sees_its_gpus_in_its_order_by_every_name_they_have)
{
	begin(UUID("03") "," UUID("01"), "");
	expect_count(2);
	expect_at(0, gpu(2));
	expect_at(1, gpu(0));
	expect_at(2, NULL);
	expect_at(99, NULL);
	expect_named(2, true, 0);
	expect_named(0, true, 1);
	expect_named(1, false, 1); /* a handle that it cannot have got: NVML's own index */
}

CASE(a_gpu_that_nvml_does_not_know_is_not_counted)
{
	begin(UUID("07") "," UUID("02"), "");
	expect_count(1);
	expect_at(0, gpu(1));
	expect_at(1, NULL);
}

CASE(who_was_told_nothing_sees_everything)
{
	begin("", "");
	expect_count(3);
	for (unsigned i = 0; i < 3; i++) {
		expect_at(i, gpu(i));
		expect_named(i, true, i);
	}
	expect_at(3, NULL);
}

static void expect_listed(nvmlReturn_t (*list)(unsigned *count, nvmlDevice_t *devices), unsigned n,
	nvmlDevice_t first, bool must_fit)
{
	nvmlDevice_t devices[TD_GPU_MAX] = {NULL};
	unsigned count = 0;
	nvmlReturn_t r = list(&count, NULL);

	EXPECT(r == (must_fit ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS) && count == n);
	count = TD_GPU_MAX;
	EXPECT(!list(&count, devices) && count == n && devices[0] == first && !devices[n]);
	devices[1] = NULL;
	count = 1;
	r = list(&count, devices);
	EXPECT(r == (must_fit && n > 1 ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS));
	EXPECT(!devices[1]);
}

static nvmlReturn_t nearest(unsigned *count, nvmlDevice_t *devices)
{
	return nvml.nvmlDeviceGetTopologyNearestGpus(gpu(2), 50, count, devices);
}

static nvmlReturn_t near_cpu(unsigned *count, nvmlDevice_t *devices)
{
	return nvml.nvmlSystemGetTopologyGpuSet(3, count, devices);
}

static nvmlReturn_t of_unit(unsigned *count, nvmlDevice_t *devices)
{
	return nvml.nvmlUnitGetDevices(NULL, count, devices);
}

CASE(gpus_near_others_are_those_that_the_job_sees)
{
	unsigned count = 4;

	begin(UUID("03") "," UUID("02"), "");
	expect_listed(nearest, 2, gpu(1), false);
	expect_listed(near_cpu, 2, gpu(1), false);
	expect_listed(of_unit, 2, gpu(1), true);
	EXPECT(nvml.nvmlDeviceGetTopologyNearestGpus(gpu(2), 99, &count, NULL) ==
		NVML_ERROR_INVALID_ARGUMENT);
}

CASE(and_without_a_job_all)
{
	begin("", "");
	expect_listed(nearest, 3, gpu(0), false);
	expect_listed(near_cpu, 3, gpu(0), false);
	expect_listed(of_unit, 3, gpu(0), true);
}

CASE(two_gpus_are_compared_only_if_both_are_seen)
{
	int value = 0;

	begin(UUID("03") "," UUID("02"), "");
	EXPECT(!nvml.nvmlDeviceGetTopologyCommonAncestor(gpu(2), gpu(1), &value) && value == 32);
	EXPECT(!nvml.nvmlDeviceGetP2PStatus(gpu(1), gpu(2), 0, &value) && value == 23);
	EXPECT(!nvml.nvmlDeviceOnSameBoard(gpu(1), gpu(1), &value) && value == 22);
	value = 7;
	EXPECT(nvml.nvmlDeviceGetTopologyCommonAncestor(gpu(0), gpu(1), &value) ==
		NVML_ERROR_INVALID_ARGUMENT);
	EXPECT(nvml.nvmlDeviceGetP2PStatus(gpu(1), gpu(0), 0, &value) ==
		NVML_ERROR_INVALID_ARGUMENT);
	EXPECT(nvml.nvmlDeviceOnSameBoard(gpu(0), gpu(0), &value) == NVML_ERROR_INVALID_ARGUMENT);
	EXPECT(value == 7);
}

CASE(no_other_way_leads_to_a_gpu_that_is_not_seen)
{
	nvmlDevice_t device = NULL;

	begin(UUID("03"), "");
	EXPECT(nvml.nvmlDeviceGetHandleByUUIDV("\x00", &device) == NVML_ERROR_NOT_FOUND);
	EXPECT(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(gpu(2), &device) ==
		NVML_ERROR_NOT_FOUND);
	EXPECT(!device);
	EXPECT(!nvml.nvmlDeviceGetHandleByUUIDV("\x02", &device) && device == gpu(2));
}

CASE(nvmls_errors_are_passed_on)
{
	nvmlDevice_t device;
	unsigned count;

	begin(UUID("03"), "");
	*result = NVML_ERROR_UNINITIALIZED;
	EXPECT(nvml.nvmlDeviceGetCount_v2(&count) == NVML_ERROR_UNINITIALIZED);
	EXPECT(nvml.nvmlDeviceGetHandleByIndex_v2(0, &device) == NVML_ERROR_UNINITIALIZED);
	EXPECT(nvml.nvmlDeviceGetHandleByUUID(UUID("03"), &device) == NVML_ERROR_UNINITIALIZED);
	EXPECT(nvml.nvmlDeviceGetIndex(gpu(2), &count) == NVML_ERROR_UNINITIALIZED);
	count = 0;
	EXPECT(nvml.nvmlDeviceGetComputeRunningProcesses_v3(gpu(2), &count, NULL) ==
		NVML_ERROR_UNINITIALIZED);
}

/* -- memory -- */

static void expect_memory(unsigned total, unsigned used, unsigned first_used, unsigned reserved)
{
	nvmlMemory_v2_t second = {.version = NVML_MEMORY_V2};
	nvmlMemory_t first;

	EXPECT(!nvml.nvmlDeviceGetMemoryInfo(gpu(0), &first));
	EXPECT(first.total == total && first.used == first_used);
	EXPECT(!nvml.nvmlDeviceGetMemoryInfo_v2(gpu(0), &second));
	EXPECT(second.total == total && second.used == used && second.reserved == reserved &&
		second.version == NVML_MEMORY_V2);
	second.version = 1;
	EXPECT(nvml.nvmlDeviceGetMemoryInfo_v2(gpu(0), &second) ==
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

CASE(a_limit_is_the_memory_that_there_is)
{
	begin("", "300");
	expect_memory(300, 0, 0, 0);
}

CASE(a_limit_may_be_a_share)
{
	begin("", "25%");
	expect_memory(250, 0, 0, 0);
}

CASE(a_limit_beyond_the_gpu_and_none_change_nothing)
{
	begin("", "2000");
	expect_memory(1000, 550, 600, 50);
	setenv("TANDEM_MEM", "", 1);
	td_settings_read();
	expect_memory(1000, 550, 600, 50);
}

/* -- processes -- */

#define EACH_LIST(X)                                                                               \
	X(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)                              \
	X(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)                           \
	X(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_v2_t)                           \
	X(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)                             \
	X(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)                          \
	X(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_v2_t)                          \
	X(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)                           \
	X(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)                        \
	X(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_v2_t)

/* Expects only the own one of n processes, which is there twice, in all forms of the question. */
static void expect_own_alone(unsigned n)
{
	unsigned count;

	*process_count = n;
#define X(name, row)                                                                               \
	{                                                                                          \
		row rows[ROOM] = {{0}};                                                            \
		count = 0;                                                                         \
		EXPECT(nvml.name(gpu(0), &count, NULL) == NVML_ERROR_INSUFFICIENT_SIZE);           \
		EXPECT(count == 2);                                                                \
		count = 4;                                                                         \
		EXPECT(nvml.name(gpu(0), &count, NULL) == NVML_ERROR_INVALID_ARGUMENT);            \
		count = 1;                                                                         \
		EXPECT(nvml.name(gpu(0), &count, rows) == NVML_ERROR_INSUFFICIENT_SIZE);           \
		EXPECT(count == 2);                                                                \
		count = ROOM;                                                                      \
		EXPECT(!nvml.name(gpu(0), &count, rows) && count == 2);                            \
		EXPECT(rows[0].pid == (unsigned)getpid() &&                                        \
			rows[0].usedGpuMemory == 10 * (n / 2));                                    \
		EXPECT(rows[1].pid == rows[0].pid && rows[1].usedGpuMemory == 10 * (n - 1));       \
	}
	EACH_LIST(X)
#undef X
}

CASE(a_job_with_a_limit_sees_its_own_processes)
{
	begin("", "300");
	expect_own_alone(5);
	expect_own_alone(500); /* more than one question's worth */
}

CASE(a_placed_job_sees_its_own_processes)
{
	begin(UUID("01"), "");
	expect_own_alone(5);
}

/* In the forms whose rows are elsewhere, or begin with something else. */
CASE(and_no_others_in_any_other_form)
{
	nvmlProcessUtilizationInfo_v1_t samples[ROOM] = {{0}};
	nvmlProcessesUtilizationInfo_t utilisations = {0, ROOM, 70, samples};
	nvmlProcessDetail_v1_t rows[ROOM] = {{0}};
	nvmlProcessDetailList_t details = {0, 7, ROOM, rows};
	nvmlEncoderSessionInfo_t encoders[ROOM] = {{0}};
	nvmlFBCSessionInfo_t captures[ROOM] = {{0}};
	unsigned pids[ROOM], count = ROOM, own = (unsigned)getpid(), stats = 0;
	nvmlMemory_t memory;

	begin("", "300");
	EXPECT(!nvml.nvmlDeviceGetProcessesUtilizationInfo(gpu(0), &utilisations));
	EXPECT(utilisations.processSamplesCount == 1 && samples[0].pid == own &&
		samples[0].timeStamp == 72 && utilisations.procUtilArray == samples);
	EXPECT(!nvml.nvmlDeviceGetRunningProcessDetailList(gpu(0), &details));
	EXPECT(details.numProcArrayEntries == 2 && rows[0].pid == own && rows[1].pid == own);
	EXPECT(!nvml.nvmlDeviceGetAccountingPids(gpu(0), &count, pids));
	EXPECT(count == 2 && pids[0] == own && pids[1] == own);
	count = ROOM;
	EXPECT(!nvml.nvmlDeviceGetEncoderSessions(gpu(0), &count, encoders));
	EXPECT(count == 1 && encoders[0].pid == own && encoders[0].sessionId == 2);
	count = ROOM;
	EXPECT(!nvml.nvmlDeviceGetFBCSessions(gpu(0), &count, captures));
	EXPECT(count == 1 && captures[0].pid == own && captures[0].sessionId == 2);
	EXPECT(nvml.nvmlDeviceGetAccountingStats(gpu(0), 1u << 22, &stats) == NVML_ERROR_NOT_FOUND);
	EXPECT(!stats && !nvml.nvmlDeviceGetAccountingStats(gpu(0), own, &stats) && stats == own);
	EXPECT(!nvml.nvmlDeviceGetConfComputeProtectedMemoryUsage(gpu(0), &memory));
	EXPECT(memory.total == 300);
}

CASE(others_see_all)
{
	unsigned count;

	begin("", "");
#define X(name, row)                                                                               \
	{                                                                                          \
		row rows[ROOM];                                                                    \
		count = ROOM;                                                                      \
		EXPECT(!nvml.name(gpu(0), &count, rows) && count == 5 && rows[0].pid == 1u << 22); \
		count = 4;                                                                         \
		EXPECT(nvml.name(gpu(0), &count, rows) == NVML_ERROR_INSUFFICIENT_SIZE);           \
	}
	EACH_LIST(X)
#undef X
}

static nvmlReturn_t utilization(nvmlProcessUtilizationSample_t *rows, unsigned *count)
{
	return nvml.nvmlDeviceGetProcessUtilization(gpu(0), rows, count, 70);
}

CASE(utilisation_is_told_of_the_jobs_own_processes)
{
	nvmlProcessUtilizationSample_t rows[ROOM];
	unsigned count = 0;

	begin("", "300");
	*process_count = 500;
	EXPECT(utilization(NULL, &count) == NVML_ERROR_INSUFFICIENT_SIZE && count == 1);
	count = ROOM;
	EXPECT(!utilization(rows, &count) && count == 1);
	*process_count = 0;
	count = ROOM;
	EXPECT(utilization(rows, &count) == NVML_ERROR_NOT_FOUND);
	*process_count = 5;
	EXPECT(rows[0].pid == (unsigned)getpid() && rows[0].timeStamp == 320 &&
		rows[0].smUtil == 250);
	*result = NVML_ERROR_NOT_FOUND; /* no samples since then */
	EXPECT(utilization(rows, &count) == NVML_ERROR_NOT_FOUND);
}

CASE(and_to_others_of_all)
{
	nvmlProcessUtilizationSample_t rows[ROOM];
	unsigned count = ROOM;

	begin("", "");
	EXPECT(!utilization(rows, &count) && count == 5);
}

CASE(programs_that_are_linked_with_nvml_get_here_without_a_look_up)
{
	unsigned count = 0;

	EXPECT(nvmlDeviceGetComputeRunningProcesses_v3(gpu(0), &count, NULL) ==
		NVML_ERROR_INSUFFICIENT_SIZE);
	EXPECT(count == 5);
}

CASE(without_nvml_there_is_none)
{
	/* Found once for all: not here, as the first to look is another program. */
	char name[] = "test_nvml_view", option[] = "--without";
	char *const arguments[] = {name, option, NULL};
	char *const environment[] = {NULL};

	execve("/proc/self/exe", arguments, environment);
	_exit(1);
}

__attribute__((constructor)) static void without(void)
{
	char line[64] = "";
	FILE *file = fopen("/proc/self/cmdline", "re");
	size_t n = file ? fread(line, 1, sizeof(line) - 1, file) : 0;
	unsigned count = 0;

	if (file)
		fclose(file);
	if (n < strlen("test_nvml_view") + 2 || strcmp(line + strlen(line) + 1, "--without"))
		return;
	EXPECT(!td_nvml_wrapper("nvmlDeviceGetCount_v2"));
	EXPECT(nvmlDeviceGetCount_v2(&count) == NVML_ERROR_FUNCTION_NOT_FOUND);
	EXPECT(nvmlDeviceGetComputeRunningProcesses_v3(gpu(0), &count, NULL) ==
		NVML_ERROR_FUNCTION_NOT_FOUND);
	_exit(0);
}
