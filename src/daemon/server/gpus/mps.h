/*
 * The MPS control daemons of this node's GPUs, one each (gpu/mps.h), while the option mps asks for
 * them. A control daemon that tandem did not start is left alone, and none is started beside it:
 * the programs of the two would take turns.
 */
#pragma once

#include "daemon/model/node.h"
#include "daemon/server/loop/loop.h"
#include "gpu/mps.h"

struct td_mps_gpu;

struct td_mps_table {
	struct td_loop *loop;
	struct td_node *node;
	char root[TD_MPS_PATH]; /* the parent of each GPU's directory; "": the path is too long */
	struct td_mps_gpu *gpus[TD_NVML_GPU_MAX];
	uint32_t count;
	bool has_foreign, told_foreign, is_installed;
	struct td_mps_place foreign;
	uint64_t look_ns; /* when to look for a foreign control daemon next */
};

/* `socket` is the path of the daemon's socket. The MPS directories are made beside it. */
void td_mps_table_init(
	struct td_mps_table *table, struct td_loop *loop, struct td_node *node, const char *socket);
/* Tells running control daemons to quit, which waits for their clients. */
void td_mps_table_deinit(struct td_mps_table *table);

/*
 * Starts, checks and stops control daemons, as needed. Returns when to call it again, or
 * UINT64_MAX.
 */
uint64_t td_mps_table_turn(struct td_mps_table *table, uint64_t now_ns);

/*
 * Reads the state of MPS on that GPU, for policies. Returns false if MPS is not managed there: the
 * GPU is divided, or there is a control daemon that tandem did not start.
 */
bool td_mps_table_seen(
	const struct td_mps_table *table, const uint8_t *uuid, struct td_mps_seen *ret);

/* Makes the server drop its client, by the command terminate_client. */
void td_mps_table_terminate(struct td_mps_table *table, const uint8_t *uuid, pid_t client);

/*
 * Fills in the state of MPS for that GPU: while it is ready, with the pipe directory; otherwise
 * with the reason. "" means that there is no control daemon.
 */
void td_mps_table_tell(
	const struct td_mps_table *table, const uint8_t *uuid, struct td_msg_gpu *ret);
