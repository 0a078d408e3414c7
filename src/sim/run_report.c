/* tandem-sim run: table, CSV, JSON and one HTML page with plots. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/time.h"
#include "sim/plot.h"
#include "sim/run.h"
#include "sim/sim.h"

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
		const char *id =
			td_names_text(&run->trace.names, run->trace.jobs[job->trace_index].id);

		fprintf(out, "\"%s\",%.3f,", id, (double)job->submit_ns * 1e-9);
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

void td_run_put_table(const struct td_run *run, FILE *out)
{
	fprintf(out, "%-44s", "");
	for (uint32_t p = 0; p < run->result_count; p++)
		fprintf(out, " %12s", run->results[p].sched->name);
	fputc('\n', out);
	for (int m = 0; m < TD_METRIC_N; m++) {
		fprintf(out, "%-38s %-5s", td_metrics[m].text, td_metrics[m].unit);
		for (uint32_t p = 0; p < run->result_count; p++)
			fprintf(out, " %12.6g", run->results[p].metrics[m]);
		fputc('\n', out);
	}
}

static int write_csv(const struct td_run *run, struct td_err *err)
{
	FILE *out = td_sim_create(run->out, "summary.csv", err);

	if (!out)
		return err->code;
	fputs("policy,metric,unit,value\n", out);
	for (uint32_t p = 0; p < run->result_count; p++)
		for (int m = 0; m < TD_METRIC_N; m++)
			fprintf(out, "%s,%s,%s,%.10g\n", run->results[p].sched->name,
				td_metrics[m].name, td_metrics[m].unit, run->results[p].metrics[m]);
	return td_sim_close(out, run->out, "summary.csv", err);
}

static int write_json(const struct td_run *run, struct td_err *err)
{
	FILE *out = td_sim_create(run->out, "summary.json", err);

	if (!out)
		return err->code;
	fputs("{\"trace\": ", out);
	td_json_text(out, run->trace_path);
	fputs(", \"cluster\": ", out);
	td_json_text(out, run->cluster_path);
	fprintf(out, ", \"seed\": %llu, \"contention\": \"%s\", \"policies\": [",
		(unsigned long long)run->seed, run->proportional ? "proportional" : "fitted");
	for (uint32_t p = 0; p < run->result_count; p++) {
		fprintf(out, "%s\n {\"policy\": \"%s\", \"stopped\": %s", p ? "," : "",
			run->results[p].sched->name, run->results[p].stopped ? "true" : "false");
		for (int m = 0; m < TD_METRIC_N; m++)
			fprintf(out, ", \"%s\": %.10g", td_metrics[m].name,
				run->results[p].metrics[m]);
		fputc('}', out);
	}
	fputs("\n]}\n", out);
	return td_sim_close(out, run->out, "summary.json", err);
}

static void put_html_table(const struct td_run *run, FILE *out)
{
	fputs("<table><tr><th></th>", out);
	for (uint32_t p = 0; p < run->result_count; p++)
		fprintf(out, "<th>%s</th>", run->results[p].sched->name);
	fputs("</tr>\n", out);
	for (int m = 0; m < TD_METRIC_N; m++) {
		double best = run->results[0].metrics[m];

		for (uint32_t p = 1; p < run->result_count; p++)
			best = td_metrics[m].better > 0 ? fmax(best, run->results[p].metrics[m])
							: fmin(best, run->results[p].metrics[m]);
		fprintf(out, "<tr><td>%s%s%s</td>", td_metrics[m].text,
			*td_metrics[m].unit ? ", " : "", td_metrics[m].unit);
		for (uint32_t p = 0; p < run->result_count; p++) {
			double value = run->results[p].metrics[m];
			bool is_best = td_metrics[m].better && run->result_count > 1 &&
				       !(value < best || value > best);

			fprintf(out, "<td%s>%.5g</td>", is_best ? " class='best'" : "", value);
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
	for (uint32_t i = 0; i < run->job_count; i++)
		parts[i] = 100. * (i + 1) / run->job_count;
	for (uint32_t p = 0; p < run->result_count; p++) {
		const struct td_run_result *result = &run->results[p];
		double *x = at, *b = at + TD_SIM_SAMPLES, *q = at + 2 * TD_SIM_SAMPLES;

		at += 3 * (size_t)TD_SIM_SAMPLES;
		for (uint32_t i = 0; i < result->sample_count; i++) {
			x[i] = result->samples[i].at_s / 3600;
			b[i] = result->samples[i].busy_gpus;
			q[i] = result->samples[i].queued;
		}
		cdf[p] = (struct td_series){
			result->sched->name, result->jct_s, parts, run->job_count};
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

static int write_html(const struct td_run *run, struct td_err *err)
{
	FILE *out = td_sim_create(run->out, "report.html", err);
	double gain = run->results[run->result_count - 1].metrics[TD_METRIC_JCT_MEAN_S] /
		      run->results[0].metrics[TD_METRIC_JCT_MEAN_S];
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
	if (run->result_count > 1)
		fprintf(out,
			"<p>Under <b>%s</b> a job is complete %s<b>%.2f times</b> as fast on "
			"average as under %s.</p>\n",
			run->results[0].sched->name, gain < 1 ? "only " : "", gain,
			run->results[run->result_count - 1].sched->name);
	put_html_table(run, out);
	r = put_plots(run, out);
	fprintf(out,
		"<h2>What this rests on</h2><ul><li>This is a simulation, not a measurement. How "
		"much jobs slow each other down follows a contention model %s.</li>"
		"<li>%u of the jobs name no model that is among the kinds known: theirs was "
		"drawn.</li>"
		"<li>%u jobs had no duration and were left out, %u asked for no GPU, %u lines "
		"could not be read.</li>"
		"<li>Jobs that failed or did not finish are in every mean with the time that they "
		"took.</li>"
		"<li>Starting again after an eviction costs %.0f s and the work since the last "
		"checkpoint, which are %.0f s apart.</li></ul>\n",
		run->profiles_path ? "fitted to measured pairs of jobs"
				   : "with one generic kind of job",
		run->unknown_models, run->trace.undated, run->trace.gpuless, run->trace.skipped,
		(double)run->restart_ns * 1e-9, (double)run->checkpoint_ns * 1e-9);
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
