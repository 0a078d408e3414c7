/*
 * Rows in columns, for people. What columns there are: columns.def, but for `tandem ps`, whose
 * columns are those of `tandem top` (view/jobs.def).
 */
#pragma once

#include <stdbool.h>

#define TD_CELL_BYTES 288 /* the longest detail of an event fits */

enum td_column {
#define COLUMN(list, id, title, width, help) TD_COLUMN_##list##_##id,
#include "cli/columns.def"
#undef COLUMN
	TD_COLUMN_N,
};

/* A row of any list; cells of other lists stay unused. Empty cells are shown as "-". */
struct td_cells {
	char text[TD_COLUMN_N][TD_CELL_BYTES];
};

/* Where a cell's text goes: TD_CELL_BYTES. */
char *td_cell(struct td_cells *cells, enum td_column column);
void td_cell_set(struct td_cells *cells, enum td_column column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A line of cells that is printed one by one. Blanks that nothing follows are left away. */
struct td_line {
	bool has_cells;
	int blanks;
};

/* width: the least number of characters; below 0: flush left. */
void td_line_cell(struct td_line *line, int width, const char *text);
void td_line_end(struct td_line *line);

/* The line of titles; a row. list: as in columns.def. */
void td_columns_print_titles(const char *list);
void td_columns_print(const char *list, const struct td_cells *cells);
