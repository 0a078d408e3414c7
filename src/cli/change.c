/* The verbs set and stop, which change the daemon or a job's settings. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/program.h"
#include "cli/cli.h"

/* The key whose rows are printed (NULL: all rows), and the number of rows printed so far. */
struct shown {
	const char *key;
	unsigned count;
	size_t width; /* of the terminal; 0: each row is one line */
};

/* The column in which the help of an option begins, and the least width for its words. */
#define HELP_COLUMN 38
#define HELP_WIDTH  20

/* Returns the width of the terminal that stdout is; 0 if it is none, or too narrow for the help. */
static size_t terminal_width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < HELP_COLUMN + HELP_WIDTH)
		return 0;
	return size.ws_col;
}

/* Prints words that begin in column `at`. Lines are broken so that they stay within the width. */
static void print_help(const char *words, size_t at, size_t width)
{
	for (const char *word = words; *word;) {
		size_t n = strcspn(word, " ");

		if (word != words && width && at + 1 + n > width) {
			printf("\n%*s", HELP_COLUMN, "");
			at = HELP_COLUMN;
		} else if (word != words) {
			putchar(' ');
			at++;
		}
		at += (size_t)printf("%.*s", (int)n, word);
		word += n + (word[n] == ' ');
	}
	putchar('\n');
}

static void option_row(const struct td_msg *msg, void *arg)
{
	struct shown *shown = arg;
	size_t at;

	if (msg->type != TD_MSG_TYPE_option || (shown->key && strcmp(shown->key, msg->option.key)))
		return;
	at = (size_t)printf("%-24s %-12s ", msg->option.key, msg->option.value);
	print_help(msg->option.help, at, shown->width);
	/*
	 * The rows exceed stdio's buffer, and stdio would not report later why a write has failed.
	 */
	td_output_flush();
	shown->count++;
}

/*
 * Shows the daemon's options, or the option of that name, or the settings of the job of that name.
 */
static int show_options(const char *name)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_get};
	struct shown shown = {.key = name, .width = terminal_width()};
	struct shown all = {.width = shown.width};
	int status = td_cli_ask(&msg, option_row, &shown);

	if (status || !name || shown.count)
		return status;
	snprintf(msg.get.job, sizeof(msg.get.job), "%s", name);
	return td_cli_ask(&msg, option_row, &all);
}

static int set_one(const char *job, const char *key, const char *value, bool check)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_set};

	snprintf(msg.set.job, sizeof(msg.set.job), "%s", job);
	snprintf(msg.set.key, sizeof(msg.set.key), "%s", key);
	snprintf(msg.set.value, sizeof(msg.set.value), "%s", value);
	msg.set.check = check;
	return td_cli_ask(&msg, NULL, NULL);
}

/* Sets all pairs, or only checks whether they can be set. */
static int set_all(const char *job, int count, char **pairs, bool check)
{
	for (int i = 0; i < count; i++) {
		char key[64];
		const char *equals = strchr(pairs[i], '=');
		int status;

		if (!equals || equals == pairs[i] || (size_t)(equals - pairs[i]) >= sizeof(key))
			return td_cli_fail("\"%.64s\" is not valid: expected KEY=VALUE", pairs[i]);
		/* A value that is cut off could be valid and mean something else. */
		if (strlen(equals + 1) > TD_STR_MAX)
			return td_cli_fail("%.*s: \"%.64s...\" is not valid: it is longer than %d "
					   "characters",
				(int)(equals - pairs[i]), pairs[i], equals + 1, TD_STR_MAX);
		snprintf(key, sizeof(key), "%.*s", (int)(equals - pairs[i]), pairs[i]);
		status = set_one(job, key, equals + 1, check);
		if (status)
			return status;
	}
	return 0;
}

int td_verb_set(int argc, char **argv)
{
	const char *job = "";
	int i = 1, status;

	if (argc == 1)
		return show_options(NULL);
	if (!strncmp(argv[1], "--", 2))
		return td_cli_fail(
			"\"%.64s\" is not an option of set: see tandem set --help", argv[1]);
	if (!strchr(argv[1], '=')) {
		job = argv[1];
		i = 2;
		if (argc == 2)
			return show_options(job);
	}
	/* All pairs are checked first, so that either all are set or none. */
	status = set_all(job, argc - i, argv + i, true);
	return status ? status : set_all(job, argc - i, argv + i, false);
}

int td_verb_stop(int argc, char **argv)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_stop};

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "--force")))
		return td_cli_fail(
			"\"%.64s\" is not an option of stop: expected --force", argv[argc - 1]);
	msg.stop.force = argc == 2;
	return td_cli_ask_to_end(&msg);
}
