/* This file implements screen.h. */
#include "view/screen.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/time.h"
#include "gpu/nvml.h"
#include "proto/words.h"

#define TEXT_MAX 128
/* A GPU takes two lines if that leaves at least this many for jobs. */
#define JOB_LINES_MIN 8
/* A memory that is filled beyond this part is shown as nearly full. */
#define NEARLY_FULL 0.95
#define RANK_MAX    20

static unsigned width_of(enum td_jobs_column column)
{
	int width = td_jobs_info(column)->width;

	return (unsigned)(width < 0 ? -width : width);
}

/* -- the layout -- */

struct layout {
	unsigned gpu_lines;  /* lines of each GPU: 1 or 2 */
	unsigned gpus_shown; /* the number of GPUs that are shown */
	unsigned titles;     /* the row of the titles; the table is below it */
	unsigned table_rows;
	bool shows[TD_JOBS_N];
	unsigned at[TD_JOBS_N];
};

/*
 * Returns whether the column has that rank and something to show. The column that is sorted by was
 * added before.
 */
static bool adds(const struct td_screen *screen, enum td_jobs_column column, unsigned rank)
{
	return td_jobs_info(column)->rank == rank && screen->shows[column] &&
	       (!rank || column != screen->key);
}

static void choose_columns(struct layout *l, const struct td_screen *screen, unsigned room)
{
	bool shows[TD_JOBS_N] = {false};
	unsigned used = 0;

	/* The column that is sorted by is always shown. */
	shows[screen->key] = true;
	used += td_jobs_info(screen->key)->rank ? width_of(screen->key) + 1 : 0;
	for (unsigned rank = 0; rank <= RANK_MAX; rank++) {
		unsigned more = 0;

		for (unsigned i = 0; i < TD_JOBS_N; i++)
			more += adds(screen, (enum td_jobs_column)i, rank)
					? width_of((enum td_jobs_column)i) + 1
					: 0;
		if (rank && used + more > room + 1)
			break;
		used += more;
		for (unsigned i = 0; i < TD_JOBS_N; i++)
			shows[i] |= adds(screen, (enum td_jobs_column)i, rank);
	}
	for (unsigned i = 0, at = 0; i < TD_JOBS_N; i++) {
		l->shows[i] = shows[i];
		l->at[i] = at;
		at += shows[i] ? width_of((enum td_jobs_column)i) + 1 : 0;
	}
}

static struct layout lay_out(
	const struct td_screen *screen, const struct td_snapshot *s, const struct td_canvas *canvas)
{
	struct layout l = {.gpu_lines = 2};
	unsigned gpus = (unsigned)s->gpu_count, free_rows = canvas->rows > 3 ? canvas->rows - 3 : 0;

	if (2 * gpus + JOB_LINES_MIN > free_rows)
		l.gpu_lines = 1;
	l.gpus_shown = gpus;
	if (l.gpu_lines == 1 && gpus > free_rows / 2)
		l.gpus_shown = free_rows / 2;
	l.titles = 1 + l.gpu_lines * l.gpus_shown + (l.gpus_shown < gpus ? 1 : 0);
	l.table_rows = canvas->rows > l.titles + 2 ? canvas->rows - l.titles - 2 : 0;
	choose_columns(&l, screen, canvas->columns);
	return l;
}

/* -- the node and its GPUs -- */

/*
 * Draws a count of problems, before the other facts, since a narrow terminal cuts the line. Draws
 * nothing if n is 0.
 */
static unsigned draw_trouble(struct td_canvas *canvas, unsigned at, unsigned n, const char *what)
{
	char text[TEXT_MAX];

	if (!n)
		return at;
	snprintf(text, sizeof(text), "%u %s ", n, what);
	return td_canvas_text(canvas, 0, at, canvas->columns, TD_STYLE_BAD, text);
}

