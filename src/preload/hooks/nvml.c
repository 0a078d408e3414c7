/*
 * NVML as a job sees it: the GPUs that the job was given, in its order (place.h). With a memory
 * limit, NVML reports that limit and the job's own use. In either case it lists only the job's own
 * processes. NVML does not follow CUDA_VISIBLE_DEVICES, and neither does this.
 *
 * Handles are NVML's own. Functions that are not in nvml_hooks.def go straight to NVML, and in a
 * process without such settings everything does. Errors are NVML's: a GPU that the job does not see
 * is not found, an index beyond its last is an invalid argument.
 */
#include "preload/hooks/nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"
#include "gpu/nvml.h"
#include "gpu/nvml_abi.h"
#include "preload/agent/place.h"
#include "preload/base/page.h"
#include "preload/driver/real.h"
#include "preload/hooks/job_view.h"

#define EXPORT __attribute__((visibility("default")))

/* A GPU seldom has more processes. If it has, NVML is asked again with a larger buffer. */
#define PROCESSES 256

#define NVML(name, parameters) EXPORT nvmlReturn_t name parameters;
#include "gpu/nvml_functions.def"
#undef NVML

/* NVML's own functions; NULL: the installed NVML lacks it. */
static struct {
#define NVML_HOOK(name) name##_fn name;
#include "preload/hooks/nvml_hooks.def"
#undef NVML_HOOK
	nvmlDeviceGetUUID_fn nvmlDeviceGetUUID;
} real;

/* Finds NVML's functions. If two threads do so at once, both find the same. */
static bool load_nvml(void)
{
	static _Atomic int state; /* 0 not tried, 1 loaded, -1 none */
	void *library;

	if (state)
		return state > 0;
	td_libc_find();
	library =
		td_libc_dlopen ? td_libc_dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library) {
		state = -1;
		return false;
	}
#define NVML_HOOK(name) real.name = (name##_fn)td_libc_dlsym(library, #name);
#include "preload/hooks/nvml_hooks.def"
#undef NVML_HOOK
	real.nvmlDeviceGetUUID = (nvmlDeviceGetUUID_fn)td_libc_dlsym(library, "nvmlDeviceGetUUID");
	state = 1;
	return true;
}

void *td_nvml_wrapper(const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} wrappers[] = {
#define NVML_HOOK(name) {#name, (void *)name},
#include "preload/hooks/nvml_hooks.def"
#undef NVML_HOOK
	};

	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
		if (!strcmp(wrappers[i].name, name))
			return load_nvml() ? wrappers[i].function : NULL;
	return NULL;
}

/*
 * Loads NVML first, since a program that is linked with NVML calls these functions without a
 * look-up.
 */
#define READY(name) (load_nvml() && real.name)

/* -- the GPUs -- */

static bool is_confined(void)
{
	return td_place_is_wanted() && !td_gate_disabled() && real.nvmlDeviceGetUUID &&
	       real.nvmlDeviceGetHandleByUUID;
}

static bool uuid_of(nvmlDevice_t device, uint8_t *ret)
{
	char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];

	return real.nvmlDeviceGetUUID && !real.nvmlDeviceGetUUID(device, text, sizeof(text)) &&
	       !td_uuid_parse(text, ret);
}

/*
 * Lists the first `wanted` of the job's GPUs that NVML knows, in the job's order. Returns how many,
 * or a negated NVML error.
 */
static int list_handles(unsigned wanted, nvmlDevice_t *ret)
{
	struct td_placed placed;
	unsigned count = 0;

	td_place_get(&placed);
	for (unsigned i = 0; i < placed.count && count < wanted; i++) {
		nvmlReturn_t r = real.nvmlDeviceGetHandleByUUID(placed.text[i], &ret[count]);

		if (r == NVML_ERROR_UNINITIALIZED)
			return -r;
		count += r == NVML_SUCCESS;
	}
	return (int)count;
}

/* Returns the device's index in the job's order; -1: the job does not see it. */
static int index_of(nvmlDevice_t device)
{
	nvmlDevice_t handles[TD_GPU_MAX];
	uint8_t uuid[16], other[16];
	int count = uuid_of(device, uuid) ? list_handles(TD_GPU_MAX, handles) : 0;

	for (int i = 0; i < count; i++)
		if (uuid_of(handles[i], other) && !memcmp(uuid, other, sizeof(uuid)))
			return i;
	return -1;
}

