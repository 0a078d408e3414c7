/* Reads CSV; see csv.h. */
#include "sim/base/csv.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"

#ifdef TD_HAVE_ZLIB
#include <zlib.h>
#endif

#define CHUNK 65536u

int td_csv_error(const struct td_csv *csv, struct td_err *err, const char *format, ...)
{
	char what[TD_ERR_MSG_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return td_err_set(err, -EINVAL, "%.100s:%u: %.140s", csv->name, csv->line, what);
}

void td_csv_put_quoted(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

/* Splits one row in place. Afterwards the next row begins at csv->at, whatever this returns. */
static int cut(struct td_csv *csv, char **fields, uint32_t *ret_count, struct td_err *err)
{
	uint32_t count = 0;
	char *in = csv->at, *line_end = memchr(in, '\n', (size_t)(csv->end - in));
	char *stop = line_end ? line_end : csv->end;

	csv->line++;
	csv->at = line_end ? line_end + 1 : csv->end;
	if (stop > in && stop[-1] == '\r')
		stop--;
	*stop = 0;
	for (;;) {
		char *out = in;

		if (count == TD_CSV_COLUMNS_MAX)
			return td_csv_error(csv, err,
				"the line has more than %d fields, which is the most allowed",
				TD_CSV_COLUMNS_MAX);
		fields[count++] = out;
		if (*in == '"') {
			in++;
			for (; in < stop && (*in != '"' || in[1] == '"'); in++) {
				if (*in == '"')
					in++;
				*out++ = *in;
			}
			if (in >= stop)
				return td_csv_error(csv, err, "a quote is not closed on its line");
			in++;
			if (in < stop && *in != ',')
				return td_csv_error(
					csv, err, "\"%.20s\" after a quote: expected a comma", in);
		} else {
			while (in < stop && *in != ',')
				in++;
			out = in;
		}
		if (in >= stop) {
			*out = 0;
			break;
		}
		in++;
		*out = 0;
	}
	*ret_count = count;
	return 0;
}

static void skip_empty(struct td_csv *csv)
{
	while (csv->at < csv->end &&
		(*csv->at == '\n' || (*csv->at == '\r' && csv->at[1] == '\n'))) {
		csv->at += *csv->at == '\r' ? 2 : 1;
		csv->line++;
	}
}

/* Refuses two columns of one name, of which only the first would be read. */
static int refuse_twins(const struct td_csv *csv, struct td_err *err)
{
	for (uint32_t i = 0; i < csv->column_count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (*csv->columns[i] && !strcmp(csv->columns[i], csv->columns[j]))
				return td_csv_error(csv, err, "two columns are called \"%.32s\"",
					csv->columns[i]);
	return 0;
}

static int read_header(struct td_csv *csv, struct td_err *err)
{
	int r;

	/*
	 * Skips the byte order mark that spreadsheets put first, or it would be part of the first
	 * column's name.
	 */
	if (csv->end - csv->at >= 3 && !memcmp(csv->at, "\xef\xbb\xbf", 3))
		csv->at += 3;
	skip_empty(csv);
	if (csv->at >= csv->end)
		return td_err_set(err, -EINVAL, "%.100s: the file is empty: expected a header line",
			csv->name);
	if (memchr(csv->at, 0, (size_t)(csv->end - csv->at)))
		return td_err_set(err, -EINVAL,
			"%.100s: the file is not text: expected CSV, or gzipped CSV", csv->name);
	r = cut(csv, csv->columns, &csv->column_count, err);
	return r ? r : refuse_twins(csv, err);
}

static int begin_csv(
	struct td_csv *csv, const char *name, char *text, size_t length, struct td_err *err)
{
	int r;

	*csv = (struct td_csv){
		.name = strdup(name), .text = text, .at = text, .end = text + length};
	if (!csv->name) {
		free(text);
		return td_err_set(err, -ENOMEM, "out of memory");
	}
	r = read_header(csv, err);
	if (r)
		td_csv_close(csv);
	return r;
}

int td_csv_open_text(
	struct td_csv *csv, const char *name, const char *text, size_t length, struct td_err *err)
{
	char *copy = malloc(length + 1);

	if (!copy)
		return td_err_set(err, -ENOMEM, "out of memory");
	memcpy(copy, text, length);
	copy[length] = 0;
	return begin_csv(csv, name, copy, length, err);
}

#ifdef TD_HAVE_ZLIB
typedef gzFile source;
#define source_open(path)          gzopen(path, "rb")
#define source_read(file, to, len) gzread(file, to, len)
#define source_close(file)         gzclose(file)
#else
typedef FILE *source;
#define source_open(path)          fopen(path, "rb")
#define source_read(file, to, len) (ferror(file) ? -1 : (int)fread(to, 1, len, file))
#define source_close(file)         fclose(file)
#endif

/* Reads the whole file and adds a 0. */
static int slurp(source file, const char *path, char **ret, size_t *ret_length, struct td_err *err)
{
	td_auto_free char *text = NULL;
	size_t length = 0, room = 0;

	for (;;) {
		int got;

		if (room - length < CHUNK + 1) {
			char *larger;

			if (room > TD_CSV_BYTES_MAX)
				return td_err_set(err, -EFBIG,
					"%.100s: the file is larger than %llu MiB, which is the "
					"most allowed",
					path, TD_CSV_BYTES_MAX >> 20);
			room = room ? 2 * room : 4 * CHUNK;
			larger = realloc(text, room);
			if (!larger)
				return td_err_set(err, -ENOMEM, "%.100s: out of memory", path);
			text = larger;
		}
		got = source_read(file, text + length, CHUNK);
		if (got < 0)
			return td_err_set(err, -EIO, "%.100s: cannot be read", path);
		if (!got)
			break;
		length += (size_t)got;
	}
	text[length] = 0;
	*ret = td_steal(&text);
	*ret_length = length;
	return 0;
}

int td_csv_open(struct td_csv *csv, const char *path, struct td_err *err)
{
	source file = source_open(path);
	size_t length = 0;
	char *text = NULL;
	int r;

	if (!file)
		return td_err_set(
			err, errno ? -errno : -ENOMEM, "%.160s: %s", path, strerror(errno));
	r = slurp(file, path, &text, &length, err);
	/* Only closing tells that a packed file ends too early: Z_BUF_ERROR. */
	if (source_close(file) && !r) {
		free(text);
		r = td_err_set(err, -EIO, "%.160s: the gzipped data end too early", path);
	}
	if (r)
		return r;
	if (length >= 2 && !memcmp(text, "\x1f\x8b", 2)) {
		free(text);
		return td_err_set(err, -ENOSYS,
			"%.100s: the file is gzipped, and this program was built without zlib: "
			"unpack it first",
			path);
	}
	return begin_csv(csv, path, text, length, err);
}

void td_csv_close(struct td_csv *csv)
{
	if (!csv)
		return;
	free(csv->name);
	free(csv->text);
	*csv = (struct td_csv){0};
}

int td_csv_column(const struct td_csv *csv, const char *name)
{
	for (uint32_t i = 0; i < csv->column_count; i++)
		if (!strcmp(csv->columns[i], name))
			return (int)i;
	return -1;
}

int td_csv_need(const struct td_csv *csv, const char *const *names, uint32_t count, int *ret,
	struct td_err *err)
{
	for (uint32_t i = 0; i < count; i++) {
		ret[i] = td_csv_column(csv, names[i]);
		if (ret[i] < 0)
			return td_err_set(err, -EINVAL, "%.100s:1: there is no column \"%s\"",
				csv->name, names[i]);
	}
	return 0;
}

int td_csv_next(struct td_csv *csv, struct td_err *err)
{
	int r;

	skip_empty(csv);
	if (csv->at >= csv->end)
		return 1;
	csv->field_count = 0;
	r = cut(csv, csv->fields, &csv->field_count, err);
	if (!r && csv->field_count != csv->column_count)
		r = td_csv_error(csv, err, "%u fields: expected %u as in the header",
			csv->field_count, csv->column_count);
	return r;
}

const char *td_csv_text(const struct td_csv *csv, int column)
{
	return column >= 0 && (uint32_t)column < csv->field_count ? csv->fields[column] : "";
}

int td_csv_number(const struct td_csv *csv, int column, double min, double max, double *ret,
	struct td_err *err)
{
	const char *text = td_csv_text(csv, column);
	const char *name = column >= 0 ? csv->columns[column] : "?";
	char *rest;
	double value;

	/* strtod alone would accept "nan", "inf", hexadecimal numbers and leading blanks. */
	if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
		return td_csv_error(csv, err, "%.32s is \"%.32s\": expected a number", name, text);
	value = strtod(text, &rest);
	if (*rest || !isfinite(value))
		return td_csv_error(csv, err, "%.32s is \"%.32s\": expected a number", name, text);
	if (value < min || value > max)
		return td_csv_error(
			csv, err, "%.32s is %.32s: expected %.15g to %.15g", name, text, min, max);
	*ret = value;
	return 0;
}

int td_csv_number_or(const struct td_csv *csv, int column, double min, double max, double otherwise,
	double *ret, struct td_err *err)
{
	if (!*td_csv_text(csv, column)) {
		*ret = otherwise;
		return 0;
	}
	return td_csv_number(csv, column, min, max, ret, err);
}
