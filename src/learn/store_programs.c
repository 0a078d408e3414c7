/* Tables program, pair and quality; see store_programs.h. */
#include "learn/store_programs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learn/store_sql.h"

#define TEXT    TD_SQL_TEXT
#define NUMBER  TD_SQL_NUMBER
#define INTEGER TD_SQL_INTEGER

/* A mean over all runs, or over those that had the figure: 0 is none. */
#define MEAN(column) " " column " = (" column " * runs + excluded." column ") / (runs + 1),"
#define MEAN_KNOWN(column)                                                                         \
	" " column " = CASE WHEN " column " = 0 THEN excluded." column " WHEN excluded." column    \
	" = 0 THEN " column " ELSE (" column " * runs + excluded." column ") / (runs + 1) END,"
#define MOST(column) " " column " = max(" column ", excluded." column "),"

static const char add_program[] =
	"INSERT INTO program VALUES(?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	" ON CONFLICT(gpu, program) DO UPDATE SET" MEAN("utilisation") MEAN("sm_activity")
		MEAN("core_demand") MEAN("duty") MEAN("launches_per_s") MEAN_KNOWN("steps_per_s")
			MEAN_KNOWN("step_s") MEAN_KNOWN("step_sure") MEAN_KNOWN("p99_s") MEAN_KNOWN(
				"requests_per_s") MOST("peak_bytes")
				MOST("resident_bytes") " seconds = seconds + excluded.seconds, "
						       "command = excluded.command,"
						       " time_s = excluded.time_s, runs = runs + 1";

int td_store_add_program(struct td_store *store, const struct td_program *p)
{
	const struct td_sql_value values[] = {TEXT(p->gpu), TEXT(p->name), TEXT(p->command),
		INTEGER(p->time_s), NUMBER(p->seconds), NUMBER(p->utilisation),
		NUMBER(p->sm_activity), NUMBER(p->core_demand), NUMBER(p->duty),
		NUMBER(p->launches_per_s), NUMBER(p->steps_per_s), NUMBER(p->step_s),
		NUMBER(p->step_sure), NUMBER(p->p99_s), NUMBER(p->requests_per_s),
		INTEGER(p->peak_bytes), INTEGER(p->resident_bytes)};

	return td_sql_change(store, add_program, values, sizeof(values) / sizeof(*values));
}

/* -- reading -- */

static int read_text(sqlite3_stmt *statement, int column, char *ret, size_t len)
{
	const unsigned char *text = sqlite3_column_text(statement, column);

	if (!text || strlen((const char *)text) >= len)
		return -EINVAL;
	memcpy(ret, text, strlen((const char *)text) + 1);
	return 0;
}

/* Anybody may have written the row. */
static int read_numbers(sqlite3_stmt *statement, int column, double *const *ret, int count)
{
	for (int i = 0; i < count; i++) {
		double number = sqlite3_column_double(statement, column + i);

		if (!isfinite(number) || number < 0)
			return -EINVAL;
		*ret[i] = number;
	}
	return 0;
}

static int read_integer(sqlite3_stmt *statement, int column, int64_t *ret)
{
	*ret = sqlite3_column_int64(statement, column);
	return *ret < 0 ? -EINVAL : 0;
}

static int read_program(sqlite3_stmt *statement, void *ret)
{
	struct td_program *p = ret;
	double *const numbers[] = {&p->seconds, &p->utilisation, &p->sm_activity, &p->core_demand,
		&p->duty, &p->launches_per_s, &p->steps_per_s, &p->step_s, &p->step_sure, &p->p99_s,
		&p->requests_per_s};
	int64_t runs = 0, peak = 0, resident = 0;
	int r = read_text(statement, 0, p->gpu, sizeof(p->gpu));

	r = r ? r : read_text(statement, 1, p->name, sizeof(p->name));
	r = r ? r : read_text(statement, 2, p->command, sizeof(p->command));
	r = r ? r : read_integer(statement, 3, &runs);
	r = r ? r : read_integer(statement, 4, &p->time_s);
	r = r ? r : read_numbers(statement, 5, numbers, sizeof(numbers) / sizeof(*numbers));
	r = r ? r : read_integer(statement, 16, &peak);
	r = r ? r : read_integer(statement, 17, &resident);
	p->runs = (uint64_t)runs;
	p->peak_bytes = (uint64_t)peak;
	p->resident_bytes = (uint64_t)resident;
	return r;
}

static int read_pair(sqlite3_stmt *statement, void *ret)
{
	struct td_pair *p = ret;
	double *const numbers[] = {&p->sm_share, &p->seconds, &p->speed, &p->online_speed};
	int r = read_text(statement, 0, p->gpu, sizeof(p->gpu));

	r = r ? r : read_text(statement, 1, p->online, sizeof(p->online));
	r = r ? r : read_text(statement, 2, p->offline, sizeof(p->offline));
	r = r ? r : read_text(statement, 3, p->policy, sizeof(p->policy));
	r = r ? r : read_numbers(statement, 4, numbers, sizeof(numbers) / sizeof(*numbers));
	return r ? r : read_integer(statement, 8, &p->time_s);
}

struct rows {
	char *items;
	size_t size;
	uint32_t count, room;
};

static void *new_row(struct rows *rows)
{
	if (rows->count == rows->room) {
		uint32_t room = rows->room ? 2 * rows->room : 64;
		void *items = realloc(rows->items, room * rows->size);

		if (!items)
			return NULL;
		rows->items = items;
		rows->room = room;
	}
	return rows->items + rows->size * rows->count++;
}

