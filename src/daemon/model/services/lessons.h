/*
 * Measurements of a service beside the training that it meets, until they are kept.
 *
 * Purpose. A campaign measures a service beside a few neighbours. Mudi extends a service's curves
 * by each new co-location (4.1.2). While a service runs beside training whose layers are known, its
 * library counts the time of full batches (proto/service_page.h). A study compares two readings of
 * these counts:
 *
 *   it begins anew     when the layers beside the service, its share or its batch change
 *   it counts          after TD_STUDY_SETTLE_NS, so that no batch of before is in it
 *   it yields a lesson once it has TD_STUDY_BATCHES batches and has lasted TD_STUDY_NS, and again
 *                      after each TD_STUDY_AGAIN_NS
 *
 * A lesson's latency is the time that nine of ten batches do not exceed. Lessons wait here, at most
 * TD_LESSONS_MAX. A newer one replaces that of the same service, layers, share and batch; beyond
 * the bound the oldest is dropped. They are due when a company has parted, or after
 * TD_LESSONS_WAIT_NS.
 *
 * Invariants: no I/O, and the time is a parameter. The program writes its counts, so a count that
 * has fallen counts as unchanged. What it may claim is bounded by who learns (profiler/learn.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profile/lesson.h"
#include "proto/service_page.h"

#define TD_LESSONS_MAX     32u
#define TD_LESSONS_WAIT_NS 60000000000ull

#define TD_STUDY_BATCHES   24u
#define TD_STUDY_NS        3000000000ull
#define TD_STUDY_SETTLE_NS 1000000000ull
#define TD_STUDY_AGAIN_NS  30000000000ull

/*
 * The company, batch and share that a service runs with. All layers 0: beside nobody, or beside
 * somebody unknown.
 */
struct td_study_of {
	uint32_t layers[TD_MUDI_LAYERS];
	uint32_t batch, share_ppm;
};

/* A zeroed study has seen nothing. */
struct td_study {
	struct td_study_of of;
	uint64_t began_ns, taught_ns; /* 0: not yet */
	bool counts;                  /* `first` has been read */
	uint32_t first[TD_SERVICE_BATCHES];
};

struct td_lessons {
	struct td_lesson waiting[TD_LESSONS_MAX];
	uint32_t count;
	uint64_t since_ns; /* when the oldest came */
	bool parted;       /* a company has parted since, of which there may be lessons */
};

/*
 * Looks at a service. `service` and `gpu` name it and the kind of its GPU, as in a lesson. Returns
 * when to look again at the latest; UINT64_MAX: a change of what it runs with comes first.
 */
uint64_t td_lessons_look(struct td_lessons *lessons, struct td_study *study,
	const struct td_service_page *page, const struct td_study_of *of, const char *service,
	const char *gpu, uint64_t now_ns);

/* The service ends, so its company parts. */
void td_lessons_part(struct td_lessons *lessons, struct td_study *study);

/* Returns when the lessons that wait are due; UINT64_MAX: there are none. */
uint64_t td_lessons_due_ns(const struct td_lessons *lessons, uint64_t now_ns);

/* Takes the oldest lesson. Returns false if there is none. */
bool td_lessons_take(struct td_lessons *lessons, struct td_lesson *ret);
