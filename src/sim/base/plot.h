/* Plots as SVG inside an HTML page that needs nothing else: no scripts, fonts or files. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct td_series {
	const char *name;
	const double *x, *y;
	uint32_t count;
};

struct td_plot {
	const char *title, *x_text, *y_text;
	bool log_x; /* points at 0 and below are not drawn */
	const struct td_series *series;
	uint32_t series_count; /* at most 8 */
};

void td_plot_lines(FILE *out, const struct td_plot *plot);

/* Writes a text with the characters escaped that HTML would take for markup. */
void td_html_text(FILE *out, const char *text);
void td_html_begin(FILE *out, const char *title);
void td_html_end(FILE *out);

/* Writes a string as JSON, with its quotes. */
void td_json_text(FILE *out, const char *text);
