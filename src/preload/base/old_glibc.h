/*
 * Every file of libtandem.so includes this first. glibc 2.34 moved the thread functions into libc
 * under a new symbol version, and 2.28 did so with fcntl; images with an older glibc lack the new
 * versions. The old versions are in both. tools/check-glibc holds the library to 2.17.
 */
#pragma once

#include <features.h>

#if defined(__x86_64__) && defined(__GLIBC__)
#define TD_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
TD_OLD(pthread_attr_setstacksize);
TD_OLD(pthread_create);
TD_OLD(pthread_key_create);
TD_OLD(pthread_once);
TD_OLD(pthread_setspecific);
TD_OLD(pthread_sigmask);
#undef TD_OLD
__asm__(".symver fcntl64,fcntl@GLIBC_2.2.5");
#endif
