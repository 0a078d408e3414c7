/* The database that tandem-profile keeps what it has measured in (learn/store_programs.h). */
#pragma once

struct td_err;
struct td_store;

/*
 * Opens the one at `path`, or with NULL this user's own, profiles.db in $XDG_DATA_HOME/tandem or
 * ~/.local/share/tandem, whose folders are made. 0, or -errno with a sentence.
 */
int td_profiler_open(const char *path, struct td_store **ret_store, struct td_err *err);

/* A sentence for an error of the store. Returns code. */
int td_profiler_store_error(int code, struct td_err *err);
