/*
 * The GPUs of the machine: NVML's last report, the table of GPUs that jobs use, and the numbers by
 * which people know them.
 *
 * A GPU's number is its index in NVML, as in nvidia-smi. GPUs that NVML does not list (all without
 * NVML, or parts of a GPU) get the next numbers, in the order of their first use. Internally, GPUs
 * have the indices of td_node.gpus, which are never shown.
 *
 * The table has TD_GPU_MAX places (docs/decisions/0018). A GPU that NVML lists keeps its place. A
 * GPU that only programs have named loses it with its last client, so that nobody can fill the
 * table with GPUs that do not exist. A place is kept free for each GPU that NVML lists. The last
 * TD_GPU_PLACES_KEPT free places are only for users who have fewer GPUs in the table than that.
 *
 * A GPU's size is the largest that its clients' drivers report, because a smaller one would take
 * memory from others. It is at most NVML's figure, and not much less.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record/identity.h"
#include "gpu/nvml.h"

struct td_err;
struct td_msg_attach;
struct td_node;

/*
 * The last free entries of the table, as many as this, are kept for users who have fewer GPUs in
 * the table than that.
 */
#define TD_GPU_PLACES_KEPT 8

/*
 * Takes NVML's report. A GPU missing from it is lost, unless the report is empty: then all GPUs
 * stay as they were, without figures. A lost GPU is reported as an event, once.
 */
void td_gpus_seen(
	struct td_node *node, const struct td_nvml_gpu *gpus, uint32_t count, uint64_t now_ns);

/*
 * Returns the index of the GPU that a program of the user attaches to, adding it if it is new.
 * TD_GPU_MAX, with -ENOSPC and a sentence: there is no place for it.
 */
uint32_t td_gpus_come(struct td_node *node, struct td_identity who, const struct td_msg_attach *msg,
	struct td_err *err);
/* Takes all GPUs into the table that NVML lists, for a policy that moves jobs to idle ones. */
void td_gpus_take_listed(struct td_node *node);
/*
 * Returns whether no job can be moved to that GPU: it is lost, divided by MIG, or another daemon's.
 */
bool td_gpus_are_shut(struct td_node *node, uint32_t index, uint64_t now_ns);
/* Returns whether the user's GPU is in the table or would find a place there. */
bool td_gpus_have_place(const struct td_node *node, struct td_identity who, const uint8_t *uuid);
/*
 * Returns the number of GPUs that programs can use: by NVML, or, where NVML lists none, by the
 * programs. The result is at least 1.
 */
uint32_t td_gpus_count(const struct td_node *node);

/* Updates the GPU after a client has come to it, has left it, or could not attach after all. */
void td_gpus_changed(struct td_node *node, uint32_t index);

/* Returns the GPU in NVML's report, or NULL if it is not listed. */
const struct td_nvml_gpu *td_gpus_find(const struct td_node *node, const uint8_t *uuid);

/* Returns the number of the GPU with that index. TD_GPU_ANY yields itself. */
uint32_t td_gpu_number(const struct td_node *node, uint32_t index);
/* Returns the number of the GPU with that UUID, or TD_GPU_ANY if it has none yet. */
uint32_t td_gpu_number_of(const struct td_node *node, const uint8_t *uuid);
