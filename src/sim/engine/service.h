/*
 * Services in the engine: each lives on a GPU of its own, answers requests in batches, and may have
 * jobs beside it.
 *
 * Purpose. At the scale of a cluster, requests are too many to be events. The rate of each service
 * is constant over an interval of its load curve. The batch queue's percentile
 * (model/batch_table.h) follows from the rate, the batch, and the time of a batch beside its
 * company under its share. When the rate or the company changes, the scheduler is asked for the
 * split of the GPU (sched.h: tune), sees the effect, and may go on. A round lasts as long as the
 * scheduler says.
 *
 * Memory. The service has what it needs, weights and a batch. The jobs' memory that then lacks room
 * moves to the host, as by Mudi's memory manager (5.6), and back when there is room. The jobs wait
 * while it moves, at the rate of the link, and are slower while it is on the host (cluster.h).
 *
 * Truth. A batch of b alone on the whole GPU takes max(least_s, fixed_s + each_s b); beside others,
 * under a share, it takes that over the contention model's speed. A service presses on jobs while
 * it is busy.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/batch_table.h"
#include "model/contention.h"

struct td_cluster;

#define TD_SERVICE_KINDS_MAX 16u
#define TD_SERVICE_NONE      UINT32_MAX

struct td_service_kind {
	char name[32];
	struct td_contender
		contender;  /* g, p, h, serial and demand; share and duty depend on the moment */
	double told_demand; /* the demand that schedulers are told; see td_sim_profile */
	double least_s, fixed_s, each_s, objective_s;
	uint64_t memory_bytes, batch_bytes; /* batch_bytes: added for each request of a batch */
};

/* How a GPU is divided between its service and the jobs beside it, which have equal parts. */
struct td_split {
	uint32_t batch;
	double service_share, guest_share; /* shares of the SMs */
	double guest_duty;                 /* part of the time that all jobs together may run */
	bool paused;                       /* the jobs are paused */
};

/* The figures of a service that a monitor shows after a round of tune. */
struct td_service_seen {
	double rate_per_s, p99_s; /* p99_s 0: not seen yet; INFINITY: the service cannot keep up */
	double busy, slowdown;    /* slowdown of a batch; 1: as alone on the whole GPU */
	double guest_speed;       /* speed of the slowest job beside it; 0: there is none */
};

struct td_service {
	/* Set by the caller. */
	uint32_t gpu, kind;
	/* State of the run. */
	struct td_split split;
	struct td_service_seen seen;
	bool tuned;
	double total_s, late_s; /* total time; time in which P99 exceeded the objective */
	uint64_t since_ns;
	double guest_speed_s; /* integral of the jobs' speed over guest_s */
	double guest_s;
	/* Memory of the jobs beside it; the part that is on the host now. */
	uint64_t guest_bytes, host_bytes;
	double swapped_s; /* part of guest_s in which some of it was on the host */
};

/*
 * Set by the caller. rates[service * intervals + i] is in requests per second; after the last
 * interval the first follows.
 */
struct td_services {
	const struct td_service_kind *kinds;
	uint32_t kind_count;
	struct td_service *list;
	uint32_t count;
	const float *rates;
	uint32_t intervals;
	uint64_t interval_ns;
};

/* Returns the bytes of a service on its GPU under its present split. */
uint64_t td_service_bytes(const struct td_services *services, uint32_t service);

/* Returns the time of one batch alone on the whole GPU. */
double td_service_batch_s(const struct td_service_kind *kind, uint32_t batch);

/*
 * Returns the batch for schedulers that choose none: the largest power of two from 16 to 256 that
 * fills within half of the objective, or 16 if none does.
 */
uint32_t td_service_usual_batch(const struct td_service_kind *kind, double rate_per_s);

/*
 * Computes the speeds of the jobs beside a service, and the figures that a monitor shows of the
 * service. guests: the jobs' contenders, with share and duty 1.
 */
void td_service_truth(const struct td_contention *contention, const struct td_service_kind *kind,
	const struct td_split *split, double rate_per_s, const struct td_contender *guests,
	uint32_t count, struct td_batch_table *table, double *ret_speeds,
	struct td_service_seen *ret_seen);

/* --- internal to the engine --- */

/*
 * Sets the services' rates of now. Calls `mark` for the GPU of each service whose rate has changed.
 */
void td_services_rate(struct td_cluster *cluster, void (*mark)(struct td_cluster *, uint32_t gpu));
/* Called when the jobs or the rate have changed. Sets the split and computes the jobs' speeds. */
void td_services_refresh(struct td_cluster *cluster, uint32_t service, double *ret_speeds);
/* Adds the time up to now to the service's sums. */
void td_services_settle(struct td_cluster *cluster, uint32_t service);
