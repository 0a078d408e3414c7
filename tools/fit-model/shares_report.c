/*
 * Time over share: alpha + beta / x with one interior share left out and predicted from the rest,
 * on MISO's and ParvaGPU's curves.
 */
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "fit_model.h"
#include "policy/algo/fit/curve.h"
#include "sim/base/csv.h"

#define CURVES_MAX 512
#define POINTS_MAX 7

struct points {
	char key[64];
	uint32_t count;
	double x[POINTS_MAX], y[POINTS_MAX];
};

struct curves {
	uint32_t count;
	struct points curve[CURVES_MAX];
};

/* Kept ascending in x, whatever the order of the rows. */
static void add_point(struct points *points, double x, double y)
{
	uint32_t i;

	if (points->count == POINTS_MAX)
		return;
	for (i = points->count++; i && points->x[i - 1] > x; i--) {
		points->x[i] = points->x[i - 1];
		points->y[i] = points->y[i - 1];
	}
	points->x[i] = x;
	points->y[i] = y;
}

static struct points *find_curve(struct curves *curves, const char *model, double batch)
{
	char key[64];

	snprintf(key, sizeof(key), "%.40s/%g", model, batch);
	for (uint32_t i = 0; i < curves->count; i++)
		if (!strcmp(curves->curve[i].key, key))
			return &curves->curve[i];
	if (curves->count == CURVES_MAX)
		return NULL;
	strcpy(curves->curve[curves->count].key, key);
	return &curves->curve[curves->count++];
}

/*
 * Reads the time of a step, or of a batch as batch / throughput: the table's own latency is rounded
 * to 1 ms.
 */
static int read_curves(const char *path, bool parva, struct curves *curves, struct td_err *err)
{
	const char *miso_names[] = {"model", "batch_size", "mig_gpcs", "iter_mean_s"};
	const char *parva_names[] = {"model", "batch_size", "mig_gpcs",
		"throughput_per_process_rps", "num_processes", "feasible"};
	struct td_csv csv;
	int at[6], r = td_csv_open(&csv, path, err);

	if (r)
		return r;
	r = td_csv_need(&csv, parva ? parva_names : miso_names, parva ? 6 : 4, at, err);
	while (!r && !(r = td_csv_next(&csv, err))) {
		double batch, gpcs, value, processes = 1, feasible = 1;
		struct points *points;

		r = td_csv_number(&csv, at[1], 1, 1e6, &batch, err);
		r = r ? r : td_csv_number(&csv, at[2], 1, 7, &gpcs, err);
		r = r ? r : td_csv_number(&csv, at[3], 0, 1e9, &value, err);
		if (!r && parva)
			r = td_csv_number(&csv, at[4], 1, 100, &processes, err);
		if (!r && parva)
			r = td_csv_number(&csv, at[5], 0, 1, &feasible, err);
		if (r || processes > 1 || feasible < 1 || !(value > 0))
			continue;
		points = find_curve(curves, td_csv_text(&csv, at[0]), batch);
		if (points)
			add_point(points, gpcs / 7, parva ? batch / value : value);
	}
	td_csv_close(&csv);
	return r < 0 ? r : 0;
}

static void judge(const struct points *points, struct errors *hyperbola, struct errors *piecewise)
{
	for (uint32_t out = 1; out + 1 < points->count; out++) {
		double x[POINTS_MAX], y[POINTS_MAX];
		struct td_curve curve;
		uint32_t n = 0;

		for (uint32_t i = 0; i < points->count; i++) {
			if (i == out)
				continue;
			x[n] = points->x[i];
			y[n++] = points->y[i];
		}
		if (!td_curve_fit_hyperbola(x, y, n, &curve))
			errors_add(hyperbola, td_curve_at(&curve, points->x[out]), points->y[out]);
		if (!td_curve_fit_piecewise(x, y, n, &curve))
			errors_add(piecewise, td_curve_at(&curve, points->x[out]), points->y[out]);
	}
}

int report_shares(FILE *out, const char *data, struct td_err *err)
{
	static const struct {
		const char *name, *file;
	} tables[] = {
		{"MISO", "train_miso_a100_mig.csv"}, {"ParvaGPU", "infer_parvagpu_a100_mig.csv"}};
	struct curves *curves = NULL;
	char path[PATH_MAX];
	int r = 0;

	fputs("\n## Time over the share of a GPU: alpha + beta / x, one interior share left out\n\n"
	      "| what | median | goal | |\n|---|---|---|---|\n",
		out);
	for (int t = 0; !r && t < 2; t++) {
		struct errors hyperbola = {0}, piecewise = {0};
		char what[160];

		free(curves);
		curves = calloc(1, sizeof(*curves));
		if (!curves)
			return td_err_set(err, -ENOMEM, "out of memory");
		snprintf(path, sizeof(path), "%s/%s", data, tables[t].file);
		r = read_curves(path, t == 1, curves, err);
		for (uint32_t i = 0; !r && i < curves->count; i++)
			judge(&curves->curve[i], &hyperbola, &piecewise);
		snprintf(what, sizeof(what),
			"%s: %u curves (mean %.1f, p90 %.1f; two lines: median %.1f, mean %.1f)",
			tables[t].name, curves->count, errors_mean(&hyperbola),
			errors_quantile(&hyperbola, 0.9), errors_quantile(&piecewise, 0.5),
			errors_mean(&piecewise));
		if (!r)
			put_goal(out, what, errors_quantile(&hyperbola, 0.5), 0, 6, 0);
		errors_free(&hyperbola);
		errors_free(&piecewise);
	}
	free(curves);
	if (!r)
		fputs("\n## What the model cannot say\n\n"
		      "- No table measures a cap on the SMs and a co-runner together. What a cap "
		      "does to a job's pressure is assumed, and has to be varied.\n"
		      "- Three and more jobs on a GPU: the sum over co-runners is fitted to pairs "
		      "alone. MISO's and ParvaGPU's shares are of MIG, which isolates memory "
		      "bandwidth too.\n"
		      "- The three numbers are fitted, not measured properties; of g and p only "
		      "products are seen. A job never probed is predicted at the level of its "
		      "family, or of all jobs.\n"
		      "- V100: 83 of 660 sides of its table are capped at exactly the speed alone, "
		      "and some speeds alone contradict other measurements. No goal is set.\n",
			out);
	return r;
}
