/*
 * The part of NVML's binary interface that tandem calls and the software GPU answers, from NVIDIA's
 * public NVML API reference, because the header is not in every CUDA toolkit. Numbers and layouts
 * have not changed since CUDA 11.1.
 */
#pragma once

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;

/* X(name, number, what it means) */
#define NVML_RESULTS(X)                                                                            \
	X(NVML_SUCCESS, 0, "no error")                                                             \
	X(NVML_ERROR_UNINITIALIZED, 1, "nvmlInit was not called")                                  \
	X(NVML_ERROR_INVALID_ARGUMENT, 2, "invalid argument")                                      \
	X(NVML_ERROR_NOT_SUPPORTED, 3, "not supported by this device")                             \
	X(NVML_ERROR_NO_PERMISSION, 4, "not permitted")                                            \
	X(NVML_ERROR_NOT_FOUND, 6, "not found")                                                    \
	X(NVML_ERROR_INSUFFICIENT_SIZE, 7, "the buffer is too small")                              \
	X(NVML_ERROR_DRIVER_NOT_LOADED, 9, "the driver is not loaded")                             \
	X(NVML_ERROR_TIMEOUT, 10, "nothing happened in that time")                                 \
	X(NVML_ERROR_FUNCTION_NOT_FOUND, 13, "not in this library")                                \
	X(NVML_ERROR_GPU_IS_LOST, 15, "the GPU is lost")                                           \
	X(NVML_ERROR_MEMORY, 20, "out of memory")                                                  \
	X(NVML_ERROR_ARGUMENT_VERSION_MISMATCH, 25, "a struct of another version")                 \
	X(NVML_ERROR_UNKNOWN, 999, "unknown error")

#define X(name, number, text) name = number,
enum { NVML_RESULTS(X) };
#undef X

enum { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_CLOCK_VIDEO, NVML_CLOCK_N };
enum { NVML_TEMPERATURE_GPU };

#define NVML_DEVICE_UUID_V2_BUFFER_SIZE 96
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE 96
/* The value of a figure that NVML does not have, such as a process's memory under some drivers. */
#define NVML_VALUE_NOT_AVAILABLE 0xffffffffffffffffull
#define NVML_NO_INSTANCE         0xffffffffu

typedef struct {
	char busIdLegacy[16]; /* 0000:01:00.0 */
	unsigned domain, bus, device;
	unsigned pciDeviceId, pciSubSystemId;
	char busId[32]; /* 00000000:01:00.0 */
} nvmlPciInfo_t;

typedef struct {
	unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
	unsigned version;
	unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
	unsigned gpu, memory; /* percent */
} nvmlUtilization_t;

