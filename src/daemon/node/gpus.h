/*
 * The GPUs of the machine: what NVML said of them last, the table of those that jobs use, and by which number people know them.
 *
 * A GPU's number is its index in NVML, which is nvidia-smi's. GPUs that NVML does not list (where there is no NVML; parts of a GPU) have the
 * numbers behind those, in the order of their first use. Inside, GPUs have the indices of td_node.gpus, which nobody sees.
 *
 * The table has TD_GPU_MAX places (docs/decisions/0018). One that NVML lists keeps its place; another one, known by what programs say alone, loses it with its last
 * client, so that nobody fills the table with GPUs that are not there. A place is kept free for each that NVML lists, and of the last TD_GPU_PLACES_KEPT no user gets
 * more than so many.
 *
 * A GPU's size is what its clients' drivers say, the largest of it, since a smaller claim would take memory from others; at most what NVML says, and not much less.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu/nvml.h"

struct td_err;
struct td_msg_attach;
struct td_node;

/* Of the places in the table, so many are for users who have fewer GPUs than that. */
#define TD_GPU_PLACES_KEPT 8

/*
 * What NVML says now. A GPU that it said nothing of this time is lost, unless it says nothing at all: then everything is as it was, with no figures. One
 * that is lost is an event, once.
 */
void td_gpus_seen(
	struct td_node *node, const struct td_nvml_gpu *gpus, uint32_t count, uint64_t now_ns);

/* The index of the GPU that a program of the user comes to, new if it was not seen. TD_GPU_MAX, with -ENOSPC and a sentence: there is no place for it. */
uint32_t td_gpus_come(
	struct td_node *node, uid_t uid, const struct td_msg_attach *msg, struct td_err *err);
/* Would it find a place? */
bool td_gpus_have_place(const struct td_node *node, uid_t uid, const uint8_t *uuid);
/* Those that programs can use: as NVML lists them; where it lists none, those that programs use. At least one. */
uint32_t td_gpus_count(const struct td_node *node);

/* A client has come to it, or left it, or has not come after all. */
void td_gpus_changed(struct td_node *node, uint32_t index);

/* NULL: NVML does not know of it. */
const struct td_nvml_gpu *td_gpus_find(const struct td_node *node, const uint8_t *uuid);

/* TD_GPU_ANY yields itself. */
uint32_t td_gpu_number(const struct td_node *node, uint32_t index);
/* TD_GPU_ANY: it has none yet. */
uint32_t td_gpu_number_of(const struct td_node *node, const uint8_t *uuid);
