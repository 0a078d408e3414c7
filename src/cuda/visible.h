/* Which GPUs a process sees, and in which order: CUDA_VISIBLE_DEVICES. */
#pragma once

#include <stdint.h>

/*
 * list: the variable's text; NULL: all GPUs in their order. Indices and UUIDs ("GPU-" and as many digits as no other GPU has), with commas
 * between; what names none of the GPUs, -1 for one, ends the list. One that is named twice: none at all.
 * ret_gpus has room for count; returns how many there are.
 */
uint32_t td_visible(
	const char *list, const uint8_t (*uuids)[16], uint32_t count, uint32_t *ret_gpus);
