/* See columns.h. */
#include "cli/columns.h"

#include <stdarg.h>
#include <stdbool.h>
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

/* NULL: the titles. Blanks that nothing follows are left away. */
static void print(const char *list, const struct td_cells *cells)
{
	const char *between = "";
	int blanks = 0;

	for (int i = 0; i < TD_COLUMN_N; i++) {
		const char *text = cells ? cells->text[i] : columns[i].title;
		int width = columns[i].width, missing;

		if (strcmp(columns[i].list, list))
			continue;
		if (cells && !*text && width)
			text = "-";
		missing = (width < 0 ? -width : width) - (int)strlen(text);
		missing = missing > 0 ? missing : 0;
		printf("%*s%s%s", blanks + (width > 0 ? missing : 0), "", *text ? between : "",
			text);
		blanks = width < 0 ? missing : 0;
		between = " ";
	}
	putchar('\n');
	td_output_flush();
}

void td_columns_print_titles(const char *list)
{
	print(list, NULL);
}

void td_columns_print(const char *list, const struct td_cells *cells)
{
	print(list, cells);
}
