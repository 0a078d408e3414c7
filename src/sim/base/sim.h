/* The verbs of tandem-sim, and helpers that they share. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct td_err;

#define TD_SIM_EXIT_USAGE   2
#define TD_SIM_EXIT_STOPPED 130

int td_sim_run(int argc, char **argv);
int td_sim_experiment(int argc, char **argv);
int td_sim_requests(int argc, char **argv);

/* Prints "tandem-sim: ..." on stderr. Returns the exit status for wrong usage. */
int td_sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Set by SIGINT and SIGTERM once td_sim_catch() has been called. A second signal ends the program
 * with nothing written. One that comes within TD_SIM_SAME_SIGNAL_NS counts as the first, because
 * timeout(1) sends one to the process and one to its group.
 */
#define TD_SIM_SAME_SIGNAL_NS 1000000000ull
extern volatile sig_atomic_t td_sim_stop;
void td_sim_catch(void);
/* Notes a signal at now_ns. Returns true if it is a second one. For signal handlers. */
bool td_sim_signalled(uint64_t now_ns);

/*
 * Shows progress on a terminal: one line with the time left, rewritten at most ten times a second.
 * Shows nothing if stderr is no terminal.
 */
struct td_progress {
	const char *what;
	bool shown;
	uint64_t began_ns, last_ns;
};

void td_progress_begin(struct td_progress *progress, const char *what);
void td_progress_put(double done, void *progress);
void td_progress_end(struct td_progress *progress);

/*
 * Creates a folder with its parents and checks that files can be made there, before hours of
 * computing. Returns 0, or -errno with err.
 */
int td_sim_try_dir(const char *path, struct td_err *err);
/*
 * Opens a file for writing. It gets its name in the folder only when td_sim_close() finds it
 * complete. Returns NULL with err on failure.
 */
FILE *td_sim_create(const char *dir, const char *name, struct td_err *err);
/*
 * Closes the file. Returns 0, or -errno with err. On failure the file is removed, and an older file
 * of that name stays.
 */
int td_sim_close(FILE *file, const char *dir, const char *name, struct td_err *err);
