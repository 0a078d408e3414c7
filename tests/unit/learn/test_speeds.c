/* Programs and pairs in the store, and the predictor that is trained on them. */
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "learn/speeds.h"
#include "learn/store.h"
#include "test.h"

#define ONLINE  6
#define OFFLINE 6
#define SHARES  4

static char path[64];

static struct td_store *open_new(void)
{
	struct td_store *store;
	int fd;

	strcpy(path, "/tmp/tandem-speeds-XXXXXX");
	fd = mkstemp(path);
	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(td_store_open(path, &store), 0);
	return store;
}

static void remove_it(struct td_store *store)
{
	td_store_close(store);
	unlink(path);
}

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static struct td_program program(const char *name, double utilisation, double rate)
{
	struct td_program p = {.utilisation = utilisation,
		.sm_activity = utilisation / 2,
		.core_demand = utilisation / 4,
		.launches_per_s = rate,
		.duty = 1,
		.seconds = 2,
		.time_s = 7,
		.peak_bytes = 10};

	strcpy(p.gpu, "T4");
	strcpy(p.name, name);
	strcpy(p.command, name);
	return p;
}

TEST(a_second_run_of_a_program_updates_its_row)
{
	struct td_store *store = open_new();
	struct td_program p = program("bert", 0.2, 100), row;

	CHECK_EQ(td_store_get_program(store, "T4", "bert", &row), -ENOENT);
	p.step_s = 0.5;
	CHECK_EQ(td_store_add_program(store, &p), 0);
	p.utilisation = 0.6;
	p.step_s = 0; /* no steps were found this time */
	p.peak_bytes = 5;
	p.time_s = 9;
	CHECK_EQ(td_store_add_program(store, &p), 0);
	p.step_s = 1;
	CHECK_EQ(td_store_add_program(store, &p), 0);
	CHECK_EQ(td_store_get_program(store, "T4", "bert", &row), 0);
	CHECK_EQ(row.runs, 3);
	CHECK_EQ(row.time_s, 9);
	CHECK_EQ(row.peak_bytes, 10);
	CHECK(near(row.utilisation, (0.2 + 0.6 + 0.6) / 3) && near(row.seconds, 6));
	CHECK(near(row.launches_per_s, 100) && row.step_s > 0.5 && row.step_s < 1);
	CHECK_EQ(td_store_get_program(store, "A10", "bert", &row), -ENOENT);
	remove_it(store);
}

