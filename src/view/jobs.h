/*
 * Jobs in columns, the same for `tandem ps`, `tandem top` and the web page: the columns (jobs.def),
 * the contents of their cells, and the order of rows. Pure.
 */
#pragma once

#include "base/text.h"
#include "view/snapshot.h"

#define TD_JOBS_CELL 320 /* fits the longest text of a message */

enum td_jobs_column {
#define COLUMN(id, title, help, width, rank, when, kind, value) TD_JOBS_##id,
#include "view/jobs.def"
#undef COLUMN
	TD_JOBS_N,
};

enum td_jobs_when { TD_JOBS_WHEN_always, TD_JOBS_WHEN_some, TD_JOBS_WHEN_rates };

struct td_jobs_info {
	const char *id, *title, *help, *kind;
	int width; /* the number of characters; below 0: flush left */
	unsigned rank;
	enum td_jobs_when when;
};

const struct td_jobs_info *td_jobs_info(enum td_jobs_column column);
/* Returns the column with that id; TD_JOBS_N if there is none. */
enum td_jobs_column td_jobs_find(const char *id);

/* Returns the value of a column of text; NULL if the column has numbers. */
const char *td_jobs_text(const struct td_snapshot_job *job, enum td_jobs_column column);
/* Returns the value of a column of numbers; NAN if there is no value or the column has text. */
double td_jobs_number(const struct td_snapshot_job *job, enum td_jobs_column column);
/* Returns whether the column's numbers are ns. */
bool td_jobs_is_time(enum td_jobs_column column);
/* Returns whether the job has a value in the column. */
bool td_jobs_says(const struct td_snapshot_job *job, enum td_jobs_column column);

/* Writes the contents of a cell into TD_JOBS_CELL bytes; "" if there is no value. Returns buf. */
char *td_jobs_cell(char *buf, const struct td_snapshot_job *job, enum td_jobs_column column);
/* Like td_jobs_cell(), for the row with the sums of other users' processes. */
char *td_jobs_cell_of_others(
	char *buf, const struct td_msg_others *others, enum td_jobs_column column);

/* Returns whether the service's P99 exceeds its objective. */
bool td_jobs_is_late(const struct td_msg_job *said);

/*
 * Marks the columns to show. Those of TD_JOBS_WHEN_some are marked only if a row has a value in
 * them. Columns that are marked already stay so.
 */
void td_jobs_mark(const struct td_snapshot *snapshot, bool marks[TD_JOBS_N]);

/* Writes the columns as JSON: [{"id": "gpu", "left": false, "title": "GPU", ...}, ...] */
void td_jobs_write_columns(struct td_text *text);

/*
 * Writes the indices of the jobs to show into ret, sorted; it has room for job_count of them. A job
 * is shown if the filter occurs in its id, name, class, state or pid; an empty filter shows all.
 * Equal jobs are in the order of GPU and pid. Returns the number of indices.
 */
size_t td_jobs_order(const struct td_snapshot *snapshot, enum td_jobs_column key, bool descending,
	const char *filter, size_t *ret);
