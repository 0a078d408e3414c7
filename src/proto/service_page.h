/*
 * The page in which a service counts its requests. It lies in the same file as the meter page, from
 * TD_SERVICE_OFFSET on, and takes no memory before the program has called tandem_service(). The
 * program writes it; the daemon distrusts every value in it. No message is sent per request or
 * batch: the daemon compares two looks at the page.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/histogram.h"
#include "proto/gate_page.h"
#include "proto/layers.h"

/* A multiple of every page size that Linux uses. */
#define TD_SERVICE_OFFSET 65536

/* Each bucket is two of td_histogram_bucket(), so that the page has room for them. */
#define TD_SERVICE_BATCHES (TD_HISTOGRAM_N / 2)

struct td_service_page {
	_Atomic uint64_t arrived, answered; /* number of requests so far */
	/* batch size that the service uses now; 0: it has never asked */
	_Atomic uint32_t batch;
	_Atomic uint32_t layers[TD_LAYER_KINDS];
	/* number of answers by latency, from arrival to answer */
	_Atomic uint64_t latency[TD_HISTOGRAM_N];
	/*
	 * Number of full batches by their time: of those that had at least as many requests as
	 * tandem_batch() had told. Libraries before these counts leave them 0.
	 */
	_Atomic uint32_t batches[TD_SERVICE_BATCHES];
};

#define TD_SERVICE_BYTES    8192
#define TD_METER_FILE_BYTES (TD_SERVICE_OFFSET + TD_SERVICE_BYTES)

_Static_assert(sizeof(struct td_service_page) <= TD_SERVICE_BYTES, "the file holds it");
