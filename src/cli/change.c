/* set, pause, resume, stop: what changes the daemon or a job. */
#include <string.h>

#include "cli/cli.h"

static void option_row(const struct td_msg *msg, void *arg)
{
	(void)arg;
	if (msg->type == TD_MSG_TYPE_option)
		printf("%-16s %-10s %s\n", msg->option.key, msg->option.value, msg->option.help);
}

static int set_one(const char *job, const char *key, const char *value)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_set};

	snprintf(msg.set.job, sizeof(msg.set.job), "%s", job);
	snprintf(msg.set.key, sizeof(msg.set.key), "%s", key);
	snprintf(msg.set.value, sizeof(msg.set.value), "%s", value);
	return td_cli_ask(&msg, NULL, NULL);
}

int td_verb_set(int argc, char **argv)
{
	const char *job = "";
	int i = 1;

	if (argc == 1) {
		struct td_msg msg = {.type = TD_MSG_TYPE_get};

		return td_cli_ask(&msg, option_row, NULL);
	}
	if (!strchr(argv[1], '=')) {
		job = argv[1];
		i = 2;
		if (argc == 2)
			return td_cli_fail("\"%.64s\" is not valid: expected KEY=VALUE, or a job "
					   "and KEY=VALUE",
				argv[1]);
	}
	for (; i < argc; i++) {
		char key[64];
		const char *equals = strchr(argv[i], '=');
		int status;

		if (!equals || equals == argv[i] || (size_t)(equals - argv[i]) >= sizeof(key))
			return td_cli_fail("\"%.64s\" is not valid: expected KEY=VALUE", argv[i]);
		snprintf(key, sizeof(key), "%.*s", (int)(equals - argv[i]), argv[i]);
		status = set_one(job, key, equals + 1);
		if (status)
			return status;
	}
	return 0;
}

int td_verb_pause(int argc, char **argv)
{
	if (argc != 2)
		return td_cli_fail("%s: which job? See tandem ps", argv[0]);
	return set_one(argv[1], "paused", strcmp(argv[0], "pause") ? "off" : "on");
}

int td_verb_stop(int argc, char **argv)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_stop};

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "--force")))
		return td_cli_fail(
			"\"%.64s\" is not an option of stop: expected --force", argv[argc - 1]);
	msg.stop.force = argc == 2;
	return td_cli_ask(&msg, NULL, NULL);
}
