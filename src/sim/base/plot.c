/* Draws lines on axes; see plot.h. */
#include "sim/base/plot.h"

#include <math.h>

#define WIDTH  720.
#define HEIGHT 320.
#define LEFT   70.
#define RIGHT  150.
#define TOP    34.
#define BOTTOM 46.
#define POINTS 400u /* maximum number of points of a line; more cannot be seen */

/* Colours that colour-blind people can tell apart, too (Okabe and Ito). */
static const char *const colours[] = {
	"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"};

struct axes {
	double low_x, high_x, high_y;
	bool log_x;
};

/* Returns the bytes of the UTF-8 character that begins here, by RFC 3629; 0 if it is not valid. */
static uint32_t character(const unsigned char *p)
{
	uint32_t length = *p < 0x80   ? 1
			  : *p < 0xc2 ? 0
			  : *p < 0xe0 ? 2
			  : *p < 0xf0 ? 3
			  : *p < 0xf5 ? 4
				      : 0;

	for (uint32_t i = 1; i < length; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* Refuses overlong forms, surrogates, and code points beyond U+10FFFF. */
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
		(*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return length;
}

/*
 * Writes one character, or U+FFFD for a byte that is not UTF-8: a path may have any bytes, but the
 * report is UTF-8. Returns the position behind it.
 */
static const unsigned char *put_character(FILE *out, const unsigned char *p)
{
	uint32_t length = character(p);

	if (length)
		fwrite(p, 1, length, out);
	else
		fputs("\xef\xbf\xbd", out); /* U+FFFD */
	return p + (length ? length : 1);
}

void td_html_text(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	while (*p) {
		switch (*p) {
		case '<': fputs("&lt;", out), p++; break;
		case '>': fputs("&gt;", out), p++; break;
		case '&': fputs("&amp;", out), p++; break;
		case '"': fputs("&quot;", out), p++; break;
		default: p = put_character(out, p);
		}
	}
}

void td_json_text(FILE *out, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;

	fputc('"', out);
	while (*p) {
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p++);
		else if (*p < 0x20)
			fprintf(out, "\\u%04x", *p++);
		else
			p = put_character(out, p);
	}
	fputc('"', out);
}

static struct axes find_axes(const struct td_plot *plot)
{
	struct axes axes = {.low_x = INFINITY, .high_x = -INFINITY, .log_x = plot->log_x};

	for (uint32_t s = 0; s < plot->series_count; s++) {
		for (uint32_t i = 0; i < plot->series[s].count; i++) {
			double x = plot->series[s].x[i];

			if (plot->log_x && !(x > 0))
				continue;
			axes.low_x = fmin(axes.low_x, x);
			axes.high_x = fmax(axes.high_x, x);
			axes.high_y = fmax(axes.high_y, plot->series[s].y[i]);
		}
	}
	if (!(axes.low_x <= axes.high_x)) /* there is nothing to show */
		axes.low_x = axes.high_x = 1;
	/* There is only one value, which is drawn in the middle. */
	if (!(axes.low_x < axes.high_x)) {
		axes.low_x = plot->log_x ? axes.low_x / 2 : axes.low_x - 1;
		axes.high_x = plot->log_x ? axes.high_x * 2 : axes.high_x + 1;
	}
	if (!(axes.high_y > 0))
		axes.high_y = 1;
	return axes;
}

static double x_at(const struct axes *axes, double x)
{
	double part = axes->log_x ? log(x / axes->low_x) / log(axes->high_x / axes->low_x)
				  : (x - axes->low_x) / (axes->high_x - axes->low_x);

	return LEFT + part * (WIDTH - LEFT - RIGHT);
}

static double y_at(const struct axes *axes, double y)
{
	return HEIGHT - BOTTOM - y / axes->high_y * (HEIGHT - TOP - BOTTOM);
}

/* Returns a step of 1, 2 or 5 times a power of ten that divides the span into about five. */
static double step_of(double span)
{
	double power = pow(10, floor(log10(span / 5))), part = span / 5 / power;

	return power * (part < 2 ? 1 : part < 5 ? 2 : 5);
}

static void put_x_tick(FILE *out, const struct axes *axes, double x)
{
	double at = x_at(axes, x);

	fprintf(out, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#ddd'/>", at, TOP, at,
		HEIGHT - BOTTOM);
	fprintf(out, "<text x='%.1f' y='%.1f' text-anchor='middle'>%.6g</text>\n", at,
		HEIGHT - BOTTOM + 16, x);
}

static void put_axes(FILE *out, const struct td_plot *plot, const struct axes *axes)
{
	double step = step_of(axes->high_y);

	for (double y = 0; y <= axes->high_y * 1.0001; y += step) {
		double at = y_at(axes, y);

		fprintf(out,
			"<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' stroke='#ddd'/>"
			"<text x='%.1f' y='%.1f' text-anchor='end'>%.6g</text>\n",
			LEFT, at, WIDTH - RIGHT, at, LEFT - 6, at + 4, y);
	}
	/* There may be no power of ten in the range. */
	if (axes->log_x && axes->high_x < 20 * axes->low_x) {
		put_x_tick(out, axes, axes->low_x);
		put_x_tick(out, axes, sqrt(axes->low_x * axes->high_x));
		put_x_tick(out, axes, axes->high_x);
	} else if (axes->log_x) {
		for (double x = pow(10, ceil(log10(axes->low_x))); x <= axes->high_x; x *= 10)
			put_x_tick(out, axes, x);
	} else {
		step = step_of(axes->high_x - axes->low_x);
		for (double x = ceil(axes->low_x / step) * step; x <= axes->high_x; x += step)
			put_x_tick(out, axes, x);
	}
	fprintf(out, "<text x='%.1f' y='20' font-weight='bold'>", LEFT);
	td_html_text(out, plot->title);
	fprintf(out, "</text>\n<text x='%.1f' y='%.1f' text-anchor='middle'>",
		(LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
	td_html_text(out, plot->x_text);
	fprintf(out,
		"</text>\n<text transform='translate(14 %.1f) rotate(-90)' text-anchor='middle'>",
		(TOP + HEIGHT - BOTTOM) / 2);
	td_html_text(out, plot->y_text);
	fputs("</text>\n", out);
}

static void put_line(
	FILE *out, const struct td_series *series, const struct axes *axes, uint32_t colour)
{
	uint32_t stride = series->count / POINTS + 1;

	fprintf(out, "<polyline fill='none' stroke='%s' stroke-width='1.8' points='",
		colours[colour]);
	for (uint32_t i = 0; i < series->count; i += stride) {
		if (!axes->log_x || series->x[i] > 0)
			fprintf(out, "%.1f,%.1f ", x_at(axes, series->x[i]),
				y_at(axes, series->y[i]));
	}
	fprintf(out, "'/>\n<text x='%.1f' y='%.1f' fill='%s'>", WIDTH - RIGHT + 10,
		TOP + 14 + 18. * colour, colours[colour]);
	td_html_text(out, series->name);
	fputs("</text>\n", out);
}

void td_plot_lines(FILE *out, const struct td_plot *plot)
{
	struct axes axes = find_axes(plot);

	fprintf(out,
		"<svg viewBox='0 0 %g %g' width='%g' height='%g' font-family='sans-serif' "
		"font-size='12' role='img'>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	put_axes(out, plot, &axes);
	for (uint32_t s = 0; s < plot->series_count; s++)
		put_line(out, &plot->series[s], &axes, s % 8);
	fputs("</svg>\n", out);
}

void td_html_begin(FILE *out, const char *title)
{
	fputs("<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>", out);
	td_html_text(out, title);
	fputs("</title>\n<style>body{font-family:sans-serif;max-width:60em;margin:2em "
	      "auto;padding:0 1em;color:#222}"
	      "table{border-collapse:collapse;margin:1em 0}td,th{padding:.25em "
	      ".8em;border-bottom:1px solid #ddd;text-align:right}"
	      "td:first-child,th:first-child{text-align:left}.best{font-weight:bold}.grey{color:#"
	      "999}.loss{color:#b00}"
	      "svg{max-width:100%;height:auto}</style></head><body>\n<h1>",
		out);
	td_html_text(out, title);
	fputs("</h1>\n", out);
}

void td_html_end(FILE *out)
{
	fputs("</body></html>\n", out);
}
