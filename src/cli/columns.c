/* This file implements columns.h. */
#include "cli/columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/program.h"

static const struct {
	const char *list, *title;
	int width;
} columns[TD_COLUMN_N] = {
#define COLUMN(list, id, title, width, help) {#list, title, width},
#include "cli/columns.def"
#undef COLUMN
};

char *td_cell(struct td_cells *cells, enum td_column column)
{
	return cells->text[column];
}

void td_cell_set(struct td_cells *cells, enum td_column column, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(cells->text[column], TD_CELL_BYTES, format, args);
	va_end(args);
}

void td_line_cell(struct td_line *line, int width, const char *text)
{
	int missing = (width < 0 ? -width : width) - (int)strlen(text);

	missing = missing > 0 ? missing : 0;
	printf("%*s%s%s", line->blanks + (width > 0 ? missing : 0), "",
		line->has_cells && *text ? " " : "", text);
	line->blanks = width < 0 ? missing : 0;
	line->has_cells = true;
}

void td_line_end(struct td_line *line)
{
	*line = (struct td_line){0};
	putchar('\n');
	td_output_flush();
}

/* Prints a row, or the titles if cells is NULL. */
static void print(const char *list, const struct td_cells *cells)
{
	struct td_line line = {0};

	for (int i = 0; i < TD_COLUMN_N; i++) {
		const char *text = cells ? cells->text[i] : columns[i].title;

		if (strcmp(columns[i].list, list))
			continue;
		td_line_cell(
			&line, columns[i].width, cells && !*text && columns[i].width ? "-" : text);
	}
	td_line_end(&line);
}

void td_columns_print_titles(const char *list)
{
	print(list, NULL);
}

void td_columns_print(const char *list, const struct td_cells *cells)
{
	print(list, cells);
}
