/*
 * Yields the rows of options.def of the verb for which OPTION_<verb> is defined; see options.h. It
 * is included within a table, and may be included more than once.
 */
#ifndef OPTION_predict
#define OPTION_predict(name, letter, argument)
#endif
#ifndef OPTION_profile
#define OPTION_profile(name, letter, argument)
#endif
#ifndef OPTION_run
#define OPTION_run(name, letter, argument)
#endif
#ifndef OPTION_top
#define OPTION_top(name, letter, argument)
#endif
#ifndef OPTION_web
#define OPTION_web(name, letter, argument)
#endif
#define OPTION(verb, name, letter, argument, values, help) OPTION_##verb(name, letter, argument)
#include "view/options.def"
#undef OPTION
#undef OPTION_predict
#undef OPTION_profile
#undef OPTION_run
#undef OPTION_top
#undef OPTION_web
{
	NULL, 0, NULL, 0
}
