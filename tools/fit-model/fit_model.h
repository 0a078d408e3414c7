/* The report on the contention model: errors of one figure each, collected and printed. */
#pragma once

#include <stdint.h>
#include <stdio.h>

struct td_err;
struct td_pairs;

/* Absolute errors in percent. */
struct errors {
	double *values;
	uint32_t count, room;
};

void errors_add(struct errors *errors, double predicted, double measured);
double errors_quantile(struct errors *errors, double quantile); /* sorts them */
double errors_mean(const struct errors *errors);
void errors_free(struct errors *errors);

/* Random numbers of the whole report. */
extern uint64_t report_seed;

/* A goal is met or it is not; the report says which. */
void put_goal(FILE *out, const char *what, double median, double p90, double median_goal,
	double p90_goal);

int report_pairs(FILE *out, const struct td_pairs *pairs);
int report_shares(FILE *out, const char *data, struct td_err *err);
