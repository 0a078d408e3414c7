/*
 * Takes the first line as the name of a profile under profile/NODE/, and the rest as its value. A
 * value that is refused has a sentence, and one of layers is eleven counts.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cluster/node/profile_key.h"
#include "policy/algo/fit/mudi_curve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
	char file[2 * TD_PROFILE_FILE_MAX], name[TD_PROFILE_FILE_MAX] = "";
	double layers[TD_MUDI_LAYERS];
	enum td_profile_file kind;
	struct td_err err = {0};
	const char *value;
	size_t left;

	if (!end || (size_t)(end - data) >= sizeof(file))
		return 0;
	memcpy(file, data, (size_t)(end - data));
	file[end - data] = 0;
	value = (const char *)end + 1;
	left = size - (size_t)(end - data) - 1;
	kind = td_profile_file_of(file, name);
	if (td_profile_file_check(kind, value, left, &err)) {
		if (!err.msg[0])
			abort();
		return 0;
	}
	if (kind == TD_PROFILE_FILE_NONE || strlen(name) >= sizeof(name))
		abort();
	if (kind != TD_PROFILE_FILE_LAYERS)
		return 0;
	if (td_profile_layers(value, left, layers, &err))
		abort();
	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		if (!isfinite(layers[k]) || layers[k] < 0)
			abort();
	return 0;
}
