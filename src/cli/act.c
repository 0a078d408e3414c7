/*
 * The verbs evict, restart, migrate, share, pause, resume, checkpoint and restore: a user's actions
 * on jobs. Each returns when the action is done.
 */
#include <string.h>

#include "cli/cli.h"
#include "proto/words.h"

static const struct {
	const char *verb;
	enum td_action_kind kind;
	const char *done; /* the word to print when it is done; NULL: print nothing */
} verbs[] = {
	{"evict", TD_ACTION_EVICT, "evicted"},
	{"restart", TD_ACTION_RESTART, "restarted"}, /* with a share: START_SHADOW */
	{"migrate", TD_ACTION_MIGRATE, "moved"},
	{"share", TD_ACTION_SHARE, "changed"},
	{"pause", TD_ACTION_PAUSE, NULL},
	{"resume", TD_ACTION_RESUME, NULL},
	{"checkpoint", TD_ACTION_CHECKPOINT, "checkpointed:"},
	{"restore", TD_ACTION_RESTORE, "restored:"},
};

static const char *const states[TD_ACTION_STATE_N] = {
	"asked", "running", "done", "refused", "timed out"};

struct sink {
	const char *verb, *done;
	bool json, shares;
	struct td_json out;
	int status;
};

static void json_row(const struct td_msg_acted *acted, const struct sink *sink, struct td_json *j)
{
	td_json_row(j);
	td_json_u64(j, "number", acted->number);
	td_json_str(j, "action", sink->verb);
	td_json_str(j, "state", states[acted->state]);
	td_json_str(j, "job", acted->job);
	td_json_str(j, "name", acted->name);
	td_json_str(j, "reason", acted->reason);
	td_json_end_row(j);
}

/*
 * Returns whether a finished action of this kind gives as its reason what was moved and how long
 * that took.
 */
static bool says_how(uint8_t kind)
{
	return kind == TD_ACTION_MIGRATE || kind == TD_ACTION_CHECKPOINT ||
	       kind == TD_ACTION_RESTORE || kind == TD_ACTION_SHARE;
}

static void row(const struct td_msg *msg, void *arg)
{
	const struct td_msg_acted *acted = &msg->acted;
	const char *job = *acted->job ? acted->job : acted->name;
	struct sink *sink = arg;

	if (msg->type != TD_MSG_TYPE_acted || acted->state >= TD_ACTION_STATE_N)
		return;
	if (sink->json)
		json_row(acted, sink, &sink->out);
	if (acted->state == TD_ACTION_DONE && sink->shares && !sink->json &&
		acted->kind == TD_ACTION_START_SHADOW)
		printf("job \"%s\" (%s) goes on as a second instance with that share\n", job,
			acted->name);
	else if (acted->state == TD_ACTION_DONE && sink->done && !sink->json)
		printf("job \"%s\" (%s) is %s%s%s\n", job, acted->name, sink->done,
			says_how(acted->kind) ? " " : "",
			says_how(acted->kind) ? acted->reason : "");
	if (acted->state > TD_ACTION_DONE)
		sink->status = td_cli_fail("%s: job \"%s\" (%s): %s: %s", sink->verb, job,
			acted->name, states[acted->state], acted->reason);
}

int td_verb_act(int argc, char **argv)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_act};
	const struct td_msg list = {.type = TD_MSG_TYPE_list_gpus};
	struct sink sink = {.verb = argv[0]};
	int at = td_cli_json_option(argc, argv, &sink.json), status;
	bool moves = !strcmp(argv[0], "migrate"), restarts = !strcmp(argv[0], "restart");
	int end = at + (restarts ? 2 : 1); /* index behind the last allowed argument */

	sink.shares = !strcmp(argv[0], "share");
	if (at < 0)
		return TD_EXIT_USAGE;
	if (moves && argc != at + 2)
		return td_cli_fail(
			"migrate: expected a job and a GPU: tandem ps and tandem gpu list them");
	if (sink.shares && argc != at + 2)
		return td_cli_fail("share: expected a job and a share of the SMs, such as 40%%: "
				   "tandem ps lists the jobs");
	if (argc <= at)
		return td_cli_fail("%s: which job? See tandem ps", argv[0]);
	if (!moves && !sink.shares && argc > end)
		return td_cli_fail("\"%.64s\" is not expected behind the job: see tandem %s --help",
			argv[end], argv[0]);
	if (argc == at + 2)
		snprintf(msg.act.to, sizeof(msg.act.to), "%s", argv[at + 1]);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		if (strcmp(verbs[i].verb, argv[0]))
			continue;
		msg.act.kind = (uint8_t)verbs[i].kind;
		sink.done = verbs[i].done;
	}
	if (restarts && argc == at + 2)
		msg.act.kind = TD_ACTION_START_SHADOW;
	snprintf(msg.act.job, sizeof(msg.act.job), "%s", argv[at]);
	if (sink.json)
		td_json_begin(&sink.out, stdout);
	/* A daemon that has just started learns first which GPUs there are. */
	status = moves ? td_cli_ask(&list, NULL, NULL) : 0;
	status = status ? status : td_cli_ask(&msg, row, &sink);
	if (sink.json)
		td_json_end(&sink.out);
	return status ? status : sink.status;
}
