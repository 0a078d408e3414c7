/* Command-line errors and the check of stdout, shared by all programs of tandem. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct option;
struct td_err;

/* Tell whether the argument is --help or -h, and --version or -V. */
bool td_asks_help(const char *argument);
bool td_asks_version(const char *argument);

/*
 * Call after getopt_long returned an option with a value. Returns 0; -EINVAL with err if the value
 * is "--", which is meant to end the options.
 */
int td_check_optarg(char *const *argv, struct td_err *err);

/*
 * Makes the error for getopt_long's result ':' or '?' in `c`. Always returns -EINVAL. Needs opterr
 * = 0 and short options that begin with ':'. `options` are those given to getopt_long. `help` is
 * the command that explains them, such as "tandemd --help".
 */
int td_refuse_option(int c, char *const *argv, const struct option *options, const char *help,
	struct td_err *err);

/* The options of a program, as the rows of its options.def and one more for each shared table. */
struct td_command_option {
	const char *name, *argument, *help; /* argument: "" if the option has no value */
	int letter;
};

struct td_command {
	const char *name;
	const char *usage; /* what --help prints before the options */
	const char *notes; /* what it prints after them; NULL: nothing */
	const struct td_command_option *options;
	size_t count; /* at most TD_COMMAND_OPTIONS */
	/* Takes one option; text is NULL for one without a value. Returns 0 or -errno with err. */
	int (*take)(void *arg, int letter, const char *text, struct td_err *err);
};

#define TD_COMMAND_OPTIONS 40

/* Answers --help or --version, wherever it stands. Returns the exit status; -1: neither is there */
int td_command_answer(const struct td_command *command, int argc, char **argv);
/*
 * Gives each option to take(arg). Returns 0, or -errno with err, which begins with the option's
 * name; refuses arguments of any kind.
 */
int td_command_parse(
	const struct td_command *command, int argc, char **argv, void *arg, struct td_err *err);
/* Prints the sentence on stderr, behind the program's name. Returns `status`. */
int td_command_fail(const struct td_command *command, const char *sentence, int status);

/*
 * Returns why execvp(path) failed with `error`: the text of errno, or that a folder is not a
 * program.
 */
const char *td_exec_reason(const char *path, int error);

/*
 * Finds another program of tandem by the folder of this one: the first of `candidates` (paths
 * relative to that folder, NULL at the end) that exists. Writes its path to buf. Returns buf, or
 * NULL if none exists.
 */
char *td_program_beside(char *buf, size_t len, const char *const *candidates);

/*
 * For a program with one loop: blocks SIGTERM, SIGINT and SIGHUP and ignores SIGPIPE. Returns a
 * descriptor that is readable when one of the three has come, or -1 with errno.
 */
int td_end_signals(void);

/* Flushes stdout and remembers the reason if that fails. */
void td_output_flush(void);

/*
 * Closes stdout at the end of main. Returns the exit status: if output could not be written, prints
 * that on stderr and returns `failed` instead of a status of 0.
 */
int td_output_end(const char *program, int status, int failed);
