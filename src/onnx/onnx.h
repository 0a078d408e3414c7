/*
 * Counts the layers of a neural network in an ONNX file, as Mudi wants them (section 4.2: "for
 * models with static computation graphs, such as ONNX, the layers are extracted from the files").
 *
 * The file is walked in place. Weights are skipped, so that a file of gigabytes takes milliseconds.
 *
 * Counted are the nodes of the graph, of the graphs inside of its nodes (If, Loop, Scan), and for
 * each node that calls a function of the model, what is in that function. A function whose name
 * ends with EncoderLayer or DecoderLayer is such a layer besides. What the other operators are
 * says operators.def.
 *
 * An input is a weight if it is an initializer or made from one. Inside of a function nobody can
 * tell, and every input counts as one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/layers.h"

struct td_onnx_error {
	uint64_t offset; /* in the file */
	const char *why; /* static */
};

/*
 * 0: counts has the layers; a count stops at UINT32_MAX. -EBADMSG: not a model; *ret_error says
 * where and why. -ENOMEM.
 */
int td_onnx_layers(const void *model, size_t bytes, uint32_t counts[TD_LAYER_KINDS],
	struct td_onnx_error *ret_error);
/* Counts the layers of a file. Other errors: -errno of open() or mmap(), -EINVAL: not a file. */
int td_onnx_layers_of_file(
	const char *path, uint32_t counts[TD_LAYER_KINDS], struct td_onnx_error *ret_error);
