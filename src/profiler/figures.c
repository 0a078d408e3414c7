/* See figures.h. */
#include "profiler/figures.h"

#include <stdio.h>
#include <string.h>

#include "base/bounds.h"
#include "view/snapshot.h"

#define PPM 1e6

/* The sums over a job's rows in one round. */
struct sums {
	uint32_t rows, gpu, measured;
	bool several;
	uint64_t used_ns, active_ns, launches, steps, held_ns, peak_bytes, resident_bytes;
	double core, duty;
	const struct td_msg_job *last;
};

static bool is_of(const struct td_msg_job *row, const char *prefix)
{
	return !strncmp(row->job, prefix, strlen(prefix));
}

/* A row without a GPU is a process that has no context yet. */
static struct sums sum_up(const struct td_snapshot *now, const char *prefix)
{
	struct sums s = {.duty = 1};

	for (size_t i = 0; i < now->job_count; i++) {
		const struct td_msg_job *row = &now->jobs[i].said;

		if (!is_of(row, prefix) || row->gpu == UINT32_MAX)
			continue;
		s.several = s.several || (s.rows && row->gpu != s.gpu);
		s.gpu = row->gpu;
		s.rows++;
		s.measured += row->metered;
		s.used_ns += row->used_ns;
		s.active_ns += row->sm_active_ns;
		s.launches += row->launches;
		s.steps += row->steps;
		s.held_ns += row->held_ns;
		s.peak_bytes += row->peak_bytes;
		s.resident_bytes += row->resident_bytes;
		s.core += row->core_demand_ppm / PPM;
		if (row->duty_ppm)
			s.duty = row->duty_ppm / PPM;
		if (!s.last || row->launches >= s.last->launches)
			s.last = row;
	}
	return s;
}

static uint64_t rise(uint64_t *seen, uint64_t now)
{
	uint64_t more = now > *seen ? now - *seen : 0;

	*seen = now;
	return more;
}

static void note_gpu(struct td_figures *f, const struct td_snapshot *now, uint32_t gpu)
{
	f->gpu = gpu;
	for (size_t i = 0; i < now->gpu_count; i++)
		if (now->gpus[i].index == gpu)
			snprintf(f->gpu_name, sizeof(f->gpu_name), "%s", now->gpus[i].name);
}

/* The rows of a round are as old as the round, and rates are those of the time before it. */
static void add(struct td_figures *f, const struct sums *s, uint64_t now_ns)
{
	uint64_t passed_ns = f->seen_ns && now_ns > f->seen_ns ? now_ns - f->seen_ns : 0;

	f->rounds += passed_ns > 0;
	f->span_ns += passed_ns;
	f->used_ns += rise(&f->seen_used_ns, s->used_ns);
	f->active_ns += rise(&f->seen_active_ns, s->active_ns);
	f->launches += rise(&f->seen_launches, s->launches);
	f->steps += rise(&f->seen_steps, s->steps);
	f->held_ns += rise(&f->seen_held_ns, s->held_ns);
	f->core_ns += s->core * (double)passed_ns;
	f->duty_ns += s->duty * (double)passed_ns;
	f->peak_bytes = td_max_u64(f->peak_bytes, s->peak_bytes);
	f->resident_bytes = td_max_u64(f->resident_bytes, s->resident_bytes);
	f->seen_ns = now_ns;
	if (!s->last)
		return;
	snprintf(f->job, sizeof(f->job), "%s", s->last->job);
	f->step_ns = s->last->step_ns;
	f->step_sure_ppm = s->last->step_sure_ppm;
	f->sm_share_ppm = s->last->sm_share_ppm;
	if (s->last->p99_ns) {
		f->p99_ns = s->last->p99_ns;
		f->rate_milli = s->last->rate_milli;
	}
}

void td_figures_begin(struct td_figures *f)
{
	const struct td_figures was = *f;

	*f = (struct td_figures){
		.gpu = was.gpu,
		.seen_ns = was.seen_ns,
		.seen_used_ns = was.seen_used_ns,
		.seen_active_ns = was.seen_active_ns,
		.seen_launches = was.seen_launches,
		.seen_steps = was.seen_steps,
		.seen_held_ns = was.seen_held_ns,
	};
	memcpy(f->gpu_name, was.gpu_name, sizeof(f->gpu_name));
	memcpy(f->job, was.job, sizeof(f->job));
}

enum td_figures_state td_figures_take(
	struct td_figures *f, const struct td_snapshot *now, const char *prefix)
{
	struct sums s = sum_up(now, prefix);

	if (s.rows)
		note_gpu(f, now, s.gpu);
	add(f, &s, now->time_ns);
	if (!s.rows)
		return TD_FIGURES_ABSENT;
	if (s.several)
		return TD_FIGURES_SEVERAL;
	if (!s.launches)
		return TD_FIGURES_IDLE;
	return s.measured ? TD_FIGURES_MEASURED : TD_FIGURES_UNMETERED;
}

const char *td_figures_other(
	const struct td_snapshot *now, uint32_t gpu, const char *const *prefixes, unsigned count)
{
	for (size_t i = 0; i < now->job_count; i++) {
		const struct td_msg_job *row = &now->jobs[i].said;
		bool ours = row->gpu != gpu;

		for (unsigned k = 0; k < count && !ours; k++)
			ours = is_of(row, prefixes[k]);
		/* One that has launched nothing, or is idle, takes no part of the GPU. */
		if (!ours && row->launches && strcmp(row->state, "idle"))
			return row->name;
	}
	for (size_t i = 0; i < now->other_count; i++)
		if (now->others[i].gpu == gpu && now->others[i].processes)
			return "processes of other users";
	return NULL;
}
