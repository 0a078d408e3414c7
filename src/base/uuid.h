/*
 * UUIDs of GPUs as NVIDIA's tools write them: "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"; a part of
 * a GPU has "MIG-..." instead.
 */
#pragma once

#include <stdint.h>

#define TD_UUID_TEXT 41 /* length with the NUL */

/* Writes the UUID of a GPU. Returns buf, which has TD_UUID_TEXT bytes. */
char *td_uuid_format(char *buf, const uint8_t *uuid);

/*
 * Parses a UUID of either kind, in upper or lower case. Returns 0, or -EINVAL for any other text.
 */
int td_uuid_parse(const char *text, uint8_t *ret_uuid);
