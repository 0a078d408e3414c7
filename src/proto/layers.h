/* The kinds of layers of a network that Mudi counts. See layer_kinds.def. */
#pragma once

#include <stdint.h>

enum td_layer_kind {
#define KIND(name, word, help) TD_LAYER_##name,
#include "proto/layer_kinds.def"
#undef KIND
	TD_LAYER_KINDS
};

struct td_err;

/* The words of the kinds, in their order. */
extern const char *const td_layer_words[TD_LAYER_KINDS];

/* The size of a buffer for the text of all counts, with the NUL. */
#define TD_LAYERS_TEXT (TD_LAYER_KINDS * 11 + 1)

/*
 * Parses TD_LAYER_KINDS counts separated by commas, such as "53,0,49,0,0,0,1,53,1,2,0". Returns 0,
 * or -EINVAL with *err, which quotes the text.
 */
int td_layers_parse(const char *text, uint32_t ret_counts[TD_LAYER_KINDS], struct td_err *err);
void td_layers_format(const uint32_t counts[TD_LAYER_KINDS], char ret[TD_LAYERS_TEXT]);
