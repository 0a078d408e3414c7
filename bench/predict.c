/*
 * The time of one prediction of MuxFlow's speed predictor, the perceptron of two hidden layers of
 * 64, and of a whole answer from the database: the rows of both programs, the model, the
 * prediction. MuxFlow (7.4) has less than 1 ms for a prediction.
 *
 * usage: predict
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/time.h"
#include "learn/speeds.h"
#include "learn/store.h"
#include "row.h"

#define PROGRAMS 8
#define SHARES   4
#define PAIRS    (PROGRAMS / 2 * PROGRAMS / 2 * SHARES)
#define TIMES    2000
#define BATCH    100 /* predictions between two looks at the clock */

static void make(struct td_program *programs, struct td_pair *pairs)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < PROGRAMS; i++) {
		programs[i] = (struct td_program){.utilisation = 0.1 * (i + 1),
			.sm_activity = 0.07 * (i + 1),
			.core_demand = 0.03 * (i + 1),
			.duty = 1,
			.launches_per_s = 10 + i};
		snprintf(programs[i].gpu, sizeof(programs[i].gpu), "T4");
		snprintf(programs[i].name, sizeof(programs[i].name), "p%u", i);
	}
	for (uint32_t u = 0; u < PROGRAMS / 2; u++)
		for (uint32_t v = PROGRAMS / 2; v < PROGRAMS; v++)
			for (uint32_t s = 1; s <= SHARES; s++) {
				struct td_pair *p = &pairs[n++];

				*p = (struct td_pair){.sm_share = 0.2 * s, .speed = 0.2 * s};
				snprintf(p->gpu, sizeof(p->gpu), "T4");
				snprintf(p->online, sizeof(p->online), "p%u", u);
				snprintf(p->offline, sizeof(p->offline), "p%u", v);
			}
}

static double answer(struct td_store *store)
{
	struct td_program online, offline;
	struct td_model model;
	double speed;

	if (td_store_get_program(store, "T4", "p0", &online) ||
		td_store_get_program(store, "T4", "p7", &offline) ||
		td_store_get_model(store, TD_SPEEDS_TARGET, "T4", &model))
		exit(1);
	speed = td_speeds_predict(&model.predictor, &online, &offline, 0.4);
	td_model_deinit(&model);
	return speed;
}

int main(void)
{
	static struct td_program programs[PROGRAMS];
	static struct td_pair pairs[PAIRS];
	static double alone_us[TIMES], answer_us[TIMES];
	struct td_speeds_report report;
	struct td_store *store;
	struct td_model model;
	struct td_err err = {0};
	volatile double sum = 0;

	make(programs, pairs);
	if (td_speeds_learn(
		    programs, PROGRAMS, pairs, PAIRS, &td_learn_default, &model, &report, &err) ||
		td_store_open(":memory:", &store)) {
		fprintf(stderr, "predict: %s\n", err.msg);
		return 1;
	}
	for (uint32_t i = 0; i < PROGRAMS; i++)
		if (td_store_add_program(store, &programs[i]))
			return 1;
	if (td_store_put_model(store, TD_SPEEDS_TARGET, "T4", &model, 0))
		return 1;
	for (uint32_t t = 0; t < TIMES; t++) {
		uint64_t began_ns = td_time_now_ns();

		for (uint32_t i = 0; i < BATCH; i++)
			sum = sum + td_speeds_predict(&model.predictor, &programs[i % PROGRAMS],
					    &programs[t % PROGRAMS], 0.4);
		alone_us[t] = (double)(td_time_now_ns() - began_ns) / 1e3 / BATCH;
		began_ns = td_time_now_ns();
		sum = sum + answer(store);
		answer_us[t] = (double)(td_time_now_ns() - began_ns) / 1e3;
	}
	bench_row("predict.speed", "us", alone_us, TIMES);
	bench_row("predict.answer", "us", answer_us, TIMES);
	td_store_close(store);
	td_model_deinit(&model);
	return 0;
}
