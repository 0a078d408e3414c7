/*
 * CSV with a header line, plain or gzipped, as traces and measured tables come.
 *
 * Fields may be quoted ("a, b", quotes doubled). Lines end with LF or CRLF. Empty lines are
 * skipped, and so is a byte order mark of UTF-8. The whole file is read at once, at most
 * TD_CSV_BYTES_MAX of it, and split in place: a field's text stays valid until the next row.
 *
 * An error names the file and the line: "jobs.csv:17: ...". An error of one row leaves the reader
 * on the next one, so that a caller may go on.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TD_CSV_COLUMNS_MAX 64
#define TD_CSV_BYTES_MAX   (1ull << 31)

struct td_err;

struct td_csv {
	char *name;
	char *text, *at, *end; /* text: owned, with a 0 after the end */
	uint32_t line;         /* of the present row, from 1 */
	uint32_t column_count, field_count;
	char *columns[TD_CSV_COLUMNS_MAX], *fields[TD_CSV_COLUMNS_MAX];
};

/*
 * Returns 0; -errno; -ENOSYS: gzipped, and built without zlib; -EFBIG; -EINVAL: no header. On
 * failure nothing needs to be closed.
 */
int td_csv_open(struct td_csv *csv, const char *path, struct td_err *err);

/* As td_csv_open() from memory, which is copied. name: for errors. */
int td_csv_open_text(
	struct td_csv *csv, const char *name, const char *text, size_t length, struct td_err *err);

void td_csv_close(struct td_csv *csv);

/* Index of a column, or -1. */
int td_csv_column(const struct td_csv *csv, const char *name);

/* Indices of several; -EINVAL names the first that is missing. */
int td_csv_need(const struct td_csv *csv, const char *const *names, uint32_t count, int *ret,
	struct td_err *err);

/* 0: a row; 1: the end; -EINVAL: a row of too few or too many fields, or an open quote. */
int td_csv_next(struct td_csv *csv, struct td_err *err);

/*
 * Reads a number of the present row, which is decimal, finite and within [min, max]. An error names
 * the column.
 */
int td_csv_number(const struct td_csv *csv, int column, double min, double max, double *ret,
	struct td_err *err);

/* Without a field, or with an empty one, `otherwise`. */
int td_csv_number_or(const struct td_csv *csv, int column, double min, double max, double otherwise,
	double *ret, struct td_err *err);

/* "" without such a column. */
const char *td_csv_text(const struct td_csv *csv, int column);

/* A field in quotes, those within doubled. */
void td_csv_put_quoted(FILE *out, const char *text);

/* "file:line: what", -EINVAL. */
int td_csv_error(const struct td_csv *csv, struct td_err *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
