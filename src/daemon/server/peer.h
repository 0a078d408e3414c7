/*
 * Connections of client processes and tools. Turns packets into td_node_* calls, and the node's
 * output into packets and gate words. A peer that sends invalid messages, or does not read what it
 * is sent, loses its connection and nothing else.
 */
#pragma once

#include "daemon/model/fair.h"
#include "daemon/model/node.h"
#include "daemon/model/pool.h"
#include "daemon/model/users.h"
#include "daemon/server/gpu_locks.h"
#include "daemon/server/closer.h"
#include "daemon/server/cpus.h"
#include "daemon/server/loop.h"
#include "daemon/server/mps.h"
#include "daemon/server/pressure.h"
#include "daemon/server/sweep.h"
#include "daemon/server/watch.h"

struct td_server {
	struct td_loop *loop;
	struct td_node node;
	struct td_watch watch;
	struct td_gpu_locks gpu_locks;
	struct td_mps_table mps;
	struct td_pressure_watch pressure;
	struct td_cpus cpus;
	struct td_sweep sweep;
	struct td_closer *closer;
	struct td_source listener;
	int spare_fd;           /* given up for a moment when there are no others; below 0: none */
	uint64_t deaf_until_ns; /* there is none: nobody is accepted until then; 0: they are */
	struct td_list peers, held;
	bool holds; /* programs are sent what they are told once the step has written all gates */
	struct td_fair fair; /* who of them is read from next */
	uint32_t peer_count;
	struct td_pool connections;
	struct td_users users;
	uint64_t started_ns;
	uint64_t seen_ns;    /* the sample that the node was told last */
	uint64_t glanced_ns; /* the last glance that was taken in */
	bool asked;          /* for the next one, before its time */
};

/* Takes over the listening socket, which is at this path. 0 or -errno. */
int td_server_init(
	struct td_server *server, struct td_loop *loop, int listen_fd, const char *socket);
/*
 * Connections and the listening socket end with the process, because closing them could take long
 * (closer.h).
 */
void td_server_deinit(struct td_server *server);

/* Runs one turn of the loop: the node steps, and broken peers are removed. */
uint64_t td_server_turn(void *arg, uint64_t now_ns);
