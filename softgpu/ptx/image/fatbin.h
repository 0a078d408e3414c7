/*
 * The containers that nvcc puts kernels in: a fat binary holds entries of PTX text and of machine
 * code, each for one architecture. Offsets and flags: docs of the format do not exist; what is here
 * was observed in nvcc 13's output.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Outcomes > 0. */
enum sg_fatbin_outcome {
	SG_FATBIN_COMPRESSED = 1, /* compressed in a way that this build does not support */
	SG_FATBIN_NO_BINARY,      /* only machine code, or only PTX for other architectures */
	SG_FATBIN_MALFORMED,      /* not a fat binary, or one that contradicts itself */
};

#define SG_FATBIN_WRAPPER_MAGIC 0x466243b1u
#define SG_FATBIN_MAGIC         0xBA55ED50u

/* The most bytes of a text after decompression. */
#define SG_FATBIN_MAX_TEXT (256u << 20)

/* The argument of __cudaRegisterFatBinary. */
struct sg_fatbin_wrapper {
	uint32_t magic, version;
	const void *data;
	const void *filename_or_fatbins; /* version 2 (-rdc): NULL-terminated array of headers */
};

struct sg_fatbin_ptx {
	const char *text; /* points into the image, or to `owned` */
	size_t len;       /* without trailing NULs */
	uint32_t sm;
	char *owned; /* the text of a compressed entry; sg_fatbin_ptx_deinit() frees it */
};

/*
 * Finds the PTX entry that a GPU of architecture sm (75, 90, ...) is given, in an image of at most
 * len bytes, and unpacks it. That is the one for the highest architecture up to sm; an entry for
 * sm_90a is for sm 90 alone, one for sm_100f for 100 and what follows within its ten; of several
 * for one architecture the plain one, as the others' extras are not here. For a registered image,
 * whose length nobody knows, pass SIZE_MAX: the header's own size bounds it. 0, -ENOMEM or an
 * enum sg_fatbin_outcome.
 */
int sg_fatbin_find_ptx(const void *image, size_t len, uint32_t sm, struct sg_fatbin_ptx *ret);
void sg_fatbin_ptx_deinit(struct sg_fatbin_ptx *ptx);

/*
 * Like sg_fatbin_find_ptx(), for the image with that index (from 0) in a wrapper. Version 1 has one
 * image, version 2 any number. Returns SG_FATBIN_MALFORMED if there is no such image; see
 * sg_fatbin_wrapper_count().
 */
int sg_fatbin_wrapper_find_ptx(const struct sg_fatbin_wrapper *wrapper, size_t index, uint32_t sm,
	struct sg_fatbin_ptx *ret);

/* Returns the number of images; 0 if it is not a wrapper. */
size_t sg_fatbin_wrapper_count(const struct sg_fatbin_wrapper *wrapper);
