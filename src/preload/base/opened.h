/*
 * Files that a process has open, as the kernel lists them: those of every thread, of every
 * namespace of the dynamic linker and of statically linked libraries, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The first whose path `is` says yes to; ret gets as much of the path as fits, and a NUL. Where the
 * kernel does not list them (no /proc, no descriptor left) the answer is true and names the list:
 * what is not known may be open. Keeps errno.
 */
bool td_opened_find(bool (*is)(const char *path), char *ret, size_t len);
