/* This file implements speed_file.h. */
#include "profile/speed_file.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/blob.h"
#include "profile/read.h"

#define MAGIC        0x7464007370640000ull
#define VERSION      1u
#define WORD         sizeof(uint64_t)
#define NAME_BYTES   64u
#define FIGURES      4u
#define PROGRAM_SIZE (NAME_BYTES + FIGURES * WORD)

void td_speed_file_deinit(struct td_speed_file *file)
{
	if (!file)
		return;
	for (uint32_t k = 0; k < file->count; k++) {
		free(file->kinds[k].programs);
		td_model_deinit(&file->kinds[k].model);
	}
	free(file->kinds);
	*file = (struct td_speed_file){0};
}

const struct td_speed_kind *td_speed_file_kind(const struct td_speed_file *file, const char *gpu)
{
	for (uint32_t k = 0; k < file->count; k++)
		if (!strcmp(file->kinds[k].gpu, gpu))
			return &file->kinds[k];
	return NULL;
}

const struct td_muxflow_profile *td_speed_kind_program(
	const struct td_speed_kind *kind, const char *name)
{
	for (uint32_t i = 0; i < kind->count; i++)
		if (!strcmp(kind->programs[i].name, name))
			return &kind->programs[i].alone;
	return NULL;
}

/* A name is followed by zeros only. */
static bool is_name(const char name[NAME_BYTES])
{
	size_t length = strnlen(name, NAME_BYTES);

	for (size_t i = length; i < NAME_BYTES; i++)
		if (name[i])
			return false;
	return length && length < NAME_BYTES;
}

/* -- writing -- */

struct writer {
	char *at;
};

static void put(struct writer *w, const void *bytes, size_t size)
{
	memcpy(w->at, bytes, size);
	w->at += size;
}

static void put_word(struct writer *w, uint64_t word)
{
	word = htole64(word);
	put(w, &word, sizeof(word));
}

static void put_double(struct writer *w, double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	put_word(w, bits);
}

/* The bytes behind a name are zeros, whatever the caller's are. */
static void put_name(struct writer *w, const char *name)
{
	char field[NAME_BYTES] = {0};

	memcpy(field, name, strnlen(name, NAME_BYTES - 1));
	put(w, field, sizeof(field));
}

static void put_kind(
	struct writer *w, const struct td_speed_kind *kind, const void *blob, size_t blob_size)
{
	put_name(w, kind->gpu);
	put_word(w, kind->count);
	put_word(w, blob_size);
	for (uint32_t i = 0; i < kind->count; i++) {
		const struct td_muxflow_profile *alone = &kind->programs[i].alone;

		put_name(w, kind->programs[i].name);
		put_double(w, alone->utilisation);
		put_double(w, alone->sm_activity);
		put_double(w, alone->sm_occupancy);
		put_double(w, alone->alone_s);
	}
	put(w, blob, blob_size);
}

int td_speed_file_to_bytes(const struct td_speed_file *file, void **ret_bytes, size_t *ret_size)
{
	void *blobs[TD_SPEED_KINDS_MAX] = {NULL};
	size_t sizes[TD_SPEED_KINDS_MAX], size = 2 * WORD;
	struct writer w = {NULL};
	char *bytes = NULL;
	int r = file->count > TD_SPEED_KINDS_MAX ? -EINVAL : 0;

	for (uint32_t k = 0; !r && k < file->count; k++) {
		r = file->kinds[k].count > TD_SPEED_PROGRAMS_MAX ? -EINVAL : 0;
		r = r ? r : td_model_to_blob(&file->kinds[k].model, &blobs[k], &sizes[k]);
		if (!r)
			size += NAME_BYTES + 2 * WORD + file->kinds[k].count * PROGRAM_SIZE +
				sizes[k];
	}
	bytes = r ? NULL : malloc(size);
	r = r || bytes ? r : -ENOMEM;
	if (!r) {
		w.at = bytes;
		put_word(&w, MAGIC | VERSION);
		put_word(&w, file->count);
		for (uint32_t k = 0; k < file->count; k++)
			put_kind(&w, &file->kinds[k], blobs[k], sizes[k]);
		*ret_bytes = bytes;
		*ret_size = size;
	}
	for (uint32_t k = 0; k < TD_SPEED_KINDS_MAX; k++)
		free(blobs[k]);
	return r;
}

/* -- reading -- */

struct reader {
	const char *at;
	size_t left;
};

/* Returns false if fewer bytes are left. */
static bool get(struct reader *r, void *bytes, size_t size)
{
	if (r->left < size)
		return false;
	memcpy(bytes, r->at, size);
	r->at += size;
	r->left -= size;
	return true;
}

static bool get_word(struct reader *r, uint64_t *word)
{
	if (!get(r, word, sizeof(*word)))
		return false;
	*word = le64toh(*word);
	return true;
}

