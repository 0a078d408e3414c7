/*
 * Jobs in columns, the same for `tandem ps`, `tandem top` and the page: which columns there are
 * (jobs.def), what stands in them, and in which order rows come. Pure.
 */
#pragma once

#include "base/text.h"
#include "view/snapshot.h"

#define TD_JOBS_CELL 320 /* the longest text of a message fits */

enum td_jobs_column {
#define COLUMN(id, title, help, width, rank, when, kind, value) TD_JOBS_##id,
#include "view/jobs.def"
#undef COLUMN
	TD_JOBS_N,
};

enum td_jobs_when { TD_JOBS_WHEN_always, TD_JOBS_WHEN_some, TD_JOBS_WHEN_rates };

struct td_jobs_info {
	const char *id, *title, *help, *kind;
	int width; /* below 0: flush left */
	unsigned rank;
	enum td_jobs_when when;
};

const struct td_jobs_info *td_jobs_info(enum td_jobs_column column);
/* The one of that id; TD_JOBS_N: there is none. */
enum td_jobs_column td_jobs_find(const char *id);

/* The value of a column of text; NULL: it has numbers. */
const char *td_jobs_text(const struct td_snapshot_job *job, enum td_jobs_column column);
/* The value of a column of numbers; NAN: there is nothing to say, or it has texts. */
double td_jobs_number(const struct td_snapshot_job *job, enum td_jobs_column column);
/* Are its numbers ns? */
bool td_jobs_is_time(enum td_jobs_column column);
/* Is there something to say? */
bool td_jobs_says(const struct td_snapshot_job *job, enum td_jobs_column column);

/* Writes what stands in a cell, into TD_JOBS_CELL bytes; "": nothing. Returns buf. */
char *td_jobs_cell(char *buf, const struct td_snapshot_job *job, enum td_jobs_column column);
/* The same for the sums of other users' processes. */
char *td_jobs_cell_of_others(
	char *buf, const struct td_msg_others *others, enum td_jobs_column column);

/* Does its P99 exceed its objective? */
bool td_jobs_is_late(const struct td_msg_job *said);

/*
 * Marks the columns that have something to show: those of TD_JOBS_WHEN_some only if a row says
 * something in them. What is marked already stays so.
 */
void td_jobs_mark(const struct td_snapshot *snapshot, bool marks[TD_JOBS_N]);

/* Writes the columns for another program: [{"id": "gpu", "left": false, "title": "GPU", ...}, ...]
 */
void td_jobs_write_columns(struct td_text *text);

/*
 * The indices of the jobs to show, sorted, into ret, which has room for job_count of them. A job is
 * shown if the filter occurs in its id, name, class, state or pid; an empty filter shows all. Equal
 * jobs are in the order of GPU, pid. Returns how many there are.
 */
size_t td_jobs_order(const struct td_snapshot *snapshot, enum td_jobs_column key, bool descending,
	const char *filter, size_t *ret);
