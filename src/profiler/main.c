/* tandem profile: a table of what can be measured; without a word of it, a program is. */
#include "profiler/profiler.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/program.h"
#include "profiler/program.h"

const struct td_profiler_verb td_profiler_verbs[] = {
	{"campaign", "programs beside each other, from which tandem predict learns",
		td_profiler_campaign},
	{"service", "a service's latency over batches, shares of the SMs and neighbours",
		td_profiler_service},
	{"model", "what is known of services: the same as tandem model", td_profiler_model},
	{"learn", "from what the daemon measures of services that run; it calls this itself",
		td_profiler_learn},
	{NULL, NULL, NULL},
};

int td_profiler_fail(const char *format, ...)
{
	va_list args;

	fputs("tandem: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return TD_PROFILER_FAILED;
}

static int dispatch(int argc, char **argv)
{
	if (argc && !strcmp(argv[0], "predict"))
		return td_profiler_predict(argc, argv);
	if (argc > 1)
		for (const struct td_profiler_verb *verb = td_profiler_verbs; verb->name; verb++)
			if (!strcmp(verb->name, argv[1]))
				return verb->run(argc - 1, argv + 1);
	return td_profiler_run(argc, argv);
}

int main(int argc, char **argv)
{
	return td_output_end("tandem", dispatch(argc, argv), TD_PROFILER_FAILED);
}
