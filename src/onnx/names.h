/*
 * A set of names, kept as their 64-bit hashes. Two names of one hash are one; that moves a count of
 * layers by one at most.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnx/wire.h"

#define TD_NAMES_MAX (1u << 24)

struct td_names {
	uint64_t *slots; /* 0: free */
	size_t size, used;
};

/* Never 0. */
uint64_t td_name_hash(struct td_span name);
/* 0, -ENOMEM, or -E2BIG: there are TD_NAMES_MAX already. */
int td_names_add(struct td_names *names, uint64_t hash);
bool td_names_has(const struct td_names *names, uint64_t hash);
void td_names_free(struct td_names *names);
