/* What the verbs share: talking to the daemon, printing rows for people or as JSON, and failing the same way. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/json.h"
#include "cli/rows.h"
#include "proto/proto.h"

/* tandem's own failures; 126, 127 and 128+signal are the child's (facts of every wrapper: env, timeout, nice). */
#define TD_EXIT_USAGE 125

struct td_verb {
	const char *name, *arguments, *help;
	int (*run)(int argc, char **argv); /* argv[0] is the verb; the result is the exit status */
};
extern const struct td_verb td_verbs[];

/* Prints "tandem: ..." and returns TD_EXIT_USAGE. */
int td_cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `tandem run` was told that the daemon does not answer; said already. */
#define TD_CLI_ALONE 1
/* Room for td_cli_why_mute(). */
#define TD_CLI_WHY 1024

/* A connection to the daemon at path, or -errno. No call on it waits for more than 2 s: -EAGAIN. */
int td_cli_connect(const char *path);
/* 0: who is connected there is a daemon, and answers; TD_EXIT_USAGE after printing its error;
 * -errno. */
int td_cli_probe(int fd);
/* Is the daemon there (or another program at its socket), and says nothing that is an answer? */
bool td_cli_is_mute(int r);
/* A sentence that says why r was no answer on the connection fd (-errno: there was none), and
 * what can be done. Returns buf. */
const char *td_cli_why_mute(char *buf, size_t len, const char *path, int fd, int r);
/* `tandem run` goes on without it: says so, closes fd, returns TD_CLI_ALONE. */
int td_cli_say_alone(const char *path, int fd, int r);

/*
 * Sends a request and calls row() for each message until END. Returns an exit status: 0, or TD_EXIT_USAGE after printing the daemon's
 * error, or that it does not answer.
 */
int td_cli_ask(
	const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg), void *arg);
/* A request that ends the daemon: returns when it has ended, with its locks and its socket given back, so that another may be started at once. */
int td_cli_ask_to_end(const struct td_msg *request);
/* td_cli_ask() where `tandem run` needs an answer: a daemon that is lost meanwhile is started
 * again. `row` may have seen some rows twice. TD_CLI_ALONE: it is
 * there and does not answer. */
int td_cli_ask_or_start(
	const struct td_msg *request, void (*row)(const struct td_msg *msg, void *arg), void *arg);

/* The only option of most verbs. Returns the index of the first argument that is none, or -1 after complaining. */
int td_cli_json_option(int argc, char **argv, bool *ret_json);

/*
 * A file of this installation: beside the program in the build tree (bin/../lib) or where meson installed it; $env overrides. Returns buf, or
 * NULL if it is nowhere.
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
/* 0, or TD_EXIT_USAGE after saying what is wrong where. */
int td_cli_check(const char *where, const char *value, td_check_fn check);
/* Of the variables that libtandem.so reads, those that make no sense: true, or false once each() returned that. */
bool td_cli_check_variables(
	bool (*each)(void *arg, const char *name, const struct td_err *err), void *arg);
/* The daemon's socket. 0, or TD_EXIT_USAGE after complaining. */
int td_cli_socket(char *ret, size_t len);

/* 0 when a daemon answers, starting one for this user if there is none; TD_CLI_ALONE when it is
 * there and does not answer; an exit status otherwise. */
int td_cli_ensure_daemon(void);

/* The header of an ELF file. False: it is none. */
bool td_cli_read_elf(int fd, Elf64_Ehdr *ret);
/* Of the kind that this program is of itself. */
bool td_cli_is_for_this_machine(const Elf64_Ehdr *header);
/* Is it linked dynamically? */
bool td_cli_has_interpreter(int fd, const Elf64_Ehdr *header);
/* Can LD_PRELOAD load it, and is it libtandem.so? False: *ret_why has a sentence that quotes the path and says what was expected. */
bool td_cli_is_library(const char *path, char *ret_why, size_t len);

/* Was the program built with the CUDA runtime in it? */
bool td_cli_has_static_cudart(int fd, const Elf64_Ehdr *header);

/* Makes the environment say which GPUs the job may see (--gpu's value). 0, or an exit status after
 * complaining, or TD_CLI_ALONE. The daemon lists the GPUs; where it is
 * known not to answer (alone) NVML does. */
int td_cli_place(const char *value, bool alone);

/* Calls each() with a sentence for every GPU that a daemon other than ours shares. 0 or -errno: it cannot be known. */
int td_cli_foreign_gpus(void (*each)(void *arg, const char *text), void *arg);

int td_verb_act(int argc, char **argv);
int td_verb_run(int argc, char **argv);
int td_verb_ps(int argc, char **argv);
int td_verb_top(int argc, char **argv);
int td_verb_web(int argc, char **argv);
int td_verb_completion(int argc, char **argv);
int td_verb_metrics(int argc, char **argv);
int td_verb_gpu(int argc, char **argv);
int td_verb_set(int argc, char **argv);
int td_verb_policies(int argc, char **argv);
int td_verb_events(int argc, char **argv);
int td_verb_explain(int argc, char **argv);
int td_verb_doctor(int argc, char **argv);
int td_verb_stop(int argc, char **argv);
