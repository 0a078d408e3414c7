/*
 * The GPUs of this node, as tandemd reports them. A GPU that was seen once stays in the list, so
 * that the kubelet is told when it is lost.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/uuid.h"

#define TD_NODE_GPUS 64u

struct td_node_gpu {
	char uuid[TD_UUID_TEXT];
	/*
	 * tandemd lists the GPU, it is not lost, and MPS on it was not given up after repeated
	 * failures.
	 */
	bool is_healthy;
};

struct td_node_gpus {
	uint32_t count;
	struct td_node_gpu gpu[TD_NODE_GPUS];
	bool daemon_answers;
};

/*
 * Asks the daemon at `socket`, which may take 200 ms, and brings the list up to date. Returns true
 * if something has changed. Where no daemon is, all GPUs are unhealthy.
 */
bool td_node_gpus_ask(struct td_node_gpus *gpus, const char *socket);
