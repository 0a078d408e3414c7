/* CUDA_VISIBLE_DEVICES: which GPUs a process sees, and in which order. */
#pragma once

#include <stdint.h>

/*
 * Applies the variable's text to `count` GPUs and writes the indices of the visible ones, in the
 * program's order, to ret_gpus, which has room for `count`. Returns how many there are.
 *
 * NULL shows all GPUs. The list has indices and UUIDs ("GPU-" and enough digits to be unique),
 * separated by commas. The first entry that names no GPU, such as -1, ends the list. A GPU that is
 * named twice makes the whole list empty.
 */
uint32_t td_visible(
	const char *list, const uint8_t (*uuids)[16], uint32_t count, uint32_t *ret_gpus);
