/*
 * Parses bytes as a stored model; an accepted model must evaluate without harm and survive a round
 * trip.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profile/blob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	double x[TD_PREDICT_INPUTS_MAX] = {1, -1, 0.5};
	struct td_model model, again;
	void *bytes;
	size_t written;

	if (td_model_from_blob(data, size, &model) < 0)
		return 0;
	(void)td_predict(&model.predictor, x);
	if (td_model_to_blob(&model, &bytes, &written) < 0)
		abort();
	if (written != size || td_model_from_blob(bytes, written, &again) < 0)
		abort();
	td_model_deinit(&again);
	td_model_deinit(&model);
	free(bytes);
	return 0;
}
