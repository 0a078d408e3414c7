/*
 * The figures of a service, from the page in which it counts its requests (proto/service_page.h).
 *
 * The daemon looks at the page every TD_SERVICE_LOOK_NS while somebody wants the figures, and keeps
 * the looks of the last window. A figure is of the difference between the last look and the first
 * one in the window, so no message is sent per request. The program's counts are distrusted: one
 * that has fallen counts as unchanged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/proto.h"
#include "proto/service_page.h"

struct td_profile_entry;

#define TD_SERVICE_LOOK_NS 250000000ull
#define TD_SERVICE_LOOKS   5 /* so the window is one second */

struct td_service_look {
	uint64_t time_ns, arrived, answered;
	/* The low halves: no bucket counts 2^31 answers within a window. */
	uint32_t latency[TD_HISTOGRAM_N];
};

struct td_service {
	char name[64];
	uint64_t objective_ns; /* for the P99; 0: none */
	uint32_t batch_max;    /* 0: not known */
	const struct td_service_page *page;
	struct td_profile_entry *profile;               /* in use; NULL: none */
	struct td_service_look looks[TD_SERVICE_LOOKS]; /* a ring, `next` is the oldest */
	uint32_t next, count;
	/* The figures of the last window; all 0 before the second look. */
	double rate_per_s;
	uint64_t p50_ns, p99_ns, mean_ns;
	/* The figures of the last look. */
	uint32_t waiting, batch;
};

/* The service page in the file of a meter page that is mapped whole; NULL for NULL. */
const struct td_service_page *td_service_page_of(const struct td_meter_page *meter);

void td_service_free(struct td_service *service);

/*
 * A process says that it is a service. `*service` is made where there is none (NULL: out of memory,
 * and it is none). An empty name is refused: returns -EINVAL.
 */
int td_service_declare(struct td_service **service, const struct td_msg_service *msg,
	const struct td_service_page *page);

/* Looks at the page if the last look is old enough. `service` may be NULL. */
void td_service_look(struct td_service *service, uint64_t now_ns);
