/* This file implements profile_key.h. */
#include "cluster/node/profile_key.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "profile/service.h"
#include "profile/speed_file.h"
#include "proto/layers.h"

_Static_assert(TD_LAYER_KINDS == TD_MUDI_LAYERS, "the kinds of layers are those of the models");

enum td_profile_file td_profile_file_of(const char *file, char ret_name[TD_PROFILE_FILE_MAX])
{
	static const struct {
		const char *suffix;
		enum td_profile_file kind;
	} kinds[] = {
		{TD_PROFILE_SUFFIX, TD_PROFILE_FILE_SERVICE}, {".layers", TD_PROFILE_FILE_LAYERS}};
	size_t length = strlen(file);

	if (!strcmp(file, TD_SPEED_FILE))
		return TD_PROFILE_FILE_SPEEDS;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		size_t suffix = strlen(kinds[k].suffix), name = length - suffix;
		struct td_err err;

		if (length <= suffix || length >= TD_PROFILE_FILE_MAX ||
			strcmp(file + name, kinds[k].suffix) != 0)
			continue;
		memcpy(ret_name, file, name);
		ret_name[name] = 0;
		return td_profile_check_name(ret_name, &err) ? TD_PROFILE_FILE_NONE : kinds[k].kind;
	}
	return TD_PROFILE_FILE_NONE;
}

int td_profile_layers(const char *bytes, size_t size, double *ret_layers, struct td_err *err)
{
	uint32_t counts[TD_LAYER_KINDS];
	char text[TD_LAYERS_TEXT];
	int r;

	while (size && (bytes[size - 1] == '\n' || bytes[size - 1] == '\r'))
		size--;
	if (size >= sizeof(text) || memchr(bytes, 0, size))
		return td_err_set(err, -EINVAL, "expected %u counts of layers between commas",
			(unsigned)TD_LAYER_KINDS);
	memcpy(text, bytes, size);
	text[size] = 0;
	r = td_layers_parse(text, counts, err);
	for (uint32_t k = 0; !r && k < TD_LAYER_KINDS; k++)
		ret_layers[k] = counts[k];
	return r;
}

int td_profile_file_check(
	enum td_profile_file kind, const char *bytes, size_t size, struct td_err *err)
{
	double layers[TD_LAYER_KINDS];
	struct td_service_profile service = {.batch_min = 0};
	struct td_speed_file speeds = {.count = 0};
	int r;

	switch (kind) {
	case TD_PROFILE_FILE_SPEEDS:
		r = td_speed_file_from_bytes(bytes, size, &speeds, err);
		if (!r)
			td_speed_file_deinit(&speeds);
		return r;
	case TD_PROFILE_FILE_SERVICE:
		r = td_service_profile_from_bytes(bytes, size, &service, err);
		if (!r)
			td_service_profile_deinit(&service);
		return r;
	case TD_PROFILE_FILE_LAYERS: return td_profile_layers(bytes, size, layers, err);
	case TD_PROFILE_FILE_NONE: break;
	}
	return td_err_set(err, -EINVAL, "it is no profile");
}
