/* What every program of ours does alike on its command line and at its end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct option;
struct td_err;

/* --help, -h; --version, -V. */
bool td_asks_help(const char *argument);
bool td_asks_version(const char *argument);

/* After getopt_long: has it taken "--", which ends the options, for an option's value? 0, or -EINVAL with a sentence that quotes both. */
int td_check_optarg(char *const *argv, struct td_err *err);

/*
 * After getopt_long (opterr = 0, short options that begin with ':') returned `c`, ':' or '?': what is wrong with which word. `options` are the ones it had; `help` tells where
 * they are explained, as "tandemd --help". -EINVAL.
 */
int td_refuse_option(int c, char *const *argv, const struct option *options, const char *help,
	struct td_err *err);

/* Why execvp(path) failed with `error`: its text, or that a folder is no program. */
const char *td_exec_reason(const char *path, int error);

/*
 * Finds another program of ours by the folder of this one: the first of `candidates` (paths
 * relative to that folder, NULL at the end) that exists. Writes its path to `buf`. Returns `buf`, or
 * NULL where there is none.
 */
char *td_program_beside(char *buf, size_t len, const char *const *candidates);

/* fflush(stdout), which remembers why it failed. */
void td_output_flush(void);

/*
 * At the end of main: closes stdout. Returns `status`; where not all that was printed could be written, that is said on stderr, and a status of 0
 * becomes `failed`.
 */
int td_output_end(const char *program, int status, int failed);
