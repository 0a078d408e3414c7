/* This file implements canvas.h. */
#include "view/canvas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/parse.h"

#define EIGHTHS 8

static const char *const bars[EIGHTHS + 1] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
static const char *const steps[EIGHTHS + 1] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const ascii_steps[EIGHTHS + 1] = {" ", ".", ".", ":", "-", "=", "+", "*", "#"};

int td_canvas_init(struct td_canvas *canvas, unsigned rows, unsigned columns, bool ascii)
{
	rows = rows < 1 ? 1 : rows > TD_CANVAS_MAX ? TD_CANVAS_MAX : rows;
	columns = columns < 1 ? 1 : columns > TD_CANVAS_MAX ? TD_CANVAS_MAX : columns;
	*canvas = (struct td_canvas){.rows = rows, .columns = columns, .ascii = ascii};
	canvas->cells = malloc(sizeof(struct td_canvas_cell) * rows * columns);
	if (!canvas->cells)
		return -ENOMEM;
	td_canvas_clear(canvas);
	return 0;
}

void td_canvas_deinit(struct td_canvas *canvas)
{
	free(canvas->cells);
	memset(canvas, 0, sizeof(*canvas));
}

void td_canvas_clear(struct td_canvas *canvas)
{
	for (unsigned i = 0; i < canvas->rows * canvas->columns; i++)
		canvas->cells[i] = (struct td_canvas_cell){" ", TD_STYLE_PLAIN};
}

static void put_cell(struct td_canvas *canvas, unsigned row, unsigned column, enum td_style style,
	const char *character, unsigned bytes)
{
	struct td_canvas_cell *cell;

	if (row >= canvas->rows || column >= canvas->columns)
		return;
	cell = &canvas->cells[row * canvas->columns + column];
	memset(cell->text, 0, sizeof(cell->text));
	memcpy(cell->text, character, bytes);
	cell->style = (uint8_t)style;
}

/*
 * Returns the length in bytes of the character at text, which is not the end of the text.
 * *ret_shown is the text to show for it, and *ret_bytes the length of that.
 */
static unsigned next_character(
	const char *text, bool ascii, const char **ret_shown, unsigned *ret_bytes)
{
	uint32_t code;
	unsigned bytes = td_utf8_decode((const unsigned char *)text, &code);

	*ret_shown = text;
	*ret_bytes = bytes;
	if (!bytes || code < 0x20 || code == 0x7f ||
		(code >= 0x80 && (ascii || wcwidth((wchar_t)code) != 1))) {
		*ret_shown = "?";
		*ret_bytes = 1;
	}
	return bytes ? bytes : 1;
}

static unsigned count_columns(const char *text)
{
	const char *shown;
	unsigned count = 0, bytes;

	for (; *text; count++)
		text += next_character(text, false, &shown, &bytes);
	return count;
}

unsigned td_canvas_text(struct td_canvas *canvas, unsigned row, unsigned column, unsigned width,
	enum td_style style, const char *text)
{
	unsigned end = column + width;

	for (; *text && column < end; column++) {
		const char *shown;
		unsigned bytes, taken = next_character(text, canvas->ascii, &shown, &bytes);

		if (column + 1 == end && text[taken])
			put_cell(canvas, row, column, style, "+", 1);
		else
			put_cell(canvas, row, column, style, shown, bytes);
		text += taken;
	}
	return column;
}

void td_canvas_right(struct td_canvas *canvas, unsigned row, unsigned column, unsigned width,
	enum td_style style, const char *text)
{
	unsigned needed = count_columns(text);

	if (needed < width) {
		column += width - needed;
		width = needed;
	}
	td_canvas_text(canvas, row, column, width, style, text);
}

/*
 * Returns a part (0 to 1) in eighths of a column, from 0 to `most`; at least 1 if the part is above
 * 0.
 */
static unsigned eighths(double part, unsigned most)
{
	unsigned r = part >= 1 ? most : part > 0 ? (unsigned)(part * most + 0.5) : 0;

	return part > 0 && !r ? 1 : r;
}

void td_canvas_bar(struct td_canvas *canvas, unsigned row, unsigned column, unsigned width,
	enum td_style style, double part)
{
	unsigned filled = eighths(part, width * EIGHTHS);

	for (unsigned i = 0; i < width; i++) {
		unsigned here = filled > i * EIGHTHS ? filled - i * EIGHTHS : 0;
		const char *text;

		here = here > EIGHTHS ? EIGHTHS : here;
		if (canvas->ascii)
			text = here >= EIGHTHS / 2 ? "#" : ".";
		else
			text = here ? bars[here] : "·";
		put_cell(canvas, row, column + i, here ? style : TD_STYLE_DIM, text,
			(unsigned)strlen(text));
	}
}

void td_canvas_curve(struct td_canvas *canvas, unsigned row, unsigned column, unsigned width,
	enum td_style style, const double *values, unsigned count)
{
	for (unsigned i = 0; i < width && i < count; i++) {
		unsigned step = eighths(values[count - 1 - i], EIGHTHS);
		const char *text = (canvas->ascii ? ascii_steps : steps)[step];

		put_cell(canvas, row, column + width - 1 - i, style, text, (unsigned)strlen(text));
	}
}

void td_canvas_style_row(struct td_canvas *canvas, unsigned row, enum td_style style)
{
	for (unsigned i = 0; row < canvas->rows && i < canvas->columns; i++)
		canvas->cells[row * canvas->columns + i].style = (uint8_t)style;
}

char *td_canvas_line(const struct td_canvas *canvas, unsigned row, char *buf)
{
	unsigned end = canvas->columns;
	char *at = buf;

	while (end && !strcmp(canvas->cells[row * canvas->columns + end - 1].text, " "))
		end--;
	for (unsigned i = 0; i < end; i++)
		at = stpcpy(at, canvas->cells[row * canvas->columns + i].text);
	*at = 0;
	return buf;
}
