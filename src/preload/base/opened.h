/*
 * Finds files that the process has open, from the kernel's list. That covers every thread, every
 * namespace of the dynamic linker, and statically linked libraries.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds the first open file whose path `is` accepts. ret gets as much of the path as fits, with a
 * NUL. If the list cannot be read (no /proc, no free descriptor) the answer is true and ret names
 * the list: the file may be open. Keeps errno.
 */
bool td_opened_find(bool (*is)(const char *path), char *ret, size_t len);
