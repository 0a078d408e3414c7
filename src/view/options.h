/*
 * The options of a verb as a table of getopt_long(), from options.def:
 *
 *   static const struct option options[] = {
 *   #define OPTION_run TD_OPTION
 *   #include "view/options_of.h"
 *   };
 */
#pragma once

#include <getopt.h>

#define TD_OPTION(name, letter, argument)                                                          \
	{name, sizeof(argument) > 1 ? required_argument : no_argument, NULL, letter},
