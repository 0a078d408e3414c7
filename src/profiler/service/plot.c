/*
 * See plot.h. The script goes to gnuplot by its standard input; a name in it has no character that
 * quotes.
 */
#include "profiler/service/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/program.h"

#define PANELS_MAX  12u /* neighbours beyond these are not drawn, which the title says */
#define BATCHES_MAX 8u
#define COLUMNS     3u
#define STEPS       64u /* of a drawn curve */

extern char **environ;

/* The points of one neighbour, and of one batch beside it. */
struct span {
	const struct td_campaign_point *at;
	uint32_t count;
};

static bool is_svg(const char *path)
{
	size_t length = strlen(path);

	return length > 4 && !strcmp(path + length - 4, ".svg");
}

int td_plot_check(const char *path, struct td_err *err)
{
	size_t length = strlen(path);

	if (is_svg(path) || (length > 4 && !strcmp(path + length - 4, ".png")))
		return 0;
	return td_err_set(err, -EINVAL,
		"\"%.200s\" is not valid: expected a file that ends in .svg or .png", path);
}

static int compare_layers(const struct td_campaign_point *a, const struct td_campaign_point *b)
{
	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		if (a->layers[k] < b->layers[k] || a->layers[k] > b->layers[k])
			return a->layers[k] < b->layers[k] ? -1 : 1;
	return 0;
}

static int compare(const void *left, const void *right)
{
	const struct td_campaign_point *a = left, *b = right;
	int r = compare_layers(a, b);

	if (r)
		return r;
	if (a->batch != b->batch)
		return a->batch < b->batch ? -1 : 1;
	return (a->share > b->share) - (a->share < b->share);
}

/* Returns the points from `from` on that have the neighbour of the first, and its batch. */
static struct span next_span(struct span of, uint32_t from, bool same_batch)
{
	struct span span = {of.at + from, 1};

	while (from + span.count < of.count &&
		!compare_layers(span.at, &of.at[from + span.count]) &&
		(!same_batch || span.at->batch == of.at[from + span.count].batch))
		span.count++;
	return span;
}

static uint32_t count_spans(struct span of, bool by_batch)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < of.count; i += next_span(of, i, by_batch).count)
		n++;
	return n;
}

static void write_name(FILE *out, const struct td_campaign_point *point)
{
	bool alone = true;

	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++)
		alone = alone && !(point->layers[k] > 0);
	fputs(alone ? "alone" : "beside layers ", out);
	for (uint32_t k = 0; k < TD_MUDI_LAYERS && !alone; k++)
		fprintf(out, "%s%.0f", k ? "," : "", point->layers[k]);
}

/* Fits the two lines, through the mean of each share. Returns false if there are too few. */
static bool fit(struct span points, struct td_curve *ret)
{
	td_auto_free double *x = malloc(points.count * sizeof(*x));
	td_auto_free double *y = malloc(points.count * sizeof(*y));
	uint32_t n = 0;

	for (uint32_t i = 0, same; x && y && i < points.count; i += same, n++) {
		double sum = 0;

		for (same = 0; i + same < points.count &&
			       !(points.at[i + same].share > points.at[i].share);
			same++)
			sum += points.at[i + same].latency_s;
		x[n] = points.at[i].share;
		y[n] = sum / same;
	}
	return x && y && !td_curve_fit_piecewise(x, y, n, ret);
}

/* Writes rows of share, fitted and predicted latency, and the bounds of the latter (% and ms). */
static void write_curves(FILE *out, const struct td_service_profile *profile, struct span points)
{
	const struct td_mudi_service curves = td_service_profile_curves(profile);
	const struct td_curve learnt = td_mudi_curve(&curves, points.at->layers, points.at->batch);
	double from = points.at->share, to = points.at[points.count - 1].share;
	struct td_curve fitted;
	bool has_fit = fit(points, &fitted);

	for (uint32_t i = 0; i <= STEPS; i++) {
		double share = from + (to - from) * i / STEPS;
		double known = td_curve_at(&learnt, share), error = curves.error_s;

		fprintf(out, "%.6g ", 100 * share);
		if (has_fit)
			fprintf(out, "%.6g", 1e3 * td_curve_at(&fitted, share));
		else
			fputs("NaN", out);
		fprintf(out, " %.6g %.6g %.6g\n", 1e3 * known,
			1e3 * (known > error ? known - error : 0), 1e3 * (known + error));
	}
}

