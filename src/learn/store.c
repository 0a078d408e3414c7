/* Keeps profiles and models in SQLite; see store.h. */
#include "learn/store.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/blob.h"

#ifdef TD_HAVE_SQLITE

#include "learn/store_sql.h"

#define VERSION 2
#define BUSY_MS 1000

/* Each brings a database to version 1, 2, ... from the one before it; see store.h. */
static const char *const upgrades[VERSION] = {
	"CREATE TABLE profile(gpu TEXT NOT NULL, job TEXT NOT NULL, feature TEXT NOT NULL,"
	" value REAL NOT NULL, time_s INTEGER NOT NULL, PRIMARY KEY(gpu, job, feature)) WITHOUT "
	"ROWID;"
	"CREATE TABLE sample(id INTEGER PRIMARY KEY, target TEXT NOT NULL, gpu TEXT NOT NULL,"
	" x BLOB NOT NULL, y REAL NOT NULL);"
	"CREATE INDEX sample_of ON sample(target, gpu);"
	"CREATE TABLE model(target TEXT NOT NULL, gpu TEXT NOT NULL, blob BLOB NOT NULL,"
	" time_s INTEGER NOT NULL, PRIMARY KEY(target, gpu)) WITHOUT ROWID;"
	"PRAGMA user_version = 1;",
	"CREATE TABLE program(gpu TEXT NOT NULL, program TEXT NOT NULL, command TEXT NOT NULL,"
	" runs INTEGER NOT NULL, time_s INTEGER NOT NULL, seconds REAL NOT NULL,"
	" utilisation REAL NOT NULL, sm_activity REAL NOT NULL, core_demand REAL NOT NULL,"
	" duty REAL NOT NULL, launches_per_s REAL NOT NULL, steps_per_s REAL NOT NULL,"
	" step_s REAL NOT NULL, step_sure REAL NOT NULL, p99_s REAL NOT NULL,"
	" requests_per_s REAL NOT NULL, peak_bytes INTEGER NOT NULL,"
	" resident_bytes INTEGER NOT NULL, PRIMARY KEY(gpu, program)) WITHOUT ROWID;"
	"CREATE TABLE pair(id INTEGER PRIMARY KEY, gpu TEXT NOT NULL, online TEXT NOT NULL,"
	" offline TEXT NOT NULL, policy TEXT NOT NULL, sm_share REAL NOT NULL,"
	" seconds REAL NOT NULL, speed REAL NOT NULL, online_speed REAL NOT NULL,"
	" time_s INTEGER NOT NULL);"
	"CREATE INDEX pair_of ON pair(gpu);"
	"CREATE TABLE quality(target TEXT NOT NULL, gpu TEXT NOT NULL, rows INTEGER NOT NULL,"
	" programs INTEGER NOT NULL, error REAL NOT NULL, mean_error REAL NOT NULL,"
	" PRIMARY KEY(target, gpu)) WITHOUT ROWID;"
	"PRAGMA user_version = 2;",
};

static int read_version(struct td_store *store, int *ret_version)
{
	sqlite3_stmt *statement;
	int r = td_sql_prepare(store, "PRAGMA user_version", NULL, 0, &statement);

	if (r < 0)
		return r;
	r = sqlite3_step(statement) == SQLITE_ROW ? 0 : -EIO;
	*ret_version = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	return r;
}

/*
 * Creates or upgrades the tables. It holds the write lock, so that two processes that open the
 * store at once do not both create them.
 */
static int bring_up_to_date(struct td_store *store)
{
	int version, r = td_sql_error(sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL));

	if (r < 0)
		return r;
	r = read_version(store, &version);
	if (!r && (version < 0 || version > VERSION))
		r = -EPROTO;
	for (; !r && version < VERSION; version++)
		r = td_sql_error(sqlite3_exec(store->db, upgrades[version], NULL, NULL, NULL));
	if (!r)
		r = td_sql_error(sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL));
	if (r < 0)
		(void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

int td_store_open(const char *path, struct td_store **ret_store)
{
	struct td_store *store = calloc(1, sizeof(*store));
	int r;

	if (!store)
		return -ENOMEM;
	r = td_sql_error(sqlite3_open(path, &store->db));
	if (!r)
		r = td_sql_error(sqlite3_busy_timeout(store->db, BUSY_MS));
	if (!r)
		r = bring_up_to_date(store);
	if (r < 0) {
		td_store_close(store);
		return r;
	}
	*ret_store = store;
	return 0;
}

int td_store_open_to_read(const char *path, struct td_store **ret_store)
{
	struct td_store *store = calloc(1, sizeof(*store));
	int version, r;

	if (!store)
		return -ENOMEM;
	r = sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READONLY, NULL);
	r = (r & 0xff) == SQLITE_CANTOPEN && access(path, F_OK) ? -errno : td_sql_error(r);
	if (!r)
		r = td_sql_error(sqlite3_busy_timeout(store->db, BUSY_MS));
	r = r ? r : read_version(store, &version);
	if (!r && (version < 1 || version > VERSION))
		r = -EPROTO;
	if (r < 0) {
		td_store_close(store);
		return r;
	}
	*ret_store = store;
	return 0;
}

