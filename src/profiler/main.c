/* tandem profile: a table of what can be measured; without a word of it, a program is. */
#include "profiler/profiler.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/program.h"

const struct td_profiler_verb td_profiler_verbs[] = {
	{"service", "--name NAME --url URL [OPTION]... -- COMMAND [ARG]...",
		"a service's latency over batches, shares of the SMs and neighbours",
		td_profiler_service},
	{"model", "[OPTION]... [NAME]", "what is known of services: the same as tandem model",
		td_profiler_model},
	{NULL, NULL, NULL, NULL},
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

static void usage(FILE *out)
{
	fputs("usage: tandem profile [OPTION]... -- COMMAND [ARG]...\n"
	      "       tandem profile --list [--json]\n",
		out);
	for (const struct td_profiler_verb *verb = td_profiler_verbs; verb->name; verb++)
		fprintf(out, "       tandem profile %s %s\n", verb->name, verb->arguments);
	fputs("\nMeasures a program alone on its GPU, and keeps what was measured.\n", out);
	for (const struct td_profiler_verb *verb = td_profiler_verbs; verb->name; verb++)
		fprintf(out, "  %-9s %s\n", verb->name, verb->help);
}

static int dispatch(int argc, char **argv)
{
	if (argc < 2) {
		usage(stderr);
		return TD_PROFILER_FAILED;
	}
	if (td_asks_help(argv[1])) {
		usage(stdout);
		return 0;
	}
	for (const struct td_profiler_verb *verb = td_profiler_verbs; verb->name; verb++)
		if (!strcmp(verb->name, argv[1]))
			return verb->run(argc - 1, argv + 1);
	if (argv[1][0] == '-')
		return td_profiler_fail("profiling a program is not there yet");
	return td_profiler_fail("\"%.64s\" is not known to tandem profile: expected -- before a "
				"program's command; see tandem profile --help",
		argv[1]);
}

int main(int argc, char **argv)
{
	return td_output_end("tandem", dispatch(argc, argv), TD_PROFILER_FAILED);
}
