/* Command-line errors and the check of stdout, shared by all programs of tandem. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct option;
struct td_err;

/* --help, -h; --version, -V. */
bool td_asks_help(const char *argument);
bool td_asks_version(const char *argument);

/*
 * Call after getopt_long returned an option with a value. Fails with -EINVAL, and a sentence that
 * quotes both, where the value is "--", which is meant to end the options.
 */
int td_check_optarg(char *const *argv, struct td_err *err);

/*
 * Makes the error for getopt_long's ':' or '?' in `c`; always -EINVAL. Needs opterr = 0 and short
 * options that begin with ':'. `options` are those that getopt_long had; `help` is the command that
 * explains them, such as "tandemd --help".
 */
int td_refuse_option(int c, char *const *argv, const struct option *options, const char *help,
	struct td_err *err);

/* Why execvp(path) failed with `error`: its text, or that a folder is no program. */
const char *td_exec_reason(const char *path, int error);

/*
 * Finds another program of ours by the folder of this one: the first of `candidates` (paths
 * relative to that folder, NULL at the end) that exists. Writes its path to `buf`. Returns `buf`,
 * or NULL where there is none.
 */
char *td_program_beside(char *buf, size_t len, const char *const *candidates);

/* fflush(stdout), which remembers why it failed. */
void td_output_flush(void);

/*
 * Closes stdout at the end of main and returns the exit status. Where output could not be written,
 * says so on stderr and turns a status of 0 into `failed`.
 */
int td_output_end(const char *program, int status, int failed);
