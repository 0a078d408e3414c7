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
		contender;  /* g, p, h, serial and demand; share and duty are of the moment */
	double told_demand; /* see td_sim_profile */
	double least_s, fixed_s, each_s, objective_s;
	uint64_t memory_bytes, batch_bytes; /* batch_bytes: more for each request of a batch */
};

/* The division of a GPU between its service and the jobs beside it, which have equal parts. */
struct td_split {
	uint32_t batch;
	double service_share, guest_share; /* of the SMs */
	double guest_duty;                 /* of the time, together */
	bool paused;                       /* the jobs */
};

/* The figures of a service that a monitor shows after a round. */
struct td_service_seen {
	double rate_per_s, p99_s; /* p99_s: 0: not seen yet; INFINITY: it cannot keep up */
	double busy, slowdown;    /* slowdown: of a batch, of 1 = alone on the whole GPU */
	double guest_speed;       /* of the slowest beside it; 0: there is none */
};

struct td_service {
	/* given */
	uint32_t gpu, kind;
	/* of the run */
	struct td_split split;
	struct td_service_seen seen;
	bool tuned;
	double total_s, late_s; /* time, and that in which P99 exceeded the objective */
	uint64_t since_ns;
	double guest_speed_s; /* integral, and the time with guests */
	double guest_s;
	uint64_t guest_bytes, host_bytes; /* of the jobs beside it; of these on the host now */
	double swapped_s;                 /* of the time with guests, in which there were such */
};

/* Given; rates[service * intervals + i], requests per second, over and over again. */
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
 * Returns the batch where no scheduler chooses one: the largest power of two from 16 to 256 that
 * fills within half of the objective, at least 16.
 */
uint32_t td_service_usual_batch(const struct td_service_kind *kind, double rate_per_s);

/*
 * Computes the speeds of the jobs (guests) beside a service, and the figures that are seen of it.
 * guests: their contenders, with share and duty 1.
 */
void td_service_truth(const struct td_contention *contention, const struct td_service_kind *kind,
	const struct td_split *split, double rate_per_s, const struct td_contender *guests,
	uint32_t count, struct td_batch_table *table, double *ret_speeds,
	struct td_service_seen *ret_seen);

/* --- internal to the engine --- */

/* The rates of now; marks the GPUs of those whose rate has changed with `mark`. */
void td_services_rate(struct td_cluster *cluster, void (*mark)(struct td_cluster *, uint32_t gpu));
/* The company or the rate has changed: the split, and the speeds of the jobs. */
void td_services_refresh(struct td_cluster *cluster, uint32_t service, double *ret_speeds);
/* Counts the time up to now. */
void td_services_settle(struct td_cluster *cluster, uint32_t service);
