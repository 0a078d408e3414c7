/*
 * FNV-1a hashes, for tables keyed by names and small structs. They are not safe for keys that an
 * adversary chooses.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t td_hash_bytes(const void *data, size_t len);
uint64_t td_hash_str(const char *str);
