/*
 * Initialisation and device queries. Without a server, cuInit returns CUDA_ERROR_NO_DEVICE, as on a
 * machine without a GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/visible.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/device/fault.h"
#include "softgpu/driver/device/mps.h"

_Thread_local bool sg_in_host_function;
struct sg_state sg = {.lock = PTHREAD_MUTEX_INITIALIZER, .memory_lock = PTHREAD_RWLOCK_INITIALIZER};

int sg_ready(void)
{
	if (!__atomic_load_n(&sg.initialised, __ATOMIC_ACQUIRE) || sg.pid != getpid())
		return CUDA_ERROR_NOT_INITIALIZED;
	/* cuda.h, cuLaunchHostFunc and cuStreamAddCallback: "must not make any CUDA API calls". */
	return sg_in_host_function ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

struct CUdevprop {
	int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], sharedMemPerBlock,
		totalConstantMemory, SIMDWidth, memPitch, regsPerBlock, clockRate, textureAlign;
};

static int read_device(uint32_t gpu, struct sg_device *device)
{
	struct sg_msg msg = {.type = SG_GPU_INFO, .gpu = gpu};
	const struct td_gpu_spec *spec;

	device->gpu = gpu;
	if (sg_client_request(sg.client, &msg, &device->info, sizeof(device->info), NULL) ||
		msg.error)
		return SG_LOST;
	spec = td_gpu_spec_find(device->info.name + strlen("softgpu "));
	if (!spec)
		return SG_LOST;
	device->spec = *spec;
	device->spec.memory_bytes = device->info.memory_bytes;
	device->spec.pinned_bytes_per_us = (uint32_t)(device->info.link_bytes_per_s / 1000000);
	device->spec.launch_latency_ns = device->info.launch_ns;
	return CUDA_SUCCESS;
}

/* Derives the UUID of a MIG partition from the UUID of its GPU. */
static void name_of_part(uint8_t uuid[16])
{
	uuid[14] ^= 0x80;
}

static void become_part(struct sg_gpu_info *info)
{
	if (!(info->features & SG_FEATURE_MIG))
		return;
	name_of_part(info->uuid);
	strncat(info->name, " MIG 1g", sizeof(info->name) - strlen(info->name) - 1);
}

/*
 * The GPUs that the process sees, in its order. A client of MPS counts only those of the MPS
 * server, from 0.
 */
static uint32_t choose_gpus(uint32_t *ret_order)
{
	uint8_t uuids[SG_GPU_MAX][16];
	uint32_t gpus[SG_GPU_MAX], count = 0, chosen;

	for (uint32_t i = 0; i < sg.gpu_count; i++) {
		if (!sg_mps_has_gpu(i))
			continue;
		memcpy(uuids[count], sg.gpu_uuids[i], sizeof(uuids[0]));
		gpus[count++] = i;
	}
	chosen = td_visible(getenv("CUDA_VISIBLE_DEVICES"), uuids, count, ret_order);
	for (uint32_t i = 0; i < chosen; i++)
		ret_order[i] = gpus[ret_order[i]];
	return chosen;
}

/*
 * Makes a device of each visible GPU. From here on the client translates device numbers to the
 * server's GPU numbers.
 */
