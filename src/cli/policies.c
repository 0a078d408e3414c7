/*
 * The verb policies: lists the policies that this node can run and, for each other policy, what the
 * node lacks.
 */
#include <stdbool.h>

#include "cli/cli.h"

struct sink {
	bool json, is_in_row, has_titles;
	struct td_json out, lacks;
};

static void end_row(struct sink *sink)
{
	if (sink->is_in_row) {
		td_json_end(&sink->lacks);
		td_json_end_row(&sink->out);
	}
	sink->is_in_row = false;
}

/* Begins a row. The missing abilities are a list of their own within it. */
static void begin_row(struct sink *sink, const struct td_msg_policy *policy)
{
	end_row(sink);
	td_json_row(&sink->out);
	td_json_str(&sink->out, "policy", policy->name);
	td_json_str(&sink->out, "state", policy->state);
	td_json_str(&sink->out, "summary", policy->summary);
	td_json_key(&sink->out, "lacks");
	td_json_begin(&sink->lacks, sink->out.out);
	sink->is_in_row = true;
}

static void lack_json(struct td_json *j, const struct td_msg_lack *lack)
{
	td_json_row(j);
	td_json_str(j, "ability", lack->ability);
	td_json_str(j, "sentence", lack->sentence);
	td_json_end_row(j);
}

static void json_row(const struct td_msg *msg, struct sink *sink)
{
	if (msg->type == TD_MSG_TYPE_policy)
		begin_row(sink, &msg->policy);
	else if (msg->type == TD_MSG_TYPE_lack && sink->is_in_row)
		lack_json(&sink->lacks, &msg->lack);
}

static void row(const struct td_msg *msg, void *arg)
{
	struct sink *sink = arg;

	if (!sink->json && !sink->has_titles)
		printf("%-10s %-8s %s\n", "POLICY", "STATE", "HOW IT DECIDES");
	sink->has_titles = true;
	if (sink->json)
		json_row(msg, sink);
	else if (msg->type == TD_MSG_TYPE_policy)
		printf("%-10s %-8s %s\n", msg->policy.name, msg->policy.state, msg->policy.summary);
	else if (msg->type == TD_MSG_TYPE_lack)
		printf("%-10s %-8s   %s\n", "", "", msg->lack.sentence);
}

int td_verb_policies(int argc, char **argv)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_list_policies};
	struct sink sink = {0};
	int at = td_cli_json_option(argc, argv, &sink.json), status;

	if (at < 0)
		return TD_EXIT_USAGE;
	if (at < argc)
		return td_cli_fail(
			"\"%.64s\" is not expected: see tandem policies --help", argv[at]);
	if (sink.json)
		td_json_begin(&sink.out, stdout);
	status = td_cli_ask(&msg, row, &sink);
	if (sink.json) {
		end_row(&sink);
		td_json_end(&sink.out);
	}
	return status;
}
