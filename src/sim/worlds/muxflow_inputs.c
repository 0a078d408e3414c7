/*
 * Makes the inputs of the world of MuxFlow's experiments: services, kinds of jobs and a trace; see
 * muxflow_world.h.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sim/base/csv.h"
#include "sim/base/random.h"
#include "sim/worlds/muxflow_world.h"

#define WORK_S (7200 * 3600.)
#define SERIAL 0.63 /* serial part of all jobs: the median of MISO's curves */

int td_mux_read_services(struct td_mux_world *w, const char *data, struct td_err *err)
{
	static const char *const names[TD_MUX_SERVICES] = {"dien", "mtwnd", "wnd"};
	static const char *const needed[] = {"model", "batch_size", "p50_ms"};
	char path[PATH_MAX];
	struct td_csv csv;
	int at[3], r;

	snprintf(path, sizeof(path), "%s/infer_kairos_t4.csv", data);
	r = td_csv_open(&csv, path, err);
	if (r)
		return r;
	r = td_csv_need(&csv, needed, 3, at, err);
	while (!r && !(r = td_csv_next(&csv, err))) {
		double batch, ms;

		r = td_csv_number(&csv, at[1], 1, 1e6, &batch, err);
		r = r ? r : td_csv_number(&csv, at[2], 0, 1e6, &ms, err);
		for (int s = 0; !r && s < TD_MUX_SERVICES; s++)
			if (!strcmp(td_csv_text(&csv, at[0]), names[s]) && batch > 99 &&
				batch < 101)
				w->service_s[s] = ms / 1000;
	}
	td_csv_close(&csv);
	return r < 0 ? r : 0;
}

int td_mux_read_kinds(struct td_mux_world *w, const char *data, struct td_err *err)
{
	static const char *const online[TD_MUX_SERVICES] = {"Recommendation (batch size 512)",
		"Recommendation (batch size 2048)", "Recommendation (batch size 8192)"};
	static const char *const offline[TD_MUX_OFFLINE] = {"ResNet-50 (batch size 64)",
		"ResNet-18 (batch size 128)", "CycleGAN", "Transformer (batch size 64)"};
	td_auto_free struct td_profiles *profiles = calloc(1, sizeof(*profiles));
	int r = profiles ? td_profiles_fit(data, "p100", profiles, err)
			 : td_err_set(err, -ENOMEM, "out of memory");

	for (int i = 0; !r && i < TD_MUX_SERVICES + TD_MUX_OFFLINE; i++) {
		const char *name = i < TD_MUX_SERVICES ? online[i] : offline[i - TD_MUX_SERVICES];
		int at = td_profiles_find(profiles, name);
		struct td_contender *kind =
			i < TD_MUX_SERVICES ? &w->services[i] : &w->offline[i - TD_MUX_SERVICES];

		if (at < 0)
			return td_err_set(err, -ENOENT, "there is no profile of the job %s", name);
		*kind = profiles->profiles[at].contender;
		kind->serial = SERIAL;
		*(i < TD_MUX_SERVICES ? &w->told_services[i]
				      : &w->told_offline[i - TD_MUX_SERVICES]) =
			profiles->profiles[at].told_demand;
	}
	return r;
}

static int by_arrival(const void *a, const void *b)
{
	const struct td_mux_job *x = a, *y = b;

	return (x->arrive_s > y->arrive_s) - (x->arrive_s < y->arrive_s);
}

int td_mux_make_jobs(struct td_mux_world *w, const struct td_trace *trace, const char *vc,
	uint64_t seed, struct td_err *err)
{
	uint32_t found[TD_MUX_JOBS_MAX], n = 0;
	double work = 0;

	for (uint32_t i = 0; i < trace->count && n < TD_MUX_JOBS_MAX; i++) {
		const struct td_trace_job *job = &trace->jobs[i];

		if (job->gpus == 1 && job->duration_s >= 600 && job->duration_s <= 43200 &&
			!strcmp(td_names_text(&trace->names, job->tenant), vc))
			found[n++] = i;
	}
	if (!n)
		return td_err_set(err, -ENOENT,
			"the trace has no suitable jobs of the virtual cluster %s", vc);
	for (w->count = 0; work < WORK_S && w->count < TD_MUX_JOBS_MAX; w->count++) {
		const struct td_trace_job *from = &trace->jobs[found[td_random_below(&seed, n)]];

		w->jobs[w->count] = (struct td_mux_job){
			.arrive_s = fmod(from->submit_s + 43200 * td_random_unit(&seed), 43200),
			.work_s = from->duration_s,
			.kind = td_random_below(&seed, TD_MUX_OFFLINE)};
		work += from->duration_s;
	}
	for (uint32_t g = 0; g < TD_MUX_GPUS; g++)
		w->phases[g] = td_random_unit(&seed);
	qsort(w->jobs, w->count, sizeof(w->jobs[0]), by_arrival);
	return 0;
}

int td_mux_prepare(struct td_experiment_run *run, struct td_mux_world **ret,
	struct td_mux_matching *m, struct td_trace *trace, struct td_err *err)
{
	struct td_mux_world *w = calloc(1, sizeof(*w));
	char path[PATH_MAX];
	int r;

	*ret = w;
	m->bytes = (td_match_bytes(TD_MUX_SERVICES * TD_MUX_BINS, TD_MUX_OFFLINE,
			    TD_MUX_OFFLINE * TD_MUX_GPUS) +
			   63) &
		   ~(size_t)63;
	m->memory = aligned_alloc(64, m->bytes);
	if (!w || !m->memory)
		return td_err_set(err, -ENOMEM, "out of memory");
	r = td_mux_read_services(w, run->data, err);
	r = r ? r : td_mux_read_kinds(w, run->data, err);
	snprintf(path, sizeof(path), "%s/jobs_philly.csv.gz", run->data);
	return r ? r : td_trace_read(path, false, trace, err);
}