static void draw_head(
	const struct td_screen *screen, const struct td_snapshot *s, struct td_canvas *canvas)
{
	char text[TEXT_MAX];
	unsigned running = 0, waiting = 0, failed = 0, late = 0, at;

	for (size_t i = 0; i < s->job_count; i++) {
		running += !strcmp(s->jobs[i].said.state, "running");
		waiting += !strcmp(s->jobs[i].said.state, "waiting");
		failed += !strcmp(s->jobs[i].said.state, "failed");
		late += td_jobs_is_late(&s->jobs[i].said);
	}
	at = td_canvas_text(canvas, 0, 0, 7, TD_STYLE_BOLD, "tandem ");
	snprintf(text, sizeof(text),
		"%.24s  policy %.20s  %zu GPU%s  %zu process%s: ", screen->host, screen->policy,
		s->gpu_count, s->gpu_count == 1 ? "" : "s", s->job_count,
		s->job_count == 1 ? "" : "es");
	at = td_canvas_text(canvas, 0, at, canvas->columns - at, TD_STYLE_PLAIN, text);
	at = draw_trouble(canvas, at, failed, "failed");
	at = draw_trouble(canvas, at, late, "late");
	snprintf(text, sizeof(text), "%u running", running);
	at = td_canvas_text(canvas, 0, at, canvas->columns, TD_STYLE_RUNS, text);
	snprintf(text, sizeof(text), " %u waiting", waiting);
	at = td_canvas_text(canvas, 0, at, canvas->columns, TD_STYLE_WAITS, text);
	if (at + strlen(screen->clock) < canvas->columns)
		td_canvas_right(canvas, 0, at, canvas->columns - at, TD_STYLE_DIM, screen->clock);
}

static double part_of(uint64_t bytes, uint64_t of)
{
	return of ? (double)bytes / (double)of : 0;
}

static const struct td_curve *curve_of(const struct td_screen *screen, const uint8_t *gpu)
{
	for (size_t i = 0; i < screen->curve_count; i++)
		if (!memcmp(screen->curves[i].gpu, gpu, 16))
			return &screen->curves[i];
	return NULL;
}

/* Writes two sizes in one unit, such as "61.2/79.6 GiB". */
static void format_of(char *buf, size_t len, uint64_t part, uint64_t whole)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double scale = 1;
	unsigned unit = 0;

	while ((double)whole / scale >= 1024 && unit < 4) {
		scale *= 1024;
		unit++;
	}
	snprintf(
		buf, len, "%.1f/%.1f %s", (double)part / scale, (double)whole / scale, units[unit]);
}

static unsigned draw_share(struct td_canvas *canvas, unsigned row, unsigned at, unsigned width,
	const char *title, double part, enum td_style style)
{
	char text[TEXT_MAX];

	at = td_canvas_text(canvas, row, at, canvas->columns, TD_STYLE_DIM, title);
	if (part < 0)
		return td_canvas_text(canvas, row, at, width + 5, TD_STYLE_DIM, "not known") + 1;
	td_canvas_bar(canvas, row, at, width, style, part);
	snprintf(text, sizeof(text), "%.0f%%", part * 100);
	td_canvas_right(canvas, row, at + width, 5, TD_STYLE_PLAIN, text);
	return at + width + 5;
}

/* Writes the text if it fits. Returns the column behind it. */
static unsigned put_fact(
	struct td_canvas *canvas, unsigned row, unsigned at, enum td_style style, const char *text)
{
	unsigned len = (unsigned)strlen(text);

	if (at + len > canvas->columns)
		return at;
	return td_canvas_text(canvas, row, at, len, style, text) + 2;
}

static void draw_facts(
	const struct td_msg_gpu *gpu, unsigned row, unsigned at, struct td_canvas *canvas)
{
	char text[TEXT_MAX], took[32];

	if (*gpu->holder) {
		snprintf(text, sizeof(text), "runs %.20s", gpu->holder);
		at = put_fact(canvas, row, at, TD_STYLE_RUNS, text);
	}
	if (gpu->handover_ns) {
		snprintf(text, sizeof(text), "hand-over %s",
			td_format_duration(took, sizeof(took), gpu->handover_ns));
		at = put_fact(canvas, row, at, TD_STYLE_DIM, text);
	}
	if (gpu->known & TD_GPU_KNOWS_TEMPERATURE) {
		snprintf(text, sizeof(text), "%u C", gpu->temperature_c);
		at = put_fact(canvas, row, at, TD_STYLE_DIM, text);
	}
	if (gpu->known & TD_GPU_KNOWS_POWER) {
		snprintf(text, sizeof(text), "%u W", gpu->power_mw / 1000);
		(void)put_fact(canvas, row, at, TD_STYLE_DIM, text);
	}
}

