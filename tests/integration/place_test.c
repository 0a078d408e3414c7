/*
 * A program's view of GPUs, by the driver and by NVML, as one line of JSON; for place.py.
 *
 *   place_test [--first nvml|driver] [--visible LIST] [--uuid UUID] [--bus BUS] [--hold BYTES]
 *
 * --uuid, --bus: also look for such a GPU. --first: which is asked first (the driver). --visible:
 * the program sets CUDA_VISIBLE_DEVICES itself before that. --hold: it makes a context on its first
 * device, allocates so much, and after its line waits for the end of its standard input.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/uuid.h"
#include "cuda/types.h"
#include "gpu/nvml_abi.h"

#define PCI_BUS_ID    33
#define PCI_DEVICE_ID 34

CUresult cuInit(unsigned flags);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice device);
CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceGetName(char *name, int len, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);

__attribute__((noreturn)) static void die(const char *what, int result)
{
	fprintf(stderr, "place_test: %s: %d\n", what, result);
	exit(1);
}

static void show_device(int i, CUdevice device)
{
	uint8_t uuid[16], second[16];
	char bus[32], name[64], text[TD_UUID_TEXT];
	int pci_bus = 0, pci_device = 0;
	CUdevice again = -1;
	size_t total;

	if (cuDeviceGetUuid((CUuuid *)uuid, device) ||
		cuDeviceGetUuid_v2((CUuuid *)second, device) ||
		cuDeviceGetPCIBusId(bus, sizeof(bus), device) ||
		cuDeviceGetByPCIBusId(&again, bus) || cuDeviceGetName(name, sizeof(name), device) ||
		cuDeviceTotalMem_v2(&total, device) ||
		cuDeviceGetAttribute(&pci_bus, PCI_BUS_ID, device) ||
		cuDeviceGetAttribute(&pci_device, PCI_DEVICE_ID, device))
		die("device", i);
	if (memcmp(uuid, second, sizeof(uuid)) || again != device)
		die("a device is not one", i);
	printf("%s{\"uuid\": \"%s\", \"bus\": \"%s\", \"pci\": [%d, %d], \"total\": %zu}",
		i ? ", " : "", td_uuid_format(text, uuid), bus, pci_bus, pci_device, total);
}

static void show_devices(void)
{
	CUdevice device, beyond;
	int count = 0, r = cuInit(0);

	printf("\"init\": %d, \"devices\": [", r);
	if (!r && cuDeviceGetCount(&count))
		die("cuDeviceGetCount", 0);
	for (int i = 0; i < count; i++) {
		if (cuDeviceGet(&device, i))
			die("cuDeviceGet", i);
		show_device(i, device);
	}
	if (!r && cuDeviceGet(&beyond, count) != 101)
		die("a device beyond the last", count);
	printf("]");
}

#define NVML_USED(X)                                                                               \
	X(nvmlInit_v2)                                                                             \
	X(nvmlDeviceGetCount_v2)                                                                   \
	X(nvmlDeviceGetHandleByIndex_v2)                                                           \
	X(nvmlDeviceGetHandleByUUID)                                                               \
	X(nvmlDeviceGetHandleByPciBusId_v2)                                                        \
	X(nvmlDeviceGetIndex)                                                                      \
	X(nvmlDeviceGetUUID)                                                                       \
	X(nvmlDeviceGetPciInfo_v3)                                                                 \
	X(nvmlDeviceGetMemoryInfo)                                                                 \
	X(nvmlDeviceGetComputeRunningProcesses_v3)

static struct {
#define X(name) name##_fn name;
	NVML_USED(X)
#undef X
} nvml;

static void load_nvml(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);

	if (!library)
		die(dlerror(), 0);
#define X(name)                                                                                    \
	nvml.name = (name##_fn)dlsym(library, #name);                                              \
	if (!nvml.name)                                                                            \
		die(#name, 0);
	NVML_USED(X)
#undef X
	if (nvml.nvmlInit_v2())
		die("nvmlInit_v2", 0);
}

static bool has_context;
static size_t free_bytes, total_bytes; /* of the context, as the driver says */

