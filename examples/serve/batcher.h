/*
 * Requests wait in order; one thread takes as many as make a batch and runs them on the GPU.
 * tandem is told of arrivals and answers, and may choose the batch.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "network.h"

/* Waiting requests beyond this are refused. */
#define BATCHER_QUEUE_MAX 4096

struct request {
	float input, output;
	uint32_t batch; /* that it ran in */
	uint64_t token, arrived_ns;
	/* Called on the batching thread when the output is there. */
	void (*done)(struct request *request);
	void *arg;
};

struct batcher {
	struct network network;
	uint64_t linger_ns; /* how long the first request of a batch waits for others */
	/* Each batch keeps so many SMs busy for that long, and longer for each of its requests. */
	uint64_t kernel_ns, request_ns;
	unsigned sms;
	uint64_t bandwidth;   /* bytes a second that it takes meanwhile */
	uint64_t activations; /* bytes that each request of a batch takes */
	pthread_mutex_t lock;
	pthread_cond_t came;
	/* Guarded by lock. */
	struct request *queue[BATCHER_QUEUE_MAX]; /* a ring */
	uint32_t first, queued;
	/* For /metrics; guarded by lock. */
	uint64_t arrived, answered, refused, batches, sum_ns;
	uint32_t last_batch;
	uint64_t latency[TD_HISTOGRAM_N];
};

void batcher_init(struct batcher *batcher, uint64_t linger_ns);

/* False: too many wait, and the request is not taken. */
bool batcher_add(struct batcher *batcher, struct request *request);

/* Makes the network, calls ready() after a first batch, and runs batches for ever. */
void batcher_run(struct batcher *batcher, uint32_t width, uint32_t layers, uint32_t batch_max,
	void (*ready)(void));