static nvmlReturn_t get_count(nvmlDeviceGetCount_fn ask, unsigned *ret)
{
	nvmlDevice_t handles[TD_GPU_MAX];
	nvmlReturn_t r = ask(ret);
	int count;

	if (r || !is_confined())
		return r;
	count = list_handles(TD_GPU_MAX, handles);
	if (count < 0)
		return -count;
	*ret = (unsigned)count;
	return NVML_SUCCESS;
}

static nvmlReturn_t by_index(nvmlDeviceGetHandleByIndex_fn ask, unsigned index, nvmlDevice_t *ret)
{
	nvmlDevice_t handles[TD_GPU_MAX];
	int count;

	if (!is_confined())
		return ask(index, ret);
	count = list_handles(index < TD_GPU_MAX ? index + 1 : TD_GPU_MAX, handles);
	if (count < 0)
		return -count;
	if (!ret || (unsigned)count <= index)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = handles[index];
	return NVML_SUCCESS;
}

/* Gets a GPU by UUID, serial number or bus id, if the job sees it. */
static nvmlReturn_t by_name(nvmlDeviceGetHandleByUUID_fn ask, const char *name, nvmlDevice_t *ret)
{
	nvmlDevice_t device;
	nvmlReturn_t r;

	if (!ret || !is_confined())
		return ask(name, ret);
	r = ask(name, &device);
	if (!r && index_of(device) < 0)
		r = NVML_ERROR_NOT_FOUND;
	if (!r)
		*ret = device;
	return r;
}

static nvmlReturn_t by_uuid_struct(
	nvmlDeviceGetHandleByUUIDV_fn ask, const void *uuid, nvmlDevice_t *ret)
{
	nvmlDevice_t device;
	nvmlReturn_t r;

	if (!ret || !is_confined())
		return ask(uuid, ret);
	r = ask(uuid, &device);
	if (!r && index_of(device) < 0)
		r = NVML_ERROR_NOT_FOUND;
	if (!r)
		*ret = device;
	return r;
}

#define COUNT(name)                                                                                \
	nvmlReturn_t name(unsigned *count)                                                         \
	{                                                                                          \
		return READY(name) ? get_count(real.name, count) : NVML_ERROR_FUNCTION_NOT_FOUND;  \
	}
#define BY_INDEX(name)                                                                             \
	nvmlReturn_t name(unsigned index, nvmlDevice_t *ret)                                       \
	{                                                                                          \
		return READY(name) ? by_index(real.name, index, ret)                               \
				   : NVML_ERROR_FUNCTION_NOT_FOUND;                                \
	}
#define BY_NAME(name)                                                                              \
	nvmlReturn_t name(const char *id, nvmlDevice_t *ret)                                       \
	{                                                                                          \
		return READY(name) ? by_name(real.name, id, ret) : NVML_ERROR_FUNCTION_NOT_FOUND;  \
	}

COUNT(nvmlDeviceGetCount)
COUNT(nvmlDeviceGetCount_v2)
BY_INDEX(nvmlDeviceGetHandleByIndex)
BY_INDEX(nvmlDeviceGetHandleByIndex_v2)
BY_NAME(nvmlDeviceGetHandleByUUID)
BY_NAME(nvmlDeviceGetHandleBySerial)
BY_NAME(nvmlDeviceGetHandleByPciBusId)
BY_NAME(nvmlDeviceGetHandleByPciBusId_v2)

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *ret)
{
	nvmlReturn_t r;
	int index;

	if (!READY(nvmlDeviceGetIndex))
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	r = real.nvmlDeviceGetIndex(device, ret);
	index = r || !is_confined() ? -1 : index_of(device);
	if (index >= 0)
		*ret = (unsigned)index;
	return r;
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const void *uuid, nvmlDevice_t *ret)
{
	return READY(nvmlDeviceGetHandleByUUIDV)
		       ? by_uuid_struct(real.nvmlDeviceGetHandleByUUIDV, uuid, ret)
		       : NVML_ERROR_FUNCTION_NOT_FOUND;
}

/* A job that was given only a MIG instance does not get the handle of the whole GPU. */
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t part, nvmlDevice_t *ret)
{
	nvmlDevice_t device;
	nvmlReturn_t r;

	if (!READY(nvmlDeviceGetDeviceHandleFromMigDeviceHandle))
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	if (!ret || !is_confined())
		return real.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part, ret);
	r = real.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part, &device);
	if (!r && index_of(device) < 0)
		r = NVML_ERROR_NOT_FOUND;
	if (!r)
		*ret = device;
	return r;
}

