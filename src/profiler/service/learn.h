/* Learns a service's profile again from all that is kept of it (learn/met.h). */
#pragma once

#include <stdint.h>

#include "profiler/service/points.h"

struct td_err;
struct td_store;

/*
 * Reads the points of the service on this kind of GPU and its profile so far. The last new_count
 * measurements of the running service are of now. Returns 0, or -errno with err.
 */
int td_profiler_relearn(struct td_store *store, const char *directory, const char *service,
	const char *gpu, uint32_t new_count, struct td_service_profile *ret, struct td_err *err);
