/*
 * tandem-sim experiment: runs the experiments of experiment.h, prints the papers' claims with a
 * verdict each and the rows, and writes verdicts.json, result.json, and a report as Markdown and
 * HTML.
 */
#include "sim/report/experiment.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/program.h"
#include "base/time.h"
#include "sim/base/bootstrap.h"
#include "sim/base/plot.h"
#include "sim/base/sim.h"
#include "sim/base/workers.h"

static const char *const verdicts[TD_VERDICT_N] = {"reproduced", "not reproduced", "bounded",
	"by construction", "calibrated", "shown", "better", "no difference shown", "loss"};

static bool is_loss(enum td_verdict verdict)
{
	return verdict == TD_NOT_REPRODUCED || verdict == TD_LOSS;
}

static void put_rows(const struct td_experiment_run *run, FILE *out)
{
	fputs("| experiment | metric | paper | ours | spread | 95 % interval | verdict | "
	      "|\n|---|---|---|---|---|---|---|---|\n",
		out);
	for (uint32_t i = 0; i < run->row_count; i++) {
		const struct td_row *row = &run->rows[i];
		const char *mark = is_loss(row->verdict) ? "**" : "";

		fprintf(out, "| %s | %s | %s | %s | %s | %s | %s%s%s | %s |\n", row->experiment,
			row->metric, row->paper, row->ours, row->spread, row->interval, mark,
			verdicts[row->verdict], mark, row->note);
	}
}

/* A line of the table of the papers' claims. */
struct line {
	const struct td_claim_text *text;
	enum td_verdict verdict;
	char ours[256], why[640];
};

/* Judges a claim. Returns false if this run has no row of it. */
static bool judge(const struct td_experiment_run *run, enum td_claim claim, struct line *ret)
{
	struct td_claim_found found;

	if (!td_claim_fold(run->rows, run->row_count, claim, &found))
		return false;
	ret->text = &td_claims[claim];
	ret->verdict = found.verdict;
	td_claim_ours(run->rows, run->row_count, claim, ret->ours, sizeof(ret->ours));
	td_claim_why(&found, claim, ret->why, sizeof(ret->why));
	return true;
}

/* Prints a line for each of the papers' claims that has rows. */
static void put_claims(const struct td_experiment_run *run, FILE *out)
{
	struct line line;
	bool any = false;

	for (int c = TD_CLAIM_NONE + 1; c < TD_CLAIM_N; c++) {
		const char *mark;

		if (!judge(run, (enum td_claim)c, &line))
			continue;
		if (!any)
			fputs("| experiment | metric | paper | ours | reproduced when | verdict | "
			      "why |\n|---|---|---|---|---|---|---|\n",
				out);
		any = true;
		mark = is_loss(line.verdict) ? "**" : "";
		fprintf(out, "| %s | %s | %s | %s | %s | %s%s%s | %s |\n", line.text->experiment,
			line.text->metric, line.text->paper, line.ours, line.text->rule, mark,
			verdicts[line.verdict], mark, line.why);
	}
	if (any)
		fputc('\n', out);
}

/* Prints the number of rows of each verdict by experiment. */
static void put_verdicts(const struct td_experiment_run *run, FILE *out)
{
	fputs("| experiment |", out);
	for (int v = 0; v < TD_VERDICT_N; v++)
		fprintf(out, " %s |", verdicts[v]);
	fputs("\n|---|", out);
	for (int v = 0; v < TD_VERDICT_N; v++)
		fputs("---|", out);
	fputc('\n', out);
	for (uint32_t i = 0; i < run->row_count;) {
		const char *name = run->rows[i].experiment;
		uint32_t counts[TD_VERDICT_N] = {0};

		for (; i < run->row_count && !strcmp(run->rows[i].experiment, name); i++)
			counts[run->rows[i].verdict]++;
		fprintf(out, "| %s |", name);
		for (int v = 0; v < TD_VERDICT_N; v++)
			fprintf(out, counts[v] ? " %u |" : " |", counts[v]);
		fputc('\n', out);
	}
	fputc('\n', out);
}