TEST(a_database_of_version_1_gets_the_tables)
{
	struct td_store *store = open_new();
	struct td_program p = program("bert", 0.2, 100), *rows;
	uint32_t count;
	double value;
	sqlite3 *db;

	CHECK_EQ(td_store_put_profile(store, "T4", "old", "sm", 0.4, 1), 0);
	td_store_close(store);
	CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_EQ(sqlite3_exec(db,
			 "DROP TABLE program; DROP TABLE pair; DROP TABLE quality;"
			 "PRAGMA user_version = 1",
			 NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	CHECK_EQ(td_store_open(path, &store), 0);
	CHECK_EQ(td_store_get_profile(store, "T4", "old", "sm", &value), 0);
	CHECK_EQ(td_store_get_programs(store, NULL, &rows, &count), -ENOENT);
	CHECK_EQ(td_store_add_program(store, &p), 0);
	CHECK_EQ(td_store_get_programs(store, NULL, &rows, &count), 0);
	CHECK_EQ(count, 1);
	free(rows);
	remove_it(store);
}

TEST(a_row_that_nobody_can_have_measured_is_refused)
{
	struct td_store *store = open_new();
	struct td_program p = program("bert", 0.2, 100), row;
	struct td_pair *pairs, pair = {.sm_share = 0.4, .speed = 0.5};
	uint32_t count;
	sqlite3 *db;

	strcpy(pair.gpu, "T4");
	CHECK_EQ(td_store_add_program(store, &p), 0);
	CHECK_EQ(td_store_add_pair(store, &pair), 0);
	CHECK_EQ(td_store_get_pairs(store, "T4", &pairs, &count), 0);
	free(pairs);
	CHECK_EQ(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_EQ(sqlite3_exec(db, "UPDATE program SET duty = 9e999; UPDATE pair SET speed = -1",
			 NULL, NULL, NULL),
		SQLITE_OK);
	CHECK_EQ(td_store_get_program(store, "T4", "bert", &row), -EINVAL);
	CHECK_EQ(td_store_get_pairs(store, "T4", &pairs, &count), -EINVAL);
	CHECK_EQ(sqlite3_exec(db, "UPDATE program SET duty = 1, command = printf('%.2000c', 'x')",
			 NULL, NULL, NULL),
		SQLITE_OK);
	CHECK_EQ(td_store_get_program(store, "T4", "bert", &row), -EINVAL);
	sqlite3_close(db);
	remove_it(store);
}

TEST(how_good_a_model_is_is_kept_beside_it)
{
	struct td_store *store = open_new();
	struct td_quality q = {.rows = 5, .programs = 3, .error = 0.1, .mean_error = 0.3}, back;

	CHECK_EQ(td_store_get_quality(store, "speed", "T4", &back), -ENOENT);
	CHECK_EQ(td_store_put_quality(store, "speed", "T4", &q), 0);
	q.rows = 6;
	CHECK_EQ(td_store_put_quality(store, "speed", "T4", &q), 0);
	CHECK_EQ(td_store_get_quality(store, "speed", "T4", &back), 0);
	CHECK(back.rows == 6 && back.programs == 3 && near(back.error, 0.1));
	remove_it(store);
}

static struct td_program programs[ONLINE + OFFLINE];
static struct td_pair pairs[ONLINE * OFFLINE * SHARES];

/* The share bounds the speed, and so does what the online program leaves. */
static void make(void)
{
	uint32_t n = 0;
	char name[16];

	for (uint32_t i = 0; i < ONLINE + OFFLINE; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		programs[i] = program(name, i < ONLINE ? 0.1 + 0.14 * i : 0.3 + 0.1 * (i - ONLINE),
			50 + 20 * (i % 3));
	}
	for (uint32_t u = 0; u < ONLINE; u++)
		for (uint32_t v = ONLINE; v < ONLINE + OFFLINE; v++)
			for (uint32_t s = 1; s <= SHARES; s++) {
				struct td_pair *p = &pairs[n++];
				double share = 0.2 * s, need = programs[v].sm_activity;

				memset(p, 0, sizeof(*p));
				strcpy(p->online, programs[u].name);
				strcpy(p->offline, programs[v].name);
				p->sm_share = share;
				p->speed =
					fmin(1, share / need) * (1 - 0.5 * programs[u].sm_activity);
			}
}

TEST(programs_that_were_never_seen_are_predicted_better_than_by_the_mean)
{
	struct td_learn_options options = td_learn_default;
	struct td_speeds_report report, again;
	struct td_model model, same;
	struct td_err err;

	options.epochs = 60;
	make();
	CHECK_EQ(td_speeds_learn(programs, ONLINE + OFFLINE, pairs, ONLINE * OFFLINE * SHARES,
			 &options, &model, &report, &err),
		0);
	CHECK_EQ(report.rows, ONLINE * OFFLINE * SHARES);
	CHECK_EQ(report.programs, ONLINE + OFFLINE);
	CHECK_EQ(report.unknown, 0);
	CHECK_EQ(report.tests, 2 * report.rows); /* each pair has two programs */
	CHECK(report.mlp.square < report.mean.square / 2);
	CHECK(report.mlp.absolute <= report.mlp.square);
	CHECK(td_speeds_predict(&model.predictor, &programs[0], &programs[ONLINE], 0.8) >
		td_speeds_predict(&model.predictor, &programs[ONLINE - 1],
			&programs[ONLINE + OFFLINE - 1], 0.2));
	CHECK_EQ(td_speeds_learn(programs, ONLINE + OFFLINE, pairs, ONLINE * OFFLINE * SHARES,
			 &options, &same, &again, &err),
		0);
	CHECK(!memcmp(&report, &again, sizeof(report)));
	td_model_deinit(&model);
	td_model_deinit(&same);
}

TEST(pairs_of_programs_without_a_dry_run_are_left_out)
{
	struct td_learn_options options = td_learn_default;
	struct td_speeds_report report;
	struct td_model model;
	struct td_err err;

	options.epochs = 5;
	make();
	CHECK_EQ(td_speeds_learn(programs, ONLINE + OFFLINE - 1, pairs, ONLINE * OFFLINE * SHARES,
			 &options, &model, &report, &err),
		0);
	CHECK_EQ(report.unknown, ONLINE * SHARES);
	td_model_deinit(&model);
	CHECK_EQ(td_speeds_learn(programs, ONLINE + 1, pairs, ONLINE * OFFLINE * SHARES, &options,
			 &model, &report, &err),
		-EINVAL); /* nothing is left without the one offline program */
	CHECK(strstr(err.msg, "too few"));
	CHECK_EQ(td_speeds_learn(programs, 0, pairs, 0, &options, &model, &report, &err), -EINVAL);
}