static int choose_devices(void)
{
	struct sg_device all[SG_GPU_MAX] = {0};
	uint32_t order[SG_GPU_MAX];
	uint64_t seen = 0;
	int r = CUDA_SUCCESS;

	for (uint32_t i = 0; !r && i < sg.gpu_count; i++) {
		r = read_device(i, &all[i]);
		become_part(&all[i].info);
		memcpy(sg.gpu_uuids[i], all[i].info.uuid, sizeof(sg.gpu_uuids[i]));
	}
	if (r)
		return r;
	sg.device_count = choose_gpus(order);
	/* A process can use only one MIG partition. */
	if (sg.device_count > 1 && all[order[0]].info.features & SG_FEATURE_MIG)
		sg.device_count = 1;
	for (uint32_t i = 0; i < sg.device_count; i++) {
		sg.devices[i] = all[order[i]];
		sg.devices[i].sm_count = sg_mps_sm_count(i);
		seen |= 1ull << order[i];
	}
	/* GPUs that are not visible get numbers above those of the devices. */
	for (uint32_t i = 0, n = sg.device_count; i < SG_GPU_MAX; i++)
		if (!(seen >> i & 1))
			order[n++] = i;
	sg_client_choose(sg.client, order);
	return sg.device_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

bool sg_device_of_gpu(uint32_t gpu, uint32_t *ret)
{
	for (uint32_t i = 0; i < sg.device_count; i++) {
		if (sg.devices[i].gpu == gpu) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static int initialise(void)
{
	char dir[256];
	int r;

	if (!sg_dir(dir, sizeof(dir)) ||
		sg_client_new_with_notices(dir, sg_fault_notice, &sg.client, &sg.gpu_count)) {
		if (getenv("SOFTGPU_DEBUG"))
			fprintf(stderr, "softgpu: no server at %s\n", dir);
		return CUDA_ERROR_NO_DEVICE;
	}
	r = sg_mps_join(dir);
	if (!r)
		r = choose_devices();
	if (!r)
		r = sg_mps_limit();
	if (r) {
		sg_client_free(sg.client);
		return r;
	}
	td_list_init(&sg.contexts);
	sg.pid = getpid();
	__atomic_store_n(&sg.initialised, true, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

API CUresult cuInit(unsigned flags)
{
	int r = CUDA_SUCCESS;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	/*
	 * A child of fork() cannot use the state it inherits, which may include held locks. The
	 * real driver refuses such a child too.
	 */
	if (__atomic_load_n(&sg.initialised, __ATOMIC_ACQUIRE) && sg.pid != getpid())
		return CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&sg.lock);
	if (!sg.initialised)
		r = initialise();
	pthread_mutex_unlock(&sg.lock);
	return r;
}

API CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = 13000;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *count)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (int)sg.device_count;
	return CUDA_SUCCESS;
}

static int check(CUdevice device, const void *out)
{
	int r = sg_ready();

	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return device >= 0 && device < (int)sg.device_count ? CUDA_SUCCESS
							    : CUDA_ERROR_INVALID_DEVICE;
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	int r = check(ordinal, device);

	if (!r)
		*device = ordinal;
	return r;
}

API CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
	int r = check(device, name);

	if (!r && len <= 0)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		snprintf(name, (size_t)len, "%s", sg.devices[device].info.name);
	return r;
}

API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	int r = check(device, uuid);

	if (!r)
		memcpy(uuid->bytes, sg.devices[device].info.uuid, 16);
	return r;
}

API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	CUresult r = cuDeviceGetUuid_v2(uuid, device);

	if (!r && sg.devices[device].info.features & SG_FEATURE_MIG)
		name_of_part((uint8_t *)uuid->bytes);
	return r;
}

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	int r = check(device, bytes);

	if (!r)
		*bytes = sg.devices[device].info.memory_bytes;
	return r;
}

API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	int r = check(device, major && minor ? major : NULL);

	if (!r) {
		*major = (int)sg.devices[device].info.compute_major;
		*minor = (int)sg.devices[device].info.compute_minor;
	}
	return r;
}

API CUresult cuDeviceGetPCIBusId(char *id, int len, CUdevice device)
{
	int r = check(device, id);

	if (!r && len < 13)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		snprintf(id, (size_t)len, "0000:%02X:%02X.0",
			sg.devices[device].info.pci_bus & 0xff,
			sg.devices[device].info.pci_device & 0xff);
	return r;
}

API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
	char mine[16];
	int r = check(0, device && id ? device : NULL);

	for (CUdevice i = 0; !r && i < (CUdevice)sg.device_count; i++) {
		if (!cuDeviceGetPCIBusId(mine, sizeof(mine), i) && !strcmp(mine, id)) {
			*device = i;
			return CUDA_SUCCESS;
		}
	}
	return r ? r : CUDA_ERROR_INVALID_DEVICE;
}

