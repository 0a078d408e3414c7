/*
 * The part of the meter (gate/meter.h) that belongs to one thread. It lies in the thread's marker,
 * so that metering a launch writes to no cache line that another thread uses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TD_METER_SAMPLES 4 /* launches per thread that are being timed at once */

/* A launch that is timed: one CUDA event is recorded before it, and one after it. */
struct td_meter_sample {
	void *start, *end; /* CUDA events; NULL: not created yet */
	uint64_t key;      /* identifies the kind of launch (demand.h) */
	uint32_t kind;     /* index of that kind in the table of demand.h */
	uint32_t active_ppm, core_ppm;
	uint64_t charged_ns; /* GPU time that was charged in advance at the launch */
	uint64_t gap_ns;     /* if the stream was idle: time from the start event to the launch */
	bool dry;            /* the stream was idle */
	bool shared;         /* other processes might have used the GPU */
};

/* Zeroed: nothing metered yet. */
struct td_meter_thread {
	struct td_meter_sample samples[TD_METER_SAMPLES];
	uint32_t head, count; /* position of the oldest sample; number of samples */
	uint32_t wait;        /* number of launches until the samples are checked next */
	uint32_t pause;       /* the number that `wait` began at */
	uint64_t context;     /* serial number of the events' context; 0: no events */
	/*
	 * Not yet added to the meter page. Corrections of estimates may make them negative for a
	 * while.
	 */
	int64_t gpu_ns, active_ns_ppm, core_ns_ppm;
	uint32_t launches;   /* launches since these were last added to the page */
	uint32_t gpu;        /* slot of the GPU that these figures belong to */
	uint64_t draw;       /* state of td_sample_draw's random numbers; 0: not seeded */
	bool sampling;       /* the launch in progress has a start event */
	void *stream;        /* the stream of that launch */
	uint64_t started_ns; /* when its start event had been recorded (monotonic ns) */
};
