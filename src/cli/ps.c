/* The verb ps: prints the jobs once, in the columns of `tandem top` or as JSON. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/columns.h"
#include "proto/socket.h"
#include "view/jobs.h"

struct sink {
	bool json, has_failed;
	struct td_json out;
	struct td_snapshot jobs;
};

static void row(const struct td_msg *msg, void *arg)
{
	struct sink *sink = arg;

	if (!sink->json)
		sink->has_failed |= td_snapshot_take(&sink->jobs, msg) < 0;
	else if (msg->type == TD_MSG_TYPE_job)
		td_rows_job(&sink->out, &msg->job);
	else if (msg->type == TD_MSG_TYPE_others)
		td_rows_others(&sink->out, &msg->others);
}

/* A line: `of` gives the text of its cells, which are about `what`. */
struct text {
	const char *(*of)(char *buf, const void *what, enum td_jobs_column column);
	const void *what;
};

static const char *text_in(const struct text *text, char *buf, unsigned column)
{
	const char *said = text->of(buf, text->what, (enum td_jobs_column)column);

	return *said ? said : "-";
}

/* Makes the columns wide enough for the cells of a line. */
static void widen(int widths[TD_JOBS_N], struct text line)
{
	for (unsigned i = 0; i < TD_JOBS_N; i++) {
		char buf[TD_JOBS_CELL];
		int n = (int)strlen(text_in(&line, buf, i));

		if (abs(widths[i]) < n)
			widths[i] = widths[i] < 0 ? -n : n;
	}
}

static void print(const bool shows[TD_JOBS_N], const int widths[TD_JOBS_N], struct text text)
{
	struct td_line line = {0};

	for (unsigned i = 0; i < TD_JOBS_N; i++) {
		char buf[TD_JOBS_CELL];

		if (shows[i])
			td_line_cell(&line, widths[i], text_in(&text, buf, i));
	}
	td_line_end(&line);
}

static const char *title(char *buf, const void *of, enum td_jobs_column column)
{
	(void)buf;
	(void)of;
	return td_jobs_info(column)->title;
}

static const char *cell(char *buf, const void *of, enum td_jobs_column column)
{
	return td_jobs_cell(buf, of, column);
}

static const char *cell_of_others(char *buf, const void *of, enum td_jobs_column column)
{
	return td_jobs_cell_of_others(buf, of, column);
}

static void print_rows(const struct td_snapshot *jobs)
{
	bool shows[TD_JOBS_N] = {false};
	int widths[TD_JOBS_N];

	td_jobs_mark(jobs, shows);
	for (unsigned i = 0; i < TD_JOBS_N; i++) {
		widths[i] = td_jobs_info((enum td_jobs_column)i)->width;
		shows[i] &= td_jobs_info((enum td_jobs_column)i)->when != TD_JOBS_WHEN_rates;
	}
	if (!jobs->job_count && !jobs->other_count) {
		puts("no job uses a GPU through tandem");
		return;
	}
	for (size_t i = 0; i < jobs->job_count; i++)
		widen(widths, (struct text){cell, &jobs->jobs[i]});
	for (size_t i = 0; i < jobs->other_count; i++)
		widen(widths, (struct text){cell_of_others, &jobs->others[i]});
	print(shows, widths, (struct text){title, NULL});
	for (size_t i = 0; i < jobs->job_count; i++)
		print(shows, widths, (struct text){cell, &jobs->jobs[i]});
	for (size_t i = 0; i < jobs->other_count; i++)
		print(shows, widths, (struct text){cell_of_others, &jobs->others[i]});
}

int td_verb_ps(int argc, char **argv)
{
	struct td_msg msg = {.type = TD_MSG_TYPE_list_jobs};
	struct sink sink = {0};
	int status = td_cli_list_options(argc, argv, &sink.json);

	if (status)
		return status;
	td_snapshot_init(&sink.jobs);
	if (sink.json)
		td_json_begin(&sink.out, stdout);
	status = td_cli_ask(&msg, row, &sink);
	if (sink.json)
		td_json_end(&sink.out);
	else if (sink.has_failed)
		status = td_cli_fail("ps: there is no memory for the rows");
	else if (!status)
		print_rows(&sink.jobs);
	td_snapshot_deinit(&sink.jobs);
	return status;
}
