/* SQL of the store's files: statements with bound values; see store.h. Only where SQLite is. */
#pragma once

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

struct td_store {
	sqlite3 *db;
};

/* A parameter's value, by letter: t text, d double, i integer, b bytes and size. */
struct td_sql_value {
	char kind;
	const char *text;
	const void *bytes;
	size_t size;
	double number;
	int64_t integer;
};

#define TD_SQL_TEXT(s)     ((struct td_sql_value){.kind = 't', .text = (s)})
#define TD_SQL_NUMBER(d)   ((struct td_sql_value){.kind = 'd', .number = (d)})
#define TD_SQL_INTEGER(i)  ((struct td_sql_value){.kind = 'i', .integer = (int64_t)(i)})
#define TD_SQL_BYTES(b, n) ((struct td_sql_value){.kind = 'b', .bytes = (b), .size = (n)})

/* SQLite's result as -errno; 0 for OK, DONE and ROW. */
int td_sql_error(int code);

/* The caller finalizes the statement. */
int td_sql_prepare(struct td_store *store, const char *sql, const struct td_sql_value *values,
	int count, sqlite3_stmt **ret_statement);

/* Runs a statement that returns nothing. */
int td_sql_change(
	struct td_store *store, const char *sql, const struct td_sql_value *values, int count);
