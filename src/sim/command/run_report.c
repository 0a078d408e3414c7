/* Writes the report of tandem-sim run: table, CSV, JSON and one HTML page with plots. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/time.h"
#include "sim/base/csv.h"
#include "sim/base/plot.h"
#include "sim/base/sim.h"
#include "sim/command/run.h"

int td_run_write_jobs(
	const struct td_run *run, const struct td_run_result *result, struct td_err *err)
{
	static const char *const states[TD_SIM_STATUS_N] = {"waiting", "running", "done", "failed"};
	char name[64];
	FILE *out;

	snprintf(name, sizeof(name), "jobs-%s.csv", result->sched->name);
	out = td_sim_create(run->out, name, err);
	if (!out)
		return err->code;
	fputs("job_id,submit_time_s,start_s,end_s,num_gpus,guaranteed,state,evictions\n", out);
	for (uint32_t i = 0; i < run->job_count; i++) {
		const struct td_sim_job *job = &run->jobs[i];

		td_csv_put_quoted(out,
			td_names_text(&run->trace.names, run->trace.jobs[job->trace_index].id));
		fprintf(out, ",%.3f,", (double)job->submit_ns * 1e-9);
		if (job->start_ns != TD_NEVER)
			fprintf(out, "%.3f", (double)job->start_ns * 1e-9);
		fputc(',', out);
		if (job->end_ns != TD_NEVER)
			fprintf(out, "%.3f", (double)job->end_ns * 1e-9);
		fprintf(out, ",%u,%d,%s,%u\n", job->gpus, job->class == TD_CLASS_GUARANTEED,
			states[job->status], job->evictions);
	}
	return td_sim_close(out, run->out, name, err);
}

/* --- figures --- */

void td_run_put_table(const struct td_run *run, FILE *out)
{
	struct td_run_said said;

	fprintf(out, "%-44s", "");
	for (uint32_t p = 0; p < run->result_count; p++)
		fprintf(out, " %12s", run->results[p].sched->name);
	fputc('\n', out);
	for (int m = 0; m < TD_METRIC_N; m++) {
		fprintf(out, "%-38s %-5s", td_metrics[m].text, td_metrics[m].unit);
		for (uint32_t p = 0; p < run->result_count; p++) {
			if (isfinite(run->results[p].metrics[m]))
				fprintf(out, " %12.6g", run->results[p].metrics[m]);
			else
				fprintf(out, " %12s", "-");
		}
		fputc('\n', out);
	}
	td_run_say(run, &said);
	for (uint32_t s = 0; s < said.count; s++)
		fprintf(out, "%s%s\n", s ? "" : "\n", said.text[s]);
}

static int write_csv(const struct td_run *run, struct td_err *err)
{
	FILE *out = td_sim_create(run->out, "summary.csv", err);

	if (!out)
		return err->code;
	fputs("policy,metric,unit,value\n", out);
	for (uint32_t p = 0; p < run->result_count; p++) {
		const struct td_run_result *result = &run->results[p];

		fprintf(out, "%s,stopped,,%d\n", result->sched->name, result->stopped);
		for (int m = 0; m < TD_METRIC_N; m++) {
			fprintf(out, "%s,%s,%s,", result->sched->name, td_metrics[m].name,
				td_metrics[m].unit);
			if (isfinite(result->metrics[m]))
				fprintf(out, "%.10g", result->metrics[m]);
			fputc('\n', out);
		}
	}
	return td_sim_close(out, run->out, "summary.csv", err);
}

static void put_json_policy(const struct td_run_result *result, FILE *out)
{
	fprintf(out, "{\"policy\": \"%s\", \"stopped\": %s", result->sched->name,
		result->stopped ? "true" : "false");
	for (int m = 0; m < TD_METRIC_N; m++) {
		fprintf(out, ", \"%s\": ", td_metrics[m].name);
		if (isfinite(result->metrics[m]))
			fprintf(out, "%.10g", result->metrics[m]);
		else
			fputs("null", out);
	}
	fputc('}', out);
}

