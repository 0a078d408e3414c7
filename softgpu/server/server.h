/*
 * The softgpu server: the state that processes share, driven by wall time. It is glue: src/model
 * decides the times of operations and the places of pages. The server turns packets into calls of
 * the model and ends of operations into packets.
 *
 * One thread, one loop. A client that sends malformed packets loses its connection; a client that
 * is gone loses everything that it had.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "model/gpu_spec.h"
#include "model/kernel_paging.h"
#include "model/load.h"
#include "model/memory.h"
#include "model/timeline.h"
#include "softgpu/server/wire.h"

struct sg_gpu {
	uint32_t index, features; /* SG_FEATURE_* */
	struct td_gpu_spec spec;
	uint8_t uuid[16];
	struct td_timeline timeline;
	struct td_memory memory;
	/* load: of the compute engine; link_load: of both copy engines together */
	struct td_load load, link_load;
	/* since the last reset of the counters */
	uint64_t since_ns, busy_base_ns, switches_base, lag_ns, kernels;
	uint64_t copy_in_bytes, copy_out_bytes, copy_device_bytes;
	uint64_t managed_allocations; /* so far */
	struct td_moves moves_base;
	bool lost, hung;              /* set by injected faults */
	uint32_t pinned_bytes_per_us; /* the model's, while the link is slow; else 0 */
	uint64_t in_bytes, out_bytes; /* over the link, since the start */
	/* Busy time times the share of the SMs that had a block, since the start. */
	uint64_t sm_busy_ns;
};

#define SG_SHARED_BUCKETS 1024

struct sg_server {
	struct sg_gpu gpus[SG_GPU_MAX];
	uint32_t gpu_count;
	struct td_list clients;
	uint32_t client_count, next_context, next_range;
	struct td_list shared[SG_SHARED_BUCKETS]; /* shared.c */
	struct sg_msg faults[SG_FAULTS_MAX];      /* the faults in force, as NOTICE messages */
	uint32_t fault_count;
	struct td_list mps;  /* the MPS servers; mps.c */
	bool mps_exit_clean; /* killed MPS clients do no harm */
	bool stop;
	/* Sends a packet to a client; one that cannot take it is marked broken. */
	void (*send)(void *peer, const struct sg_msg *msg, const void *extra, size_t len);
};

struct sg_peer_state; /* contexts, ranges and operations of one client */

void sg_server_init(struct sg_server *server, const struct td_gpu_spec *spec, uint32_t gpu_count,
	uint64_t now_ns);

/*
 * Makes the GPUs' UUIDs from instance and index, so that GPUs of two servers differ. init() calls
 * it with 0.
 */
void sg_server_identify(struct sg_server *server, uint64_t instance);

/* Sets the features; all of them before the first call. */
void sg_server_set_features(struct sg_server *server, uint32_t features);

/* send() gets `peer` back. Returns NULL if memory is short. */
struct sg_peer_state *sg_server_connect(struct sg_server *server, void *peer, pid_t pid);
void sg_server_disconnect(struct sg_server *server, struct sg_peer_state *client, uint64_t now_ns);

/* Handles one packet. Returns 0, or -EPROTO: then the caller drops the connection. */
int sg_server_packet(struct sg_server *server, struct sg_peer_state *client, const void *packet,
	size_t len, uint64_t now_ns);

/* Reports what is done by now; returns when to be called next, or UINT64_MAX. */
uint64_t sg_server_advance(struct sg_server *server, uint64_t now_ns);

/* The state as JSON, malloc'ed; NULL when memory is short. */
char *sg_server_status(struct sg_server *server, uint64_t now_ns);
