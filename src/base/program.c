/* Implements program.h. */
#include "base/program.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

static int reason; /* errno of the first failed write; 0: none failed, or its reason is not known */

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
	return td_err_set(err, -EINVAL,
		"\"%.64s\" needs a value: \"--\" is none, because it ends the options", option);
}

/*
 * Tells whether an option without values was typed with one, as in "--mig=1". `value` is the
 * option's code in getopt_long.
 */
static bool has_value(const char *word, const struct option *options, int value)
{
	size_t len = strcspn(word, "=");

	if (strncmp(word, "--", 2) || !word[len])
		return false;
	for (; options->name; options++)
		if (options->val == value && options->has_arg == no_argument &&
			!strncmp(options->name, word + 2, len - 2))
			return true;
	return false;
}

int td_refuse_option(int c, char *const *argv, const struct option *options, const char *help,
	struct td_err *err)
{
	const char *word = argv[optind - 1];

	if (c == ':')
		return td_err_set(err, -EINVAL, "\"%.64s\" needs a value: see %s", word, help);
	if (optopt && has_value(word, options, optopt))
		return td_err_set(err, -EINVAL, "\"%.64s\" takes no value: see %s", word, help);
	/* optopt is the short option, even if several were typed together. */
	if (optopt)
		return td_err_set(err, -EINVAL, "\"-%c\" is not an option: see %s", optopt, help);
	return td_err_set(err, -EINVAL, "\"%.64s\" is not an option: see %s", word, help);
}

const char *td_exec_reason(const char *path, int error)
{
	struct stat st;

	return error == EACCES && strchr(path, '/') && !stat(path, &st) && S_ISDIR(st.st_mode)
		       ? "it is a directory"
		       : strerror(error);
}

char *td_program_beside(char *buf, size_t len, const char *const *candidates)
{
	char self[PATH_MAX], joined[2 * PATH_MAX], resolved[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return NULL;
	self[n] = 0;
	slash = strrchr(self, '/');
	if (slash)
		*slash = 0;
	for (; *candidates; candidates++) {
		snprintf(joined, sizeof(joined), "%s/%s", self, *candidates);
		if (realpath(joined, resolved) && strlen(resolved) < len)
			return strcpy(buf, resolved);
	}
	return NULL;
}

int td_end_signals(void)
{
	sigset_t ends;

	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &ends, NULL);
	return signalfd(-1, &ends, SFD_CLOEXEC);
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
	/* If stdout was closed from the start, output is lost only if something was printed. */
	if (fclose(stdout) && errno != EBADF && !lost) {
		lost = true;
		reason = errno;
	}
	if (!lost)
		return status;
	fprintf(stderr, "%s: its output could not be written completely%s%s\n", program,
		reason ? ": " : "", reason ? strerror(reason) : "");
	return status ? status : failed;
}
