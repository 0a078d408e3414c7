/* Modules and libraries, by what their variables take. */
#pragma once

#include <stdint.h>

/* What counted under this key of TD_KEY_LIBRARY has ended with its context. */
void td_modules_library_gone(uint64_t key);
void td_modules_forked(void);
