/* The server's state for each client. The bounds limit what one client can make the server hold. */
#pragma once

#include "softgpu/server/server.h"

#define SG_CONTEXTS_MAX  64
#define SG_OPS_MAX       4096
#define SG_TOUCHES_MAX   65536
#define SG_PROCESSES_MAX 512
#define SG_MANAGED_MAX   (1ull << 40)

struct sg_peer_state {
	struct td_list link, contexts, ranges, ops, holds;
	void *peer;
	pid_t pid;
	uint32_t context_count, op_count, hold_count;
	enum sg_process_state state;
	uint64_t locks;        /* how often the process was told to lock itself */
	struct sg_mps *serves; /* the MPS server that this client is, or NULL */
	struct sg_mps *mps;    /* the MPS server that it is a client of, or NULL */
	uint64_t mps_affected; /* GPUs with a fault that is over only when it is gone */
	/* mps_error: an enum sg_err, set since MPS ended its contexts */
	uint32_t mps_share_ppm, mps_error;
	bool mps_left;
	/* Device memory that an MPS client may have; 0: no limit. */
	uint64_t mps_limits[SG_GPU_MAX];
	bool failed; /* a fault ended its operations, so late messages about them are ignored */
};

struct sg_server_context {
	struct td_list link;
	struct sg_gpu *gpu;
	uint32_t id; /* 0: reservations of the process without a context */
	struct td_timeline_context timeline;
	struct td_memory_context memory;
	uint64_t suspended_bytes; /* the bytes that left the GPU for a checkpoint */
};

struct sg_server_range {
	struct td_list link;
	uint32_t id;
	struct sg_server_context *context;
	struct td_range range;
	struct td_page *pages;
};

struct sg_server_op {
	struct td_list link;
	uint64_t id;
	struct sg_peer_state *client;
	struct sg_server_context *context;
	struct td_op op;
	bool has_length;
	bool stuck; /* it never ends, and is not on the timeline */
	uint64_t length_ns;
	uint32_t sm_ppm; /* share of the SMs that had a block of it */
	struct td_touch *touches;
	size_t touch_count;
	struct td_kernel_paging paging;
};

/* The window of the utilisation. NVML's is between 1/6 s and 1 s, by its documentation. */
#define SG_LOAD_WINDOW_NS 200000000u

/* -- fault.c -- */
/* Injects a fault. Returns an enum sg_err. */
int sg_fault_inject(struct sg_server *server, const struct sg_msg *msg);
/* Tells a new client the faults that are in force. */
void sg_fault_tell(struct sg_server *server, struct sg_peer_state *client);
void sg_fault_xid(struct sg_server *server, uint32_t gpu, uint64_t number);

/* -- shared.c -- */
/*
 * Handle SG_MEMORY_HOLD and SG_MEMORY_DROP, and return an enum sg_err. Memory that the sender has
 * already, as SG_MEMORY_SHARE takes it, was given back before.
 */
int sg_shared_hold(
	struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg);
int sg_shared_drop(
	struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg);
/* The client is gone. */
void sg_shared_gone(struct sg_peer_state *client);
/* Returns the bytes that the client is charged with on that GPU. */
uint64_t sg_shared_bytes(const struct sg_peer_state *client, uint32_t gpu);
/* Tells whether another client holds memory of this one, of which none can leave then. */
bool sg_shared_with_others(const struct sg_peer_state *client);
/*
 * sg_shared_suspend() returns the bytes that left, sg_shared_resume() those that came back.
 * sg_shared_need() adds the bytes that each GPU needs for that, under the same kind of map, to
 * need[SG_GPU_MAX].
 */
uint64_t sg_shared_suspend(struct sg_peer_state *client);
void sg_shared_need(const struct sg_peer_state *client, uint64_t map, uint64_t *need);
uint64_t sg_shared_resume(struct sg_server *server, struct sg_peer_state *client, uint64_t map);

/* -- checkpoint.c -- */
/* Handles a request about a checkpoint. Returns an enum sg_err. */
int sg_checkpoint(struct sg_server *server, const struct sg_msg *msg, struct sg_msg *reply);
void sg_checkpoint_locked(struct sg_peer_state *client, uint64_t lock);
/* Returns the GPU to which such a map moves a GPU. */
uint32_t sg_remap(uint64_t map, uint32_t gpu);

/* -- server.c -- */
/* Ends every operation of the client with an error; gpu: only those on that GPU, NULL: all. */
void sg_server_fail_operations(
	struct sg_server *server, struct sg_peer_state *client, const struct sg_gpu *gpu);

/* -- mps.c -- */
/* Answers SG_MPS_SERVE, _JOIN, _SET and _TERMINATE. Returns enum sg_err. */
int sg_mps_request(struct sg_server *server, struct sg_peer_state *client, const struct sg_msg *msg,
	struct sg_msg *reply);
/* Fills the reply to SG_MPS_STATE and up to SG_PROCESSES_MAX pids; returns how many. */
uint32_t sg_mps_state(
	const struct sg_server *server, uint64_t pid, struct sg_msg *reply, uint32_t *pids);
/* Decides whether the client may have one more context there. Returns enum sg_err. */
int sg_mps_admit(const struct sg_server *server, const struct sg_peer_state *client,
	const struct sg_gpu *gpu);
/* Puts the context of an MPS client into its group; share_ppm as of SG_CONTEXT_NEW. */
void sg_mps_context_new(
	const struct sg_peer_state *client, struct sg_server_context *context, uint64_t share_ppm);
/* Returns whether the client's limit allows that much more device memory on the GPU. */
bool sg_mps_has_room(const struct sg_peer_state *client, const struct sg_gpu *gpu, uint64_t bytes);
/* Returns whether no operation of the client ends any more. */
bool sg_mps_hangs(const struct sg_peer_state *client);
/* Handles a fault of a kernel of the client on that GPU. */
void sg_mps_fault(
	struct sg_server *server, struct sg_peer_state *client, uint32_t gpu, uint64_t result);
/* Called first when the connection has ended, while the client still has its operations. */
void sg_mps_client_leaves(struct sg_server *server, const struct sg_peer_state *client);
/* Called last, when the client has been removed from the list of clients. */
void sg_mps_gone(struct sg_server *server, struct sg_peer_state *client);
/* Returns whether the client belongs to this MPS server. */
bool sg_mps_owns(const struct sg_peer_state *owner, const struct sg_peer_state *client);

/* -- report.c -- */
void sg_gpu_load_update(struct sg_gpu *gpu, uint64_t now_ns);
void sg_gpm_fill(const struct sg_gpu *gpu, uint64_t now_ns, struct sg_gpm_sample *ret);
void sg_gpu_state_fill(const struct sg_gpu *gpu, struct sg_gpu_state *ret);
void sg_gpu_info_fill(const struct sg_gpu *gpu, struct sg_gpu_info *info);
/* Answers the questions that have rows or a text as their answer. False if msg is none of them. */
bool sg_server_report(struct sg_server *server, const struct sg_peer_state *client,
	const struct sg_msg *msg, uint64_t now_ns);
/*
 * Lists the processes with a context on that GPU. rows has SG_PROCESSES_MAX entries; returns how
 * many are filled.
 */
uint32_t sg_server_processes(const struct sg_server *server, uint32_t gpu, struct sg_process *rows);