API CUresult cuDeviceGetProperties(struct CUdevprop *ret, CUdevice device)
{
	const struct sg_gpu_info *info;
	int r = check(device, ret);

	if (r)
		return r;
	info = &sg.devices[device].info;
	*ret = (struct CUdevprop){.maxThreadsPerBlock = 1024,
		.maxThreadsDim = {1024, 1024, 64},
		.maxGridSize = {INT32_MAX, 65535, 65535},
		.sharedMemPerBlock = 48 << 10,
		.totalConstantMemory = 64 << 10,
		.SIMDWidth = 32,
		.memPitch = INT32_MAX,
		.regsPerBlock = (int)info->registers_per_sm,
		.clockRate = (int)info->clock_mhz * 1000,
		.textureAlign = 512};
	return CUDA_SUCCESS;
}

/* Attributes that have no case here are 0, which means that the feature is absent. */
static int attribute(const struct sg_gpu_info *info, int attribute)
{
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return INT32_MAX;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 48 << 10;
	case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return 64 << 10;
	case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
	case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return INT32_MAX;
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
		return (int)info->registers_per_sm;
	case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return (int)info->clock_mhz * 1000;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return (int)info->pci_bus;
	case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: return (int)info->pci_device;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return (int)info->threads_per_sm;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 2;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return (int)info->compute_major;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return (int)info->compute_minor;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
		return (int)info->shared_per_sm_bytes;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		return (int)info->shared_per_block_bytes;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return (int)info->blocks_per_sm;
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
		return (info->features & SG_FEATURE_HOST_VMM) != 0;
	case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
		return 0; /* a single NUMA node */
	/* The limits of arrays; memory/array.c enforces them. */
	case 21:                /* MAXIMUM_TEXTURE1D_WIDTH */
	case 22: return 131072; /* MAXIMUM_TEXTURE2D_WIDTH */
	case 23: return 65536;  /* MAXIMUM_TEXTURE2D_HEIGHT */
	case 24:                /* MAXIMUM_TEXTURE3D_WIDTH, _HEIGHT, _DEPTH */
	case 25:
	case 26: return 16384;
	case 14:                 /* TEXTURE_ALIGNMENT */
	case 30: return 512;     /* SURFACE_ALIGNMENT */
	case 51: return 32;      /* TEXTURE_PITCH_ALIGNMENT */
	case 38: return 4 << 20; /* L2_CACHE_SIZE: an arbitrary value, no cache is modelled */
	case 111: return 1024;   /* RESERVED_SHARED_MEMORY_PER_BLOCK */
	case 91:                 /* CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM */
	case 92:                 /* stream memory operations (several attributes) */
	case 93:
	case 94:
	case 122:
	case 123:
	case 99:  /* HOST_REGISTER_SUPPORTED */
	case 103: /* HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED */
	case 125: /* IPC_EVENT_SUPPORTED */
	case 31:  /* CONCURRENT_KERNELS */
	case 79:  /* GLOBAL_L1_CACHE_SUPPORTED */
	case 80:  /* LOCAL_L1_CACHE_SUPPORTED */
	case 126: /* MEM_SYNC_DOMAIN_COUNT */
	case 115: /* MEMORY_POOLS_SUPPORTED */
	case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
	case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: return 1;
	default: return 0;
	}
}

API CUresult cuDeviceGetAttribute(int *value, int which, CUdevice device)
{
	int r = check(device, value);

	if (!r && (which < 1 || which > 147))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	if (which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		*value = (int)sg.devices[device].sm_count;
	else if (which == 133) /* MPS_ENABLED */
		*value = sg_mps_server() != 0;
	else
		*value = attribute(&sg.devices[device].info, which);
	return CUDA_SUCCESS;
}
