/*
 * Parses bytes as the profile of a service; an accepted one must evaluate without harm and be
 * written as the same bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/service.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const double layers[TD_MUDI_LAYERS] = {1, 2, 0.5};
	struct td_service_profile profile;
	struct td_mudi_service curves;
	struct td_err err = {0};
	void *bytes;
	size_t written;

	if (td_service_profile_from_bytes(data, size, &profile, &err)) {
		if (!err.msg[0])
			abort();
		return 0;
	}
	curves = td_service_profile_curves(&profile);
	(void)td_mudi_curve(&curves, layers, profile.batch_max);
	(void)td_mudi_score(&curves, layers);
	if (td_service_profile_to_bytes(&profile, &bytes, &written))
		abort();
	if (written != size)
		abort();
	free(bytes);
	td_service_profile_deinit(&profile);
	return 0;
}
