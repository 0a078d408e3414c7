/* What the variables of a module or library take: asking for it, and how it counts. */
#pragma once

#include "cuda/signatures.h"
#include "preload/image/image.h"
#include "preload/outside/outside.h"

struct td_data_claim {
	struct td_outside_claim device, managed;
};

/* So much of a process's variables, in modules on a device or in libraries, counts as code does: what comes on top of that is asked for, however little it is. */
#define TD_LITTLE_BYTES (1ull << 20)

struct td_image_data td_data_of_image(const void *image);
struct td_image_data td_data_of_file(const char *path);

/* For the current context's device. CUDA_SUCCESS, then td_data_settle has to follow; or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult td_data_claim(struct td_data_claim *ret, const struct td_image_data *data);
/* As td_outside_again: is it worth asking the driver again? */
bool td_data_again(struct td_data_claim *claim, CUresult r);
/* Returns r. */
CUresult td_data_settle(struct td_data_claim *claim, CUresult r, enum td_outside_key device,
	enum td_outside_key managed, uint64_t value);
