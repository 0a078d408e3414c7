/* See store_sql.h. */
#include "learn/store_sql.h"

#include <errno.h>

int td_sql_error(int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
	case SQLITE_ROW: return 0;
	case SQLITE_BUSY:
	case SQLITE_LOCKED: return -EBUSY;
	case SQLITE_NOMEM: return -ENOMEM;
	default: return -EIO;
	}
}

static int bind(sqlite3_stmt *statement, int at, const struct td_sql_value *v)
{
	switch (v->kind) {
	case 't': return sqlite3_bind_text(statement, at, v->text, -1, SQLITE_STATIC);
	case 'd': return sqlite3_bind_double(statement, at, v->number);
	case 'i': return sqlite3_bind_int64(statement, at, v->integer);
	default: return sqlite3_bind_blob64(statement, at, v->bytes, v->size, SQLITE_STATIC);
	}
}

int td_sql_prepare(struct td_store *store, const char *sql, const struct td_sql_value *values,
	int count, sqlite3_stmt **ret_statement)
{
	int code = sqlite3_prepare_v2(store->db, sql, -1, ret_statement, NULL);

	for (int k = 0; k < count && code == SQLITE_OK; k++)
		code = bind(*ret_statement, k + 1, &values[k]);
	if (code != SQLITE_OK)
		sqlite3_finalize(*ret_statement);
	return td_sql_error(code);
}

int td_sql_change(
	struct td_store *store, const char *sql, const struct td_sql_value *values, int count)
{
	sqlite3_stmt *statement;
	int r = td_sql_prepare(store, sql, values, count, &statement);

	if (r < 0)
		return r;
	r = td_sql_error(sqlite3_step(statement));
	sqlite3_finalize(statement);
	return r;
}