/* NVML's figures and the driver's are of one moment: the daemon may learn more between calls. */
static int get_memory(unsigned i, nvmlDevice_t device, nvmlMemory_t *ret)
{
	size_t before;
	int r;

	do {
		before = free_bytes;
		r = nvml.nvmlDeviceGetMemoryInfo(device, ret);
		if (has_context && i == 0 && cuMemGetInfo_v2(&free_bytes, &total_bytes))
			die("cuMemGetInfo_v2", 0);
	} while (!r && before != free_bytes);
	return r;
}

static void show_handle(unsigned i)
{
	nvmlProcessInfo_v2_t rows[64];
	unsigned count = 64, index = 99;
	nvmlDevice_t device, by_uuid = NULL, by_bus = NULL;
	nvmlMemory_t memory;
	nvmlPciInfo_t pci;
	char uuid[96];
	int r = nvml.nvmlDeviceGetHandleByIndex_v2(i, &device);

	if (r || nvml.nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) ||
		nvml.nvmlDeviceGetPciInfo_v3(device, &pci) || get_memory(i, device, &memory) ||
		nvml.nvmlDeviceGetIndex(device, &index) ||
		nvml.nvmlDeviceGetHandleByUUID(uuid, &by_uuid) ||
		nvml.nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &by_bus) ||
		nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, rows))
		die("nvml", r);
	if (by_uuid != device || by_bus != device || index != i)
		die("a handle is not one", (int)i);
	printf("%s{\"uuid\": \"%s\", \"bus\": \"%s\", \"total\": %llu, \"used\": %llu, \"free\": "
	       "%llu, \"pids\": [",
		i ? ", " : "", uuid, pci.busId, memory.total, memory.used, memory.free);
	for (unsigned k = 0; k < count; k++)
		printf("%s%u", k ? ", " : "", rows[k].pid);
	printf("]}");
}

static void show_nvml(void)
{
	nvmlDevice_t beyond;
	unsigned count;

	load_nvml();
	if (nvml.nvmlDeviceGetCount_v2(&count))
		die("nvmlDeviceGetCount_v2", 0);
	printf("\"nvml\": [");
	for (unsigned i = 0; i < count; i++)
		show_handle(i);
	if (nvml.nvmlDeviceGetHandleByIndex_v2(count, &beyond) != NVML_ERROR_INVALID_ARGUMENT)
		die("a handle beyond the last", (int)count);
	printf("], ");
}

/* 0 or an error of NVML or the driver. */
static void show_look_ups(const char *uuid, const char *bus)
{
	nvmlDevice_t handle;
	CUdevice device;

	if (uuid)
		printf("\"by_uuid\": %d, ", nvml.nvmlDeviceGetHandleByUUID(uuid, &handle));
	if (bus)
		printf("\"by_bus\": [%d, %d], ",
			nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, &handle),
			cuDeviceGetByPCIBusId(&device, bus));
}

static void hold(size_t bytes)
{
	CUdevice device;
	CUcontext context;
	CUdeviceptr address;

	if (cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
		cuCtxSetCurrent(context) || (bytes && cuMemAlloc_v2(&address, bytes)) ||
		cuMemGetInfo_v2(&free_bytes, &total_bytes))
		die("hold", 0);
	has_context = true;
}

int main(int argc, char **argv)
{
	bool nvml_first = false, holds = false;
	const char *uuid = NULL, *bus = NULL;
	size_t bytes = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--first"))
			nvml_first = !strcmp(argv[i + 1], "nvml");
		else if (!strcmp(argv[i], "--visible"))
			setenv("CUDA_VISIBLE_DEVICES", argv[i + 1], 1);
		else if (!strcmp(argv[i], "--uuid"))
			uuid = argv[i + 1];
		else if (!strcmp(argv[i], "--bus"))
			bus = argv[i + 1];
		else if (!strcmp(argv[i], "--hold"))
			holds = true, bytes = strtoull(argv[i + 1], NULL, 10);
	}
	printf("{\"pid\": %d, ", (int)getpid());
	if (nvml_first)
		show_nvml();
	show_devices();
	printf(", ");
	if (holds)
		hold(bytes);
	if (!nvml_first)
		show_nvml();
	if (holds)
		printf("\"free\": %zu, \"total\": %zu, ", free_bytes, total_bytes);
	show_look_ups(uuid, bus);
	printf("\"visible\": \"%s\"}\n", getenv("CUDA_VISIBLE_DEVICES") ?: "unset");
	fflush(stdout);
	while (holds && getchar() != EOF)
		;
	return 0;
}
