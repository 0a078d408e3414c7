/*
 * Reads real GPUs through libnvidia-ml.so.1, opened if it is there. If the library, a function or a
 * figure is missing, the figures are unknown; that is no error. Calls may block for seconds (the
 * first one wakes a GPU): see sampler.h.
 *
 * NVML and CUDA number GPUs differently: match by UUID.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/xid_log.h"

#define TD_NVML_GPU_MAX 64
#define TD_NVML_USE_MAX 512
#define TD_NVML_ABSENT  1

/* The known figures of a GPU: bits of td_nvml_gpu.known. */
enum {
	TD_GPU_KNOWS_UTILISATION = 1 << 0,
	TD_GPU_KNOWS_MEMORY = 1 << 1,
	TD_GPU_KNOWS_CLOCK = 1 << 2,
	TD_GPU_KNOWS_TEMPERATURE = 1 << 3,
	TD_GPU_KNOWS_POWER = 1 << 4,
	/* Used only in the daemon's answers. */
	TD_GPU_IS_LOST = 1 << 5,
	TD_GPU_IS_DIVIDED = 1 << 6,
	TD_GPU_KNOWS_SM_ACTIVITY = 1 << 7,
	TD_GPU_KNOWS_THROTTLE = 1 << 8,
};

struct td_nvml_gpu {
	uint32_t index; /* NVML's number, which nvidia-smi shows */
	uint8_t uuid[16];
	char name[64];
	uint32_t known; /* TD_GPU_KNOWS_* bits: which figures below are known */
	bool lost;      /* the driver has lost the GPU: all calls for it fail until it is reset */
	bool mig;       /* divided into MIG instances; only those can be used */
	uint32_t utilisation_ppm, sm_mhz, temperature_celsius, power_mw;
	uint64_t used_bytes, total_bytes;
	uint32_t sm_max_mhz; /* the highest that its clock can be; 0: not known */
	/* The mean since the last sample, by GPM: Hopper and later GPUs. */
	uint32_t sm_activity_ppm;
	uint64_t throttle; /* NVML_CLOCK_REASONS: why its clock is not that */
	uint32_t xid;      /* the last error that it reported; 0: none since the start */
	uint64_t xid_ns;   /* when */
	int xid_pid; /* the process that caused the error, by the kernel's log; 0: not known */
	struct td_pci pci; /* where it is; all 0: not known */
};

/* The memory of a process on a GPU, with its context and code. */
struct td_nvml_use {
	uint32_t gpu; /* index of the GPU in the sample */
	uint32_t pid;
	uint64_t bytes;
};

struct td_nvml;

/*
 * Opens NVML. library NULL: libnvidia-ml.so.1. Returns 0; TD_NVML_ABSENT: there is no such library,
 * or it knows no GPU; -ENOMEM.
 */
int td_nvml_open(const char *library, struct td_nvml **ret);
void td_nvml_close(struct td_nvml *nvml);

/*
 * Reads the figures of every GPU with an own UUID (room: TD_NVML_GPU_MAX). Returns their number;
 * -ENODEV: none answered. In that case, or if all are lost, the driver may be gone or replaced:
 * close NVML and open it again.
 */
int td_nvml_sample(struct td_nvml *nvml, struct td_nvml_gpu *ret_gpus);

struct td_figure;

/*
 * Reads some figures of a GPU at little cost: its clock now, and the utilisation samples that the
 * driver has buffered since the last call. Returns their number, oldest first (room:
 * TD_NVML_FIGURES_MAX); 0: the clock of the GPU is not known.
 */
#define TD_NVML_FIGURES_MAX 128
uint32_t td_nvml_glance(struct td_nvml *nvml, struct td_nvml_gpu *gpu, uint64_t now_ns,
	struct td_figure *ret_figures);

/*
 * Returns an Xid that was not returned before, with NVML's number of its GPU. Does not wait. False:
 * there is none.
 */
bool td_nvml_xid(struct td_nvml *nvml, uint32_t *ret_index, uint32_t *ret_xid);

/*
 * Lists the processes that compute on these GPUs, as far as NVML reports their memory (room:
 * TD_NVML_USE_MAX). Returns their number.
 */
uint32_t td_nvml_uses(struct td_nvml *nvml, const struct td_nvml_gpu *gpus, uint32_t count,
	struct td_nvml_use *ret_uses);
