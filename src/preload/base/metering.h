/*
 * A thread's part of the meter (gate/meter.h). It lies in the thread's slot, so that metering a
 * launch writes to no cache line that another thread uses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_METER_SAMPLES 4 /* launches per thread that are being timed at once */

/* One launch between two events. */
struct td_meter_sample {
	void *start, *end; /* NULL: not created yet */
	uint64_t key;      /* of its kind (demand.h) */
	uint32_t kind;     /* the index of its kind */
	uint32_t active_ppm, core_ppm;
	uint64_t charged_ns; /* was charged when it was launched */
	uint64_t gap_ns;     /* of a stream that had run dry: from the first event to the launch */
	bool dry, shared;    /* shared: others might use the GPU when it was launched */
};

/* Zeroed: nothing metered yet. */
struct td_meter_thread {
	struct td_meter_sample samples[TD_METER_SAMPLES];
	uint32_t head, count; /* the oldest sample; how many */
	uint32_t wait, pause; /* launches until the next look at it, and until the one after that */
	uint64_t context;     /* serial of the events' context; 0: there are none */
	/* Not yet added to the meter page. Corrections may make them negative for a while. */
	int64_t gpu_ns, active_ns_ppm, core_ns_ppm;
	uint32_t launches;   /* since they were added last */
	uint32_t gpu;        /* slot of the GPU that they are of */
	uint64_t draw;       /* td_sample_draw's; 0: not begun */
	bool sampling;       /* the launch under way has a start event */
	void *stream;        /* its stream */
	uint64_t started_ns; /* when that event had been recorded */
};
