/*
 * The world of MuxFlow's experiments: 1,000 GPUs with a service each, offline jobs beside them.
 *
 * MuxFlow's online models, request curves and T4 pairs are not public. So the services are three of
 * Kairos' models on a T4. Each gets 20 to 190 requests of a batch of 100 per second, as a cosine
 * over the day with a phase of its own. Offline jobs are those of a Philly virtual cluster with one
 * GPU and 10 min to 12 h, repeated to 7,200 GPU hours, with arrivals folded into 12 h. Their models
 * are ResNet-50, ResNet-18, CycleGAN and Transformer. The cluster is stepped every five minutes.
 *
 * Truth. Services have the contention of Gavel's Recommendation jobs (P100 fit) while they are
 * busy. Offline jobs follow alpha + beta / x with alpha 0.63, the median of MISO's curves.
 * Time-sharing: while both want the GPU each has half of it; by priority the service has three
 * quarters. A service's latency is an M/D/1 queue's mean.
 *
 * The predictor is trained on 2,000 samples of this cluster's kinds with 5 % noise on its inputs
 * (the features are a profile's, not the truth's numbers), for one contention variant each. It
 * links nothing of the truth.
 */
#pragma once

#include "learn/learn.h"
#include "policy/algo/fit/slo_split.h"
#include "policy/cluster/muxflow_cluster.h"
#include "policy/system/muxflow.h"
#include "sim/data/trace.h"
#include "sim/report/experiment.h"
#include "sim/scheduler/muxflow_settle.h"

#define TD_MUX_GPUS     1000u
#define TD_MUX_SERVICES 3
#define TD_MUX_OFFLINE  4
#define TD_MUX_JOBS_MAX 20000u
#define TD_MUX_SAMPLES  2000u
#define TD_MUX_GUARD    1.2 /* the guard: a service's latency may be this many times that alone */
#define TD_MUX_BINS     10  /* bins of a service's activity, for the matching */
#define TD_MUX_FINE     200 /* finer bins of it, for cached results */

enum td_mux_how {
	TD_MUX_TIME_SHARING,
	TD_MUX_PRIORITY,
	TD_MUX_MUXFLOW,
	TD_MUX_NO_SHARE,
	TD_MUX_NO_MATCH,
	TD_MUX_NO_BOTH,
	TD_MUX_TANDEM, /* MuxFlow's matching, with the split of slo_split.h */
	/*
	 * MuxFlow if all SMs were active whenever a GPU is used, which is the most a monitor could
	 * show.
	 */
	TD_MUX_ALL_ACTIVE,
	/*
	 * Bounds with MuxFlow's matching. WHOLE: the job has the whole GPU at all times, which no
	 * share exceeds. GUARDED: the best true share and duty that keep the service within the
	 * guard.
	 */
	TD_MUX_WHOLE,
	TD_MUX_GUARDED,
	TD_MUX_TRUTH, /* MuxFlow's rules with true speeds of pairs instead of the predictor's */
	TD_MUX_HOWS,
};

struct td_mux_job {
	double arrive_s, work_s, left_s, end_s;
	uint32_t kind, gpu;
};

struct td_mux_world {
	struct td_contender services[TD_MUX_SERVICES], offline[TD_MUX_OFFLINE];
	double told_services[TD_MUX_SERVICES],
		told_offline[TD_MUX_OFFLINE]; /* see td_sim_profile */
	double service_s[TD_MUX_SERVICES];    /* time of one request alone */
	struct td_contention contention;
	double phases[TD_MUX_GPUS];
	struct td_mux_job jobs[TD_MUX_JOBS_MAX];
	uint32_t count;
	struct td_model model;
	/* State of a run. */
	enum td_mux_how how;
	uint32_t on[TD_MUX_GPUS]; /* the job on each GPU */
	struct td_muxflow_gpu monitors[TD_MUX_GPUS];
	double pause_s[TD_MUX_GPUS];
	double factors[TD_MUX_SERVICES]
		      [TD_MUX_OFFLINE]; /* tandem's factors, see slo_split.h; 0: not observed */
	/*
	 * Cached results of TD_MUX_GUARDED in one contention variant; slowdown 0: not computed.
	 * Zero them when the variant changes.
	 */
	struct {
		double speed, slowdown;
	} guarded[TD_MUX_SERVICES][TD_MUX_OFFLINE][TD_MUX_FINE];
	/*
	 * The factor of a service's latency beside a kind of job under MuxFlow's share; zeroed as
	 * `guarded` is.
	 */
	double hurt[TD_MUX_SERVICES][TD_MUX_OFFLINE][TD_MUX_FINE];
	double prices[TD_MUX_OFFLINE]; /* see td_mux_least_cost() */
	uint64_t random;
	double until_s; /* 0: until all jobs have ended, but at most ten days */
};

struct td_mux_outcome {
	double jct_s, oversold;
	double latency,
		/*
		 * Mean factors over requests: of the latency with its queue, and of the service
		 * time alone.
		 */
		service;
	/*
	 * Sum over the run for MuxFlow's shares: the least excess of the mean latency over the
	 * guard for any placement, times requests.
	 */
	double least_excess,
		/* Sum over the run: requests of the busiest GPUs, as many GPUs as have a job. */
		most_requests;
	double most_fixed; /* a bound for MuxFlow-S: see td_mux_most_fixed() */
	double moved_h, unfinished;
	uint64_t moves;
};

struct td_mux_matching {
	void *memory;
	size_t bytes;
	uint32_t kinds[TD_MUX_GPUS]; /* the kind of each copy of a row */
};

/* Prepares the services and kinds, the trace, and the memory of the matching. */
int td_mux_prepare(struct td_experiment_run *run, struct td_mux_world **ret,
	struct td_mux_matching *m, struct td_trace *trace, struct td_err *err);
int td_mux_read_services(struct td_mux_world *w, const char *data, struct td_err *err);
int td_mux_read_kinds(struct td_mux_world *w, const char *data, struct td_err *err);
int td_mux_make_jobs(struct td_mux_world *w, const struct td_trace *trace, const char *vc,
	uint64_t seed, struct td_err *err);

/*
 * Draws one sample: a service at some load, and a kind of job. *ret_x has the predictor's inputs.
 * Returns the job's true speed.
 */
double td_mux_draw_sample(const struct td_mux_world *w, uint64_t *state, double *ret_x);
int td_mux_train(struct td_mux_world *w, const struct td_learn_options *options, uint64_t seed,
	struct td_err *err);

/* Runs the world under one system. Returns 0, or the error of the matching. */
int td_mux_simulate(struct td_mux_world *w, struct td_mux_matching *m, enum td_mux_how how,
	struct td_mux_outcome *out);

/*
 * Returns an upper bound of overselling under -S, which has a fixed share. A job takes at least its
 * work over the highest speed that any service, however busy, leaves its kind under that share; a
 * move adds to it.
 */
double td_mux_most_fixed(struct td_mux_world *w);

struct td_mux_choice {
	double cost;
	uint32_t gpu, kind;
};

/*
 * Returns a lower bound of the cost of putting counts[k] jobs of each kind on GPUs, one on each.
 * For any prices of the kinds no assignment costs less than sum(counts x prices) plus the smallest
 * min_k(cost - price), one for each job (weak duality). Starting from the given prices, some rounds
 * look for prices under which this sum is large, and leave the best ones. ret_choices has room for
 * all GPUs.
 */
double td_mux_least_cost(const double (*costs)[TD_MUX_OFFLINE], uint32_t gpus,
	const uint32_t *counts, double *prices, uint32_t rounds, struct td_mux_choice *ret_choices);
