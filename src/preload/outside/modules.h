/* Asks for the memory of the variables of a module or library, and counts it. */
#pragma once

#include "cuda/signatures.h"
#include "preload/image/image.h"
#include "preload/outside/outside.h"

struct td_data_claim {
	struct td_outside_claim device, managed;
};

/*
 * This much of a process's variables, in modules on a device or in libraries, counts as code does.
 * Beyond it, any size is asked for.
 */
#define TD_LITTLE_BYTES (1ull << 20)

struct td_image_data td_data_of_image(const void *image);
struct td_image_data td_data_of_file(const char *path);

/*
 * For the current context's device. CUDA_SUCCESS: td_data_settle has to follow; or
 * CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult td_data_claim(struct td_data_claim *ret, const struct td_image_data *data);
/* See td_outside_again: may the driver be asked again? */
bool td_data_again(struct td_data_claim *claim, CUresult r);
/* Returns r. */
CUresult td_data_settle(struct td_data_claim *claim, CUresult r, enum td_outside_key device,
	enum td_outside_key managed, uint64_t value);
