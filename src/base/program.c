/* Implements program.h. */
#include "base/program.h"

#include <assert.h>
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

static void print_help(const struct td_command *command)
{
	puts(command->usage);
	for (size_t i = 0; i < command->count; i++) {
		const struct td_command_option *option = &command->options[i];
		char name[64];

		snprintf(name, sizeof(name), "--%s %s", option->name, option->argument);
		printf("  %-22s  %s\n", name, option->help);
	}
	puts("  -h, --help, -V, --version");
	if (command->notes)
		puts(command->notes);
}

int td_command_answer(const struct td_command *command, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (td_asks_help(argv[i]))
			print_help(command);
		else if (td_asks_version(argv[i]))
			printf("%s " TANDEM_VERSION "\n", command->name);
		else
			continue;
		return td_output_end(command->name, 0, 1);
	}
	return -1;
}

/* Puts the option's name before what was said about its value, unless it is there already. */
static void name_option(const struct td_command *command, int letter, struct td_err *err)
{
	const struct td_err said = *err;

	for (size_t i = 0; i < command->count && strncmp(said.msg, "--", 2); i++)
		if (command->options[i].letter == letter) {
			(void)td_err_set(
				err, said.code, "--%s: %s", command->options[i].name, said.msg);
			return;
		}
}

int td_command_parse(
	const struct td_command *command, int argc, char **argv, void *arg, struct td_err *err)
{
	struct option table[TD_COMMAND_OPTIONS + 1] = {{0}};
	char help[64];
	int letter, r = 0;

	assert(command->count <= TD_COMMAND_OPTIONS);
	for (size_t i = 0; i < command->count; i++)
		table[i] = (struct option){command->options[i].name,
			*command->options[i].argument ? required_argument : no_argument, NULL,
			command->options[i].letter};
	snprintf(help, sizeof(help), "%s --help", command->name);
	opterr = 0;
	while (!r && (letter = getopt_long(argc, argv, ":", table, NULL)) != -1) {
		if (letter == '?' || letter == ':')
			return td_refuse_option(letter, argv, table, help, err);
		r = td_check_optarg(argv, err);
		if (r)
			return r;
		r = command->take(arg, letter, optarg, err);
		if (r)
			name_option(command, letter, err);
	}
	return r || optind == argc ? r : td_err_expected(err, -EINVAL, argv[optind], "an option");
}

int td_command_fail(const struct td_command *command, const char *sentence, int status)
{
	fprintf(stderr, "%s: %s\n", command->name, sentence);
	return status;
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