static int write_json(const struct td_run *run, struct td_err *err)
{
	FILE *out = td_sim_create(run->out, "summary.json", err);
	const struct td_run_result *base = td_run_baseline(run);
	struct td_run_said said;

	if (!out)
		return err->code;
	fputs("{\"trace\": ", out);
	td_json_text(out, run->trace_path);
	fputs(", \"cluster\": ", out);
	td_json_text(out, run->cluster_path);
	fprintf(out, ", \"seed\": %llu, \"contention\": \"%s\",\n \"baseline\": ",
		(unsigned long long)run->seed, run->proportional ? "proportional" : "fitted");
	if (base)
		td_json_text(out, base->sched->name);
	else
		fputs("null", out);
	td_run_say(run, &said);
	fputs(", \"summary\": [", out);
	for (uint32_t s = 0; s < said.count; s++) {
		fputs(s ? ", " : "", out);
		td_json_text(out, said.text[s]);
	}
	fputs("],\n \"not_used\": [", out);
	for (uint32_t n = 0; n < run->note_count; n++) {
		fputs(n ? ", " : "", out);
		td_json_text(out, run->notes[n]);
	}
	fputs("], \"policies\": [", out);
	for (uint32_t p = 0; p < run->result_count; p++) {
		fputs(p ? ",\n " : "\n ", out);
		put_json_policy(&run->results[p], out);
	}
	fputs("\n]}\n", out);
	return td_sim_close(out, run->out, "summary.json", err);
}

/*
 * Tells whether a policy's figure is the best among the policies that td_run_is_whole() accepts. A
 * policy that was stopped is never the best: its times are of the jobs done by then.
 */
static bool is_best(const struct td_run *run, uint32_t policy, int metric)
{
	double value = run->results[policy].metrics[metric];

	if (!td_metrics[metric].better || run->result_count < 2 || !isfinite(value) ||
		!td_run_is_whole(run, policy))
		return false;
	for (uint32_t p = 0; p < run->result_count; p++)
		if (run->results[p].stopped)
			return false;
	for (uint32_t p = 0; p < run->result_count; p++)
		if (td_run_is_whole(run, p) &&
			(run->results[p].metrics[metric] - value) * td_metrics[metric].better > 0)
			return false;
	return true;
}

