/*
 * The GPUs of the machine: NVML's last report, the table of GPUs that jobs use, and the numbers by
 * which people know them.
 *
 * A GPU's number is its index in NVML, as in nvidia-smi. GPUs that NVML does not list (without
 * NVML, or parts of a GPU) get the next numbers, in the order of their first use. Internally, GPUs
 * have the indices of td_node.gpus, which nobody sees.
 *
 * The table has TD_GPU_MAX places (docs/decisions/0018). A GPU that NVML lists keeps its place.
 * Another one, known only from programs, loses it with its last client, so that nobody fills the
 * table with GPUs that do not exist. A place is kept free for each GPU that NVML lists. Of the last
 * TD_GPU_PLACES_KEPT places, no user gets more than that number.
 *
 * A GPU's size is the largest that its clients' drivers report, because a smaller one would take
 * memory from others. It is at most NVML's figure, and not much less.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/nvml.h"

struct td_err;
struct td_msg_attach;
struct td_node;

/* This many places in the table are for users who have fewer GPUs than that. */
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
uint32_t td_gpus_come(
	struct td_node *node, uid_t uid, const struct td_msg_attach *msg, struct td_err *err);
/* Takes all GPUs into the table that NVML lists, for a policy that moves jobs to idle ones. */
void td_gpus_take_listed(struct td_node *node);
/* Can no job be moved to that GPU? It is lost, divided, or another daemon's. */
bool td_gpus_are_shut(struct td_node *node, uint32_t index, uint64_t now_ns);
/* Would it find a place? */
bool td_gpus_have_place(const struct td_node *node, uid_t uid, const uint8_t *uuid);
/*
 * Counts the GPUs that programs can use, by NVML or, where it lists none, by the programs. At least
 * one.
 */
uint32_t td_gpus_count(const struct td_node *node);

/* A client has come to it, or left it, or has not come after all. */
void td_gpus_changed(struct td_node *node, uint32_t index);

/* NULL: NVML does not know of it. */
const struct td_nvml_gpu *td_gpus_find(const struct td_node *node, const uint8_t *uuid);

/* TD_GPU_ANY yields itself. */
uint32_t td_gpu_number(const struct td_node *node, uint32_t index);
/* TD_GPU_ANY: it has none yet. */
uint32_t td_gpu_number_of(const struct td_node *node, const uint8_t *uuid);