void td_store_close(struct td_store *store)
{
	if (!store)
		return;
	sqlite3_close(store->db);
	free(store);
}

int td_store_put_profile(struct td_store *store, const char *gpu, const char *job,
	const char *feature, double value, int64_t time_s)
{
	const struct td_sql_value values[] = {TD_SQL_TEXT(gpu), TD_SQL_TEXT(job),
		TD_SQL_TEXT(feature), TD_SQL_NUMBER(value), TD_SQL_INTEGER(time_s)};

	return td_sql_change(
		store, "INSERT OR REPLACE INTO profile VALUES(?, ?, ?, ?, ?)", values, 5);
}

int td_store_get_profile(struct td_store *store, const char *gpu, const char *job,
	const char *feature, double *ret_value)
{
	const struct td_sql_value values[] = {
		TD_SQL_TEXT(gpu), TD_SQL_TEXT(job), TD_SQL_TEXT(feature)};
	sqlite3_stmt *statement;
	int code, r = td_sql_prepare(store,
			  "SELECT value FROM profile WHERE gpu = ? AND job = ? AND feature = ?",
			  values, 3, &statement);

	if (r < 0)
		return r;
	code = sqlite3_step(statement);
	r = code == SQLITE_DONE ? -ENOENT : td_sql_error(code);
	if (!r)
		*ret_value = sqlite3_column_double(statement, 0);
	sqlite3_finalize(statement);
	return r;
}

int td_store_add_sample(struct td_store *store, const char *target, const char *gpu,
	const double *x, uint32_t inputs, double y)
{
	uint64_t words[TD_PREDICT_INPUTS_MAX];
	const struct td_sql_value values[] = {TD_SQL_TEXT(target), TD_SQL_TEXT(gpu),
		TD_SQL_BYTES(words, inputs * sizeof(words[0])), TD_SQL_NUMBER(y)};

	if (!inputs || inputs > TD_PREDICT_INPUTS_MAX)
		return -EINVAL;
	memcpy(words, x, inputs * sizeof(words[0]));
	for (uint32_t k = 0; k < inputs; k++)
		words[k] = htole64(words[k]);
	return td_sql_change(
		store, "INSERT INTO sample(target, gpu, x, y) VALUES(?, ?, ?, ?)", values, 4);
}

struct samples {
	double *x, *y;
	uint32_t count, room, inputs;
};

static int append(struct samples *s, sqlite3_stmt *statement)
{
	const char *blob = sqlite3_column_blob(statement, 0);

	if (s->count == s->room) {
		uint32_t room = s->room ? 2 * s->room : 64;
		double *x = realloc(s->x, (size_t)room * s->inputs * sizeof(*x)), *y;

		if (!x)
			return -ENOMEM;
		s->x = x;
		y = realloc(s->y, room * sizeof(*y));
		if (!y)
			return -ENOMEM;
		s->y = y;
		s->room = room;
	}
	for (uint32_t k = 0; k < s->inputs; k++) {
		uint64_t word;

		memcpy(&word, blob + k * sizeof(word), sizeof(word));
		word = le64toh(word);
		memcpy(&s->x[(size_t)s->count * s->inputs + k], &word, sizeof(word));
	}
	s->y[s->count++] = sqlite3_column_double(statement, 1);
	return 0;
}

static int newest_inputs(
	struct td_store *store, const struct td_sql_value *values, uint32_t *ret_inputs)
{
	sqlite3_stmt *statement;
	int code, r = td_sql_prepare(store,
			  "SELECT length(x) FROM sample WHERE target = ? AND gpu = ? ORDER BY id "
			  "DESC LIMIT 1",
			  values, 2, &statement);

	if (r < 0)
		return r;
	code = sqlite3_step(statement);
	r = code == SQLITE_DONE ? -ENOENT : td_sql_error(code);
	if (!r) {
		int64_t bytes = sqlite3_column_int64(statement, 0);

		*ret_inputs = (uint32_t)(bytes / 8);
		if (bytes < 8 || bytes % 8 || bytes > 8 * (int64_t)TD_PREDICT_INPUTS_MAX)
			r = -EINVAL;
	}
	sqlite3_finalize(statement);
	return r;
}

