/* See program.h. */
#include "base/program.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

static int reason; /* errno of the first write that failed; 0: none, or it was not seen */

static bool is_one_of(const char *argument, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(*words, argument))
			return true;
	return false;
}

bool td_asks_help(const char *argument)
{
	static const char *const words[] = {"--help", "-h", NULL};

	return is_one_of(argument, words);
}

bool td_asks_version(const char *argument)
{
	static const char *const words[] = {"--version", "-V", NULL};

	return is_one_of(argument, words);
}

int td_check_optarg(char *const *argv, struct td_err *err)
{
	const char *option;

	if (!optarg || strcmp(optarg, "--"))
		return 0;
	option = argv[optind - 1] == optarg ? argv[optind - 2] : argv[optind - 1];
	return td_err_set(err, -EINVAL, "\"%.64s\" needs a value: \"--\" ends the options", option);
}

void td_output_flush(void)
{
	if (fflush(stdout) && !reason)
		reason = errno;
}

int td_output_end(const char *program, int status, int failed)
{
	bool lost;

	td_output_flush();
	lost = ferror(stdout) || reason;
	/* Where it was closed from the start, and nothing was printed, nothing is lost. */
	if (fclose(stdout) && errno != EBADF && !lost) {
		lost = true;
		reason = errno;
	}
	if (!lost)
		return status;
	fprintf(stderr, "%s: what it printed could not all be written%s%s\n", program,
		reason ? ": " : "", reason ? strerror(reason) : "");
	return status ? status : failed;
}