/* -- topology -- */

/*
 * A list of GPUs. fits: NVML returns an error if the caller's array is too small; otherwise it
 * fills the array.
 */
struct near {
	nvmlReturn_t (*ask)(const struct near *near, unsigned *count, nvmlDevice_t *devices);
	nvmlDevice_t device;
	nvmlUnit_t unit;
	unsigned cpu;
	int level;
	bool must_fit;
};

static nvmlReturn_t list_near(const struct near *near, unsigned *count, nvmlDevice_t *devices)
{
	nvmlDevice_t all[TD_NVML_GPU_MAX];
	unsigned room, seen = 0, n = TD_NVML_GPU_MAX;
	nvmlReturn_t r;

	if (!count || !is_confined())
		return near->ask(near, count, devices);
	r = near->ask(near, &n, all);
	if (r)
		return r;
	room = devices ? *count : 0;
	for (unsigned i = 0; i < n && i < TD_NVML_GPU_MAX; i++) {
		if (index_of(all[i]) < 0)
			continue;
		if (seen < room)
			devices[seen] = all[i];
		seen++;
	}
	*count = room && !near->must_fit && seen > room ? room : seen;
	return near->must_fit && seen > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlReturn_t ask_nearest(const struct near *near, unsigned *count, nvmlDevice_t *devices)
{
	return real.nvmlDeviceGetTopologyNearestGpus(near->device, near->level, count, devices);
}

static nvmlReturn_t ask_set(const struct near *near, unsigned *count, nvmlDevice_t *devices)
{
	return real.nvmlSystemGetTopologyGpuSet(near->cpu, count, devices);
}

static nvmlReturn_t ask_unit(const struct near *near, unsigned *count, nvmlDevice_t *devices)
{
	return real.nvmlUnitGetDevices(near->unit, count, devices);
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(
	nvmlDevice_t device, int level, unsigned *count, nvmlDevice_t *devices)
{
	const struct near near = {.ask = ask_nearest, .device = device, .level = level};

	return READY(nvmlDeviceGetTopologyNearestGpus) ? list_near(&near, count, devices)
						       : NVML_ERROR_FUNCTION_NOT_FOUND;
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned cpu, unsigned *count, nvmlDevice_t *devices)
{
	const struct near near = {.ask = ask_set, .cpu = cpu};

	return READY(nvmlSystemGetTopologyGpuSet) ? list_near(&near, count, devices)
						  : NVML_ERROR_FUNCTION_NOT_FOUND;
}

nvmlReturn_t nvmlUnitGetDevices(nvmlUnit_t unit, unsigned *count, nvmlDevice_t *devices)
{
	const struct near near = {.ask = ask_unit, .unit = unit, .must_fit = true};

	return READY(nvmlUnitGetDevices) ? list_near(&near, count, devices)
					 : NVML_ERROR_FUNCTION_NOT_FOUND;
}

/*
 * Returns whether the job may see both GPUs. A program may have old or invented handles, which must
 * tell it nothing about other GPUs.
 */
static bool sees_both(nvmlDevice_t first, nvmlDevice_t second)
{
	return !is_confined() || (index_of(first) >= 0 && index_of(second) >= 0);
}

#define OF_TWO(name, parameters, arguments)                                                        \
	nvmlReturn_t name parameters                                                               \
	{                                                                                          \
		if (!READY(name))                                                                  \
			return NVML_ERROR_FUNCTION_NOT_FOUND;                                      \
		return sees_both(first, second) ? real.name arguments                              \
						: NVML_ERROR_INVALID_ARGUMENT;                     \
	}

OF_TWO(nvmlDeviceGetTopologyCommonAncestor, (nvmlDevice_t first, nvmlDevice_t second, int *ret),
	(first, second, ret))
OF_TWO(nvmlDeviceGetP2PStatus, (nvmlDevice_t first, nvmlDevice_t second, int index, int *ret),
	(first, second, index, ret))
OF_TWO(nvmlDeviceOnSameBoard, (nvmlDevice_t first, nvmlDevice_t second, int *ret),
	(first, second, ret))

/* -- memory -- */

/*
 * Gets the job's limit and use. Returns false if it has no limit there, so that NVML's figures are
 * returned.
 */
static bool job_memory(
	nvmlDevice_t device, uint64_t total_bytes, uint64_t *ret_total, uint64_t *ret_used)
{
	struct td_job_view view;
	uint8_t uuid[16];

	if (td_gate_disabled() || !uuid_of(device, uuid))
		return false;
	td_job_view(uuid, total_bytes, &view);
	if (view.limit_bytes >= total_bytes)
		return false;
	*ret_total = view.limit_bytes;
	/* If the limit was lowered below the use, the use is reported as the limit. */
	*ret_used = view.used_bytes < view.limit_bytes ? view.used_bytes : view.limit_bytes;
	return true;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *ret)
{
	uint64_t total, used;
	nvmlReturn_t r;

	if (!READY(nvmlDeviceGetMemoryInfo))
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	r = real.nvmlDeviceGetMemoryInfo(device, ret);
	if (!r && job_memory(device, ret->total, &total, &used))
		*ret = (nvmlMemory_t){total, total - used, used};
	return r;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *ret)
{
	uint64_t total, used;
	nvmlReturn_t r;

	if (!READY(nvmlDeviceGetMemoryInfo_v2))
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	r = real.nvmlDeviceGetMemoryInfo_v2(device, ret);
	if (!r && job_memory(device, ret->total, &total, &used))
		*ret = (nvmlMemory_v2_t){ret->version, total, 0, total - used, used};
	return r;
}

nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device, nvmlMemory_t *ret)
{
	uint64_t total, used;
	nvmlReturn_t r;

	if (!READY(nvmlDeviceGetConfComputeProtectedMemoryUsage))
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	r = real.nvmlDeviceGetConfComputeProtectedMemoryUsage(device, ret);
	if (!r && job_memory(device, ret->total, &total, &used))
		*ret = (nvmlMemory_t){total, total - used, used};
	return r;
}

/* -- processes -- */

typedef nvmlReturn_t (*list_fn)(nvmlDevice_t device, unsigned *count, void *rows);

/*
 * A query of NVML for processes; exactly one of list, utilisation, utilisations and details is set.
 */
struct question {
	nvmlDevice_t device;
	list_fn list;                                   /* query that fills an array */
	nvmlDeviceGetProcessUtilization_fn utilisation; /* query for samples since `since` */
	unsigned long long since;
	/* Queries whose struct points to the rows: */
	const nvmlProcessesUtilizationInfo_t *utilisations;
	const nvmlProcessDetailList_t *details;
	size_t size, pid_at; /* size of a row; offset of the pid in it */
};

static nvmlReturn_t ask_struct(const struct question *question, unsigned *count, void *rows)
{
	nvmlProcessesUtilizationInfo_t utilisations;
	nvmlProcessDetailList_t details;
	nvmlReturn_t r;

	if (question->details) {
		details = *question->details;
		details.numProcArrayEntries = *count;
		details.procArray = rows;
		r = real.nvmlDeviceGetRunningProcessDetailList(question->device, &details);
		*count = details.numProcArrayEntries;
		return r;
	}
	utilisations = *question->utilisations;
	utilisations.processSamplesCount = *count;
	utilisations.procUtilArray = rows;
	r = real.nvmlDeviceGetProcessesUtilizationInfo(question->device, &utilisations);
	*count = utilisations.processSamplesCount;
	return r;
}

static nvmlReturn_t ask(const struct question *question, unsigned *count, void *rows)
{
	if (question->list)
		return question->list(question->device, count, rows);
	if (question->utilisation)
		return question->utilisation(question->device, rows, count, question->since);
	return ask_struct(question, count, rows);
}

static bool is_of_job(const struct td_job_view *view, uint32_t pid)
{
	for (uint32_t i = 0; i < view->pid_count; i++)
		if (view->pids[i] == pid)
			return true;
	return false;
}

/* Gets all rows. The caller frees them. */
static nvmlReturn_t list_all(const struct question *question, unsigned *ret_count, char **ret_rows)
{
	unsigned room = PROCESSES;

	for (;;) {
		char *rows = malloc(room * question->size);
		unsigned count = room;
		nvmlReturn_t r;

		if (!rows)
			return NVML_ERROR_MEMORY;
		r = ask(question, &count, rows);
		if (!r) {
			*ret_count = count;
			*ret_rows = rows;
			return r;
		}
		free(rows);
		if (r != NVML_ERROR_INSUFFICIENT_SIZE || count <= room)
			return r;
		room = count + PROCESSES; /* processes may be added meanwhile */
	}
}

static nvmlReturn_t list_own(const struct question *question, unsigned *count, void *rows,
	const struct td_job_view *view)
{
	unsigned all = 0, own = 0, room = rows ? *count : 0;
	size_t size = question->size;
	char *every = NULL;
	nvmlReturn_t r = list_all(question, &all, &every);

	for (unsigned i = 0; !r && i < all; i++) {
		uint32_t pid;

		memcpy(&pid, every + i * size + question->pid_at, sizeof(pid));
		if (!is_of_job(view, pid))
			continue;
		if (own < room)
			memcpy((char *)rows + own * size, every + i * size, size);
		own++;
	}
	free(every);
	if (r)
		return r;
	if (!own && (question->utilisation || question->utilisations))
		return NVML_ERROR_NOT_FOUND; /* NVML's own result if no process has used the GPU */
	*count = own;
	return own > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlReturn_t list(const struct question *question, unsigned *count, void *rows)
{
	struct td_job_view view;
	uint8_t uuid[16];

	/* For invalid arguments NVML is called and returns the error. */
	if (td_gate_disabled() || !count || (question->list && *count && !rows) ||
		!uuid_of(question->device, uuid))
		return ask(question, count, rows);
	td_job_view(uuid, UINT64_MAX, &view);
	if (view.limit_bytes == UINT64_MAX && !is_confined())
		return ask(question, count, rows);
	return list_own(question, count, rows, &view);
}

#define LIST_AT(name, row, pid)                                                                    \
	nvmlReturn_t name(nvmlDevice_t device, unsigned *count, row *rows)                         \
	{                                                                                          \
		if (!READY(name))                                                                  \
			return NVML_ERROR_FUNCTION_NOT_FOUND;                                      \
		return list(&(struct question){.device = device,                                   \
				    .list = (list_fn)real.name,                                    \
				    .size = sizeof(row),                                           \
				    .pid_at = (pid)},                                              \
			count, rows);                                                              \
	}

#define LIST(name, row) LIST_AT(name, row, 0)

LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_v2_t)

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
	nvmlProcessUtilizationSample_t *rows, unsigned *count, unsigned long long since)
{
	if (!READY(nvmlDeviceGetProcessUtilization))
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	return list(&(struct question){.device = device,
			    .utilisation = real.nvmlDeviceGetProcessUtilization,
			    .since = since,
			    .size = sizeof(*rows)},
		count, rows);
}

