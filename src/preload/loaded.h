/*
 * Files with code that a process has mapped: libraries of every namespace of the dynamic linker (dlmopen), of which dl_iterate_phdr tells the caller's
 * alone. As the kernel lists them, so that no lock of the linker is taken and no list of its is walked while others change it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The first whose file's name, without its directory, `is` says yes to; it gets at most 63 bytes of it. False: none, or the kernel does not list them (no /proc). Keeps errno. */
bool td_loaded_find(bool (*is)(const char *name), char *ret, size_t len);
