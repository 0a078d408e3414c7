/* The verbs of softgpu that have a file of their own. argv[0] is the verb; they return the exit status. */
#pragma once

#define EXIT_OURS 125

/* Prints "softgpu: " and format, whose one %s is text. Returns EXIT_OURS. */
int sg_cli_fail(const char *format, const char *text);
int sg_verb_fault(int argc, char **argv);
