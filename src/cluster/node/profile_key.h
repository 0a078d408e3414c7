/* The names of profiles under profile/NODE/ in the state. */
#pragma once

#include <stddef.h>

#define TD_PROFILE_PREFIX   "profile/"
#define TD_PROFILE_FILE_MAX 80u

enum td_profile_file {
	TD_PROFILE_FILE_SPEEDS,  /* muxflow.speeds */
	TD_PROFILE_FILE_SERVICE, /* NAME.profile */
	TD_PROFILE_FILE_LAYERS,  /* NAME.layers */
	TD_PROFILE_FILE_NONE,    /* it is no profile */
};

/* Tells what a file is. Writes NAME, for those that have one. */
enum td_profile_file td_profile_file_of(const char *file, char ret_name[TD_PROFILE_FILE_MAX]);

struct td_err;

/* Checks that a value is what such a file has. Returns 0, or -errno and err. */
int td_profile_file_check(
	enum td_profile_file kind, const char *bytes, size_t size, struct td_err *err);
/* Reads the counts of a NAME.layers. Returns 0, or -EINVAL and err. */
int td_profile_layers(const char *bytes, size_t size, double *ret_layers, struct td_err *err);
