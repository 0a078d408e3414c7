/*
 * Shared by the verbs: talking to the daemon, printing rows for people or as JSON, and failing the
 * same way.
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
 * The exit status of tandem's own failures. As in env, timeout and nice, 126, 127 and 128+signal
 * are the child's.
 */
#define TD_EXIT_USAGE 125

struct td_verb {
	const char *name, *arguments, *help;
	int (*run)(int argc, char **argv); /* argv[0] is the verb; the result is the exit status */
};
extern const struct td_verb td_verbs[];

/* Prints "tandem: ..." and returns TD_EXIT_USAGE. */
int td_cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `tandem run` was told that the daemon does not answer; said already. */
#define TD_CLI_NO_DAEMON 1
/* Room for td_cli_why_mute(). */
#define TD_CLI_WHY 1024

/* A connection to the daemon at path, or -errno. No call on it waits for more than 2 s: -EAGAIN. */
int td_cli_connect(const char *path);
/*
 * Returns 0 if the other end is a daemon and answers; TD_EXIT_USAGE after printing its error; or
 * -errno.
 */
int td_cli_probe(int fd);
/* Does r mean that a daemon, or another program, is at the socket and does not answer? */
bool td_cli_is_mute(int r);
/* A sentence that says why r was no answer on the connection fd (-errno: there was none), and
 * what can be done. Returns buf. */
const char *td_cli_why_mute(char *buf, size_t len, const char *path, int fd, int r);
/* `tandem run` goes on without it: says so, closes fd, returns TD_CLI_NO_DAEMON. */
int td_cli_say_no_daemon(const char *path, int fd, int r);

/*
 * Sends a request and calls row() for each message until END. Returns an exit status: 0, or
 * TD_EXIT_USAGE after printing the daemon's error, or that it does not answer.
 */
int td_cli_ask(
	const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg), void *arg);
/*
 * Sends a request that ends the daemon. Returns when it has ended, with its locks and its socket
 * released, so that another can be started at once.
 */
int td_cli_ask_to_end(const struct td_msg *request);
/* td_cli_ask() where `tandem run` needs an answer: a daemon that is lost meanwhile is started
 * again. `row` may have seen some rows twice. TD_CLI_NO_DAEMON: it is
 * there and does not answer. */
int td_cli_ask_or_start(
	const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg), void *arg);

/*
 * Parses --json, the only option of most verbs. Returns the index of the first other argument, or
 * -1 after printing an error.
 */
int td_cli_json_option(int argc, char **argv, bool *ret_json);
/* The same where there is no other argument. 0, or TD_EXIT_USAGE after printing an error. */
int td_cli_list_options(int argc, char **argv, bool *ret_json);

/*
 * Finds a file of this installation: beside the program in the build tree (bin/../lib) or where
 * meson installed it; $env overrides. Returns buf, or NULL if the file is nowhere.
 */
char *td_cli_find(char *buf, size_t len, const char *env, const char *const *candidates);

/* Values of a job's settings: 0, or -errno with *err. */
typedef int (*td_check_fn)(const char *value, struct td_err *err);
int td_cli_check_class(const char *value, struct td_err *err);
int td_cli_check_upgrade(const char *value, struct td_err *err);
int td_cli_check_backend(const char *value, struct td_err *err);
int td_cli_check_weight(const char *value, struct td_err *err);
int td_cli_check_limit(const char *value, struct td_err *err);
int td_cli_check_duty(const char *value, struct td_err *err);
int td_cli_check_slack(const char *value, struct td_err *err);
/* Returns 0, or TD_EXIT_USAGE after printing what is wrong where. */
int td_cli_check(const char *where, const char *value, td_check_fn check);
/*
 * Calls each() for every variable of libtandem.so with an invalid value, until it returns false.
 * True: all were visited.
 */
bool td_cli_check_variables(
	bool (*each)(void *arg, const char *name, const struct td_err *err), void *arg);
/* The daemon's socket. 0, or TD_EXIT_USAGE after complaining. */
int td_cli_socket(char *ret, size_t len);

/*
 * Makes sure that a daemon answers, starting one for this user if there is none. Returns 0;
 * TD_CLI_NO_DAEMON if one is there and does not answer; or an exit status.
 */
int td_cli_ensure_daemon(void);

/* The header of an ELF file. False: it is none. */
bool td_cli_read_elf(int fd, Elf64_Ehdr *ret);
/* Is it of the same machine and class as this program? */
bool td_cli_is_for_this_machine(const Elf64_Ehdr *header);
/* Is it linked dynamically? */
bool td_cli_has_interpreter(int fd, const Elf64_Ehdr *header);
/*
 * Can LD_PRELOAD load it, and is it libtandem.so? False: *ret_why has a sentence that quotes the
 * path and says what was expected.
 */
bool td_cli_is_library(const char *path, char *ret_why, size_t len);

/*
 * Reads what --layers names, a file or counts, into ret_text as td_layers_parse() reads it. 0, or
 * TD_EXIT_USAGE after complaining.
 */
int td_cli_layers(const char *value, char ret_text[TD_LAYERS_TEXT]);

/* Was the program built with the CUDA runtime in it? */
bool td_cli_has_static_cudart(int fd, const Elf64_Ehdr *header);

/* Makes the environment say which GPUs the job may see (--gpu's value). 0, or an exit status after
 * complaining, or TD_CLI_NO_DAEMON. The daemon lists the GPUs; where it is
 * known not to answer (alone) NVML does. */
int td_cli_place(const char *value, bool alone);

/*
 * Calls each() with a sentence for every GPU that another daemon shares. 0, or -errno: it cannot be
 * known.
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
