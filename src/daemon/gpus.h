/*
 * The GPUs of the machine beside those that jobs use: what NVML said of them last, and by which number people know them.
 *
 * A GPU's number is its index in NVML, which is nvidia-smi's. GPUs that NVML does not list (where there is no NVML; parts of a GPU) have the
 * numbers behind those, in the order of their first use. Inside, GPUs have the indices of td_node.gpus, which nobody sees.
 */
#pragma once

#include <stdint.h>

#include "gpu/nvml.h"

struct td_node;

/* Wherever a GPU's index is asked for: the first that the process uses, if any. */
#define TD_GPU_ANY UINT32_MAX

/*
 * What NVML says now. A GPU that it said nothing of this time is lost, unless it says nothing at all: then everything is as it was, with no figures. One
 * that is lost is an event, once.
 */
void td_gpus_seen(
	struct td_node *node, const struct td_nvml_gpu *gpus, uint32_t count, uint64_t now_ns);

/* NULL: NVML does not know of it. */
const struct td_nvml_gpu *td_gpus_find(const struct td_node *node, const uint8_t *uuid);

/* TD_GPU_ANY yields itself. */
uint32_t td_gpu_number(const struct td_node *node, uint32_t index);
/* TD_GPU_ANY: it has none yet. */
uint32_t td_gpu_number_of(const struct td_node *node, const uint8_t *uuid);
