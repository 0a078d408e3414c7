/* The database that tandem-profile keeps what it has measured in (learn/store_programs.h). */
#pragma once

#include <stddef.h>

struct td_err;
struct td_store;

/*
 * Opens the database at `path`, or with NULL this user's own, profiles.db in $XDG_DATA_HOME/tandem
 * or ~/.local/share/tandem, whose folders are made. Returns 0, or -errno with a message in err.
 */
int td_profiler_open(const char *path, struct td_store **ret_store, struct td_err *err);

/*
 * Like td_profiler_open(), but only to read. Nothing is made; a database that does not exist counts
 * as empty.
 */
int td_profiler_open_to_read(const char *path, struct td_store **ret_store, struct td_err *err);

/* Writes a message for an error of the store to err. Returns code. */
int td_profiler_store_error(int code, struct td_err *err);

/*
 * Writes a new file, then renames it to path, so that the daemon never reads a half-written one.
 * Follows no symbolic link. Returns 0 or -errno.
 */
int td_profiler_write(const char *path, const void *bytes, size_t size);

/*
 * Writes the file of speeds (profile/speed_file.h) into the directory: the programs and the
 * predictor of each kind of GPU that has both. Returns 0, or -errno with a message
 * in err.
 */
int td_profiler_export_speeds(struct td_store *store, const char *directory, struct td_err *err);
