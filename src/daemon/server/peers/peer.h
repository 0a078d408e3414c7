/*
 * Connections of client processes and tools. Turns packets into td_node_* calls, and the node's
 * output into packets and gate words. A peer that sends invalid messages, or does not read what it
 * is sent, loses its connection and harms no other.
 */
#pragma once

#include "daemon/model/sharing/fair.h"
#include "daemon/model/node.h"
#include "daemon/model/sharing/pool.h"
#include "daemon/model/sharing/users.h"
#include "daemon/server/gpus/gpu_locks.h"
#include "daemon/server/gpus/helper.h"
#include "daemon/server/loop/closer.h"
#include "daemon/server/machine/cpus.h"
#include "daemon/server/machine/learner.h"
#include "daemon/server/loop/loop.h"
#include "daemon/server/gpus/mps.h"
#include "daemon/server/machine/pressure.h"
#include "daemon/server/loop/sweep.h"
#include "daemon/server/gpus/watch.h"
#include "daemon/server/peers/spaces.h"

struct td_server {
	struct td_loop *loop;
	struct td_node node;
	struct td_watch watch;
	struct td_gpu_locks gpu_locks;
	struct td_mps_table mps;
	struct td_pressure_watch pressure;
	struct td_cpus cpus;
	struct td_learner learner;
	struct td_helpers helpers;
	struct td_sweep sweep;
	struct td_closer *closer;
	struct td_source listener;
	int spare_fd; /* closed for a moment when descriptors run out; below 0: none */
	/*
	 * no connection is accepted before this time, for want of descriptors; 0: they are accepted
	 */
	uint64_t deaf_until_ns;
	struct td_list peers, held;
	bool holds; /* messages to programs are held until the step has written all gates */
	struct td_fair fair; /* decides which peer is read from next */
	uint32_t peer_count;
	struct td_pool connections;
	struct td_users users;
	struct td_spaces spaces;
	/*
	 * These let a turn leave out what nothing has changed for. heard: a message came, or a
	 * connection ended. stuck: a peer has not taken in what this turn has sent it. again: the
	 * next turn leaves out nothing. due_ns: when the parts other than the node want their turn.
	 * step_ns: when the node wants its next step, if nothing changes before.
	 */
	bool heard, stuck, again;
	uint64_t due_ns, step_ns;
	uint64_t started_ns;
	uint64_t seen_ns;    /* the time of the sample that the node was given last */
	uint64_t glanced_ns; /* the time of the last glance (sampler.h) that the node was given */
	bool asked;          /* an earlier sample has been requested */
};

/* Takes over the listening socket; `socket` is its path. Returns 0 or -errno. */
int td_server_init(
	struct td_server *server, struct td_loop *loop, int listen_fd, const char *socket);
/*
 * Frees the server. Connections and the listening socket stay open until the process ends, because
 * closing them could take long (closer.h).
 */
void td_server_deinit(struct td_server *server);

/*
 * Runs one turn of the loop: the node steps, and broken peers are removed. Returns when to call it
 * again.
 */
uint64_t td_server_turn(void *arg, uint64_t now_ns);