static void draw_gpu(const struct td_screen *screen, const struct td_snapshot *s,
	const struct td_msg_gpu *gpu, const struct layout *l, unsigned row,
	struct td_canvas *canvas)
{
	const struct td_curve *curve = curve_of(screen, gpu->gpu);
	bool knows = gpu->known & TD_GPU_KNOWS_MEMORY;
	uint64_t used = knows ? gpu->used_bytes : gpu->resident_bytes,
		 total = knows ? gpu->memory_bytes : gpu->capacity_bytes;
	unsigned bar = canvas->columns > 100 ? 20 : 10, name = canvas->columns > 100 ? 28 : 16, at;
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "%3u", gpu->index);
	td_canvas_text(canvas, row, 0, 3, TD_STYLE_BOLD, gpu->index == UINT32_MAX ? "  -" : text);
	td_canvas_text(canvas, row, 4, name, TD_STYLE_PLAIN, gpu->name);
	at = 5 + name;
	if (gpu->known & TD_GPU_IS_LOST)
		at = td_canvas_text(canvas, row, at, bar + 10, TD_STYLE_BAD, "lost") + 1;
	else
		at = draw_share(
			canvas, row, at, bar, "busy ", td_snapshot_use(s, gpu), TD_STYLE_RUNS);
	at = draw_share(canvas, row, at + 1, bar, "memory ", part_of(used, total),
		part_of(used, total) > NEARLY_FULL ? TD_STYLE_WAITS : TD_STYLE_RUNS);
	format_of(text, sizeof(text), used, total);
	td_canvas_text(canvas, row, at + 1, 18, TD_STYLE_PLAIN, text);
	if (l->gpu_lines < 2)
		return;
	if (curve)
		td_canvas_curve(canvas, row + 1, 4, name + bar + 10, TD_STYLE_RUNS, curve->values,
			curve->count);
	draw_facts(gpu, row + 1, 5 + name + bar + 11, canvas);
}

/* -- the table -- */

static enum td_style style_of(const char *state)
{
	static const struct {
		const char *state;
		enum td_style style;
	} styles[] = {
		{"running", TD_STYLE_RUNS},
		{"draining", TD_STYLE_RUNS},
		{"filling", TD_STYLE_WAITS},
		{"waiting", TD_STYLE_WAITS},
		{"failed", TD_STYLE_BAD},
		{"idle", TD_STYLE_DIM},
		{"paused", TD_STYLE_DIM},
	};

	for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++)
		if (!strcmp(styles[i].state, state))
			return styles[i].style;
	return TD_STYLE_PLAIN;
}

static void put_cell(struct td_canvas *canvas, const struct layout *l, unsigned row,
	enum td_jobs_column column, enum td_style style, const char *text)
{
	if (!*text)
		text = "-";
	if (td_jobs_info(column)->width < 0)
		td_canvas_text(canvas, row, l->at[column], width_of(column), style, text);
	else
		td_canvas_right(canvas, row, l->at[column], width_of(column), style, text);
}

