/*
 * Cubins: ELF files of machine code for one architecture. None can run here; they are read so that
 * a refusal can say what it refuses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SG_CUBIN_MACHINE 190u /* EM_CUDA */

struct sg_cubin {
	uint32_t sm;         /* 90 for sm_90a too: the ELF header does not contain the "a" or "f" */
	bool is_relocatable; /* it was made by nvcc -dc and must be linked first */
	size_t kernels;      /* the number of kernels; of functions if it is relocatable */
};

/*
 * Reads an image of at most len bytes, or SIZE_MAX if the length is unknown. Returns false if it is
 * no cubin, or one whose tables lie outside it.
 */
bool sg_cubin_read(const void *image, size_t len, struct sg_cubin *ret);

/* The name of kernel index, within the image; NULL: no such one. For images that were read. */
const char *sg_cubin_kernel(const void *image, size_t len, size_t index);
