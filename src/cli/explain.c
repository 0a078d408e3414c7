/*
 * The verb explain: for each process of a job, prints its state and a table of the causes that
 * apply to it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/program.h"
#include "cli/cli.h"
#include "cli/columns.h"

struct sink {
	bool json;
	struct td_json processes, causes;
	bool begun;
	uint32_t process; /* the process whose causes are being printed, once begun */
};

static void end_process(struct sink *sink)
{
	if (!sink->begun || !sink->json)
		return;
	td_json_end(&sink->causes);
	td_json_end_row(&sink->processes);
}

static void begin_process(struct sink *sink, const struct td_msg_cause *row)
{
	const char *between = sink->begun ? "\n" : "";

	end_process(sink);
	sink->begun = true;
	sink->process = row->process;
	if (!sink->json) {
		printf("%s%s (job %s, pid %u): %s\n", between, *row->name ? row->name : row->job,
			*row->job ? row->job : "-", row->pid, row->state);
		td_columns_print_titles("explain");
		return;
	}
	td_json_row(&sink->processes);
	td_rows_who(&sink->processes, row->job, row->name, row->pid);
	td_json_str(&sink->processes, "state", row->state);
	td_json_key(&sink->processes, "causes");
	td_json_begin(&sink->causes, stdout);
}

/* Prints the figures, which come as "name=value name=value", as a JSON object. */
static void print_figures(struct td_json *json, const char *figures)
{
	struct td_json object = {.out = stdout};
	char name[TD_STR_MAX + 1];

	td_json_key(json, "figures");
	putchar('{');
	while (*figures) {
		size_t len = strcspn(figures, "=");

		if (!figures[len])
			break;
		snprintf(name, sizeof(name), "%.*s", (int)len, figures);
		td_json_u64(&object, name, strtoull(figures + len + 1, NULL, 10));
		figures += strcspn(figures, " ");
		figures += *figures == ' ';
	}
	putchar('}');
}

static void print_cause(struct sink *sink, const struct td_msg_cause *row)
{
	struct td_cells cells = {0};

	if (sink->json) {
		td_json_row(&sink->causes);
		td_json_str(&sink->causes, "id", row->id);
		td_rows_number(&sink->causes, "gpu", row->gpu);
		print_figures(&sink->causes, row->figures);
		td_json_str(&sink->causes, "text", row->text);
		td_json_str(&sink->causes, "todo", row->todo);
		td_json_end_row(&sink->causes);
		return;
	}
	if (row->gpu != UINT32_MAX)
		td_cell_set(&cells, TD_COLUMN_explain_gpu, "%u", row->gpu);
	td_cell_set(&cells, TD_COLUMN_explain_cause, "%s", row->id);
	td_cell_set(&cells, TD_COLUMN_explain_what, "%s", row->text);
	td_columns_print("explain", &cells);
	if (*row->todo)
		printf("%33s %s\n", "->", row->todo);
}

static void cause_row(const struct td_msg *msg, void *arg)
{
	struct sink *sink = arg;

	if (msg->type != TD_MSG_TYPE_cause)
		return;
	if (!sink->begun || msg->cause.process != sink->process)
		begin_process(sink, &msg->cause);
	print_cause(sink, &msg->cause);
}

int td_verb_explain(int argc, char **argv)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_explain};
	struct sink sink = {0};
	int at = td_cli_json_option(argc, argv, &sink.json), status;

	if (at < 0)
		return TD_EXIT_USAGE;
	if (at >= argc)
		return td_cli_fail("explain: a JOB is missing: expected an id, a name or a pid, as "
				   "tandem ps shows them");
	if (at + 1 < argc)
		return td_cli_fail(
			"\"%.64s\" is not expected behind the job: see tandem explain --help",
			argv[at + 1]);
	snprintf(msg.explain.job, sizeof(msg.explain.job), "%s", argv[at]);
	if (sink.json)
		td_json_begin(&sink.processes, stdout);
	status = td_cli_ask(&msg, cause_row, &sink);
	end_process(&sink);
	if (sink.json)
		td_json_end(&sink.processes);
	td_output_flush();
	return status;
}