int td_store_get_samples(struct td_store *store, const char *target, const char *gpu,
	double **ret_x, double **ret_y, uint32_t *ret_count, uint32_t *ret_inputs)
{
	struct td_sql_value values[] = {TD_SQL_TEXT(target), TD_SQL_TEXT(gpu), TD_SQL_INTEGER(0)};
	struct samples s = {0};
	sqlite3_stmt *statement;
	int code = SQLITE_DONE, r = newest_inputs(store, values, &s.inputs);

	if (r < 0)
		return r;
	values[2].integer = 8 * (int64_t)s.inputs;
	r = td_sql_prepare(store,
		"SELECT x, y FROM sample WHERE target = ? AND gpu = ? AND length(x) = ? ORDER BY "
		"id",
		values, 3, &statement);
	if (r < 0)
		return r;
	while (!r && (code = sqlite3_step(statement)) == SQLITE_ROW)
		r = append(&s, statement);
	sqlite3_finalize(statement);
	if (!r)
		r = td_sql_error(code);
	if (r < 0) {
		free(s.x);
		free(s.y);
		return r;
	}
	*ret_x = s.x;
	*ret_y = s.y;
	*ret_count = s.count;
	*ret_inputs = s.inputs;
	return 0;
}

int td_store_trim_samples(
	struct td_store *store, const char *target, const char *gpu, uint32_t keep)
{
	const struct td_sql_value values[] = {
		TD_SQL_TEXT(target), TD_SQL_TEXT(gpu), TD_SQL_INTEGER(keep)};

	return td_sql_change(store,
		"DELETE FROM sample WHERE id IN (SELECT id FROM sample WHERE target = ? AND gpu = "
		"? ORDER BY id DESC LIMIT -1 OFFSET ?)",
		values, 3);
}

int td_store_put_model(struct td_store *store, const char *target, const char *gpu,
	const struct td_model *model, int64_t time_s)
{
	void *bytes;
	size_t size;
	int r = td_model_to_blob(model, &bytes, &size);

	if (r < 0)
		return r;
	r = td_sql_change(store, "INSERT OR REPLACE INTO model VALUES(?, ?, ?, ?)",
		(const struct td_sql_value[]){TD_SQL_TEXT(target), TD_SQL_TEXT(gpu),
			TD_SQL_BYTES(bytes, size), TD_SQL_INTEGER(time_s)},
		4);
	free(bytes);
	return r;
}

int td_store_get_model(
	struct td_store *store, const char *target, const char *gpu, struct td_model *ret_model)
{
	const struct td_sql_value values[] = {TD_SQL_TEXT(target), TD_SQL_TEXT(gpu)};
	sqlite3_stmt *statement;
	int code, r = td_sql_prepare(store, "SELECT blob FROM model WHERE target = ? AND gpu = ?",
			  values, 2, &statement);

	if (r < 0)
		return r;
	code = sqlite3_step(statement);
	r = code == SQLITE_DONE ? -ENOENT : td_sql_error(code);
	if (!r)
		r = td_model_from_blob(sqlite3_column_blob(statement, 0),
			(size_t)sqlite3_column_bytes(statement, 0), ret_model);
	sqlite3_finalize(statement);
	return r;
}

#else

int td_store_open(const char *path, struct td_store **ret_store)
{
	(void)path;
	(void)ret_store;
	return -ENOSYS;
}

int td_store_open_to_read(const char *path, struct td_store **ret_store)
{
	return td_store_open(path, ret_store);
}

void td_store_close(struct td_store *store)
{
	(void)store;
}

int td_store_put_profile(struct td_store *store, const char *gpu, const char *job,
	const char *feature, double value, int64_t time_s)
{
	(void)store, (void)gpu, (void)job, (void)feature, (void)value, (void)time_s;
	return -ENOSYS;
}

int td_store_get_profile(struct td_store *store, const char *gpu, const char *job,
	const char *feature, double *ret_value)
{
	(void)store, (void)gpu, (void)job, (void)feature, (void)ret_value;
	return -ENOSYS;
}

int td_store_add_sample(struct td_store *store, const char *target, const char *gpu,
	const double *x, uint32_t inputs, double y)
{
	(void)store, (void)target, (void)gpu, (void)x, (void)inputs, (void)y;
	return -ENOSYS;
}

int td_store_get_samples(struct td_store *store, const char *target, const char *gpu,
	double **ret_x, double **ret_y, uint32_t *ret_count, uint32_t *ret_inputs)
{
	(void)store, (void)target, (void)gpu, (void)ret_x, (void)ret_y, (void)ret_count,
		(void)ret_inputs;
	return -ENOSYS;
}

int td_store_trim_samples(
	struct td_store *store, const char *target, const char *gpu, uint32_t keep)
{
	(void)store, (void)target, (void)gpu, (void)keep;
	return -ENOSYS;
}

int td_store_put_model(struct td_store *store, const char *target, const char *gpu,
	const struct td_model *model, int64_t time_s)
{
	(void)store, (void)target, (void)gpu, (void)model, (void)time_s;
	return -ENOSYS;
}

int td_store_get_model(
	struct td_store *store, const char *target, const char *gpu, struct td_model *ret_model)
{
	(void)store, (void)target, (void)gpu, (void)ret_model;
	return -ENOSYS;
}

#endif
