/* Computes the figures of a run; see metrics.h. */
#include "sim/engine/metrics.h"

#include <errno.h>
#include <math.h>

#include "base/cleanup.h"

const struct td_metric_info td_metrics[TD_METRIC_N] = {
	[TD_METRIC_JOBS] = {"jobs", "jobs", "", 0},
	[TD_METRIC_DONE] = {"done", "jobs done", "", 1},
	[TD_METRIC_FAILED] = {"failed", "jobs failed", "", -1},
	[TD_METRIC_UNFINISHED] = {"unfinished", "jobs not finished", "", -1},
	[TD_METRIC_COUNTED] = {"counted", "jobs that the times are of", "", 0},
	[TD_METRIC_JCT_MEAN_S] = {"jct_mean_s", "completion time, mean", "s", -1},
	[TD_METRIC_JCT_MEDIAN_S] = {"jct_median_s", "completion time, median", "s", -1},
	[TD_METRIC_JCT_P90_S] = {"jct_p90_s", "completion time, P90", "s", -1},
	[TD_METRIC_JCT_P99_S] = {"jct_p99_s", "completion time, P99", "s", -1},
	[TD_METRIC_GUARANTEED_JCT_MEAN_S] = {"guaranteed_jct_mean_s",
		"completion time of guaranteed jobs, mean", "s", -1},
	[TD_METRIC_OTHER_JCT_MEAN_S] = {"other_jct_mean_s", "completion time of all others, mean",
		"s", -1},
	[TD_METRIC_WAIT_MEAN_S] = {"wait_mean_s", "wait for the first start, mean", "s", -1},
	[TD_METRIC_WAIT_MEDIAN_S] = {"wait_median_s", "wait for the first start, median", "s", -1},
	[TD_METRIC_SLOWDOWN_MEAN] = {"slowdown_mean", "time since start over time alone, mean", "x",
		-1},
	[TD_METRIC_MAKESPAN_S] = {"makespan_s", "first arrival to last end", "s", -1},
	[TD_METRIC_SIMULATED_S] = {"simulated_s", "time simulated", "s", 0},
	[TD_METRIC_BUSY_PERCENT] = {"busy_percent", "GPU time with a job", "%", 0},
	[TD_METRIC_SHARED_PERCENT] = {"shared_percent", "GPU time with several jobs", "%", 0},
	[TD_METRIC_WORK_PERCENT] = {"work_percent", "progress kept over GPU time", "%", 1},
	[TD_METRIC_EVICTIONS] = {"evictions", "evictions", "", -1},
	[TD_METRIC_EVICTED_PERCENT] = {"evicted_percent", "jobs evicted at least once", "%", -1},
	[TD_METRIC_SUSPENSIONS] = {"suspensions", "stops with the state saved", "", -1},
	[TD_METRIC_LOST_GPU_H] = {"lost_gpu_h", "work done again after evictions", "GPU h", -1},
	[TD_METRIC_RESTART_GPU_H] = {"restart_gpu_h", "starting again", "GPU h", -1},
	[TD_METRIC_MOVES] = {"moves", "moves to other GPUs", "", 0},
	[TD_METRIC_MOVE_GPU_H] = {"move_gpu_h", "moving", "GPU h", -1},
	[TD_METRIC_GUEST_STARTS] = {"guest_starts", "jobs started beside others", "", 0},
	[TD_METRIC_UPGRADES] = {"upgrades", "guests that became guaranteed", "", 0},
	[TD_METRIC_EVENTS] = {"events", "events", "", 0},
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct sums {
	double all, guaranteed, others, wait, slowdown, last_end;
	uint32_t count, guaranteed_count, slow_count;
};

static void add_job(const struct td_sim_job *job, uint64_t first_ns, uint64_t now_ns,
	struct sums *sums, double *ret_jct, double *ret_wait)
{
	uint64_t end = job->status == TD_SIM_DONE ? job->end_ns : now_ns;
	uint64_t start = job->start_ns == TD_NEVER ? end : job->start_ns;

	/* Jobs that had not arrived when the run was stopped took no time. */
	end = end < job->submit_ns ? job->submit_ns : end;
	start = start < job->submit_ns ? job->submit_ns : start;
	*ret_jct = (double)(end - job->submit_ns) * 1e-9;
	*ret_wait = (double)(start - job->submit_ns) * 1e-9;
	sums->count++;
	sums->all += *ret_jct;
	sums->wait += *ret_wait;
	if (job->class == TD_CLASS_GUARANTEED) {
		sums->guaranteed += *ret_jct;
		sums->guaranteed_count++;
	} else {
		sums->others += *ret_jct;
	}
	if (job->status == TD_SIM_DONE && job->work_s > 0) {
		sums->slowdown += (*ret_jct - *ret_wait) / job->work_s;
		sums->slow_count++;
	}
	sums->last_end = fmax(sums->last_end, (double)(end - first_ns) * 1e-9);
}

static double over(double sum, double count)
{
	return count > 0 ? sum / count : NAN;
}

/* Returns the value below which this part of n ascending values is. */
static double part_of(const double *values, uint32_t n, double part)
{
	return n ? values[(uint32_t)(part * (n - 1) + 0.5)] : NAN;
}

int td_metrics_of_jobs(const struct td_sim_job *jobs, uint32_t count, const bool *counted,
	uint64_t first_ns, uint64_t now_ns, double *ret, double *ret_jct_s)
{
	td_auto_free double *jct = calloc(2 * (size_t)count + 1, sizeof(double));
	double *wait = jct + count;
	struct sums sums = {0};
	uint32_t n;

	if (!jct)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		if (!counted || counted[i])
			add_job(&jobs[i], first_ns, now_ns, &sums, &jct[sums.count],
				&wait[sums.count]);
	n = sums.count;
	qsort(jct, n, sizeof(double), compare);
	qsort(wait, n, sizeof(double), compare);
	for (uint32_t i = 0; ret_jct_s && i < n; i++)
		ret_jct_s[i] = jct[i];
	ret[TD_METRIC_COUNTED] = n;
	ret[TD_METRIC_JCT_MEAN_S] = over(sums.all, n);
	ret[TD_METRIC_JCT_MEDIAN_S] = n ? jct[n / 2] : NAN;
	ret[TD_METRIC_JCT_P90_S] = part_of(jct, n, 0.9);
	ret[TD_METRIC_JCT_P99_S] = part_of(jct, n, 0.99);
	ret[TD_METRIC_GUARANTEED_JCT_MEAN_S] = over(sums.guaranteed, sums.guaranteed_count);
	ret[TD_METRIC_OTHER_JCT_MEAN_S] = over(sums.others, n - sums.guaranteed_count);
	ret[TD_METRIC_WAIT_MEAN_S] = over(sums.wait, n);
	ret[TD_METRIC_WAIT_MEDIAN_S] = n ? wait[n / 2] : NAN;
	ret[TD_METRIC_SLOWDOWN_MEAN] = over(sums.slowdown, sums.slow_count);
	ret[TD_METRIC_MAKESPAN_S] = n ? sums.last_end : NAN;
	return 0;
}

int td_metrics_of(const struct td_cluster *cluster, double *ret, double *ret_jct_s)
{
	uint32_t n = cluster->job_count, states[TD_SIM_STATUS_N] = {0}, evicted = 0;
	double kept_s = 0, seconds = (double)(cluster->now_ns - cluster->first_ns) * 1e-9;
	double gpu_s = seconds * cluster->gpu_count;

	for (uint32_t i = 0; i < n; i++) {
		const struct td_sim_job *job = &cluster->jobs[i];

		states[job->status]++;
		evicted += job->evictions > 0;
		/* Repeated work counts once; the cost of starting again does not count. */
		if (job->status != TD_SIM_FAILED)
			kept_s += fmax(0, job->work_s - job->left_s) * job->gpus;
	}
	ret[TD_METRIC_JOBS] = n;
	ret[TD_METRIC_DONE] = states[TD_SIM_DONE];
	ret[TD_METRIC_FAILED] = states[TD_SIM_FAILED];
	ret[TD_METRIC_UNFINISHED] = n - states[TD_SIM_DONE] - states[TD_SIM_FAILED];
	ret[TD_METRIC_SIMULATED_S] = seconds;
	ret[TD_METRIC_BUSY_PERCENT] = over(100 * cluster->counts.busy_gpu_s, gpu_s);
	ret[TD_METRIC_SHARED_PERCENT] = over(100 * cluster->counts.shared_gpu_s, gpu_s);
	ret[TD_METRIC_WORK_PERCENT] = over(100 * kept_s, gpu_s);
	ret[TD_METRIC_EVICTIONS] = (double)cluster->counts.evictions;
	ret[TD_METRIC_EVICTED_PERCENT] = 100. * evicted / n;
	ret[TD_METRIC_SUSPENSIONS] = (double)cluster->counts.suspensions;
	ret[TD_METRIC_LOST_GPU_H] = cluster->counts.lost_s / 3600;
	ret[TD_METRIC_RESTART_GPU_H] = cluster->counts.restart_s / 3600;
	ret[TD_METRIC_MOVES] = (double)cluster->counts.moves;
	ret[TD_METRIC_MOVE_GPU_H] = cluster->counts.move_s / 3600;
	ret[TD_METRIC_GUEST_STARTS] = (double)cluster->counts.beside_starts;
	ret[TD_METRIC_UPGRADES] = (double)cluster->counts.upgrades;
	ret[TD_METRIC_EVENTS] = (double)cluster->counts.events;
	return td_metrics_of_jobs(
		cluster->jobs, n, NULL, cluster->first_ns, cluster->now_ns, ret, ret_jct_s);
}