/* Reads all rows of a query; *ret_items is NULL after an error, and where there are none. */
static int read_all(struct td_store *store, const char *sql, const struct td_sql_value *values,
	int count, int (*read)(sqlite3_stmt *statement, void *ret), struct rows *rows)
{
	sqlite3_stmt *statement;
	int code = SQLITE_DONE, r = td_sql_prepare(store, sql, values, count, &statement);

	if (r < 0)
		return r;
	while (!r && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		void *row = new_row(rows);

		r = row ? read(statement, row) : -ENOMEM;
	}
	sqlite3_finalize(statement);
	if (!r)
		r = td_sql_error(code);
	if (!r && !rows->count)
		r = -ENOENT;
	if (!r)
		return 0;
	free(rows->items);
	rows->items = NULL;
	return r;
}

#define PROGRAM                                                                                    \
	"SELECT gpu, program, command, runs, time_s, seconds, utilisation, sm_activity,"           \
	" core_demand, duty, launches_per_s, steps_per_s, step_s, step_sure, p99_s,"               \
	" requests_per_s, peak_bytes, resident_bytes FROM program"

int td_store_get_program(
	struct td_store *store, const char *gpu, const char *name, struct td_program *ret_program)
{
	const struct td_sql_value values[] = {TEXT(gpu), TEXT(name)};
	struct rows rows = {.size = sizeof(*ret_program)};
	int r = read_all(
		store, PROGRAM " WHERE gpu = ? AND program = ?", values, 2, read_program, &rows);

	if (r)
		return r;
	memcpy(ret_program, rows.items, sizeof(*ret_program));
	free(rows.items);
	return 0;
}

int td_store_get_programs(struct td_store *store, const char *gpu, struct td_program **ret_programs,
	uint32_t *ret_count)
{
	const struct td_sql_value values[] = {TEXT(gpu)};
	struct rows rows = {.size = sizeof(**ret_programs)};
	int r = gpu ? read_all(store, PROGRAM " WHERE gpu = ? ORDER BY gpu, program", values, 1,
			      read_program, &rows)
		    : read_all(store, PROGRAM " ORDER BY gpu, program", NULL, 0, read_program,
			      &rows);

	if (r)
		return r;
	*ret_programs = (void *)rows.items;
	*ret_count = rows.count;
	return 0;
}

int td_store_add_pair(struct td_store *store, const struct td_pair *p)
{
	const struct td_sql_value values[] = {TEXT(p->gpu), TEXT(p->online), TEXT(p->offline),
		TEXT(p->policy), NUMBER(p->sm_share), NUMBER(p->seconds), NUMBER(p->speed),
		NUMBER(p->online_speed), INTEGER(p->time_s)};

	return td_sql_change(store,
		"INSERT INTO pair(gpu, online, offline, policy, sm_share, seconds, speed,"
		" online_speed, time_s) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
		values, sizeof(values) / sizeof(*values));
}

int td_store_get_pairs(
	struct td_store *store, const char *gpu, struct td_pair **ret_pairs, uint32_t *ret_count)
{
	const struct td_sql_value values[] = {TEXT(gpu)};
	struct rows rows = {.size = sizeof(**ret_pairs)};
	int r = read_all(store,
		"SELECT gpu, online, offline, policy, sm_share, seconds, speed, online_speed,"
		" time_s FROM pair WHERE gpu = ? ORDER BY id",
		values, 1, read_pair, &rows);

	if (r)
		return r;
	*ret_pairs = (void *)rows.items;
	*ret_count = rows.count;
	return 0;
}

int td_store_put_quality(struct td_store *store, const char *target, const char *gpu,
	const struct td_quality *quality)
{
	const struct td_sql_value values[] = {TEXT(target), TEXT(gpu), INTEGER(quality->rows),
		INTEGER(quality->programs), NUMBER(quality->error), NUMBER(quality->mean_error)};

	return td_sql_change(
		store, "INSERT OR REPLACE INTO quality VALUES(?, ?, ?, ?, ?, ?)", values, 6);
}

static int read_quality(sqlite3_stmt *statement, void *ret)
{
	struct td_quality *quality = ret;
	double *const numbers[] = {&quality->error, &quality->mean_error};
	int64_t rows = 0, programs = 0;
	int r = read_integer(statement, 0, &rows);

	r = r ? r : read_integer(statement, 1, &programs);
	r = r ? r : read_numbers(statement, 2, numbers, 2);
	if (!r && (rows > UINT32_MAX || programs > UINT32_MAX))
		r = -EINVAL;
	quality->rows = (uint32_t)rows;
	quality->programs = (uint32_t)programs;
	return r;
}

int td_store_get_quality(
	struct td_store *store, const char *target, const char *gpu, struct td_quality *ret_quality)
{
	const struct td_sql_value values[] = {TEXT(target), TEXT(gpu)};
	struct rows rows = {.size = sizeof(*ret_quality)};
	int r = read_all(store,
		"SELECT rows, programs, error, mean_error FROM quality WHERE target = ? AND gpu = "
		"?",
		values, 2, read_quality, &rows);

	if (r)
		return r;
	memcpy(ret_quality, rows.items, sizeof(*ret_quality));
	free(rows.items);
	return 0;
}
