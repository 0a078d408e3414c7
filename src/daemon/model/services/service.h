/*
 * The figures of a service, from the page in which it counts its requests (proto/service_page.h).
 *
 * The daemon reads the page every TD_SERVICE_LOOK_NS while its figures are wanted, and keeps the
 * readings (looks) of the last window. A figure is computed from the difference between the newest
 * look and the first one in the window, so no message is sent per request. The program's counts are
 * not trusted: a count that has fallen counts as unchanged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/services/lessons.h"
#include "proto/proto.h"
#include "proto/service_page.h"

struct td_profile_entry;

#define TD_SERVICE_LOOK_NS 250000000ull
#define TD_SERVICE_LOOKS   5 /* so the window is one second */

struct td_service_look {
	uint64_t time_ns, arrived, answered;
	/* Only the low 32 bits: no bucket counts 2^31 answers within a window. */
	uint32_t latency[TD_HISTOGRAM_N];
};

/* How much is known of a service whose figures come from its /metrics. */
enum td_service_outside {
	TD_SERVICE_INSIDE,  /* they do not: the program tells by tandem.h */
	TD_SERVICE_UNKNOWN, /* nothing */
	TD_SERVICE_MEAN,    /* its rate and its mean latency */
	TD_SERVICE_ALL,
};

/* Figures from outside are unknown again after so long without new ones. */
#define TD_SERVICE_OUTDATED_NS 4000000000ull

struct td_service {
	char name[64];
	uint64_t objective_ns; /* the objective for the P99; 0: none */
	uint32_t batch_max;    /* the largest batch; 0: unknown */
	const struct td_service_page *page;
	struct td_profile_entry *profile; /* the profile in use; NULL: none */
	struct td_study study;
	/*
	 * The requests that earlier instances of this service have counted. They are added to the
	 * counts of the page, and all of these requests count as answered.
	 */
	struct td_service_look before;
	/* a ring; `next` is the index of the oldest */
	struct td_service_look looks[TD_SERVICE_LOOKS];
	uint32_t next, count;
	/* The figures of the last window; all are 0 before the second look. */
	double rate_per_s;
	uint64_t p50_ns, p99_ns, mean_ns;
	/* The figures of the newest look. */
	uint32_t waiting, batch;
	/* Where the supervisor reads the service's /metrics (FIGURES of proto/messages.def). */
	enum td_service_outside outside;
	uint64_t heard_ns;
	char source[128]; /* the metric of the latency; "": none was found yet */
	char why[128];    /* why the figures are unknown */
};

/* Returns the service page in a mapped file that begins with the meter page. NULL yields NULL. */
const struct td_service_page *td_service_page_of(const struct td_meter_page *meter);

void td_service_free(struct td_service *service);

/*
 * Handles a process's message that it is a service. Makes *service if it is NULL; it stays NULL if
 * memory is short. Returns 0, or -EINVAL if the name is empty.
 */
int td_service_declare(struct td_service **service, const struct td_msg_service *msg,
	const struct td_service_page *page);

/*
 * Handles FIGURES for a process, which are ignored if the program tells its own by tandem.h. Makes
 * *service if it is NULL; it stays NULL if memory is short. Returns whether *service was made.
 */
bool td_service_hear(
	struct td_service **service, const struct td_msg_figures *msg, uint64_t now_ns);
/* Are the figures those of the service now? `service` may be NULL. */
bool td_service_is_known(const struct td_service *service);

/*
 * `service` has taken over from `from`, an instance of the same service: it goes on with the looks
 * and figures of that one, so that a change of the instance looks like no change of the rate. Does
 * nothing if one is NULL or their names differ.
 */
void td_service_follow(struct td_service *service, const struct td_service *from);

/*
 * Reads the page if the last look is old enough, or forgets outdated figures from outside.
 * `service` may be NULL.
 */
void td_service_look(struct td_service *service, uint64_t now_ns);