static void put_text_field(FILE *out, const char *key, const char *text, const char *end)
{
	fprintf(out, "\"%s\": ", key);
	td_json_text(out, text);
	fputs(end, out);
}

static int write_json(const struct td_experiment_run *run, const char *dir, struct td_err *err)
{
	FILE *out = td_sim_create(dir, "result.json", err);

	if (!out)
		return err->code;
	fputc('[', out);
	for (uint32_t i = 0; i < run->row_count; i++) {
		const struct td_row *row = &run->rows[i];

		fputs(i ? ",\n {" : "\n {", out);
		put_text_field(out, "experiment", row->experiment, ", ");
		put_text_field(out, "metric", row->metric, ", ");
		put_text_field(out, "paper", row->paper, ", ");
		put_text_field(out, "ours", row->ours, ", ");
		put_text_field(out, "spread", row->spread, ", ");
		put_text_field(out, "interval", row->interval, ", ");
		put_text_field(out, "verdict", verdicts[row->verdict], ", ");
		put_text_field(
			out, "counts_for", row->claim ? td_claims[row->claim].metric : "", ", ");
		put_text_field(out, "note", row->note, "}");
	}
	fputs("\n]\n", out);
	return td_sim_close(out, dir, "result.json", err);
}

static int write_verdicts(const struct td_experiment_run *run, const char *dir, struct td_err *err)
{
	FILE *out = td_sim_create(dir, "verdicts.json", err);
	struct line line;
	bool any = false;

	if (!out)
		return err->code;
	fputc('[', out);
	for (int c = TD_CLAIM_NONE + 1; c < TD_CLAIM_N; c++) {
		if (!judge(run, (enum td_claim)c, &line))
			continue;
		fputs(any ? ",\n {" : "\n {", out);
		any = true;
		put_text_field(out, "experiment", line.text->experiment, ", ");
		put_text_field(out, "metric", line.text->metric, ", ");
		put_text_field(out, "paper", line.text->paper, ", ");
		put_text_field(out, "ours", line.ours, ", ");
		put_text_field(out, "reproduced_when", line.text->rule, ", ");
		put_text_field(out, "verdict", verdicts[line.verdict], ", ");
		put_text_field(out, "why", line.why, "}");
	}
	fputs("\n]\n", out);
	return td_sim_close(out, dir, "verdicts.json", err);
}

/* Prints the cells of a line, coloured by the verdict. */
static void put_html_line(FILE *out, enum td_verdict verdict, const char *const *cells, int count)
{
	fprintf(out, "<tr class='%s'>",
		verdict == TD_CALIBRATED ? "grey"
		: is_loss(verdict)       ? "loss"
					 : "");
	for (int c = 0; c < count; c++) {
		fputs("<td>", out);
		td_html_text(out, cells[c]);
		fputs("</td>", out);
	}
	fputs("</tr>\n", out);
}

static void put_html_claims(const struct td_experiment_run *run, FILE *out)
{
	struct line line;

	fputs("<table><tr><th>experiment</th><th>metric</th><th>paper</th><th>ours</th>"
	      "<th>reproduced when</th><th>verdict</th><th>why</th></tr>\n",
		out);
	for (int c = TD_CLAIM_NONE + 1; c < TD_CLAIM_N; c++) {
		if (!judge(run, (enum td_claim)c, &line))
			continue;
		put_html_line(out, line.verdict,
			(const char *const[7]){line.text->experiment, line.text->metric,
				line.text->paper, line.ours, line.text->rule,
				verdicts[line.verdict], line.why},
			7);
	}
	fputs("</table>\n", out);
}

