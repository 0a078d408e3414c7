/*
 * The program tandem-profile, which `tandem profile` and `tandem predict` execute. It measures
 * programs on this node and keeps the results in a database (learn/store.h). It is a program of its
 * own because it needs SQLite and BLAS, while `tandem run` needs only libc.
 */
#pragma once

/* The exit status of a failure of our own; 126, 127 and 128 + signal are a program's. */
#define TD_PROFILER_FAILED 125

/* A word behind `tandem profile` that is no option: the table is in main.c. */
struct td_profiler_verb {
	const char *name, *help;
	int (*run)(int argc, char **argv); /* argv[0] is the name; the result is the exit status */
};
extern const struct td_profiler_verb td_profiler_verbs[];

int td_profiler_campaign(int argc, char **argv);
int td_profiler_service(int argc, char **argv);
int td_profiler_model(int argc, char **argv);
int td_profiler_learn(int argc, char **argv);

/* `tandem predict`: argv[0] is "predict". */
int td_profiler_predict(int argc, char **argv);

/* Prints "tandem: ..." and returns TD_PROFILER_FAILED. */
int td_profiler_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
