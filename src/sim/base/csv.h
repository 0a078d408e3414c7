/*
 * A reader of CSV files with a header line, plain or gzipped, for traces and measured tables.
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
	char *text, *at, *end; /* text is owned by the reader and ends with a 0 */
	uint32_t line;         /* line number of the present row, from 1 */
	uint32_t column_count, field_count;
	char *columns[TD_CSV_COLUMNS_MAX], *fields[TD_CSV_COLUMNS_MAX];
};

/*
 * Opens a file. Returns 0; -errno; -ENOSYS: it is gzipped, and this was built without zlib; -EFBIG;
 * -EINVAL: no header. On failure nothing needs to be closed.
 */
int td_csv_open(struct td_csv *csv, const char *path, struct td_err *err);

/* Opens a text in memory, which is copied, as td_csv_open() opens a file. `name` is for errors. */
int td_csv_open_text(
	struct td_csv *csv, const char *name, const char *text, size_t length, struct td_err *err);

void td_csv_close(struct td_csv *csv);

/* Returns the index of a column, or -1. */
int td_csv_column(const struct td_csv *csv, const char *name);

/* Finds the indices of several columns. Returns 0; -EINVAL: err names the first missing one. */
int td_csv_need(const struct td_csv *csv, const char *const *names, uint32_t count, int *ret,
	struct td_err *err);

/*
 * Reads the next row. Returns 0: a row; 1: the end; -EINVAL: too few or too many fields, or an open
 * quote.
 */
int td_csv_next(struct td_csv *csv, struct td_err *err);

/*
 * Reads a number of the present row, which is decimal, finite and within [min, max]. An error names
 * the column.
 */
int td_csv_number(const struct td_csv *csv, int column, double min, double max, double *ret,
	struct td_err *err);

/*
 * Reads a number as td_csv_number() does. *ret is `otherwise` where there is no such column, or the
 * field is empty.
 */
int td_csv_number_or(const struct td_csv *csv, int column, double min, double max, double otherwise,
	double *ret, struct td_err *err);

/* Returns the text of a field, "" without such a column. */
const char *td_csv_text(const struct td_csv *csv, int column);

/* Writes a text in quotes. Quotes within it are doubled. */
void td_csv_put_quoted(FILE *out, const char *text);

/* Sets err to "file:line: message" and returns -EINVAL. */
int td_csv_error(const struct td_csv *csv, struct td_err *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