static void draw_titles(
	const struct td_screen *screen, const struct layout *l, struct td_canvas *canvas)
{
	td_canvas_style_row(canvas, l->titles, TD_STYLE_TITLE);
	for (unsigned i = 0; i < TD_JOBS_N; i++) {
		const struct td_jobs_info *info = td_jobs_info((enum td_jobs_column)i);
		const char *sign = canvas->ascii        ? (screen->descending ? "v" : "^")
				   : screen->descending ? "▼"
							: "▲";

		if (!l->shows[i])
			continue;
		put_cell(canvas, l, l->titles, (enum td_jobs_column)i, TD_STYLE_TITLE, info->title);
		/* If the title fills its column, the sign is drawn on the blank behind it. */
		if (i == screen->key)
			td_canvas_text(canvas, l->titles,
				info->width < 0 ? l->at[i] + (unsigned)strlen(info->title)
						: l->at[i] + (unsigned)info->width,
				1, TD_STYLE_TITLE, sign);
	}
}

static bool is_at_cursor(const struct td_screen *screen, const struct td_snapshot_job *job)
{
	return screen->pid == job->said.pid && screen->gpu == job->said.gpu;
}

/*
 * Returns the style of a cell. The state's style is used for the state and the time, and for the
 * whole row if the job is inactive.
 */
static enum td_style style_in(
	const struct td_snapshot_job *job, enum td_jobs_column column, enum td_style style)
{
	if (column == TD_JOBS_p99 && td_jobs_is_late(&job->said))
		return TD_STYLE_BAD;
	return column == TD_JOBS_state || column == TD_JOBS_time || style == TD_STYLE_DIM
		       ? style
		       : TD_STYLE_PLAIN;
}

static void draw_job(const struct td_screen *screen, const struct td_snapshot_job *job,
	const struct layout *l, unsigned row, struct td_canvas *canvas)
{
	enum td_style style = style_of(job->said.state);
	bool selected = screen->has_cursor && is_at_cursor(screen, job);

	if (selected)
		td_canvas_style_row(canvas, row, TD_STYLE_SELECTED);
	for (unsigned i = 0; i < TD_JOBS_N; i++) {
		enum td_jobs_column column = (enum td_jobs_column)i;
		char text[TD_JOBS_CELL];

		if (!l->shows[i])
			continue;
		td_jobs_cell(text, job, column);
		put_cell(canvas, l, row, column,
			selected ? TD_STYLE_SELECTED
			: *text  ? style_in(job, column, style)
				 : TD_STYLE_DIM,
			text);
	}
}

/* Draws a line for each GPU with the sums of other users' processes, below the jobs. */
static void draw_others(const struct td_msg_others *others, const struct layout *l, unsigned row,
	struct td_canvas *canvas)
{
	for (unsigned i = 0; i < TD_JOBS_N; i++) {
		char text[TD_JOBS_CELL];

		td_jobs_cell_of_others(text, others, (enum td_jobs_column)i);
		if (l->shows[i])
			put_cell(canvas, l, row, (enum td_jobs_column)i, TD_STYLE_DIM,
				*text ? text : " ");
	}
}

/* Returns the index of the cursor's row among the shown rows; 0 if it is on none of them. */
static size_t place_of_cursor(const struct td_screen *screen, const struct td_snapshot *s,
	const size_t *order, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_at_cursor(screen, &s->jobs[order[i]]))
			return i;
	return 0;
}

static void put_cursor(struct td_screen *screen, const struct td_snapshot_job *job)
{
	screen->pid = job->said.pid;
	screen->gpu = job->said.gpu;
}

static size_t *order_of(
	const struct td_screen *screen, const struct td_snapshot *s, size_t *ret_count)
{
	size_t *order = malloc((s->job_count + 1) * sizeof(*order));

	*ret_count =
		order ? td_jobs_order(s, screen->key, screen->descending, screen->filter, order)
		      : 0;
	return order;
}

