/*
 * Prints rows in columns, for people. columns.def lists the columns, except those of `tandem ps`,
 * which are those of `tandem top` (view/jobs.def).
 */
#pragma once

#include <stdbool.h>

#define TD_CELL_BYTES 288 /* fits the longest detail of an event */

enum td_column {
#define COLUMN(list, id, title, width, help) TD_COLUMN_##list##_##id,
#include "cli/columns.def"
#undef COLUMN
	TD_COLUMN_N,
};

/* One row of a list. Only the cells of that list are used. Empty cells are shown as "-". */
struct td_cells {
	char text[TD_COLUMN_N][TD_CELL_BYTES];
};

/* Returns the buffer for the cell's text; it has TD_CELL_BYTES bytes. */
char *td_cell(struct td_cells *cells, enum td_column column);
void td_cell_set(struct td_cells *cells, enum td_column column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A line whose cells are printed one by one. Trailing blanks are not printed. */
struct td_line {
	bool has_cells;
	int blanks;
};

/* width is the least number of characters; below 0 the text is flush left. */
void td_line_cell(struct td_line *line, int width, const char *text);
void td_line_end(struct td_line *line);

/* These print the line of titles, and a row. `list` is a list's name in columns.def. */
void td_columns_print_titles(const char *list);
void td_columns_print(const char *list, const struct td_cells *cells);
