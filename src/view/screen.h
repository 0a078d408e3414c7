/*
 * The screen of `tandem top`, drawn on a canvas: a line for the node, the GPUs with their curves,
 * the jobs in a table, and the keys. Pure, so that tests see what a user sees.
 */
#pragma once

#include "base/text.h"
#include "view/canvas.h"
#include "view/jobs.h"

#define TD_CURVE_MAX 256

/* The recent past of one GPU, oldest first: the share of the time in which it was busy, 0 to 1. */
struct td_curve {
	uint8_t gpu[16]; /* its UUID */
	double values[TD_CURVE_MAX];
	unsigned count;
};

/* The user's choices, and facts that are not in the rows. */
struct td_screen {
	enum td_jobs_column key;
	bool descending;
	char filter[64];
	char host[64], policy[32], clock[16];
	uint64_t period_ns;
	const char *note;   /* NULL, or a line instead of the keys: an answer or a question */
	bool has_cursor;    /* false: no row is selected, as with --batch */
	uint32_t pid, gpu;  /* the row at the cursor; pid 0: the first row */
	size_t top;         /* the first table row that is shown */
	const char *detail; /* NULL, or lines to draw over the table: an explanation or help */
	struct td_curve *curves;
	size_t curve_count;
	/*
	 * The columns that have had a value to show. They stay on the screen, so that other columns
	 * do not move.
	 */
	bool shows[TD_JOBS_N];
};

/*
 * Adds a value for each GPU of the snapshot, and forgets GPUs that are gone. Returns 0 or -ENOMEM.
 */
int td_screen_note_gpus(struct td_screen *screen, const struct td_snapshot *snapshot);
void td_screen_deinit(struct td_screen *screen);

/* Moves the cursor by that many rows of the table, in the order that is shown. */
void td_screen_move(struct td_screen *screen, const struct td_snapshot *snapshot, long by);
/* Returns the shown column after (by 1) or before (by -1) the one that is sorted by. */
enum td_jobs_column td_screen_beside(
	const struct td_screen *screen, const struct td_canvas *canvas, int by);
/* Returns the row at the cursor, or NULL if there is none. */
const struct td_snapshot_job *td_screen_selected(
	const struct td_screen *screen, const struct td_snapshot *snapshot);

/* The object at a place on the canvas: a row of the table, or a title. */
struct td_screen_spot {
	bool is_title;
	enum td_jobs_column key;           /* the title's column; TD_JOBS_N if it is not a title */
	const struct td_snapshot_job *job; /* NULL if there is no row */
};
struct td_screen_spot td_screen_spot(const struct td_screen *screen,
	const struct td_snapshot *snapshot, const struct td_canvas *canvas, unsigned row,
	unsigned column);

/*
 * Draws the screen, and scrolls so that the cursor is visible. snapshot is NULL if no daemon
 * answers; the note says why.
 */
void td_screen_draw(
	struct td_screen *screen, const struct td_snapshot *snapshot, struct td_canvas *canvas);
