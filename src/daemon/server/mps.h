/*
 * The MPS control daemons of this node's GPUs, one each (gpu/mps.h), while the option mps asks for
 * them. A control daemon that is somebody else's is left alone, and none of ours is started beside
 * it: programs of both would take turns.
 */
#pragma once

#include "daemon/model/node.h"
#include "daemon/server/loop.h"
#include "gpu/mps.h"

struct td_mps_gpu;

struct td_mps_table {
	struct td_loop *loop;
	struct td_node *node;
	char root[TD_MPS_PATH]; /* each GPU has a directory in it; "": the path is too long */
	struct td_mps_gpu *gpus[TD_NVML_GPU_MAX];
	uint32_t count;
	bool has_foreign, told_foreign, is_installed;
	struct td_mps_place foreign;
	uint64_t look_ns; /* for a foreign one, next */
};

/* socket: the daemon's own, beside which the directories are. */
void td_mps_table_init(
	struct td_mps_table *table, struct td_loop *loop, struct td_node *node, const char *socket);
/* Tells running control daemons to quit, which waits for their clients. */
void td_mps_table_deinit(struct td_mps_table *table);

/* Starts, asks and ends. Returns when to be called again, UINT64_MAX: never. */
uint64_t td_mps_table_turn(struct td_mps_table *table, uint64_t now_ns);

/*
 * Looks at MPS on that GPU, for policies. False: nobody looks after it, as the GPU is divided, or
 * there is a control daemon that is not ours.
 */
bool td_mps_table_seen(
	const struct td_mps_table *table, const uint8_t *uuid, struct td_mps_seen *ret);

/* Has the server let go of its client: terminate_client. */
void td_mps_table_terminate(struct td_mps_table *table, const uint8_t *uuid, pid_t client);

/*
 * Fills in the state for that GPU and, while it is ready, the pipe directory, else the reason. "":
 * there is no control daemon.
 */
void td_mps_table_tell(
	const struct td_mps_table *table, const uint8_t *uuid, struct td_msg_gpu *ret);