LIST_AT(nvmlDeviceGetEncoderSessions, nvmlEncoderSessionInfo_t,
	offsetof(nvmlEncoderSessionInfo_t, pid))
LIST_AT(nvmlDeviceGetFBCSessions, nvmlFBCSessionInfo_t, offsetof(nvmlFBCSessionInfo_t, pid))
LIST(nvmlDeviceGetAccountingPids, unsigned)

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(
	nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *info)
{
	if (!READY(nvmlDeviceGetProcessesUtilizationInfo))
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	if (!info)
		return real.nvmlDeviceGetProcessesUtilizationInfo(device, info);
	return list(&(struct question){.device = device,
			    .utilisations = info,
			    .size = sizeof(*info->procUtilArray),
			    .pid_at = offsetof(nvmlProcessUtilizationInfo_v1_t, pid)},
		&info->processSamplesCount, info->procUtilArray);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(
	nvmlDevice_t device, nvmlProcessDetailList_t *info)
{
	if (!READY(nvmlDeviceGetRunningProcessDetailList))
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	if (!info)
		return real.nvmlDeviceGetRunningProcessDetailList(device, info);
	return list(
		&(struct question){
			.device = device, .details = info, .size = sizeof(*info->procArray)},
		&info->numProcArrayEntries, info->procArray);
}

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned pid, void *ret)
{
	struct td_job_view view;
	uint8_t uuid[16];

	if (!READY(nvmlDeviceGetAccountingStats))
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	if (!td_gate_disabled() && uuid_of(device, uuid)) {
		td_job_view(uuid, UINT64_MAX, &view);
		if ((view.limit_bytes != UINT64_MAX || is_confined()) && !is_of_job(&view, pid))
			return NVML_ERROR_NOT_FOUND;
	}
	return real.nvmlDeviceGetAccountingStats(device, pid, ret);
}
