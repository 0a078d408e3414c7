/* Reads and writes profiles of services; see service.h. */
#include "profile/service.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/blob.h"
#include "profile/read.h"

#define MAGIC   0x7464007072660000ull
#define VERSION 1u
/* The version of a service that has met a company while it ran. */
#define VERSION_MET 2u
#define MET_WORDS   (TD_MUDI_LAYERS + 3u)

enum {
	W_MAGIC,
	W_GPU,
	W_BATCH_MIN = W_GPU + 8,
	W_BATCH_MAX,
	W_CURVES,
	W_ERRORS,
	W_SIZES = W_ERRORS + TD_PROFILE_MODELS,
	W_HEADER = W_SIZES + TD_PROFILE_MODELS,
};

#define HEADER_BYTES (W_HEADER * sizeof(uint64_t))

void td_service_profile_deinit(struct td_service_profile *profile)
{
	if (!profile)
		return;
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++)
		td_model_deinit(&profile->models[m]);
	*profile = (struct td_service_profile){0};
}

struct td_mudi_service td_service_profile_curves(const struct td_service_profile *profile)
{
	const struct td_model *models = profile->models;

	return (struct td_mudi_service){
		.left_slope = &models[TD_PROFILE_LEFT_SLOPE].predictor,
		.right_slope = &models[TD_PROFILE_RIGHT_SLOPE].predictor,
		.knee_share = &models[TD_PROFILE_KNEE_SHARE].predictor,
		.knee_latency = &models[TD_PROFILE_KNEE_LATENCY].predictor,
		.batch_min = profile->batch_min,
		.batch_max = profile->batch_max,
		.error_s = profile->error[TD_PROFILE_KNEE_LATENCY],
		.met = profile->met,
		.met_count = profile->met_count,
	};
}

static void put_header(
	uint64_t *words, const struct td_service_profile *profile, const size_t *sizes)
{
	words[W_MAGIC] = htole64(MAGIC | (profile->met_count ? VERSION_MET : VERSION));
	memcpy(&words[W_GPU], profile->gpu, sizeof(profile->gpu));
	words[W_BATCH_MIN] = htole64(profile->batch_min);
	words[W_BATCH_MAX] = htole64(profile->batch_max);
	words[W_CURVES] = htole64(profile->curve_count);
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++) {
		uint64_t bits;

		memcpy(&bits, &profile->error[m], sizeof(bits));
		words[W_ERRORS + m] = htole64(bits);
		words[W_SIZES + m] = htole64(sizes[m]);
	}
}

static uint64_t to_word(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return htole64(bits);
}

static double to_number(uint64_t word)
{
	uint64_t bits = le64toh(word);
	double number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

static size_t met_bytes(uint32_t count)
{
	return count ? (1 + (size_t)count * MET_WORDS) * sizeof(uint64_t) : 0;
}

static void put_met(char *at, const struct td_service_profile *profile)
{
	uint64_t words[1 + TD_PROFILE_MET_MAX * MET_WORDS], *word = words;

	*word++ = htole64(profile->met_count);
	for (uint32_t i = 0; i < profile->met_count; i++) {
		const struct td_mudi_met *met = &profile->met[i];

		for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
			*word++ = to_word(met->layers[k]);
		*word++ = to_word(met->factor);
		*word++ = htole64(met->points);
		*word++ = htole64(met->time_s);
	}
	memcpy(at, words, met_bytes(profile->met_count));
}

static bool is_good(const struct td_mudi_met *met)
{
	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		if (!isfinite(met->layers[k]) || met->layers[k] < 0)
			return false;
	return met->factor >= 1 / TD_PROFILE_FACTOR_MAX && met->factor <= TD_PROFILE_FACTOR_MAX;
}

/* Reads the companies, which are the rest of the file. */
static int read_met(
	const char *bytes, size_t size, struct td_service_profile *profile, struct td_err *err)
{
	uint64_t words[1 + TD_PROFILE_MET_MAX * MET_WORDS];
	const uint64_t *word = words + 1;

	if (size < sizeof(*words) || size > sizeof(words))
		return td_err_set(err, -EINVAL, "it has no companies that the service has met");
	memcpy(words, bytes, size);
	if (!words[0] || le64toh(words[0]) > TD_PROFILE_MET_MAX ||
		size != met_bytes((uint32_t)le64toh(words[0])))
		return td_err_set(err, -EINVAL, "the number of companies in it is not valid");
	for (; profile->met_count < le64toh(words[0]); profile->met_count++) {
		struct td_mudi_met *met = &profile->met[profile->met_count];

		for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
			met->layers[k] = to_number(*word++);
		met->factor = to_number(*word++);
		met->points = le64toh(*word++);
		met->time_s = le64toh(*word++);
		if (!is_good(met))
			return td_err_set(err, -EINVAL, "company %u in it is not valid",
				profile->met_count + 1);
	}
	return 0;
}

int td_service_profile_to_bytes(
	const struct td_service_profile *profile, void **ret_bytes, size_t *ret_size)
{
	void *blobs[TD_PROFILE_MODELS] = {NULL};
	size_t sizes[TD_PROFILE_MODELS], size = HEADER_BYTES + met_bytes(profile->met_count);
	char *bytes = NULL, *at;
	int r = 0;

	for (unsigned m = 0; !r && m < TD_PROFILE_MODELS; m++) {
		r = td_model_to_blob(&profile->models[m], &blobs[m], &sizes[m]);
		size += r ? 0 : sizes[m];
	}
	if (!r) {
		bytes = malloc(size);
		r = bytes ? 0 : -ENOMEM;
	}
	if (!r) {
		uint64_t words[W_HEADER];

		put_header(words, profile, sizes);
		memcpy(bytes, words, sizeof(words));
		at = bytes + HEADER_BYTES;
		for (unsigned m = 0; m < TD_PROFILE_MODELS; at += sizes[m++])
			memcpy(at, blobs[m], sizes[m]);
		if (profile->met_count)
			put_met(at, profile);
		*ret_bytes = bytes;
		*ret_size = size;
	}
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++)
		free(blobs[m]);
	return r;
}