static void put_html_table(const struct td_run *run, FILE *out)
{
	fputs("<table><tr><th></th>", out);
	for (uint32_t p = 0; p < run->result_count; p++)
		fprintf(out, "<th>%s%s</th>", run->results[p].sched->name,
			run->results[p].stopped ? " (stopped)" : "");
	fputs("</tr>\n", out);
	for (int m = 0; m < TD_METRIC_N; m++) {
		bool undone = m == TD_METRIC_FAILED || m == TD_METRIC_UNFINISHED;

		fprintf(out, "<tr><td>%s%s%s</td>", td_metrics[m].text,
			*td_metrics[m].unit ? ", " : "", td_metrics[m].unit);
		for (uint32_t p = 0; p < run->result_count; p++) {
			double value = run->results[p].metrics[m];

			fprintf(out, "<td%s>",
				undone && value > 0  ? " class='loss'"
				: is_best(run, p, m) ? " class='best'"
						     : "");
			if (isfinite(value))
				fprintf(out, "%.5g</td>", value);
			else
				fputs("-</td>", out);
		}
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static int put_plots(const struct td_run *run, FILE *out)
{
	struct td_series cdf[TD_RUN_POLICIES_MAX], busy[TD_RUN_POLICIES_MAX],
		queued[TD_RUN_POLICIES_MAX];
	td_auto_free double *parts = calloc(run->job_count, sizeof(double));
	td_auto_free double *columns =
		calloc(3 * (size_t)TD_SIM_SAMPLES * TD_RUN_POLICIES_MAX, sizeof(double));
	double *at = columns;

	if (!parts || !columns)
		return -ENOMEM;
	for (uint32_t i = 0; i < run->counted; i++)
		parts[i] = 100. * (i + 1) / run->counted;
	for (uint32_t p = 0; p < run->result_count; p++) {
		const struct td_run_result *result = &run->results[p];
		double *x = at, *b = at + TD_SIM_SAMPLES, *q = at + 2 * TD_SIM_SAMPLES;

		at += 3 * (size_t)TD_SIM_SAMPLES;
		for (uint32_t i = 0; i < result->sample_count; i++) {
			x[i] = result->samples[i].at_s / 3600;
			b[i] = result->samples[i].busy_gpus;
			q[i] = result->samples[i].queued;
		}
		cdf[p] =
			(struct td_series){result->sched->name, result->jct_s, parts, run->counted};
		busy[p] = (struct td_series){result->sched->name, x, b, result->sample_count};
		queued[p] = (struct td_series){result->sched->name, x, q, result->sample_count};
	}
	td_plot_lines(out, &(struct td_plot){"Completion times", "seconds",
				   "% of jobs, at most so long", true, cdf, run->result_count});
	td_plot_lines(out, &(struct td_plot){"GPUs with a job", "hours", "GPUs", false, busy,
				   run->result_count});
	td_plot_lines(out, &(struct td_plot){"Jobs that wait", "hours", "jobs", false, queued,
				   run->result_count});
	return 0;
}

static void put_premises(const struct td_run *run, FILE *out)
{
	fprintf(out,
		"<h2>What this rests on</h2><ul><li>This is a simulation, not a measurement. How "
		"much jobs slow each other down follows a contention model %s.</li>"
		"<li>%u of the jobs name no model that is among the kinds known: theirs was "
		"drawn.</li>"
		"<li>%u jobs had no duration and were left out, %u asked for no GPU, %u asked for "
		"more than the cluster has, %u lines could not be read.</li>"
		"<li>Times are of jobs that are done under every policy here. What each left "
		"undone is in the table's first lines; who leaves more undone than another one is "
		"the best at nothing.</li>"
		"<li>Starting again after an eviction costs %.0f s and the work since the last "
		"checkpoint, which are %.0f s apart.</li>",
		run->profiles_path ? "fitted to measured pairs of jobs"
				   : "that is the same for all jobs, since no profiles were given",
		run->unknown_models, run->trace.undated, run->trace.gpuless, run->misfits,
		run->trace.skipped, (double)run->restart_ns * 1e-9,
		(double)run->checkpoint_ns * 1e-9);
	for (uint32_t n = 0; n < run->note_count; n++) {
		fputs("<li>Not used: ", out);
		td_html_text(out, run->notes[n]);
		fputs("</li>", out);
	}
	fputs("</ul>\n", out);
}

static int write_html(const struct td_run *run, struct td_err *err)
{
	FILE *out = td_sim_create(run->out, "report.html", err);
	struct td_run_said said;
	int r, w;

	if (!out)
		return err->code;
	td_html_begin(out, "What sharing GPUs would gain");
	fprintf(out, "<p>%u jobs on %u GPUs of %u nodes, from <code>", run->job_count,
		run->nodes.gpus, run->nodes.count);
	td_html_text(out, run->trace_path);
	fputs("</code> on <code>", out);
	td_html_text(out, run->cluster_path);
	fprintf(out, "</code>; seed %llu, contention %s.</p>\n", (unsigned long long)run->seed,
		run->proportional ? "proportional" : "fitted");
	td_run_say(run, &said);
	for (uint32_t s = 0; s < said.count; s++)
		fprintf(out, "<p><b>%s</b></p>\n", said.text[s]);
	put_html_table(run, out);
	r = put_plots(run, out);
	put_premises(run, out);
	td_html_end(out);
	w = td_sim_close(out, run->out, "report.html", err);
	return r ? td_err_set(err, r, "report.html has no plots: %s", strerror(-r)) : w;
}

int td_run_write_all(const struct td_run *run, struct td_err *err)
{
	int r = write_csv(run, err);

	r = r ? r : write_json(run, err);
	return r ? r : write_html(run, err);
}
