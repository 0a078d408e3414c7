/* Reads files of profiles, which anybody may have written. */
#pragma once

#include <stddef.h>

struct td_err;

#define TD_PROFILE_BYTES_MAX (8u << 20)

/*
 * Reads a regular file of a folder, through no link. The caller frees *ret_bytes. Returns 0, or
 * -errno with err; -EFBIG: it has more than TD_PROFILE_BYTES_MAX.
 */
int td_profile_read(
	int folder_fd, const char *file, char **ret_bytes, size_t *ret_size, struct td_err *err);
