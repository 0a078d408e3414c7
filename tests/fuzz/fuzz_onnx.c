/* Arbitrary ONNX files. */
#include <assert.h>
#include <errno.h>

#include "onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t counts[TD_LAYER_KINDS];
	struct td_onnx_error error;
	int r = td_onnx_layers(data, size, counts, &error);

	assert(r == 0 || r == -EBADMSG || r == -ENOMEM);
	assert(r != -EBADMSG || (error.why && error.offset <= size));
	return 0;
}
