/*
 * The programs of a campaign, from a file: a line for each, CLASS NAME COMMAND, with the class
 * `online` or `besteffort`. The command is for the shell. Lines that are empty or begin with # are
 * skipped. tests/fuzz/fuzz_plan.c gives it bytes of any kind.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "learn/store_programs.h"

struct td_err;

#define TD_PLAN_MAX 64u

struct td_plan_program {
	bool online;
	char name[TD_PROGRAM_NAME], command[TD_PROGRAM_COMMAND];
};

struct td_plan {
	uint32_t count, online_count;
	struct td_plan_program programs[TD_PLAN_MAX]; /* the online ones first */
};

/*
 * Reads a plan. Returns 0; -EINVAL, with a sentence that names the line: a word is not valid, a
 * name occurs twice, there are more than TD_PLAN_MAX programs, or no online or no besteffort one.
 */
int td_plan_parse(const char *text, struct td_plan *ret_plan, struct td_err *err);

/* Reads a plan from a file. Returns 0, or -errno with a message in err. */
int td_plan_load(const char *path, struct td_plan *ret_plan, struct td_err *err);

/*
 * Reads ascending shares from 1 to 100, such as "20,40" or "20%,40%". Returns 0, or -EINVAL with a
 * message in err.
 */
#define TD_PLAN_SHARES 16u
int td_plan_shares(const char *text, unsigned ret_percents[TD_PLAN_SHARES], uint32_t *ret_count,
	struct td_err *err);

/*
 * Checks a program's name: letters, digits and ". _ + -", not longer than its column. Returns 0, or
 * -EINVAL with a message in err that quotes the name.
 */
int td_profiler_check_name(const char *name, struct td_err *err);
