/*
 * The verbs of softgpu that have a file of their own. argv[0] is the verb; each returns the exit
 * status.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct td_err;

#define EXIT_OURS 125

/* Prints "softgpu: " and format, whose one %s is text. Returns EXIT_OURS. */
int sg_cli_fail(const char *format, const char *text);
/*
 * Finds a library that replaces one of NVIDIA's. `folder` is where a build tree has it. Returns 0
 * or -errno.
 */
int sg_cli_library(char *buf, size_t len, const char *name, const char *folder);
/*
 * Parses a rate in bytes per second within the bounds of the model. Returns 0, or -EINVAL or
 * -ERANGE with a sentence in err.
 */
int sg_cli_parse_rate(const char *text, uint64_t *ret_bytes_per_s, struct td_err *err);
/*
 * Checks that the option argv[i] has a value that does not end the options. Returns 0, or EXIT_OURS
 * after an error message.
 */
int sg_cli_check_value(int argc, char **argv, int i);
int sg_verb_smi(int argc, char **argv);
int sg_verb_fault(int argc, char **argv);
