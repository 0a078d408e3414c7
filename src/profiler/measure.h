/*
 * Runs one program, or a service with a program beside it, under the daemon for a bounded time, and
 * takes their figures (figures.h).
 *
 * A program is started by `tandem run`. When all of them launch and are measured, a time to warm up
 * passes, then the time that is measured. Then the daemon ends them, by the path that lets a
 * program finish what is in flight; one that does not end is told by SIGTERM, then killed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profiler/figures.h"

struct td_err;

#define TD_MEASURE_JOBS 2

struct td_measured_job {
	const char *name, *class;
	char *const *argv;
	/* The share of the SMs in percent, by MPS; 0: what the policy gives the job. */
	unsigned sm_percent;
	/* The job's output is thrown away; otherwise its stdout goes to our stderr. */
	bool is_silent;
	/* results */
	struct td_figures figures;
	bool has_ended; /* before the time was over; the figures are of the time before that */
	int status;     /* the status of waitpid(), if the program has ended */
	/* private */
	pid_t pid;
	char prefix[16]; /* of its id */
};

struct td_measure {
	uint64_t start_ns; /* the time that each program may take until its first launch */
	uint64_t warm_ns, span_ns;
	uint64_t least_ns; /* a program that ends before so much was measured is an error */
};

/*
 * Measures `count` jobs together; each starts when those before it are measured. Returns 0, or
 * -errno with a message in err: -EBUSY: another job works on their GPU; -ECHILD: one ended too
 * soon; -EINTR: SIGINT or SIGTERM came. No job is left when it returns.
 */
int td_measure(const struct td_measure *measure, struct td_measured_job *jobs, unsigned count,
	struct td_err *err);