static void draw_table(struct td_screen *screen, const struct td_snapshot *s,
	const struct layout *l, struct td_canvas *canvas)
{
	size_t count, cursor, shown = 0;
	size_t *order = order_of(screen, s, &count);
	unsigned row = l->titles + 1;

	draw_titles(screen, l, canvas);
	if (count && screen->has_cursor) {
		cursor = place_of_cursor(screen, s, order, count);
		put_cursor(screen, &s->jobs[order[cursor]]);
		if (cursor < screen->top)
			screen->top = cursor;
		if (l->table_rows && cursor >= screen->top + l->table_rows)
			screen->top = cursor - l->table_rows + 1;
	}
	if (screen->top + l->table_rows > count + s->other_count)
		screen->top = count + s->other_count > l->table_rows
				      ? count + s->other_count - l->table_rows
				      : 0;
	for (size_t i = screen->top; i < count && shown < l->table_rows; i++, shown++)
		draw_job(screen, &s->jobs[order[i]], l, row++, canvas);
	for (size_t i = 0; i < s->other_count && shown < l->table_rows; i++, shown++)
		draw_others(&s->others[i], l, row++, canvas);
	if (!count && !s->other_count && l->table_rows)
		td_canvas_text(canvas, row, 1, canvas->columns - 1, TD_STYLE_DIM,
			*screen->filter ? "no job matches the filter"
					: "no job uses a GPU through tandem");
	free(order);
}

/* -- over and below the table -- */

static void draw_keys(const struct td_screen *screen, struct td_canvas *canvas)
{
	static const struct {
		const char *key, *what;
	} keys[] = {
		{"q", "quit"},
		{"e", "explain"},
		{"p", "pause"},
		{"x", "evict"},
		{"s", "sort"},
		{"r", "reverse"},
		{"/", "filter"},
		{"h", "help"},
	};
	unsigned row = canvas->rows - 1, at = 0;

	if (screen->note) {
		td_canvas_text(canvas, row, 0, canvas->columns, TD_STYLE_BOLD, screen->note);
		return;
	}
	if (*screen->filter) {
		char text[TEXT_MAX];

		snprintf(text, sizeof(text), "filter: %s (Escape: none)  ", screen->filter);
		at = td_canvas_text(canvas, row, at, canvas->columns, TD_STYLE_WAITS, text);
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		at = td_canvas_text(canvas, row, at, 1, TD_STYLE_KEY, keys[i].key);
		at = td_canvas_text(
			canvas, row, at + 1, canvas->columns, TD_STYLE_DIM, keys[i].what);
		at += 2;
	}
}

/* Draws the lines of the text over the table, and wraps long ones. */
static void draw_detail(const char *detail, const struct layout *l, struct td_canvas *canvas)
{
	unsigned first = l->titles + 1, row = first, width = canvas->columns - 2;

	for (const char *line = detail; *line && row < canvas->rows - 1; row++) {
		size_t len = strcspn(line, "\n"), taken = len;
		char text[4 * TD_CANVAS_MAX];

		if (taken > width)
			taken = width;
		/* Breaks at a blank, if there is one in the second half. */
		if (taken < len)
			for (size_t at = taken; at > taken / 2; at--)
				if (line[at] == ' ') {
					taken = at;
					break;
				}
		for (unsigned i = 0; i < canvas->columns; i++)
			td_canvas_text(canvas, row, i, 1, TD_STYLE_PLAIN, " ");
		snprintf(text, sizeof(text), "%.*s", (int)taken, line);
		td_canvas_text(canvas, row, 1, width, TD_STYLE_PLAIN, text);
		line += taken;
		line += *line == ' ' || *line == '\n';
	}
	if (row < canvas->rows - 1) {
		td_canvas_style_row(canvas, row, TD_STYLE_PLAIN);
		for (unsigned i = 0; i < canvas->columns; i++)
			td_canvas_text(canvas, row, i, 1, TD_STYLE_DIM, canvas->ascii ? "-" : "─");
	}
}