static int write_html(const struct td_experiment_run *run, const char *dir, struct td_err *err)
{
	FILE *out = td_sim_create(dir, "report.html", err);

	if (!out)
		return err->code;
	td_html_begin(out, "The papers' figures beside ours");
	if (*run->cut) {
		fputs("<p><b>INCOMPLETE: ", out);
		td_html_text(out, run->cut);
		fputs(". These are the rows that were done.</b></p>", out);
	}
	fputs("<p>Grey: calibrated on this very figure, counts for nothing. Red: not "
	      "reproduced, or a loss of tandem.</p>\n",
		out);
	put_html_claims(run, out);
	fputs("<h2>Rows</h2><table><tr><th>experiment</th>"
	      "<th>metric</th><th>paper</th><th>ours</th><th>spread</th><th>95 % interval</th>"
	      "<th>verdict</th><th></th></tr>\n",
		out);
	for (uint32_t i = 0; i < run->row_count; i++) {
		const struct td_row *row = &run->rows[i];
		const char *cells[] = {row->experiment, row->metric, row->paper, row->ours,
			row->spread, row->interval, verdicts[row->verdict], row->note};

		put_html_line(out, row->verdict, cells, 8);
	}
	fputs("</table>\n", out);
	td_html_end(out);
	return td_sim_close(out, dir, "report.html", err);
}

static int run_one(
	struct td_experiment_run *run, const struct td_experiment *experiment, struct td_err *err)
{
	uint64_t began_ns = td_time_now_ns();
	int r;

	run->name = experiment->name;
	fprintf(run->report, "\n## %s\n\n%s\n\n", experiment->name, experiment->summary);
	if (experiment->needs_data && !run->data)
		return td_err_set(err, -EINVAL,
			"%s needs --data DIR: docs/results/experiments.md says which files lie in "
			"it",
			experiment->name);
	r = experiment->run(run, err);
	if (!r && run->short_of_memory)
		r = td_err_set(err, -ENOMEM, "out of memory");
	fprintf(stderr, "%-18s %.1f s\n", experiment->name,
		(double)(td_time_now_ns() - began_ns) * 1e-9);
	return r;
}

static int unknown(const char *name, struct td_err *err)
{
	return td_err_set(err, -EINVAL,
		"\"%.64s\" is not an experiment: see tandem-sim experiment --list", name);
}

/*
 * Runs the named experiment, or all. With "all", those that need missing data are skipped and named
 * at the end: -EINVAL.
 */
static int run_named(struct td_experiment_run *run, const char *name, struct td_err *err)
{
	bool all = !strcmp(name, "all"), found = false;
	char skipped[256] = "";
	int r = 0;

	for (int i = 0; !r && td_experiments[i].name && !td_sim_stop; i++) {
		if (!all && strcmp(name, td_experiments[i].name))
			continue;
		found = true;
		if (all && td_experiments[i].needs_data && !run->data) {
			size_t used = strlen(skipped);

			snprintf(skipped + used, sizeof(skipped) - used, "%s%s", used ? ", " : "",
				td_experiments[i].name);
			continue;
		}
		r = run_one(run, &td_experiments[i], err);
	}
	if (!found)
		return unknown(name, err);
	if (!r && *skipped)
		return td_err_set(err, -EINVAL,
			"these experiments need --data DIR and were not run: %s", skipped);
	return r;
}

static int write_report(
	const struct td_experiment_run *run, const char *text, const char *dir, struct td_err *err)
{
	FILE *out = td_sim_create(dir, "report.md", err);

	if (!out)
		return err->code;
	fprintf(out,
		"# The papers' experiments in simulation\n\nMade by `tandem-sim experiment`%s, %u "
		"seed%s each. A simulation, not a measurement.\n\n",
		run->quick ? " `--quick`" : "", run->seeds, run->seeds > 1 ? "s" : "");
	fprintf(out,
		"The 95 %% interval is that of the median of ratios or differences that are "
		"paired by seed, by bootstrap (%u resamples, percentiles). Verdicts on tandem "
		"are \"better\" and \"loss\" only if the interval excludes that there is no "
		"difference.%s\n\n",
		TD_BOOTSTRAP_RESAMPLES,
		run->seeds < TD_BOOTSTRAP_LEAST
			? " There are too few seeds for an interval, so no row is called better."
			: "");
	if (*run->cut)
		fprintf(out, "**INCOMPLETE: %s. These are the rows that were done.**\n\n",
			run->cut);
	put_claims(run, out);
	fputs("## Rows\n\n", out);
	put_verdicts(run, out);
	put_rows(run, out);
	fputs(text, out);
	return td_sim_close(out, dir, "report.md", err);
}

