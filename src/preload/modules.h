/* Modules and libraries, by what their variables take. */
#pragma once

void td_modules_forked(void);