typedef struct {
	unsigned pid;
	unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

/* The function nvmlDeviceGetComputeRunningProcesses_v3 uses this struct, too. */
typedef struct {
	unsigned pid;
	unsigned long long usedGpuMemory;
	unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;

typedef struct {
	unsigned pid;
	unsigned long long timeStamp; /* us */
	unsigned smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

/*
 * In the next two structs a pointer leads to the caller's rows. On entry `count` is the room for
 * rows, on return their number.
 */
typedef struct {
	unsigned long long timeStamp;
	unsigned pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;

typedef struct {
	unsigned version, processSamplesCount;
	unsigned long long lastSeenTimeStamp;
	nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_t;

typedef struct {
	unsigned pid;
	unsigned long long usedGpuMemory;
	unsigned gpuInstanceId, computeInstanceId;
	unsigned long long usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct {
	unsigned version, mode, numProcArrayEntries;
	nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_t;

typedef struct {
	unsigned sessionId, pid, vgpuInstance;
	int codecType;
	unsigned hResolution, vResolution, averageFps, averageLatency;
} nvmlEncoderSessionInfo_t;

typedef struct {
	unsigned sessionId, pid, vgpuInstance, displayOrdinal;
	int sessionType;
	unsigned sessionFlags, hMaxResolution, vMaxResolution, hResolution, vResolution;
	unsigned averageFPS, averageLatency;
} nvmlFBCSessionInfo_t;

typedef struct nvmlUnit_st *nvmlUnit_t;

/* Events of a GPU. */
#define NVML_EVENT_TYPE_XID_CRITICAL_ERROR 0x8ull
typedef struct nvmlEventSet_st *nvmlEventSet_t;
typedef struct {
	nvmlDevice_t device;
	unsigned long long eventType, eventData; /* eventData of an Xid event: the Xid */
	unsigned gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

/* Buffered samples. The value of a utilisation is an unsigned int in percent. */
enum { NVML_GPU_UTILIZATION_SAMPLES = 1 };
enum { NVML_VALUE_TYPE_UNSIGNED_INT = 1 };
typedef union {
	double dVal;
	unsigned uiVal;
	unsigned long ulVal;
	unsigned long long ullVal;
} nvmlValue_t;
typedef struct {
	unsigned long long timeStamp; /* us */
	nvmlValue_t sampleValue;
} nvmlSample_t;

/* X(bit, name): why a clock is lower than it could be. */
#define NVML_CLOCK_REASONS(X)                                                                      \
	X(0x1, "idle")                                                                             \
	X(0x2, "set clocks")                                                                       \
	X(0x4, "power cap")                                                                        \
	X(0x8, "hardware slowdown")                                                                \
	X(0x10, "sync boost")                                                                      \
	X(0x20, "thermal")                                                                         \
	X(0x40, "hardware thermal")                                                                \
	X(0x80, "power brake")                                                                     \
	X(0x100, "display clocks")
#define NVML_CLOCK_REASON_IDLE    0x1ull
#define NVML_CLOCK_REASON_THERMAL 0x20ull

/* GPU performance monitoring (GPM). */
typedef struct nvmlGpmSample_st *nvmlGpmSample_t;
#define NVML_GPM_SUPPORT_VERSION     1u
#define NVML_GPM_METRICS_GET_VERSION 1u
enum {
	NVML_GPM_METRIC_GRAPHICS_UTIL = 1,
	NVML_GPM_METRIC_SM_UTIL = 2,
	NVML_GPM_METRIC_PCIE_TX_PER_SEC = 20, /* MiB/s */
	NVML_GPM_METRIC_PCIE_RX_PER_SEC = 21,
};
typedef struct {
	unsigned version, isSupportedDevice;
} nvmlGpmSupport_t;
typedef struct {
	unsigned metricId;
	nvmlReturn_t nvmlReturn;
	double value;
	struct {
		char *shortName, *longName, *unit;
	} metricInfo;
} nvmlGpmMetric_t;
/* Newer headers have room for more metrics; only numMetrics of them are read. */
typedef struct {
	unsigned version, numMetrics;
	nvmlGpmSample_t sample1, sample2;
	nvmlGpmMetric_t metrics[98];
} nvmlGpmMetricsGet_t;

/* A struct that may grow has its size and version in its first field. */
#define NVML_MEMORY_V2 ((unsigned)(sizeof(nvmlMemory_v2_t) | 2u << 24))

_Static_assert(sizeof(nvmlPciInfo_t) == 68, "nvmlPciInfo_t of nvml.h");
_Static_assert(sizeof(nvmlMemory_t) == 24, "nvmlMemory_t of nvml.h");
_Static_assert(sizeof(nvmlMemory_v2_t) == 40, "nvmlMemory_v2_t of nvml.h");
_Static_assert(sizeof(nvmlEventData_t) == 32, "nvmlEventData_t of nvml.h");
_Static_assert(sizeof(nvmlSample_t) == 16, "nvmlSample_t of nvml.h");
_Static_assert(sizeof(nvmlGpmMetric_t) == 40, "nvmlGpmMetric_t of nvml.h");
_Static_assert(
	sizeof(nvmlProcessUtilizationInfo_v1_t) == 40, "nvmlProcessUtilizationInfo_v1_t of nvml.h");
_Static_assert(
	sizeof(nvmlProcessesUtilizationInfo_t) == 24, "nvmlProcessesUtilizationInfo_t of nvml.h");
_Static_assert(sizeof(nvmlProcessDetail_v1_t) == 32, "nvmlProcessDetail_v1_t of nvml.h");
_Static_assert(sizeof(nvmlProcessDetailList_t) == 24, "nvmlProcessDetailList_t of nvml.h");
_Static_assert(sizeof(nvmlEncoderSessionInfo_t) == 32, "nvmlEncoderSessionInfo_t of nvml.h");
_Static_assert(sizeof(nvmlFBCSessionInfo_t) == 48, "nvmlFBCSessionInfo_t of nvml.h");
_Static_assert(sizeof(nvmlProcessInfo_v1_t) == 16, "nvmlProcessInfo_v1_t of nvml.h");
_Static_assert(sizeof(nvmlProcessInfo_v2_t) == 24, "nvmlProcessInfo_v2_t of nvml.h");
_Static_assert(
	sizeof(nvmlProcessUtilizationSample_t) == 32, "nvmlProcessUtilizationSample_t of nvml.h");

/* Defines the types of the functions: nvmlInit_v2_fn and so on. */
#define NVML(name, parameters) typedef nvmlReturn_t(*name##_fn) parameters;
#include "gpu/nvml_functions.def"
#undef NVML
typedef const char *(*nvmlErrorString_fn)(nvmlReturn_t result);