static void write_panel(FILE *out, const struct td_service_profile *profile, struct span panel)
{
	uint32_t batches = 0;

	for (uint32_t i = 0; i < panel.count && batches < BATCHES_MAX; batches++) {
		struct span points = next_span(panel, i, true);

		fprintf(out, "$points%u << END\n", batches);
		for (uint32_t k = 0; k < points.count; k++)
			fprintf(out, "%.6g %.6g\n", 100 * points.at[k].share,
				1e3 * points.at[k].latency_s);
		fprintf(out, "END\n$curves%u << END\n", batches);
		write_curves(out, profile, points);
		fputs("END\n", out);
		fprintf(out, "batch%u = %u\n", batches, points.at->batch);
		i += points.count;
	}
	fputs("set title '", out);
	write_name(out, panel.at);
	fputs("'\nplot ", out);
	for (uint32_t b = 0; b < batches; b++)
		fprintf(out,
			"%s$curves%u using 1:4:5 with filledcurves lc %u fs transparent solid 0.15 "
			"notitle, $curves%u using 1:2 with lines lc %u lw 2 notitle, "
			"$curves%u using 1:3 with lines lc %u dt 2 notitle, "
			"$points%u with points pt 7 ps 0.6 lc %u title sprintf('batch %%d', "
			"batch%u)",
			b ? ", " : "", b, b + 1, b, b + 1, b, b + 1, b, b + 1, b);
	fputc('\n', out);
}

static void write_script(FILE *out, bool svg, const char *service,
	const struct td_service_profile *profile, struct span all)
{
	uint32_t panels = count_spans(all, false);
	uint32_t drawn = panels < PANELS_MAX ? panels : PANELS_MAX, done = 0;
	uint32_t columns = drawn < COLUMNS ? drawn : COLUMNS,
		 rows = (drawn + columns - 1) / columns;

	fprintf(out, "set terminal %s size %u,%u\n",
		svg ? "svg dynamic background 'white'" : "pngcairo", 400 * columns + 60,
		320 * rows + 60);
	fputs("set encoding utf8\n", out);
	fprintf(out, "set multiplot title \"%s: %u points", service, all.count);
	if (drawn < panels)
		fprintf(out, ", %u of %u neighbours", drawn, panels);
	if (profile->error[TD_PROFILE_KNEE_LATENCY] > 0)
		fprintf(out,
			"; shaded: within %.3g ms, the error at the knee beside neighbours left "
			"out",
			1e3 * profile->error[TD_PROFILE_KNEE_LATENCY]);
	fprintf(out,
		"\\ndots: measured; lines: fitted to them; dashed: what the models predict\" "
		"noenhanced layout %u,%u\n"
		"set xlabel 'share of the SMs, %%'\nset ylabel 'latency of a batch, ms'\n"
		"set yrange [0:*]\nset key top right\nset grid\nset title noenhanced\n",
		rows, columns);
	for (uint32_t i = 0; i < all.count && done < drawn; done++) {
		struct span panel = next_span(all, i, false);

		write_panel(out, profile, panel);
		i += panel.count;
	}
	fputs("unset multiplot\n", out);
}

/* Runs gnuplot with the script, and its drawing in the file. */
static int run_gnuplot(FILE *script, int out_fd, struct td_err *err)
{
	char *argv[] = {(char[]){"gnuplot"}, NULL};
	posix_spawn_file_actions_t actions;
	int status = 0, r;
	pid_t pid;

	rewind(script);
	r = posix_spawn_file_actions_init(&actions);
	if (r)
		return td_err_set(err, -r, "gnuplot: %s", strerror(r));
	r = posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
	r = r ? r : posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
	r = r ? r : posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (r == ENOENT)
		return td_err_set(err, -r, "gnuplot, which draws, is not installed");
	if (r)
		return td_err_set(err, -r, "gnuplot: %s", strerror(r));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status)
		return td_err_set(err, -EIO, "gnuplot has failed");
	return 0;
}

static int draw(const char *path, FILE *script, struct td_err *err)
{
	char new[4096];
	int fd, r;

	if (snprintf(new, sizeof(new), "%s.new", path) >= (int)sizeof(new))
		return td_err_set(err, -ENAMETOOLONG, "\"%.80s...\" is too long", path);
	(void)unlink(new);
	fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return td_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	r = run_gnuplot(script, fd, err);
	if (close(fd) && !r)
		r = td_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	if (!r && rename(new, path))
		r = td_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	if (r)
		(void)unlink(new);
	return r;
}

int td_plot_draw(const char *path, const char *service, const struct td_service_profile *profile,
	struct td_points *points, struct td_err *err)
{
	FILE *script;
	int r;

	if (!points->count)
		return td_err_set(
			err, -ENOENT, "no measured point of \"%.64s\" is kept here", service);
	script = tmpfile();
	if (!script)
		return td_err_set(err, -errno, "a temporary file: %s", strerror(errno));
	qsort(points->at, points->count, sizeof(*points->at), compare);
	write_script(
		script, is_svg(path), service, profile, (struct span){points->at, points->count});
	r = fflush(script) ? td_err_set(err, -errno, "a temporary file: %s", strerror(errno))
			   : draw(path, script, err);
	(void)fclose(script);
	return r;
}
