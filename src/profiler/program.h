/* One dry run of a program, alone (MuxFlow 5.1). */
#pragma once

#include <stdbool.h>

#include "learn/store_programs.h"

struct td_err;
struct td_figures;

/* The figures of a run as a row of the store: of the programs' means, one run. */
void td_program_of(const struct td_figures *figures, const char *name, const char *command,
	int64_t time_s, struct td_program *ret_program);

/* Steps a second where both have at least some of them, else launches a second; 0: neither. */
double td_program_speed(const struct td_program *alone, const struct td_program *shared);

/* The words of a command, as people type them: cut where there is no room. Returns buf. */
char *td_program_command(char *buf, unsigned long len, char *const *argv);

/* `tandem profile` with options: a dry run, or --list. argv[0] is "profile". */
int td_profiler_run(int argc, char **argv);