static bool read_batches(const uint64_t *words, struct td_service_profile *profile)
{
	uint64_t least = le64toh(words[W_BATCH_MIN]), most = le64toh(words[W_BATCH_MAX]);

	profile->batch_min = (uint32_t)least;
	profile->batch_max = (uint32_t)most;
	return least && least <= most && most <= TD_PROFILE_BATCH_MAX;
}

/* False: an error is not a number of at least 0. */
static bool read_errors(const uint64_t *words, struct td_service_profile *profile)
{
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++) {
		uint64_t bits = le64toh(words[W_ERRORS + m]);

		memcpy(&profile->error[m], &bits, sizeof(bits));
		if (!isfinite(profile->error[m]) || profile->error[m] < 0)
			return false;
	}
	return true;
}

static int read_models(const char *bytes, size_t size, const uint64_t *words,
	struct td_service_profile *profile, struct td_err *err)
{
	for (unsigned m = 0; m < TD_PROFILE_MODELS; m++) {
		uint64_t part = le64toh(words[W_SIZES + m]);
		int r;

		if (part > size)
			return td_err_set(err, -EINVAL, "it ends within model %u", m + 1);
		r = td_model_from_blob(bytes, (size_t)part, &profile->models[m]);
		if (r)
			return td_err_set(err, r, "model %u is damaged", m + 1);
		if (profile->models[m].predictor.inputs != TD_MUDI_INPUTS)
			return td_err_set(err, -EINVAL,
				"model %u has %u inputs: expected %u, which are the layers and the "
				"batch",
				m + 1, profile->models[m].predictor.inputs, TD_MUDI_INPUTS);
		bytes += part;
		size -= (size_t)part;
	}
	if (le64toh(words[W_MAGIC]) == (MAGIC | VERSION_MET))
		return read_met(bytes, size, profile, err);
	return size ? td_err_set(err, -EINVAL,
			      "the file has %zu bytes behind its models: expected none", size)
		    : 0;
}

int td_service_profile_from_bytes(
	const void *bytes, size_t size, struct td_service_profile *ret_profile, struct td_err *err)
{
	struct td_service_profile profile = {0};
	uint64_t words[W_HEADER];
	int r;

	if (size < HEADER_BYTES)
		return td_err_set(err, -EINVAL, "it is not a profile of a service");
	memcpy(words, bytes, sizeof(words));
	if ((le64toh(words[W_MAGIC]) & ~0xffffull) != MAGIC)
		return td_err_set(err, -EINVAL, "it is not a profile of a service");
	if (le64toh(words[W_MAGIC]) != (MAGIC | VERSION) &&
		le64toh(words[W_MAGIC]) != (MAGIC | VERSION_MET))
		return td_err_set(err, -EINVAL,
			"the profile has version %u: expected %u or %u, which tandem profile "
			"service writes",
			(unsigned)(le64toh(words[W_MAGIC]) & 0xffff), VERSION, VERSION_MET);
	memcpy(profile.gpu, &words[W_GPU], sizeof(profile.gpu));
	profile.curve_count = le64toh(words[W_CURVES]);
	if (!read_errors(words, &profile))
		return td_err_set(
			err, -EINVAL, "the error of a model in it is not a number of at least 0");
	if (!memchr(profile.gpu, 0, sizeof(profile.gpu)) || !read_batches(words, &profile))
		return td_err_set(err, -EINVAL,
			"the name of the GPU or the range of batches in it is not valid");
	r = read_models(
		(const char *)bytes + HEADER_BYTES, size - HEADER_BYTES, words, &profile, err);
	if (r)
		td_service_profile_deinit(&profile);
	else
		*ret_profile = profile;
	return r;
}

int td_service_profile_load(
	int folder_fd, const char *file, struct td_service_profile *ret_profile, struct td_err *err)
{
	char *bytes = NULL;
	size_t size = 0;
	int r = td_profile_read(folder_fd, file, &bytes, &size, err);

	if (!r)
		r = td_service_profile_from_bytes(bytes, size, ret_profile, err);
	free(bytes);
	return r;
}

int td_profile_check_name(const char *name, struct td_err *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._+-";

	if (*name && *name != '.' && !name[strspn(name, allowed)] && strlen(name) < 64)
		return 0;
	return td_err_expected(err, -EINVAL, name,
		"a service's name of at most 63 letters, digits and . _ + -, not a dot first");
}