void td_screen_draw(struct td_screen *screen, const struct td_snapshot *s, struct td_canvas *canvas)
{
	struct layout l;

	td_canvas_clear(canvas);
	if (!s) {
		td_canvas_text(canvas, 0, 0, 7, TD_STYLE_BOLD, "tandem");
		td_canvas_text(canvas, canvas->rows / 2, 1, canvas->columns - 1, TD_STYLE_PLAIN,
			screen->note ? screen->note : "");
		return;
	}
	td_jobs_mark(s, screen->shows);
	l = lay_out(screen, s, canvas);
	draw_head(screen, s, canvas);
	for (unsigned i = 0; i < l.gpus_shown; i++)
		draw_gpu(screen, s, &s->gpus[i], &l, 1 + i * l.gpu_lines, canvas);
	if (l.gpus_shown < s->gpu_count) {
		char text[TEXT_MAX];

		snprintf(text, sizeof(text), "    and %zu more GPUs: see tandem gpu",
			s->gpu_count - l.gpus_shown);
		td_canvas_text(canvas, l.titles - 1, 0, canvas->columns, TD_STYLE_DIM, text);
	}
	draw_table(screen, s, &l, canvas);
	if (screen->detail)
		draw_detail(screen->detail, &l, canvas);
	draw_keys(screen, canvas);
}

/* -- the cursor -- */

void td_screen_move(struct td_screen *screen, const struct td_snapshot *s, long by)
{
	size_t count, *order = order_of(screen, s, &count);
	long at;

	if (count) {
		at = (long)place_of_cursor(screen, s, order, count) + by;
		at = at < 0 ? 0 : at >= (long)count ? (long)count - 1 : at;
		put_cursor(screen, &s->jobs[order[at]]);
	}
	free(order);
}

const struct td_snapshot_job *td_screen_selected(
	const struct td_screen *screen, const struct td_snapshot *s)
{
	for (size_t i = 0; i < s->job_count; i++)
		if (is_at_cursor(screen, &s->jobs[i]))
			return &s->jobs[i];
	return NULL;
}

struct td_screen_spot td_screen_spot(const struct td_screen *screen, const struct td_snapshot *s,
	const struct td_canvas *canvas, unsigned row, unsigned column)
{
	struct td_screen_spot spot = {.key = TD_JOBS_N};
	struct layout l = lay_out(screen, s, canvas);
	size_t count, *order;

	if (row == l.titles) {
		spot.is_title = true;
		for (unsigned i = 0; i < TD_JOBS_N; i++)
			if (l.shows[i] && column >= l.at[i] &&
				column <= l.at[i] + width_of((enum td_jobs_column)i))
				spot.key = (enum td_jobs_column)i;
		return spot;
	}
	if (row <= l.titles || row > l.titles + l.table_rows)
		return spot;
	order = order_of(screen, s, &count);
	if (screen->top + row - l.titles - 1 < count)
		spot.job = &s->jobs[order[screen->top + row - l.titles - 1]];
	free(order);
	return spot;
}

enum td_jobs_column td_screen_beside(
	const struct td_screen *screen, const struct td_canvas *canvas, int by)
{
	unsigned step = by > 0 ? 1 : TD_JOBS_N - 1, at = screen->key;
	struct layout l = {0};

	choose_columns(&l, screen, canvas->columns);
	do
		at = (at + step) % TD_JOBS_N;
	while (!l.shows[at]);
	return (enum td_jobs_column)at;
}

/* -- curves -- */

static void add_value(struct td_curve *curve, double value)
{
	if (curve->count == TD_CURVE_MAX) {
		memmove(curve->values, curve->values + 1, sizeof(double) * (TD_CURVE_MAX - 1));
		curve->count--;
	}
	curve->values[curve->count++] = value;
}

int td_screen_note_gpus(struct td_screen *screen, const struct td_snapshot *s)
{
	struct td_curve *curves = calloc(s->gpu_count + 1, sizeof(*curves));

	if (!curves)
		return -ENOMEM;
	for (size_t i = 0; i < s->gpu_count; i++) {
		const struct td_curve *old = curve_of(screen, s->gpus[i].gpu);
		double use = td_snapshot_use(s, &s->gpus[i]);

		if (old)
			curves[i] = *old;
		memcpy(curves[i].gpu, s->gpus[i].gpu, 16);
		add_value(&curves[i], use < 0 ? 0 : use);
	}
	free(screen->curves);
	screen->curves = curves;
	screen->curve_count = s->gpu_count;
	return 0;
}

void td_screen_deinit(struct td_screen *screen)
{
	free(screen->curves);
	memset(screen, 0, sizeof(*screen));
}
