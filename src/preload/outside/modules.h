/* Asks for the memory of the variables of a module or library, and counts it. */
#pragma once

#include "cuda/signatures.h"
#include "preload/image/image.h"
#include "preload/outside/outside.h"

struct td_data_claim {
	struct td_outside_claim device, managed;
};

/*
 * This many bytes of variables of a process, in modules on a device or in libraries, count as code
 * does. Beyond it memory is asked for, however little.
 */
#define TD_LITTLE_BYTES (1ull << 20)

struct td_image_data td_data_of_image(const void *image);
struct td_image_data td_data_of_file(const char *path);

/*
 * Claims the memory on the current context's device. CUDA_SUCCESS: the caller must call
 * td_data_settle; otherwise CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult td_data_claim(struct td_data_claim *ret, const struct td_image_data *data);
/* Returns whether the driver may be asked again. See td_outside_again(). */
bool td_data_again(struct td_data_claim *claim, CUresult r);
/* Settles the claim after the driver's result r, and returns r. */
CUresult td_data_settle(struct td_data_claim *claim, CUresult r, enum td_outside_key device,
	enum td_outside_key managed, uint64_t value);
