/*
 * Functions that the verbs share: they talk to the daemon, print rows for people or as JSON, and
 * report errors in the same way.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/json.h"
#include "cli/rows.h"
#include "proto/layers.h"
#include "proto/proto.h"

/*
 * The exit status of tandem's own failures. As in env, timeout and nice, the statuses 126, 127 and
 * 128+signal are about the child.
 */
#define TD_EXIT_USAGE 125

struct td_verb {
	const char *name, *arguments, *help;
	int (*run)(int argc, char **argv); /* argv[0] is the verb; the result is the exit status */
};
extern const struct td_verb td_verbs[];

/* Prints "tandem: ..." and returns TD_EXIT_USAGE. */
int td_cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * The result of a function of `tandem run` that found a daemon which does not answer, and has said
 * so.
 */
#define TD_CLI_NO_DAEMON 1
/* The bytes of a buffer for td_cli_why_mute(). */
#define TD_CLI_WHY 1024

/*
 * Connects to the daemon at path. Returns a descriptor or -errno. A call on it that takes longer
 * than 2 s fails with -EAGAIN.
 */
int td_cli_connect(const char *path);
/*
 * Checks that a daemon answers on this socket. Returns 0 if one does; TD_EXIT_USAGE after printing
 * the error that it sent; or -errno.
 */
int td_cli_probe(int fd);
/*
 * Returns whether the error r means that a daemon, or another program, is at the socket and does
 * not answer.
 */
bool td_cli_is_mute(int r);
/*
 * Writes a sentence that says why there was no answer, and what the user can do. fd is the
 * connection, or -errno if there was none; r is the error. Returns buf.
 */
const char *td_cli_why_mute(char *buf, size_t len, const char *path, int fd, int r);
/* Says that `tandem run` goes on without the daemon, closes fd, and returns TD_CLI_NO_DAEMON. */
int td_cli_say_no_daemon(const char *path, int fd, int r);

/*
 * Sends a request and calls row() for each message until END. Returns an exit status: 0, or
 * TD_EXIT_USAGE after printing the daemon's error or that it does not answer.
 */
int td_cli_ask(
	const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg), void *arg);
/*
 * Sends a request that ends the daemon. Returns when the daemon has ended and released its locks
 * and its socket, so that another one can start at once.
 */
int td_cli_ask_to_end(const struct td_msg *request);
/*
 * Does what td_cli_ask() does, for `tandem run`: a daemon that is lost meanwhile is started again,
 * so row() may see some rows twice. Returns TD_CLI_NO_DAEMON if a daemon is there and does not
 * answer.
 */
int td_cli_ask_or_start(
	const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg), void *arg);

/*
 * Parses --json, the only option of most verbs, which may be before or behind the other arguments,
 * and moves it before them. Returns the index of the first other argument, or -1 after printing an
 * error.
 */
int td_cli_json_option(int argc, char **argv, bool *ret_json);
/*
 * Like td_cli_json_option(), for verbs that take no other arguments. Returns 0, or TD_EXIT_USAGE
 * after printing an error.
 */
int td_cli_list_options(int argc, char **argv, bool *ret_json);

/*
 * Finds a file of this installation: beside the program in the build tree (bin/../lib) or where
 * meson installed it; $env overrides. Returns buf, or NULL if the file is nowhere.
 */
char *td_cli_find(char *buf, size_t len, const char *env, const char *const *candidates);

/* These check the values of a job's settings. Each returns 0, or -errno with a sentence in err. */
typedef int (*td_check_fn)(const char *value, struct td_err *err);
int td_cli_check_class(const char *value, struct td_err *err);
int td_cli_check_upgrade(const char *value, struct td_err *err);
int td_cli_check_backend(const char *value, struct td_err *err);
int td_cli_check_weight(const char *value, struct td_err *err);
int td_cli_check_limit(const char *value, struct td_err *err);
int td_cli_check_duty(const char *value, struct td_err *err);
int td_cli_check_slack(const char *value, struct td_err *err);
/*
 * Checks a value. Returns 0, or TD_EXIT_USAGE after printing what is wrong; `where` names the
 * option.
 */
int td_cli_check(const char *where, const char *value, td_check_fn check);
/*
 * Calls each() for every variable of libtandem.so that has an invalid value, until each() returns
 * false. Returns whether all were visited.
 */
bool td_cli_check_variables(
	bool (*each)(void *arg, const char *name, const struct td_err *err), void *arg);
/* Writes the path of the daemon's socket. Returns 0, or TD_EXIT_USAGE after printing an error. */
int td_cli_socket(char *ret, size_t len);

/*
 * Makes sure that a daemon answers; starts one for this user if none runs. Returns 0;
 * TD_CLI_NO_DAEMON if a daemon runs and does not answer; or an exit status.
 */
int td_cli_ensure_daemon(void);

/* Reads the header of an ELF file. Returns false if the file is not one. */
bool td_cli_read_elf(int fd, Elf64_Ehdr *ret);
/* Returns whether the file is for the same machine and class as this program. */
bool td_cli_is_for_this_machine(const Elf64_Ehdr *header);
/* Returns whether the program is linked dynamically. */
bool td_cli_has_interpreter(int fd, const Elf64_Ehdr *header);
/*
 * Returns whether the file is libtandem.so and LD_PRELOAD can load it. If not, ret_why gets a
 * sentence that quotes the path and says what was expected.
 */
bool td_cli_is_library(const char *path, char *ret_why, size_t len);

/*
 * Reads the value of --layers, a file or counts, and writes it as text for td_layers_parse().
 * Returns 0, or TD_EXIT_USAGE after printing an error.
 */
int td_cli_layers(const char *value, char ret_text[TD_LAYERS_TEXT]);

/* Returns whether the program contains the CUDA runtime (linked statically). */
bool td_cli_has_static_cudart(int fd, const Elf64_Ehdr *header);

/*
 * Sets the environment so that the job sees the GPUs that --gpu asks for. They are listed by the
 * daemon, or by NVML if the daemon is known not to answer (`alone`). Returns 0, an exit status
 * after printing an error, or TD_CLI_NO_DAEMON.
 */
int td_cli_place(const char *value, bool alone);

/*
 * Calls each() with a sentence for every GPU that another daemon shares. Returns 0, or -errno if
 * that cannot be known.
 */
int td_cli_foreign_gpus(void (*each)(void *arg, const char *text), void *arg);

int td_verb_act(int argc, char **argv);
int td_verb_run(int argc, char **argv);
int td_verb_ps(int argc, char **argv);
int td_verb_top(int argc, char **argv);
int td_verb_web(int argc, char **argv);
int td_verb_profile(int argc, char **argv);
int td_verb_model(int argc, char **argv);
int td_verb_completion(int argc, char **argv);
int td_verb_layers(int argc, char **argv);
int td_verb_metrics(int argc, char **argv);
int td_verb_gpu(int argc, char **argv);
int td_verb_set(int argc, char **argv);
int td_verb_policies(int argc, char **argv);
int td_verb_events(int argc, char **argv);
int td_verb_explain(int argc, char **argv);
int td_verb_doctor(int argc, char **argv);
int td_verb_stop(int argc, char **argv);
