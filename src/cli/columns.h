/* Rows in columns, for people; what columns there are: columns.def. */
#pragma once

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

/* The line of titles; a row. list: as in columns.def. */
void td_columns_print_titles(const char *list);
void td_columns_print(const char *list, const struct td_cells *cells);
