/* What the server keeps of each client. Bounds: what one client can make the server hold. */
#pragma once

#include "softgpu/server/server.h"

#define SG_CONTEXTS_MAX  64
#define SG_OPS_MAX       4096
#define SG_TOUCHES_MAX   65536
#define SG_PROCESSES_MAX 512
#define SG_MANAGED_MAX   (1ull << 40)

struct sg_peer_state {
	struct td_list link, contexts, ranges, ops;
	void *peer;
	pid_t pid;
	uint32_t context_count, op_count;
};

struct sg_server_context {
	struct td_list link;
	struct sg_gpu *gpu;
	uint32_t id; /* 0: the process's own reservations */
	struct td_timeline_context timeline;
	struct td_memory_context memory;
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
	struct td_touch *touches;
	size_t touch_count;
	struct td_kernel_paging paging;
};