static int execute(
	struct td_experiment_run *run, const char *name, const char *dir, struct td_err *err)
{
	char *text = NULL;
	size_t size = 0;
	int r = 0;

	if (dir)
		r = td_sim_try_dir(dir, err);
	if (r)
		return r;
	run->report = open_memstream(&text, &size);
	if (!run->report)
		return td_err_set(err, -ENOMEM, "out of memory");
	r = run_named(run, name, err);
	if (r || td_sim_stop)
		snprintf(run->cut, sizeof(run->cut), "%s",
			td_sim_stop ? "stopped by a signal" : err->msg);
	fclose(run->report);
	put_claims(run, stdout);
	if (run->row_count)
		put_rows(run, stdout);
	if (dir && run->row_count) {
		int w = write_json(run, dir, err);

		w = w ? w : write_verdicts(run, dir, err);
		w = w ? w : write_html(run, dir, err);
		w = w ? w : write_report(run, text, dir, err);
		r = r ? r : w;
	}
	free(text);
	return r;
}

static int list(void)
{
	for (int i = 0; td_experiments[i].name; i++)
		printf("%-18s %s%s\n", td_experiments[i].name, td_experiments[i].summary,
			td_experiments[i].needs_data ? " (needs --data)" : "");
	return 0;
}

int td_sim_experiment(int argc, char **argv)
{
	static const struct option options[] = {{"data", required_argument, NULL, 'd'},
		{"out", required_argument, NULL, 'o'}, {"seeds", required_argument, NULL, 's'},
		{"jobs", required_argument, NULL, 'j'}, {"quick", no_argument, NULL, 'q'},
		{"list", no_argument, NULL, 'l'}, {NULL, 0, NULL, 0}};
	struct td_experiment_run run = {.seeds = 0};
	const char *dir = NULL;
	struct td_err err = {0};
	uint64_t seeds = 0, jobs = 0;
	int c, r = 0;

	opterr = 0;
	while (!r && (c = getopt_long(argc, argv, ":j:", options, NULL)) != -1) {
		if (td_check_optarg(argv, &err))
			return td_sim_fail("%s", err.msg);
		switch (c) {
		case 'd': run.data = optarg; break;
		case 'o': dir = optarg; break;
		case 's':
			r = td_parse_u64(optarg, 1, 50, &seeds, &err);
			if (r)
				return td_sim_fail("--seeds: %s", err.msg);
			break;
		case 'j':
			r = td_parse_u64(optarg, 1, 256, &jobs, &err);
			if (r)
				return td_sim_fail("--jobs: %s", err.msg);
			break;
		case 'q': run.quick = true; break;
		case 'l': return list();
		default:
			td_refuse_option(c, argv, options, "tandem-sim --help", &err);
			return td_sim_fail("%s", err.msg);
		}
	}
	run.seeds = seeds ? (uint32_t)seeds : run.quick ? 1 : 15;
	run.jobs = jobs ? (uint32_t)jobs : td_workers_default();
	if (!r && optind + 1 != argc)
		return td_sim_fail(
			"the name of an experiment is needed: see tandem-sim experiment --list");
	td_sim_catch();
	r = r ? r : execute(&run, argv[optind], dir, &err);
	free(run.rows);
	if (td_sim_stop) {
		fputs("tandem-sim: stopped by a signal: the report has the rows done until then\n",
			stderr);
		return TD_SIM_EXIT_STOPPED;
	}
	return r ? td_sim_fail("%s", err.msg) : 0;
}
