/*
 * Parses bytes as a file of speeds; an accepted one must evaluate without harm and be written as
 * the same bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/speed_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct td_speed_file file;
	struct td_err err = {0};
	void *bytes;
	size_t written;

	if (td_speed_file_from_bytes(data, size, &file, &err)) {
		if (!err.msg[0])
			abort();
		return 0;
	}
	for (uint32_t k = 0; k < file.count; k++)
		for (uint32_t i = 0; i < file.kinds[k].count; i++) {
			const struct td_muxflow_profile *alone = &file.kinds[k].programs[i].alone;
			double inputs[TD_MUXFLOW_INPUTS];

			td_muxflow_inputs(alone, alone, 300000, inputs);
			(void)td_predict(&file.kinds[k].model.predictor, inputs);
		}
	if (td_speed_file_to_bytes(&file, &bytes, &written))
		abort();
	if (written != size || memcmp(bytes, data, size))
		abort();
	free(bytes);
	td_speed_file_deinit(&file);
	return 0;
}