/* Returns false also if the figure cannot be one of a program. */
static bool get_figure(struct reader *r, double *x)
{
	uint64_t bits;

	if (!get_word(r, &bits))
		return false;
	memcpy(x, &bits, sizeof(*x));
	return isfinite(*x) && *x >= 0;
}

static int ends(struct td_err *err)
{
	return td_err_set(err, -EINVAL, "it ends too early");
}

static int get_programs(struct reader *r, struct td_speed_kind *kind, struct td_err *err)
{
	for (uint32_t i = 0; i < kind->count; i++) {
		struct td_speed_program *program = &kind->programs[i];
		struct td_muxflow_profile *alone = &program->alone;

		if (!get(r, program->name, sizeof(program->name)) || !is_name(program->name) ||
			!get_figure(r, &alone->utilisation) ||
			!get_figure(r, &alone->sm_activity) ||
			!get_figure(r, &alone->sm_occupancy) || !get_figure(r, &alone->alone_s))
			return td_err_set(err, -EINVAL,
				"program %u in it has no valid name, or a figure that is not a "
				"number of at least 0",
				i + 1);
	}
	return 0;
}

static int get_model(
	struct reader *r, struct td_speed_kind *kind, uint64_t size, struct td_err *err)
{
	int e;

	if (size > r->left)
		return ends(err);
	e = td_model_from_blob(r->at, (size_t)size, &kind->model);
	if (e)
		return td_err_set(
			err, e, "the file's predictor for \"%.63s\" is damaged", kind->gpu);
	r->at += size;
	r->left -= (size_t)size;
	return kind->model.predictor.inputs == TD_MUXFLOW_INPUTS
		       ? 0
		       : td_err_set(err, -EINVAL,
				 "the file's predictor for \"%.63s\" has %u inputs: expected %d",
				 kind->gpu, kind->model.predictor.inputs, TD_MUXFLOW_INPUTS);
}

static int get_kind(struct reader *r, struct td_speed_kind *kind, struct td_err *err)
{
	uint64_t count, size;
	int e;

	if (!get(r, kind->gpu, sizeof(kind->gpu)) || !get_word(r, &count) || !get_word(r, &size))
		return ends(err);
	if (!is_name(kind->gpu))
		return td_err_set(err, -EINVAL, "the name of a GPU in it is not valid");
	if (count > TD_SPEED_PROGRAMS_MAX || count * PROGRAM_SIZE > r->left)
		return ends(err);
	kind->programs = calloc(count ? (size_t)count : 1, sizeof(*kind->programs));
	if (!kind->programs)
		return td_err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	kind->count = (uint32_t)count;
	e = get_programs(r, kind, err);
	return e ? e : get_model(r, kind, size, err);
}

static int get_kinds(
	struct reader *r, uint64_t count, struct td_speed_file *file, struct td_err *err)
{
	int e = 0;

	if (count > TD_SPEED_KINDS_MAX)
		return td_err_set(
			err, -EINVAL, "it has more than %u kinds of GPU", TD_SPEED_KINDS_MAX);
	file->kinds = calloc(count ? (size_t)count : 1, sizeof(*file->kinds));
	if (!file->kinds)
		return td_err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	while (!e && file->count < count)
		e = get_kind(r, &file->kinds[file->count++], err);
	if (!e && r->left)
		e = td_err_set(err, -EINVAL, "it has %zu bytes behind its end", r->left);
	return e;
}

int td_speed_file_from_bytes(
	const void *bytes, size_t size, struct td_speed_file *ret_file, struct td_err *err)
{
	struct td_speed_file file = {0};
	struct reader r = {bytes, size};
	uint64_t magic, count;
	int e;

	if (!get_word(&r, &magic) || (magic & ~0xffffull) != MAGIC)
		return td_err_set(err, -EINVAL,
			"it is not a file of speeds, as tandem profile campaign writes");
	if (magic != (MAGIC | VERSION))
		return td_err_set(err, -EINVAL,
			"the file has version %u: expected %u, which tandem profile campaign "
			"writes",
			(unsigned)(magic & 0xffff), VERSION);
	e = get_word(&r, &count) ? get_kinds(&r, count, &file, err) : ends(err);
	if (e)
		td_speed_file_deinit(&file);
	else
		*ret_file = file;
	return e;
}

int td_speed_file_load(int folder_fd, struct td_speed_file *ret_file, struct td_err *err)
{
	char *bytes = NULL;
	size_t size = 0;
	int r = td_profile_read(folder_fd, TD_SPEED_FILE, &bytes, &size, err);

	if (!r)
		r = td_speed_file_from_bytes(bytes, size, ret_file, err);
	free(bytes);
	return r;
}
