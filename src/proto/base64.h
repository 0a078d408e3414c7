/* Base64 (RFC 4648, with padding), for bytes in JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct td_text;

/* Appends the bytes to the text as base64. */
void td_base64_add(struct td_text *text, const char *bytes, size_t length);
/*
 * Decodes a text into at least length / 4 * 3 + 1 bytes and ends them with a NUL. Returns false if
 * it is not base64.
 */
bool td_base64_decode(const char *text, size_t length, char *ret_bytes, size_t *ret_length);
