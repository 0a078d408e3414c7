/* The database that tandem-profile keeps what it has measured in (learn/store_programs.h). */
#pragma once

#include <stddef.h>

struct td_err;
struct td_store;

/*
 * Opens the one at `path`, or with NULL this user's own, profiles.db in $XDG_DATA_HOME/tandem or
 * ~/.local/share/tandem, whose folders are made. 0, or -errno with a sentence.
 */
int td_profiler_open(const char *path, struct td_store **ret_store, struct td_err *err);

/* The same to read only: nothing is made, and one that is not there is an empty one. */
int td_profiler_open_to_read(const char *path, struct td_store **ret_store, struct td_err *err);

/* A sentence for an error of the store. Returns code. */
int td_profiler_store_error(int code, struct td_err *err);

/*
 * Writes a new file and renames it, so that the daemon never sees a half of it. Follows no link.
 * Returns 0 or -errno.
 */
int td_profiler_write(const char *path, const void *bytes, size_t size);

/*
 * Writes the file of speeds (profile/speed_file.h) into the directory: the programs and the
 * predictor of each kind of GPU that has both. Returns 0, or -errno with a sentence.
 */
int td_profiler_export_speeds(struct td_store *store, const char *directory, struct td_err *err);
