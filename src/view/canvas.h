/*
 * A screen of characters with styles, which a terminal or a test shows. Pure: it knows nothing of
 * terminals.
 *
 * A cell is one column wide. A character that is not one column wide (a control character, or a
 * wide one) is shown as '?', so that columns stay aligned.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A style says what kind of text it is; top/terminal.c decides how that looks. No information is in
 * a style alone: each goes with a word or a sign.
 */
enum td_style {
	TD_STYLE_PLAIN,
	TD_STYLE_DIM,
	TD_STYLE_BOLD,
	TD_STYLE_TITLE,    /* the titles of the table */
	TD_STYLE_SELECTED, /* the row at the cursor */
	TD_STYLE_RUNS,     /* a job that has the GPU; the filled part of a bar */
	TD_STYLE_WAITS,    /* a job that wants the GPU */
	TD_STYLE_BAD,      /* failed, lost, nearly full */
	TD_STYLE_KEY,      /* a key of the keyboard */
	TD_STYLE_N,
};

struct td_canvas_cell {
	char text[5]; /* one character in UTF-8 */
	uint8_t style;
};

struct td_canvas {
	unsigned rows, columns;
	bool ascii; /* bars and curves of ASCII characters, for a terminal without UTF-8 */
	struct td_canvas_cell *cells;
};

/*
 * Makes a canvas of blanks. rows and columns are limited to 1..TD_CANVAS_MAX. Returns 0 or -ENOMEM.
 */
#define TD_CANVAS_MAX 1000
int td_canvas_init(struct td_canvas *canvas, unsigned rows, unsigned columns, bool ascii);
void td_canvas_deinit(struct td_canvas *canvas);
void td_canvas_clear(struct td_canvas *canvas);

/*
 * Writes text from (row, column) on, at most `width` columns. A text that does not fit is cut and
 * gets a trailing '+'. Nothing is written outside of the canvas. Returns the column behind the
 * text.
 */
unsigned td_canvas_text(struct td_canvas *canvas, unsigned row, unsigned column, unsigned width,
	enum td_style style, const char *text);
/* Writes text flush right within `width` columns. */
void td_canvas_right(struct td_canvas *canvas, unsigned row, unsigned column, unsigned width,
	enum td_style style, const char *text);
/* Draws a bar of which a part (0 to 1) is filled, with a resolution of an eighth of a column. */
void td_canvas_bar(struct td_canvas *canvas, unsigned row, unsigned column, unsigned width,
	enum td_style style, double part);
/* Draws the last `width` of `count` values (0 to 1), oldest first, one column each, flush right. */
void td_canvas_curve(struct td_canvas *canvas, unsigned row, unsigned column, unsigned width,
	enum td_style style, const double *values, unsigned count);
/* Sets the style of all cells of a row. */
void td_canvas_style_row(struct td_canvas *canvas, unsigned row, enum td_style style);

/* Writes the row as text, without trailing blanks: up to 4 * columns + 1 bytes. Returns buf. */
char *td_canvas_line(const struct td_canvas *canvas, unsigned row, char *buf);
